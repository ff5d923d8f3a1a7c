"""What an episode did, as JSON lines: keystrokes, faults of the servers, broken promises."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path


class Journal:
    """Written from the walk and from the servers' threads alike."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._out = file.open("w", encoding="utf-8", errors="backslashreplace")

    def write(self, kind: str, **what: object) -> None:
        """Add a line."""
        row = {"at": round(time.monotonic() - self._began, 3), "kind": kind, **what}
        with self._lock:
            if not self._out.closed:
                self._out.write(json.dumps(row, default=str) + "\n")
                self._out.flush()

    def count(self, what: str, times: int = 1) -> None:
        """Count something for the summary at the end."""
        with self._lock:
            self.counts[what] += times

    def violate(self, what: str, **more: object) -> None:
        """Note a promise that was broken."""
        self.write("violation", what=what, **more)
        with self._lock:
            self.violations.append(what)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._out.close()
