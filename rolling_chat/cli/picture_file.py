"""The file for `--svg`: checked before any work, written at the end."""

from __future__ import annotations

from pathlib import Path

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.text import one_line


def picture_file(options: Options) -> Path | None:
    """Return the file for the picture, if any. Raises Failure if it cannot be written."""
    if options.svg is None:
        return None
    file = Path(options.svg)
    if not options.svg or file.is_dir() or not file.parent.is_dir():
        raise Failure(
            f"--svg {one_line(options.svg)}: give the name of a file in a folder that exists", Exit.USAGE
        )
    return file


def write_picture(file: Path, picture: str) -> None:
    """Write the picture. Raises Failure."""
    try:
        file.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write {one_line(str(file))}: {error.strerror or error}") from error
