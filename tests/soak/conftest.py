"""Tests run side by side, so that every limit is a generous one; `python -m tests.soak` takes it as it is."""

from __future__ import annotations

import os

os.environ.setdefault("SOAK_SCALE", "5")  # read when `pane` is imported
