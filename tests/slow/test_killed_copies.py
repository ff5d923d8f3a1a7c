"""Copying killed in the middle, again and again: what arrived is whole, and the same command goes on."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.records import SessionCopy
from rolling_chat.sessions.store import SessionStore
from tests.support.patience import PATIENCE_SECONDS, wait_for
from tests.support.postgres import ADMIN, shared_server
from tests.support.program import program_environment
from tests.support.sessions import faults_of, new_session
from tests.support.stores import PostgresPlace
from tests.support.unsteady_network import UnsteadyNetwork, unsteady_network

pytestmark = pytest.mark.slow

KILLS = 40
SESSIONS, TEXT = 6, "word " * 2000


@pytest.mark.parametrize("way", ["push", "pull"])
def test_killed_copies_leave_no_session_torn(tmp_path: Path, way: str) -> None:
    rng = random.Random(1)
    place = PostgresPlace(tmp_path)
    local = tmp_path / "rolling-chat" / "sessions.db"
    with unsteady_network(shared_server().socket) as network:
        network.delay = 0.002  # so that there is a middle
        address = behind(network, place)
        source, target = open_store(local), place.open()
        if way == "pull":
            source, target = target, source
        states: dict[str, list[SessionCopy]] = {new_session(source).id: [] for _ in range(SESSIONS)}
        for _ in range(KILLS):
            grow(source, rng.choice([*states]), states, rng)
            kill_while_copying(tmp_path, way, address, network, rng.randrange(1, 60))
            for info in target.sessions():
                assert target.copy_of(info.id) in states[info.id]
        process = start(tmp_path, way, address)
        process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0
        for session, copies in states.items():
            if copies:
                assert target.copy_of(session) == copies[-1]
        source.close()
        target.close()
    assert place.faults() == []
    assert faults_of(local) == []


def grow(store: SessionStore, session: str, states: dict[str, list[SessionCopy]], rng: random.Random) -> None:
    """Say something in a session; note all that it was."""
    if states[session] and rng.random() < 0.3:
        store.move_head(session, rng.choice(store.branch(session)).id, "m")
    store.append_all(session, [Message("user", f"{n} {TEXT}") for n in range(rng.randrange(1, 40))])
    states[session].append(store.copy_of(session))


def behind(network: UnsteadyNetwork, place: PostgresPlace) -> str:
    """The address of a database by way of that network."""
    database = place.address.partition("@/")[2].partition("?")[0]
    return f"postgresql://{ADMIN}@127.0.0.1:{network.port}/{database}"


def start(home: Path, way: str, address: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "rolling_chat",
        "-c",
        f"sessions.store={address}",
        "sessions",
        way,
        "--all",
    ]
    return subprocess.Popen(
        command,
        env=program_environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_while_copying(home: Path, way: str, address: str, network: UnsteadyNetwork, pieces: int) -> None:
    """Run the program until it has sent so much, or is done."""
    until = network.pieces + pieces
    process = start(home, way, address)
    wait_for(lambda: network.pieces >= until or process.poll() is not None)
    process.kill()
    process.communicate()


def test_a_server_that_goes_in_the_middle_is_told_and_gone_on_with(tmp_path: Path) -> None:
    place = PostgresPlace(tmp_path)
    with unsteady_network(shared_server().socket) as network:
        address = behind(network, place)
        here, there = open_store(tmp_path / "rolling-chat" / "sessions.db"), place.open()
        for _ in range(SESSIONS):
            here.append_all(new_session(here).id, [Message("user", TEXT) for _ in range(40)])
        network.delay = 0.005
        process = start(tmp_path, "push", address)
        assert process.stdout is not None
        assert "40 messages pushed" in process.stdout.readline()
        network.is_down = True
        network.cut()
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 1
        assert re.fullmatch(
            r"rolling-chat: \d of 6 sessions had been done when the .* out of reach; .*\n", said
        )
        network.is_down, network.delay = False, 0.0
        again = start(tmp_path, "push", address)
        out, _ = again.communicate(timeout=PATIENCE_SECONDS)
        assert again.returncode == 0
        assert out.count("pushed  ") + out.count("up to date  ") == SESSIONS
        for info in here.sessions():
            assert there.copy_of(info.id) == here.copy_of(info.id)
        here.close()
        there.close()


def test_several_that_push_at_once_do_it_once(tmp_path: Path) -> None:
    place = PostgresPlace(tmp_path)
    here, there = open_store(tmp_path / "rolling-chat" / "sessions.db"), place.open()
    for _ in range(SESSIONS):
        session = new_session(here).id
        here.append_all(session, [Message("user", TEXT) for _ in range(40)])
        fork = here.fork(session).id
        for one in (session, fork):
            here.append(one, Message("user", "and on"))
    for process in [start(tmp_path, "push", place.address) for _ in range(4)]:
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, said) == (0, "")
    for info in here.sessions():
        assert there.copy_of(info.id) == here.copy_of(info.id)
    here.close()
    there.close()
    assert place.faults() == []
