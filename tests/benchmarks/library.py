"""What the pipeline costs as a library: the time to import it, and what comes with it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

_RUNS = 7
_SCRIPT = "import sys, rolling_chat.context; print(len(sys.modules), 'litellm' in sys.modules)"


def run() -> Iterator[str]:
    """The import beside a bare interpreter, the best of some runs."""
    bare = min(_seconds("pass") for _ in range(_RUNS))
    ours = min(_seconds("import rolling_chat.context") for _ in range(_RUNS))
    yield f"import rolling_chat.context: {1_000 * (ours - bare):.0f} ms above a bare {1_000 * bare:.0f} ms"
    heavy = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    yield f"modules loaded: {heavy[0]}; litellm among them: {heavy[1]}"


def _seconds(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started
