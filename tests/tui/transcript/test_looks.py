"""The transcript in every look: dark, light, without color, at 80x24 and 160x50."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.filter import LineFilter, NoColor
from textual.pilot import Pilot

from rolling_chat.commands.marks import Mark
from rolling_chat.settings.themes import load_themes
from rolling_chat.tui.state.fates import Fates, ItemFate
from rolling_chat.tui.state.item_list import ItemList
from rolling_chat.tui.state.items import Item, Kind, Status
from rolling_chat.tui.theming import textual_theme
from rolling_chat.tui.widgets.transcript import Transcript

ANSWER = """\
Two things go wrong, see [the issue](https://example.org/issues/7):

1. `strip()` takes **trailing tabs**, so the *last* field is gone
   - only where it is empty
2. ~~the tests~~ no test has such a line

> Be liberal in what you accept.

| file | lines | what |
|:--|--:|:--|
| lexer.py | 88 | `strip()` |
| test_lexer.py | 12 | 漢字 and 👍 |

```python
def tokens(line: str) -> list[str]:
    return line.rstrip("\\n").split("\\t")
```
"""
DIFF = "--- a/lexer.py\n+++ b/lexer.py\n@@ -88 +88 @@\n-    return line.strip()\n+    return line.rstrip()"
ITEMS = [
    Item("old", Kind.USER, "What does the lexer do?"),
    Item("old answer", Kind.ASSISTANT, "It makes tokens of lines."),
    Item("u", Kind.USER, "Why does it drop trailing tabs?", mark=Mark.PINNED),
    Item("r", Kind.REASONING, "Let me see. " * 9),
    Item("t1", Kind.TOOL, "read_file lexer.py", note="4,963 → 898 tokens · shortened", took="3 s"),
    Item("t2", Kind.TOOL, "run_command git diff", result=DIFF, note="70 tokens"),
    Item("t3", Kind.TOOL, "run_command pytest", Status.FAILED, note="12 tokens"),
    Item("t4", Kind.TOOL, "write_file lexer.py", Status.REFUSED),
    Item("t5", Kind.TOOL, "run_command make", Status.CANCELLED),
    Item("a", Kind.ASSISTANT, ANSWER, Status.CUT),
    Item("n", Kind.NOTICE, "The model was asked again.", Status.WARNING),
    Item("live", Kind.ASSISTANT, "It comes in **now**", Status.LIVE),
]
FATES = Fates(
    {"old": ItemFate(dimmed=True, note="summarized"), "old answer": ItemFate(dimmed=True, note="summarized")},
    "u",
    "2 earlier messages: 2 summarized",
)


class LookApp(App[None]):
    """Nothing but a transcript, in one theme."""

    def __init__(self, theme: str, folder: Path) -> None:
        super().__init__()
        for spec in load_themes(folder).values():
            self.register_theme(textual_theme(spec))
        self.theme = theme

    def compose(self) -> ComposeResult:
        yield Transcript()

    def get_line_filters(self) -> list[LineFilter]:
        return [NoColor()] if self.no_color else list(super().get_line_filters())


@pytest.mark.parametrize("size", [pytest.param((80, 24), id="80x24"), pytest.param((160, 50), id="160x50")])
@pytest.mark.parametrize("look", ["midnight", "daylight", "no color"])
def test_a_conversation_looks_right(
    snap_compare: Callable[..., bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    look: str,
    size: tuple[int, int],
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if look == "no color":
        monkeypatch.setenv("NO_COLOR", "1")

    async def scene(pilot: Pilot[None]) -> None:
        view = pilot.app.query_one(Transcript)
        view.show(ItemList(ITEMS))
        view.show_fates(FATES)
        view.document.turn(5)
        view.scroll_to_start()
        if size[1] == 24:
            view.scroll_pages(1)
        await pilot.pause()

    app = LookApp("midnight" if look == "no color" else look, tmp_path)
    assert snap_compare(app, terminal_size=size, run_before=scene)
