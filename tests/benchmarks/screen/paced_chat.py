"""The real program with one part exchanged: the model's answers come from a script, without litellm."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from rolling_chat.messages import Json, Message, Usage
from rolling_chat.providers import model_provider
from rolling_chat.providers.protocol import Delta, Finished, Request, TextDelta
from tests.benchmarks.screen.pace import Pace, Script


class PacedProvider:
    """Answers every request with the script of this process."""

    def __init__(self, **_parts: object) -> None:
        pass

    async def stream(self, _request: Request) -> AsyncIterator[Delta]:
        """The script's text."""
        script = Script.read()
        async for text in Pace(script).deltas():
            yield TextDelta(text)
        yield Finished(Message("assistant", "".join(script.deltas)), Usage(100, 20))

    def wire_form(self, request: Request) -> Sequence[dict[str, Json]]:
        """As they stand."""
        return [message.to_dict() for message in request.messages]

    async def count_tokens(self, request: Request, seconds: float) -> int:
        """It does not say."""
        return 0

    async def warm_up(self, model: str, api_base: str | None) -> None:
        """Nothing is needed."""

    async def close(self) -> None:
        """Nothing is open."""


if __name__ == "__main__":
    # before anything of the program has taken the real one
    model_provider.ModelProvider = PacedProvider  # type: ignore[assignment,misc]
    from rolling_chat.__main__ import main

    main()
