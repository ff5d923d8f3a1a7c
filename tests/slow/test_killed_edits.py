"""`kill -9` while files are edited and undone: they are as at that turn, or the conflict is named."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.edits import EditingDesk
from tests.support.killing import EDITOR, Executioner
from tests.support.sessions import faults_of

pytestmark = pytest.mark.slow

ROUNDS, KILLS, LONGEST = 12, 12, 1.0  # seconds


@dataclass
class Witness:
    """What the files held at each head, by all the processes that were killed."""

    at: dict[str, dict[str, bytes]] = field(default_factory=lambda: {"": {}})
    touched: set[str] = field(default_factory=set)  # by somebody else
    begun: dict[str, Any] = field(default_factory=dict)  # the act that was not over when the process died
    compared: int = 0

    def take(self, acks: list[dict[str, Any]]) -> None:
        self.begun = {}
        for ack in acks:
            match ack["op"]:
                case "begun":
                    self.begun = ack
                    if ack["act"] == "outside":
                        self.touched.add(ack["name"])
                case "at":
                    self.begun = {}
                    files = {name: base64.b64decode(data) for name, data in ack["files"].items()}
                    self.see(ack["head"], files, ack["left"], is_new=ack["act"] in ("turn", "outside"))
                case "failed":
                    raise AssertionError(ack["text"])

    def see(self, head: str, files: dict[str, bytes], left: list[str], *, is_new: bool = False) -> None:
        """Compare the files at a head with what they were there before, or note them."""
        if is_new or head not in self.at:
            self.at[head] = files
            return
        expected = self.at[head]
        for name in {*files, *expected}:
            is_named = any(line.startswith(f"{name} ") for line in left)
            self.touched |= (
                {name} if is_named else set()
            )  # it stays so, and is named only where it would move
            self.compared += 1
            assert files.get(name) == expected.get(name) or name in self.touched, (name, self.begun, left)


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_files_are_what_they_were_at_that_turn_or_the_conflict_is_named(tmp_path: Path, round_: int) -> None:
    rng, witness = random.Random(round_), Witness()
    database = tmp_path / "sessions.db"
    with Executioner(EDITOR) as executioner:
        for kill in range(KILLS):
            seed, after = 1000 * round_ + kill, rng.uniform(0, LONGEST)
            witness.take(executioner.kill(database, tmp_path / "acks", seed, after=after))
            desk = EditingDesk(tmp_path)
            _check(desk, witness, rng)
            desk.chat.close()
            assert faults_of(database) == []
    assert witness.compared


def _check(desk: EditingDesk, witness: Witness, rng: random.Random) -> None:
    """Open the session as the next process does, then go back to some turn of it."""
    act = witness.begun.get("act", "")
    if act in ("", "turn") or desk.head not in witness.at:
        witness.see(desk.head, desk.contents(), [])
    turns = desk.chat.session.history.turns()
    if turns:
        left = desk.go_before(rng.randrange(len(turns)))
        witness.see(desk.head, desk.contents(), left)
