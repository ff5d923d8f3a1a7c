"""Files that the editor has open: read as they are there, and not changed while they are not saved."""

from __future__ import annotations

from pathlib import Path

from acp.helpers import resource_link_block, text_block
from acp.schema import ClientCapabilities, FileSystemCapabilities

from tests.acp.conftest import Start
from tests.support.servers import Call, OpenAIServer, Reply

_READS = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True))


async def test_an_unsaved_file_is_read_as_it_is_in_the_editor_and_not_edited(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    for name in ("open.py", "same.py", "closed.py"):
        (folder / name).write_text("on disk\n")
    read = [
        Call("read_file", f'{{"path": "{name}"}}') for name in ("open.py", "same.py", "closed.py", "new.py")
    ]
    write = Call("write_file", '{"path": "open.py", "content": "mine"}')
    edit = Call("edit_file", '{"path": "same.py", "old": "on disk", "new": "changed"}')
    server.then(Reply(calls=(*read, write, edit)), Reply("done"), Reply("seen"))
    async with start("agent.approvals=edits", capabilities=_READS) as client:
        client.editor.buffers = {
            str(folder / "open.py"): "in the editor\n",
            str(folder / "same.py"): "on disk\r\n",
            str(folder / "new.py"): "never saved\n",
        }
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("go")])
        results = [one.raw_output["text"] for one in client.editor.of("tool_call_update") if one.raw_output]
        note = "as the user has it in an editor, with changes that are not saved]\n"
        assert results[0] == f"[open.py {note}in the editor\n"
        assert results[1:3] == ["on disk\n", "on disk\n"]
        assert results[3] == f"[new.py {note}never saved\n"
        assert "open.py has changes in the user's editor that are not saved" in results[4]
        link = resource_link_block("open.py", f"file://{folder}/open.py")
        await client.agent.prompt(session_id=session, prompt=[text_block("And"), link])
    assert (folder / "open.py").read_text() == "on disk\n"
    assert (folder / "same.py").read_text() == "changed\n"
    said = server.requests[-1].messages[-1]["content"]
    assert said.startswith("And @open.py\n\nAttached file, as the editor has it, open.py (1 line")
    assert "in the editor" in said


async def test_a_client_without_buffers_is_not_asked_and_none_outside_the_folder_ever(
    start: Start, server: OpenAIServer, folder: Path
) -> None:
    (folder / "link").symlink_to("/etc/hostname")
    calls = [Call("read_file", f'{{"path": "{name}"}}') for name in ("a.py", "link", "../x", "/etc/passwd")]
    server.then(Reply(calls=tuple(calls)), Reply("done"), Reply(calls=tuple(calls)), Reply("done"))
    async with start() as client:
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("go")])
        assert client.editor.asked_for == []
    async with start(capabilities=_READS) as client:
        session = await client.new(folder)
        await client.agent.prompt(session_id=session, prompt=[text_block("go")])
        assert client.editor.asked_for == [str(folder / "a.py")]
