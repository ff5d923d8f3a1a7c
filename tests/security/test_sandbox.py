"""What a command in the sandbox cannot do: write outside, read secrets, reach the network, stay behind."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rolling_chat.tools import process_groups
from rolling_chat.tools.leftover_processes import CHILDREN, end_children
from rolling_chat.tools.process import run_process
from rolling_chat.tools.sandbox import walls
from rolling_chat.tools.sandbox.sandbox import NEWCOMERS, STUBS, Stubs
from rolling_chat.tools.write_file import WriteFile
from tests.support.patience import PATIENCE_SECONDS as HANG_LIMIT
from tests.support.patience import eventually
from tests.support.sandbox import Confined
from tests.support.time_limits import LIMIT, out_of_time

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is of Linux")

GIT = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main"
DAEMON = (
    "setsid sh -c 'echo $$ > pid; exec sleep 600' > /dev/null 2>&1 < /dev/null &\n"
    "until [ -s pid ] && grep -aq ^sleep /proc/$(cat pid)/cmdline; do sleep 0.01; done"
)


@pytest.fixture(autouse=True)
def _tests_are_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the folders of tests, which are temporary ones, be folders like any other."""
    monkeypatch.setattr(walls, "TEMPORARY_FOLDERS", (Path("/var/tmp"),))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("the key")
    (home / ".netrc").write_text("the password")
    (home / "settings").mkdir()
    (home / "settings" / "config.toml").write_text("the settings")
    (home / "notes.txt").write_text("notes")
    return home


@pytest.fixture
async def confined(home: Path) -> AsyncIterator[Confined]:
    folder = home / "work"
    folder.mkdir()
    yield Confined(folder, home, home / "settings")
    await end_children(CHILDREN.left_running())
    STUBS.remove()


def git_in(folder: Path, *arguments: str) -> str:
    command = [*shlex.split(GIT), "-C", str(folder), *arguments]
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(command, check=True, env=environ, capture_output=True, text=True).stdout


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    git_in(folder, "init", "-q")
    return folder


def named(name: str) -> list[Path]:
    """The files of that name where a command may have written it."""
    places = ("/tmp", "/var/tmp", "/dev/shm", "/etc")
    return [path for place in places if (path := Path(place, name)).exists()]


def exists(path: Path) -> bool:
    return os.path.lexists(path)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_it_writes_in_the_folder_and_in_a_temporary_one_that_stays(confined: Confined) -> None:
    written = await confined.run(
        'echo one > a; mkdir -p b; mv a b/a; echo two > "$TMPDIR/t"; echo > /dev/null'
    )
    assert written == "[no output]\n[exit code 0]"
    assert (confined.folder / "b" / "a").read_text() == "one\n"
    assert await confined.run('cat "$TMPDIR/t"; test "$TMPDIR" = "$TMP"; echo $?') == "two\n0\n[exit code 0]"


async def test_nothing_outside_is_written(confined: Confined, home: Path, tmp_path: Path) -> None:
    (confined.folder / "link").symlink_to(home)
    places = [
        "../notes.txt", "../new.txt", f"{home}/new.txt", "link/new.txt", "/etc/new", "/usr/new", "/var/new",
        "/run/user/new", "/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern",
        "/sys/kernel/mm/ksm/run", f"/proc/self/root{home}/new",
    ]  # fmt: skip
    said = await confined.run("\n".join(f"echo bad >> {place}; echo $?" for place in places))
    assert [line for line in said.splitlines() if line in ("0", "1")] == ["1"] * len(places)
    moved = await confined.run(
        f"mv {home}/notes.txt . ; rm -rf {home}/.ssh; ln {home}/notes.txt hard; chmod 0 {home}"
    )
    assert moved.endswith("[exit code 1]")
    assert names(home) == [".netrc", ".ssh", "notes.txt", "settings", "work"]
    assert (home / "notes.txt").read_text() == "notes"
    assert not (confined.folder / "hard").exists()


async def test_what_is_written_to_the_systems_temporary_folder_stays_inside(confined: Confined) -> None:
    name = f"rolling-chat-test-{os.getpid()}"
    assert await confined.run(f"touch /var/tmp/{name} /dev/shm/{name}") == "[no output]\n[exit code 0]"
    assert named(name) == []
    assert await confined.run(f"ls /var/tmp/{name}; rm /var/tmp/{name}") == f"/var/tmp/{name}\n[exit code 0]"


async def test_of_the_temporary_folder_around_the_working_folder_nothing_is_seen(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.undo()
    folder = home / "work"
    folder.mkdir()
    said = await Confined(folder, home).run(f'touch a "$TMPDIR/b"; ls {home}; touch /tmp/x ../x /var/tmp/x')
    assert said.startswith("work\n")
    assert said.count("Read-only file system") == 3
    assert names(folder) == ["a"]


@pytest.mark.parametrize("place", [".ssh/id_ed25519", ".netrc", "settings/config.toml"])
async def test_secrets_are_not_read(confined: Confined, home: Path, place: str) -> None:
    (confined.folder / "link").symlink_to(home / place)
    ways = [f"cat {home}/{place}", f"cat ../{place}", "cat link", f"cat /proc/self/root{home}/{place}"]
    assert "the " not in await confined.run(
        "\n".join([*ways, f"chmod 755 {home}/.ssh; grep -r the {home}/.ssh"])
    )


async def test_a_secret_behind_a_link_is_not_read(confined: Confined, home: Path, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "credentials").write_text("the secret")
    (home / ".aws").symlink_to(tmp_path / "vault")
    said = await confined.run(f"cat {home}/.aws/credentials {tmp_path}/vault/credentials")
    assert "the secret" not in said


@pytest.mark.parametrize(
    ("name", "exists"),
    [
        ("AGENTS.md", True),
        ("CLAUDE.md", True),
        (".rolling-chat/config.toml", True),
        (".rolling-chat/config.toml", False),
    ],
)
async def test_instructions_and_settings_are_neither_changed_nor_made(
    confined: Confined, name: str, exists: bool
) -> None:
    path = confined.folder / name
    if exists:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    before = names(confined.folder)
    top = name.partition("/")[0]
    said = await confined.run(
        f"echo bad > {name}; mkdir -p {top}; rm -rf {top}; mv {top} x; mv -T . {top}; ln -s /etc {top}; "
        f"echo bad > y; mv -T y {top}; ls -d x"
    )
    assert said.endswith("[exit code 2]")
    assert path.read_text() == "mine" if exists else not path.exists()
    assert [one for one in names(confined.folder) if one != "y"] == before


async def test_hooks_and_settings_of_git_are_not_changed_and_commits_are_made(confined: Confined) -> None:
    git = repository(confined.folder) / ".git"
    settings = (git / "config").read_text()
    (git / "hooks").rename(git / "samples")
    said = await confined.run(
        "echo x > a\ngit add -A\n"
        f"{GIT} commit -qm one; echo committed $?\n"
        "mkdir -p .git/hooks; echo 'touch bad' > .git/hooks/pre-commit; rmdir .git/hooks\n"
        "git config core.fsmonitor ./bad; echo '[a]' >> .git/config; rm -f .git/config\n"
        "ln .git/config b; mv .git/config .git/c; mv .git old; mkdir .git; mv .git/hooks .git/h; echo $?"
    )
    assert "committed 0" in said
    assert (git / "config").read_text() == settings
    assert not (git / "hooks").exists()
    assert names(confined.folder) == [".git", "a"]
    assert git_in(confined.folder, "ls-files") == "a\n"  # and nothing of what keeps names taken


async def test_git_is_not_sent_elsewhere_for_its_hooks(confined: Confined, home: Path) -> None:
    git_in(confined.folder, "init", "-q")
    (confined.folder / "evil" / "hooks").mkdir(parents=True)
    hook = confined.folder / "evil" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {home}/ran\n")
    hook.chmod(0o755)
    await confined.run("cp -r .git/* evil/ 2>/dev/null; echo ../evil > .git/commondir")
    git_in(
        confined.folder,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    )
    git_in(confined.folder, "checkout", "-q", "-b", "other")
    assert not (home / "ran").exists()
    assert (confined.folder / ".git" / "commondir.from-command-1").exists()


async def test_no_repository_is_made_in_the_folder(confined: Confined) -> None:
    assert "Read-only file system" in await confined.run("git init .")
    assert names(confined.folder) == []


async def test_a_file_named_git_cannot_lead_elsewhere(confined: Confined, home: Path) -> None:
    repository(home / "main")
    confined.folder.rmdir()
    git_in(home / "main", "commit", "-q", "--allow-empty", "-m", "one")
    git_in(home / "main", "worktree", "add", "-q", str(confined.folder))
    before = (confined.folder / ".git").read_text()
    said = await confined.run(
        "echo 'gitdir: evil' > .git; rm -f .git; mv .git x; git status --short; echo $?"
    )
    assert said.splitlines()[-2] == "0"
    assert (confined.folder / ".git").read_text() == before


async def test_nested_repositories_and_submodules_are_protected_too(confined: Confined) -> None:
    repository(confined.folder)
    inner = repository(confined.folder / "vendor" / "x")
    module = repository(confined.folder / "module") / ".git"
    kept = confined.folder / ".git" / "modules" / "a" / "b"
    kept.parent.mkdir(parents=True)
    module.rename(kept)
    module.write_text("gitdir: ../.git/modules/a/b\n")
    files = [inner / ".git" / "config", kept / "config", module]
    before = [file.read_text() for file in files]
    bad = "; ".join(f"echo bad > {shlex.quote(str(file))}" for file in files)
    await confined.run(
        f"{bad}; touch vendor/x/.git/hooks/pre-commit .git/modules/a/b/hooks/pre-commit; mv vendor old; "
        "mv vendor/x y; mv vendor/x/.git z; mv .git/modules m; mv .git/modules/a .git/modules/c"
    )
    assert [file.read_text() for file in files] == before
    assert not (inner / ".git" / "hooks" / "pre-commit").exists()
    assert not (kept / "hooks" / "pre-commit").exists()


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
@pytest.mark.parametrize(
    "made", ["echo bad > {0}", "mkdir {0}", "ln -s /etc/passwd {0}", "touch {0}.from-command-1 {0}"]
)
async def test_instructions_that_a_command_makes_are_moved_away(
    confined: Confined, name: str, made: str
) -> None:
    assert await confined.run("ls -A; test -e AGENTS.md") == ".git\n.rolling-chat\n[exit code 1]"
    said = await confined.run(made.format(name))
    (new,) = [one for one in names(confined.folder) if not one.endswith("1") or "touch" not in made]
    assert said.endswith(f"[exit code 0]\n[{name} may not be made by a command: what one made is now {new}]")
    assert new.startswith(f"{name}.from-command-")


async def test_instructions_that_the_user_approves_meanwhile_stay(confined: Confined) -> None:
    await confined.run("sleep 600 > /dev/null 2>&1 &")
    await WriteFile().run({"path": "AGENTS.md", "content": "approved"}, confined.context)
    await confined.run("true")
    assert (confined.folder / "AGENTS.md").read_text() == "approved"


async def test_instructions_that_a_left_process_makes_are_moved_away(confined: Confined) -> None:
    await confined.run(
        "(while [ ! -e go ]; do sleep 0.01; done; touch AGENTS.md; exec sleep 600) > /dev/null 2>&1 &"
    )
    (confined.folder / "go").touch()
    await eventually((confined.folder / "AGENTS.md").exists)
    assert "is now AGENTS.md.from-command-1]" in await confined.run("true")
    await end_children(CHILDREN.left_running())
    await confined.run("true")
    (confined.folder / "AGENTS.md").write_text("mine")
    assert NEWCOMERS.move_away() == []


@pytest.mark.parametrize("has_network", [False, True])
async def test_the_network_is_there_only_where_it_is_allowed(home: Path, has_network: bool) -> None:
    """Loopback stands for all of it: an address of this machine's own, and one that leads outside."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        confined = Confined(home, home, has_network=has_network)
        said = await confined.run(
            f"exec 3<>/dev/tcp/127.0.0.1/{port}; ls /sys/class/net; cat /proc/net/route"
        )
        if has_network:
            server.accept()[0].close()
        else:
            with pytest.raises(BlockingIOError):
                server.accept()
            assert "refused" in said
            assert "unreachable" in await confined.run("exec 3<>/dev/tcp/192.0.2.1/80")


async def test_sockets_of_other_programs_are_not_reached(confined: Confined, tmp_path: Path) -> None:
    """An agent, a desktop or a terminal would act for the command, outside."""
    assert await confined.run("find /run -type s; env | grep -c -e SSH_AUTH -e DBUS") == "0\n[exit code 1]"


async def test_other_processes_are_neither_seen_nor_ended(confined: Confined) -> None:
    other = await asyncio.create_subprocess_exec("/bin/sleep", "600")
    try:
        said = await confined.run(f"kill -9 {other.pid}; kill -9 {os.getpid()}; ls -d /proc/[0-9]* | wc -l")
        assert int(said.splitlines()[-2]) < 10
        assert other.returncode is None
    finally:
        other.kill()
        await other.wait()


async def test_it_has_no_rights_of_root_and_gets_none(confined: Confined) -> None:
    said = await confined.run(
        "grep -E 'CapEff|NoNewPrivs' /proc/self/status; mount -t tmpfs none . 2>/dev/null; echo $?;"
        "unshare -Urm sh -c 'umount -l /; mount -o remount,rw /; touch /etc/bad' 2>/dev/null; ls /etc/bad"
    )
    assert said.split()[:4] == ["CapEff:", "0000000000000000", "NoNewPrivs:", "1"]
    assert named("bad") == []


@pytest.mark.parametrize("command", ["sleep 600 & echo $! > pid", DAEMON])
async def test_what_it_leaves_running_is_listed_once_and_ended(confined: Confined, command: str) -> None:
    said = await confined.run(command)
    (left,) = CHILDREN.left_running()
    assert left.command == "sleep 600"
    assert said.endswith(
        f"[it left processes running in the background: {left}; the user can end them (/processes)]"
    )
    assert await confined.run("true") == "[no output]\n[exit code 0]"
    await end_children([left])
    assert CHILDREN.left_running() == ()


async def test_names_stay_taken_while_something_is_left_running(confined: Confined) -> None:
    await confined.run("(sleep 0.2; mkdir .rolling-chat/x; touch done; exec sleep 600) > /dev/null 2>&1 &")
    await eventually((confined.folder / "done").exists)
    assert list((confined.folder / ".rolling-chat").iterdir()) == []
    await end_children(CHILDREN.left_running())
    await confined.run("true")
    assert names(confined.folder) == ["done"]


async def nothing_runs() -> None:
    """Wait until the kernel has ended what was killed."""
    await eventually(lambda: not CHILDREN.left_running())


async def test_time_that_is_up_ends_all_of_it_politely(
    confined: Confined, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_groups, "_GRACE", HANG_LIMIT)
    listens = "(trap 'echo ended > told; exit' TERM; touch listens; while :; do sleep 0.02; done) &"
    said = await out_of_time(
        lambda limit: confined.run(f"{DAEMON}\n{listens}\nwait", timeout=limit),
        (confined.folder / "listens").exists,
    )
    assert said.endswith(f"[killed: not done after {LIMIT} seconds]")
    assert (confined.folder / "told").read_text() == "ended\n"
    await nothing_runs()


async def test_a_stop_ends_all_of_it(confined: Confined) -> None:
    running = asyncio.create_task(confined.run(f"{DAEMON}\nsleep 600"))
    await eventually((confined.folder / "pid").exists)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await nothing_runs()
    assert names(confined.folder) == ["pid"]


@pytest.mark.parametrize("name", ["with space", "line\nbreak", "-dash", "quote'\"$(x)", "ünï"])
async def test_a_folder_of_any_name(home: Path, name: str) -> None:
    folder = home / name
    folder.mkdir()
    assert await Confined(folder, home).run("touch made; touch ../bad; ls") == (
        "touch: cannot touch '../bad': Read-only file system\nmade\n[exit code 0]"
    )


async def test_a_folder_behind_a_link(home: Path, tmp_path: Path) -> None:
    (home / "real").mkdir()
    (tmp_path / "link").symlink_to(home / "real")
    await Confined(tmp_path / "link", home).run(f"touch made; touch {tmp_path}/bad")
    assert names(home / "real") == ["made"]
    assert "bad" not in names(tmp_path)


async def test_the_home_folder_as_working_folder_keeps_its_secrets(home: Path) -> None:
    said = await Confined(home, home, home / "settings").run(
        "touch made; cat .ssh/* .netrc settings/*; echo bad > .ssh/new; rm -rf .ssh settings; mv settings x"
    )
    assert "the " not in said.replace("the sandbox", "")
    assert names(home) == [".netrc", ".ssh", "made", "notes.txt", "settings"]
    assert (home / ".ssh" / "id_ed25519").exists()


async def test_the_root_as_working_folder_keeps_secrets_too(home: Path) -> None:
    said = await Confined(Path("/"), home).run(
        f"pwd; cat {home}/.ssh/*; touch {home}/made; find /run -type s"
    )
    assert said.startswith("/\n")
    assert "the key" not in said
    assert (home / "made").exists()


async def test_a_folder_below_a_secret_one_is_all_that_is_seen_of_it(home: Path) -> None:
    folder = home / ".ssh" / "work"
    folder.mkdir()
    said = await Confined(folder, home).run("touch made; ls; ls ..; cat ../id_ed25519; touch ../bad")
    assert said.splitlines()[:2] == ["made", "work"]
    assert "the key" not in said
    assert not (home / ".ssh" / "bad").exists()


@pytest.mark.parametrize("place", ["work/.git/hooks", "work/.rolling-chat/x", "settings"])
async def test_a_folder_that_is_itself_protected_is_not_written(home: Path, place: str) -> None:
    folder = home / place
    folder.mkdir(parents=True, exist_ok=True)
    before = names(folder)
    assert "Read-only file system" in await Confined(folder, home, home / "settings").run("touch made")
    assert names(folder) == before


async def test_inside_a_repository_of_git_its_settings_are_protected(home: Path) -> None:
    git = repository(home / "work") / ".git"
    before = (git / "config").read_text()
    await Confined(git, home).run("echo bad > config; touch hooks/bad; touch made")
    assert (git / "config").read_text() == before
    assert not (git / "hooks" / "bad").exists()
    assert (git / "made").exists()


async def test_what_cannot_be_enclosed_is_one_line(confined: Confined) -> None:
    """The folder was taken away between two commands."""
    confined.folder.rmdir()
    with pytest.raises(Exception, match="could not be started") as caught:
        await confined.run("true")
    assert "\n" not in str(caught.value)


async def test_a_stub_that_was_left_by_a_crash_is_removed(confined: Confined) -> None:
    (confined.folder / ".git").mkdir()
    assert "Read-only file system" in await confined.run("echo bad > .git/config")
    assert names(confined.folder) == []


async def test_what_somebody_else_puts_into_a_stub_stays(confined: Confined) -> None:
    running = asyncio.create_task(confined.run("touch began; while [ ! -e over ]; do sleep 0.01; done"))
    await eventually((confined.folder / "began").exists)
    (confined.folder / ".rolling-chat" / "config.toml").write_text("mine")
    (confined.folder / "over").touch()
    await running
    assert (confined.folder / ".rolling-chat" / "config.toml").read_text() == "mine"


async def test_a_program_that_is_no_sandbox_sees_none(tmp_path: Path) -> None:
    ended = await run_process(["/bin/true"], folder=tmp_path, environ={}, timeout=20)
    assert (ended.code, ended.left) == (0, ())


async def test_a_stub_that_another_program_needs_is_left_to_it(confined: Confined) -> None:
    """A mount falls away with the folder that it lies on, also in another process."""
    mine, other = Stubs(), Stubs()
    stub = confined.folder / ".git"
    with mine.made([stub]):
        with other.made([stub]):
            pass
        assert names(confined.folder) == [".git"]
    assert names(confined.folder) == []
