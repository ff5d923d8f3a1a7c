"""Keys at random and in every pair, in every mode: nothing spins, and what is typed afterwards echoes."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from textual import _wait

from tests.support.keys import MODES, Mode, echoes, keys_of, walking

_SEED = 11
_A_SCREEN = 150  # walks on one screen: what they leave in the conversation would slow down the next


@pytest.fixture(autouse=True)
def _only_messages_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of keys, of which none waits for a paint."""
    monkeypatch.setattr(_wait, "SLEEP_GRANULARITY", 0)
    monkeypatch.setattr(_wait, "SLEEP_IDLE", 1)


@pytest.fixture(autouse=True)
def _other_programs_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VISUAL", "EDITOR", "PAGER"):
        monkeypatch.setenv(name, "true")


async def _walk(home: Path, walks: list[tuple[Mode, tuple[str, ...]]]) -> None:
    for begin in range(0, len(walks), _A_SCREEN):
        folder = home / str(begin)
        folder.mkdir()
        async with walking(folder) as pilot:
            for mode, keys in walks[begin : begin + _A_SCREEN]:
                await mode.enter(pilot)
                await echoes(pilot, *keys)


async def _keys(home: Path) -> dict[Mode, list[str]]:
    keys: dict[Mode, list[str]] = {}
    folder = home / "keys"
    folder.mkdir()
    async with walking(folder) as pilot:
        for mode in MODES:
            await mode.enter(pilot)
            keys[mode] = keys_of(pilot, mode)
            await echoes(pilot)
    return keys


async def _triples(home: Path, count: int) -> None:
    keys = await _keys(home)
    every = sorted({key for some in keys.values() for key in some})
    choice = random.Random(_SEED)  # no secret
    walks = [
        (mode, tuple(choice.choice(choice.choice((keys[mode], every))) for _ in range(3)))
        for mode, _ in zip(MODES * (count // len(MODES) + 1), range(count), strict=False)
    ]
    await _walk(home, walks)


async def test_thirty_four_triples_of_keys_two_in_every_mode(tmp_path: Path) -> None:
    await _triples(tmp_path, 2 * len(MODES))


@pytest.mark.slow
async def test_two_thousand_triples_of_keys_over_all_modes(tmp_path: Path) -> None:
    await _triples(tmp_path, 2_000)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
async def test_every_ordered_pair_of_a_modes_keys(tmp_path: Path, mode: Mode) -> None:
    keys = (await _keys(tmp_path))[mode]
    await _walk(tmp_path, [(mode, pair) for pair in product(keys, repeat=2)])
