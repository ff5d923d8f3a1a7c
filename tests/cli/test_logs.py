"""The log file holds what happened, and no key."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

import pytest

from rolling_chat.cli import logs
from rolling_chat.cli.logs import start_logging


def test_no_key_of_the_environment_gets_into_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "c0ffee-of-no-known-shape"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    file = start_logging(tmp_path / "logs" / "rolling-chat.log")
    log = logging.getLogger("rolling_chat.providers")
    log.warning("refused: %s", {"authorization": key})
    try:
        raise ValueError(f"bad key {key}")
    except ValueError:
        log.exception("the request failed")
    text = file.read_text()
    assert "refused" in text
    assert "ValueError: bad key" in text
    assert key not in text


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_the_log_is_its_owners_alone_also_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_MAX_BYTES", 200)
    file = tmp_path / "logs" / "rolling-chat.log"
    start_logging(file)
    file.touch(mode=0o644)
    for _ in range(4):
        logging.getLogger("rolling_chat").warning("something that fills a part of the log file")
    assert [stat.S_IMODE(path.stat().st_mode) for path in sorted(file.parent.iterdir())] == [0o600, 0o600]
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_password_of_an_address_gets_into_no_log(tmp_path: Path) -> None:
    file = start_logging(tmp_path / "rolling-chat.log")
    logging.getLogger("rolling_chat").warning("no connection to %s", "http://ada:swordfish@127.0.0.1:9/v1")
    assert "http://[hidden]@127.0.0.1:9/v1" in file.read_text()
