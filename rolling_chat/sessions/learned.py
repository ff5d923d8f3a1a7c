"""What refusals and replies taught about models, kept for the next process.

A model is known by its name, which holds the provider's, and the address it was reached at (empty: the
provider's own).
"""

from __future__ import annotations

from typing import Protocol

from rolling_chat.messages import Json, JsonObject
from rolling_chat.sessions.records import Learned

LAPSES_AFTER = 30 * 86_400.0
"""Seconds that a learned limit is trusted: servers are set up anew, and models get larger windows."""


class LearnedModels(Protocol):
    """A store of what refusals and replies revealed about models: their limits, how they count tokens."""

    def learned(self, model: str, address: str) -> Learned:
        """Return the window learned from refusals of a model at an address; empty if it has lapsed."""

    def keep_learned(self, model: str, address: str, what: Learned) -> None:
        """Store a model's limit in tokens; 0 deletes it."""

    def measured(self, model: str, address: str) -> Json:
        """Return the stored measurements of how a model counts tokens; None if there are none."""

    def keep_measured(self, model: str, address: str, value: JsonObject) -> None:
        """Store how a model counts tokens, as measured from its replies."""
