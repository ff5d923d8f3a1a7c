"""The profile of macOS's sandbox-exec: the walls as rules, of which the last match applies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rolling_chat.tools.sandbox.walls import Walls

# devices that programs open for writing without storing anything
_DEVICES = ("/dev/null", "/dev/zero", "/dev/stdout", "/dev/stderr", "/dev/dtracehelper")
# through these, a command could have other programs act for it outside of the sandbox
_FORBIDDEN = ("appleevent-send", "job-creation")
_SERVICES = ("com.apple.coreservices.launchservicesd", "com.apple.SecurityServer")


def profile(walls: Walls) -> str:
    """Return the profile that confines a command to `walls`."""
    return "\n".join(_rules(walls))


def _rules(walls: Walls) -> Iterator[str]:
    yield "(version 1)"
    yield "(allow default)"
    yield from (f"(deny {operation})" for operation in _FORBIDDEN)
    yield from (f"(deny mach-lookup (global-name {_quoted(name)}))" for name in _SERVICES)
    if not walls.has_network:
        yield "(deny network*)"
    yield "(deny file-write*)"
    crossed = [path for path in walls.hidden if walls.folder.is_relative_to(path)]
    if crossed:  # only the working folder in it is accessible
        yield _rule("deny file-read-data", "subpath", crossed)
        yield _rule("allow file-read*", "subpath", [walls.folder])
    writable = [walls.folder] if walls.is_writable else []
    yield _rule("allow file-write*", "subpath", [walls.temporary, *writable])
    yield _rule("allow file-write*", "literal", map(Path, _DEVICES))
    if protected := [*walls.read_only, *walls.stubs, *walls.newcomers]:
        yield _rule("deny file-write*", "subpath", protected)
    if walls.fixed:
        yield _rule("deny file-write-unlink", "literal", walls.fixed)
    if hidden := [path for path in walls.hidden if path not in crossed]:
        yield _rule("deny file-read* file-write*", "subpath", hidden)


def _rule(action: str, filter_by: str, paths: Iterable[Path]) -> str:
    return f"({action} {' '.join(f'({filter_by} {_quoted(str(path))})' for path in paths)})"


def _quoted(text: str) -> str:
    """Return a text as a string literal of the profile's language, which has only two special characters."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'
