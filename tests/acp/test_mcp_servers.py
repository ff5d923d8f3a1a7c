"""MCP servers that an editor passes along: used in that session, asked about, and ended with it."""

from __future__ import annotations

import sys
from pathlib import Path

from acp.helpers import text_block
from acp.schema import McpServerStdio, SseMcpServer

from tests.acp.conftest import Start
from tests.support.mcp import HOSTILE
from tests.support.servers import Call, OpenAIServer, Reply


async def test_a_client_s_server_brings_tools_and_one_that_cannot_be_used_is_named(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    server.then(Reply(calls=(Call("mcp__test__plain", '{"a": 1}'),)), Reply("done"), Reply("alone"))
    given = McpServerStdio(name="test", command=sys.executable, args=[HOSTILE, "good"], env=[])
    old = SseMcpServer(type="sse", name="old", url="http://127.0.0.1:9/sse", headers=[])
    async with start() as client:
        assert client.initialized is not None
        capabilities = client.initialized.agent_capabilities
        assert capabilities is not None
        assert capabilities.mcp_capabilities is not None
        assert capabilities.mcp_capabilities.http
        opened = await client.agent.new_session(cwd=str(folder), mcp_servers=[given, old])
        await client.agent.prompt(session_id=opened.session_id, prompt=[text_block("go")])
        ((asked, _),) = client.editor.questions
        assert "plain of the MCP server test" in asked.content[0].content.text
        assert "the MCP server old has the old type sse" in client.editor.text()
        (result,) = [one for one in client.editor.of("tool_call_update") if one.raw_output]
        assert result.status == "completed"
        other = await client.new(folder)
        await client.agent.prompt(session_id=other, prompt=[text_block("go")])
    tools = [tool["function"]["name"] for tool in server.requests[0].body["tools"]]
    assert "mcp__test__plain" in tools
    assert not [tool for tool in server.requests[-1].body["tools"] if "mcp__" in str(tool)]
