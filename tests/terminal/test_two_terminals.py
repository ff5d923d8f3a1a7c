"""Two real processes on one session: the second follows, and takes over in the end."""

from __future__ import annotations

import pytest

from tests.terminal.conftest import Desk


@pytest.mark.slow
def test_a_second_terminal_follows_the_first_and_goes_on_when_it_is_gone(desk: Desk) -> None:
    first = desk.open()
    first.see("rolling: off")
    first.say("The kettle is blue.")
    first.see("done in")
    second = desk.open("--continue")
    second.see("open in another terminal", "The kettle is blue.")
    assert second.text.count("open in another terminal") == 1

    second.say("may I?")
    second.see("/fork makes a copy", "nothing was sent", "❯ may I?")
    first.say("What color is the kettle?")
    second.see("❯ What color is the kettle?")

    first.kill()
    second.see("has closed this session", "❯ may I?")
    second.wait_until(lambda: "open in another terminal" not in second.text, "it still follows")
    second.type("\r")
    second.see("done in")
