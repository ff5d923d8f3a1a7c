"""How long a test waits for a condition before it gives up."""

from __future__ import annotations

PATIENCE_SECONDS = 60.0
"""Nothing waits this long when all is well, however busy the machine is."""
