from __future__ import annotations

import pytest

from rolling_chat.tools.sandbox.failures import sign_of_sandbox


@pytest.mark.parametrize(
    "output",
    [
        "touch: cannot touch '/etc/x': Read-only file system",
        "OSError: [Errno 30] EROFS: read-only file system, open '/home/ada/.npmrc'",
        "ls: cannot open directory '/home/ada/.ssh': Permission denied",
        "open /home/ada/.docker/config.json: permission denied",
        "error: could not write config file .git/config: Device or resource busy",
        "chown: changing ownership of 'x': Operation not permitted",
        'sudo: The "no new privileges" flag is set',
        "bwrap: Can't find source path /x: No such file or directory",
    ],
)
def test_what_the_walls_stop_is_known(output: str) -> None:
    assert sign_of_sandbox(f"working\n{output}\n[exit code 1]", has_network=True) == output


@pytest.mark.parametrize(
    "output",
    [
        "curl: (6) Could not resolve host: example.org",
        "bash: connect: Network is unreachable",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "npm error code EAI_AGAIN",
        "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
        "dial tcp: lookup proxy.golang.org: no such host",
        "failed to lookup address information",
        "psql: error: connection to server at 127.0.0.1, port 5432 failed: Connection refused",
    ],
)
def test_what_the_network_wall_stops_is_known_where_there_is_one(output: str) -> None:
    assert sign_of_sandbox(output, has_network=False)
    assert not sign_of_sandbox(output, has_network=True)


@pytest.mark.parametrize(
    "output",
    [
        "FAILED tests/test_x.py::test_y - AssertionError",
        "bash: nothing: command not found",
        "bash: ./script.sh: Permission denied",
        "grep: x: No such file or directory",
        "make: *** [all] Error 2",
    ],
)
def test_another_failure_is_none_of_the_sandboxes(output: str) -> None:
    assert not sign_of_sandbox(output, has_network=False)
