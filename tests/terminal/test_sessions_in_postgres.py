"""The program in a terminal with its sessions in PostgreSQL: used, followed, and cut off from them."""

from __future__ import annotations

import pytest

from tests.support.postgres import new_database, own_server, shared_server
from tests.support.terminal import Terminal
from tests.terminal.conftest import SLOW, Desk

_CTRL_Q = "\x11"


def open_at(desk: Desk, address: str, *argv: str, **environ: str) -> Terminal:
    terminal = desk.open("-c", f"sessions.store={address}", *argv, **environ)
    terminal.see("rolling: off")
    return terminal


def test_sessions_are_saved_listed_and_copied_there(desk: Desk) -> None:
    server = shared_server()
    address = server.url(new_database(server))
    (desk.folder / "a.txt").write_text("The kettle is blue.")
    terminal = open_at(desk, address)
    terminal.say("Read a.txt. Then list files.")
    terminal.see("done in", "The kettle is blue.")
    terminal.say("/rename Kettles")
    terminal.see("The session is called 'Kettles' now.")
    terminal.say("/share nobody-here read")
    terminal.see("the database has no other login 'nobody-here'")
    terminal.say("/fork")
    terminal.see("This is a copy of session")
    terminal.say("/sessions")
    terminal.see("Sessions", "enter open")
    terminal.type("\x1b")
    terminal.type(_CTRL_Q)
    assert terminal.leave() == 0
    assert "Continue with: rolling-chat --resume" in terminal.text


@pytest.mark.slow
def test_a_second_home_follows_and_goes_on_when_the_first_has_left(desk: Desk) -> None:
    server = shared_server()
    address = server.url(new_database(server))
    first = open_at(desk, address)
    first.say("The kettle is blue.")
    first.see("done in")
    elsewhere = {"ROLLING_CHAT_HOME": str(desk.home / "elsewhere")}
    second = desk.open("-c", f"sessions.store={address}", "--continue", **elsewhere)
    second.see("open in another terminal", "The kettle is blue.")
    first.say("What color is the kettle?")
    second.see("❯ What color is the kettle?", "blue")
    first.type(_CTRL_Q)
    second.see("has closed this session")
    second.say("And what was blue?")
    second.see("done in")


@pytest.mark.slow
def test_a_database_that_is_gone_is_told_and_waited_for_and_the_draft_is_kept(desk: Desk) -> None:
    desk.write_facts()
    with own_server() as server:
        server.sql("CREATE DATABASE sessions")
        address = server.url("sessions")
        terminal = open_at(desk, address, ROLLING_CHAT_OFFLINE_DELAY=SLOW)
        terminal.say("Read facts.txt.")
        terminal.see("fact1 is 1")
        server.crash()
        terminal.type("typed while it is gone")
        terminal.see("typed while it is gone", "is out of reach and is tried again")
        server.start()
        terminal.see("The session store answers again.", "fact5 is 5")
        shown = [number for number in range(6) if f"fact{number} is {number}, yes." in terminal.text]

        server.crash()
        terminal.see("is out of reach and is tried again")
        terminal.type(_CTRL_Q)
        assert terminal.leave() == 0
        server.start()
        again = open_at(desk, address, "--continue")
        again.see("The draft that was not sent is back", "❯ typed while it is gone")
        assert [number for number in shown if f"fact{number} is {number}, yes." not in again.text] == []
