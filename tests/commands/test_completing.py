"""Completion: command names, then whatever each command says may follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rolling_chat.commands import Choice, Completer, all_commands
from rolling_chat.commands.completing import narrowed
from tests.support.commands import PlainContext
from tests.support.tui import make_chat, says


@pytest.fixture
def completer(tmp_path: Path) -> Completer:
    return Completer(PlainContext(make_chat(tmp_path)))


def lines(completer: Completer, text: str) -> list[str]:
    return [choice.value for choice in completer.offer(text).choices]


def test_a_slash_offers_every_command_with_what_it_does(completer: Completer) -> None:
    offer = completer.offer("/")
    assert [choice.label for choice in offer.choices] == [command.signature for command in all_commands()]
    assert all(choice.note for choice in offer.choices)


@pytest.mark.parametrize(
    "text", ["", "hello", "hello /theme", "/theme x\n/theme", "/nothing x", "/quit ", "/theme "[1:]]
)
def test_what_is_no_command_line_is_offered_nothing(completer: Completer, text: str) -> None:
    assert not completer.offer(text).choices


def test_arguments_are_narrowed_by_what_is_typed(completer: Completer) -> None:
    assert lines(completer, "/theme ") == ["/theme midnight", "/theme daylight"]
    assert lines(completer, "/theme light") == ["/theme daylight"]
    assert lines(completer, "/theme mnt") == ["/theme midnight"]
    assert lines(completer, "/theme zebra") == []


def test_what_is_complete_is_offered_no_more(completer: Completer) -> None:
    assert lines(completer, "/theme midnight") == []
    assert lines(completer, "/theme midnight ") == []
    assert lines(completer, "/quit") == []


def test_models_are_those_that_can_be_reached(completer: Completer, tmp_path: Path) -> None:
    reachable = make_chat(tmp_path).model_names()
    assert set(lines(completer, "/model gpt-4o-mini")) <= {f"/model {name}" for name in reachable}
    assert "/model demo/offline" in lines(completer, "/model offl")


async def test_sessions_are_found_by_title_and_give_their_id(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("Blue."))
    async for _ in chat.send("what color is the kettle"):
        pass
    kettle = chat.session.info.short
    chat.start_new()
    completer = Completer(PlainContext(chat))
    offer = completer.offer("/resume kettle")
    assert [choice.value for choice in offer.choices] == [f"/resume {kettle}"]
    assert offer.choices[0].label == "what color is the kettle"
    assert "just now" in offer.choices[0].note
    assert offer.runs


def test_rolling_context_goes_on_word_by_word(completer: Completer) -> None:
    words = [line.split()[1] for line in lines(completer, "/rolling-context ")]
    assert words == ["on", "off", "status", "preview", "set", "undo"]
    assert "/rolling-context set max_history_tokens" in lines(completer, "/rolling-context set hist")
    assert lines(completer, "/rolling-context set summarize ") == [
        f"/rolling-context set summarize {value}" for value in ("off", "extract", "model")
    ]
    assert lines(completer, "/rolling-context preview trim_t") == ["/rolling-context preview trim_to="]
    assert lines(completer, "/rolling-context preview trim_to=0.5") == []


def test_what_can_be_copied_is_offered(completer: Completer) -> None:
    assert [line.split()[1] for line in lines(completer, "/copy ")] == ["code", "message", "all"]
    assert lines(completer, "/copy code ") == []


def test_formats_of_an_export_are_offered_and_a_file_is_left_alone(completer: Completer) -> None:
    assert len(lines(completer, "/export ")) == 4
    offer = completer.offer("/export js")
    assert [choice.value for choice in offer.choices] == ["/export jsonl", "/export json"]
    assert not offer.runs
    assert lines(completer, "/export talk.md") == []


def test_enter_takes_the_first_only_of_what_is_closed_and_begun(completer: Completer) -> None:
    assert completer.offer("/theme mid").runs
    assert not completer.offer("/theme ").runs
    assert not completer.offer("/model demo").runs
    assert completer.offer("/the").runs


@dataclass
class CountingContext(PlainContext):
    """Counts how often its themes are asked for."""

    asked: list[str] = field(default_factory=list)

    @property
    def theme_names(self) -> Sequence[str]:
        self.asked.append("themes")
        return ("midnight", "daylight")

    @theme_names.setter
    def theme_names(self, names: Sequence[str]) -> None: ...


def test_a_list_is_read_once_a_line_and_anew_for_the_next(tmp_path: Path) -> None:
    context = CountingContext(make_chat(tmp_path))
    completer = Completer(context)
    for text in ("/theme ", "/theme m", "/theme mi", "/theme m"):
        completer.offer(text)
    assert len(context.asked) == 1
    completer.offer("")
    completer.offer("/theme ")
    assert len(context.asked) == 2


def test_the_same_comes_before_what_begins_so_and_that_before_what_holds_it() -> None:
    choices = [Choice(value, value) for value in ("not-a", "about", "a", "b", "bar")]
    assert [choice.value for choice in narrowed(choices, "a")] == ["a", "about", "not-a", "bar"]


def test_what_is_only_spelt_counts_where_nothing_else_does() -> None:
    choices = [Choice(value, value) for value in ("daylight", "midnight")]
    assert [choice.value for choice in narrowed(choices, "dlt")] == ["daylight"]
