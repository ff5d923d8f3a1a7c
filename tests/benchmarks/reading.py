"""Reading the transcripts, which stay outside the project.

`ROLLING_CHAT_TRANSCRIPTS` names a folder of JSONL files, one conversation a line with its `messages`,
packed or not.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FOLDER = "ROLLING_CHAT_TRANSCRIPTS"
NO_TRANSCRIPTS = f"no transcripts: set {_FOLDER} to a folder of JSONL files"


def transcript_files(folder: str = "") -> list[Path]:
    """The files of `folder`, or of the one that the environment names, in order; none where none is named."""
    folder = folder or os.environ.get(_FOLDER, "")
    return sorted(Path(folder).glob("*.jsonl*")) if folder else []


def conversations(path: Path) -> Iterator[dict[str, Any]]:
    """The conversations of a file as they stand there."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
