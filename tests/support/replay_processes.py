"""A pipeline for the processes of a replay that kills them where it is told to."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.context import ContextConfig, CountMemo
from rolling_chat.replay import Replayed, Transcript, replay


@dataclass(frozen=True, slots=True)
class Deadly:
    """Plans requests, but is killed by the conversations named: at the first request, each time or once.

    `once` is a file that is there when somebody has died of the conversation already.
    """

    deadly: frozenset[str] = frozenset()
    once: Path | None = None
    broken: frozenset[str] = frozenset()

    def requests(self, transcript: Transcript, memo: CountMemo) -> Iterator[Replayed]:
        """Plan the requests of a conversation."""
        if transcript.id in self.deadly and not (self.once and self.once.exists()):
            if self.once:
                self.once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if transcript.id in self.broken:
            raise RuntimeError("no plan for this one")
        return replay(transcript, ContextConfig(max_context_tokens=8192), memo=memo)
