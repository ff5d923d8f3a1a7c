"""Rows of a table in one test, where what all of them need is dear to set up."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager


class Cases:
    """Collects the failures of the rows, each with the name of its row, and stops at none."""

    def __init__(self) -> None:
        self._failures: list[str] = []

    @contextmanager
    def case(self, name: object) -> Iterator[None]:
        """Run one row. A failure is noted and the next row may run."""
        try:
            yield
        except Exception:
            self._failures.append(f"{name!r}:\n{traceback.format_exc()}")

    def finish(self) -> None:
        """Fail if a row has failed, naming every one of them."""
        assert not self._failures, "\n".join([f"{len(self._failures)} failed", *self._failures])
