"""`kill -9` while text streams: what was on the screen is in the store, character for character."""

from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.values import REASONING
from tests.support.killing import CHATTER, Executioner
from tests.support.sessions import faults_of
from tests.terminal.conftest import Desk

pytestmark = pytest.mark.slow

ROUNDS, KILLS, LONGEST = 15, 20, 0.6  # seconds
SCREENS = 12
_DRAWN_BY_US = re.compile(r"[▍▎▏│┃❯⚙·]|[▁-█]\s*$")


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_what_a_screen_was_told_to_paint_is_stored(tmp_path: Path, round_: int) -> None:
    rng, painted = random.Random(round_), 0
    database = tmp_path / "sessions.db"
    with Executioner(CHATTER) as executioner:
        for kill in range(KILLS):
            acks = executioner.kill(
                database, tmp_path / "acks", 1000 * round_ + kill, after=rng.uniform(0, LONGEST)
            )
            told: dict[tuple[str, str], str] = defaultdict(str)
            for ack in acks:
                assert ack["op"] != "failed", ack
                told[ack["op"], ack["id"]] += ack["text"]
            painted += sum(op == "painted" for op, _ in told)
            store = open_store(database)
            there = {one.id: one for info in store.sessions() for one in store.branch(info.id)}
            for (op, name), text in told.items():
                kept = there[name]
                stored = str((kept.extras or {}).get(REASONING, "")) if op == "thought" else kept.text
                assert stored.startswith(text)
            store.close()
    assert faults_of(database) == []
    assert painted


@pytest.mark.parametrize("seed", range(SCREENS))
def test_what_the_emulator_shows_is_stored(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    words = [f"w{number}é漢" for number in range(50)]
    lines = [" ".join(rng.choices(words, k=rng.randint(3, 60))) for _ in range(20)]
    (folder / "facts.txt").write_text("\n".join(lines))
    with ExitStack() as stack:
        desk = Desk(folder, home, stack)
        terminal = desk.open(columns=rng.randint(50, 140), rows=40, ROLLING_CHAT_OFFLINE_DELAY="8")
        terminal.see("rolling: off")
        terminal.say("read facts.txt")
        terminal.see("begins with", "answering")
        until = time.monotonic() + rng.uniform(0, 3.0)
        while (left := until - time.monotonic()) > 0:
            terminal.gather(left)
        terminal.kill()
        terminal.drain()
        for _ in terminal.drawn():
            pass
    with closing(desk.store) as store:
        newest = store.newest(str(folder.resolve()))
        assert newest is not None
        answer = store.branch(newest.id)[-1]
    assert answer.role == "assistant"
    shown = [_DRAWN_BY_US.sub("", line).strip() for line in terminal.lines]
    of_answer = [line for line in shown if re.match(r"w\d+é", line)]
    assert of_answer
    for line in of_answer:
        assert line in answer.text
    assert "facts.txt begins with:" in answer.text
