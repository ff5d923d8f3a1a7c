"""`rolling-chat completion`: shell completion of the command line."""

from __future__ import annotations

from importlib import resources

from rolling_chat.cli.exits import Exit
from rolling_chat.cli.options import Options
from rolling_chat.settings.paths import Paths


def run_completion(options: Options, _paths: Paths) -> int:
    """Print a shell's completion script (created by `.ci/make_completions.py`)."""
    folder = resources.files("rolling_chat.cli") / "completions"
    print((folder / f"rolling-chat.{options.shell}").read_text(encoding="utf-8"), end="")
    return Exit.DONE
