"""Model servers on loopback that answer from a script and refuse what the real ones refuse.

    async with OpenAIServer([Reply("hello"), Fail(429, headers={"retry-after": "1"})]) as server:
        ...                          # server.api_base, server.requests, server.wait_disconnected()

    with OpenAIServer([...]).in_thread() as server:      # for programs in other processes
        ...

A request takes the next step of the script; when there is none left, the answer is `ok`. What is
badly formed or does not fit the window is refused before the script is asked.
"""

from tests.support.servers.anthropic_wire import AnthropicServer
from tests.support.servers.openai_wire import OpenAIServer
from tests.support.servers.script import Break, Call, Drop, Fail, Hang, Raw, Recorded, Reply

__all__ = [
    "AnthropicServer",
    "Break",
    "Call",
    "Drop",
    "Fail",
    "Hang",
    "OpenAIServer",
    "Raw",
    "Recorded",
    "Reply",
]
