"""The log file holds what happened, and no key."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

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
