"""Nothing heavy is imported on the event loop, where keys would wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.servers import OpenAIServer, Reply
from tests.terminal.conftest import Desk

ANSWER = "The answer has come."
MOST = 5  # modules: the standard library imports an encoding, Textual a part of its own, by need

# Writes down every module that is looked for while an event loop runs in the same thread, and where from.
WATCH = """
import asyncio, sys
class Watching:
    def find_spec(self, name, path=None, target=None):
        if asyncio._get_running_loop() is None:
            return
        frame, names = sys._getframe(1), []
        while frame is not None:
            names.append(frame.f_globals.get("__name__", ""))
            frame = frame.f_back
        with open({file!r}, "a") as file:
            print(name, *dict.fromkeys(word for word in names if "importlib" not in word), file=file)
sys.meta_path.insert(0, Watching())
"""


def test_a_turn_with_the_demo_imports_next_to_nothing_on_the_loop(desk: Desk, tmp_path: Path) -> None:
    (desk.folder / "notes.txt").write_text("Nothing much.")
    imported = _turn(desk, tmp_path, "list the files", "notes.txt", "--model", "demo/offline")
    assert len(imported) <= MOST, imported


def test_a_turn_over_http_imports_next_to_nothing_on_the_loop(desk: Desk, tmp_path: Path) -> None:
    with OpenAIServer(lambda _body: Reply(ANSWER), models=("scripted",)).in_thread() as server:
        model = ("--model", "openai/scripted", "--api-base", server.api_base)
        imported = _turn(desk, tmp_path, "a question", ANSWER, *model, OPENAI_API_KEY="sk-none")
    assert len(imported) <= MOST, imported


def _turn(desk: Desk, folder: Path, question: str, answer: str, *argv: str, **environ: str) -> Sequence[str]:
    """What was imported on the loop, a line a module, from the open session to the end of a turn."""
    file = folder / "imported"
    terminal = desk.open(*argv, anew=True, first=WATCH.format(file=str(file)), **environ)
    terminal.see("rolling:")
    file.unlink()  # the first paint imports something: so the watch works
    terminal.type(question + "\r")
    terminal.see(answer)
    terminal.see("done in")
    return file.read_text().splitlines() if file.exists() else ()
