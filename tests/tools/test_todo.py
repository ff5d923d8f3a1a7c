from __future__ import annotations

import pytest

from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.todo import Todo


async def test_the_result_counts_and_the_screen_shows_the_list(context: ToolContext) -> None:
    arguments = {"items": ["[x] a", "[>] b"]}
    result = await Todo().run(arguments, context)
    assert (result.text, result.shown) == ("[1 of 2 done]", "[x] a\n[>] b")
    assert Todo().describe(arguments) == "todo 1/2 done: b"


@pytest.mark.parametrize("arguments", [{}, {"items": 3}, {"items": [{}]}])
async def test_what_is_no_list_is_an_error_in_one_line(
    arguments: dict[str, object], context: ToolContext
) -> None:
    assert Todo().describe(arguments) == "todo"
    with pytest.raises(ToolError, match="The argument 'items' must be"):
        await Todo().run(arguments, context)
