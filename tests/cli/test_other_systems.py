"""The program where the names that only POSIX systems have are not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 300  # tells a hang from a slow machine
TESTS = (
    "tests/cli/test_script.py::test_the_answer_alone_is_on_stdout",
    "tests/cli/test_script.py::test_json_has_the_reply_the_usage_the_calls_and_the_context",
    "tests/cli/test_script.py::test_continue_and_resume_go_on_with_what_was_said",
    "tests/tui/drafts/test_prompt_history.py",
    "tests/tui/screens/test_chat_screen.py::test_what_is_sent_and_what_is_answered_is_read_on_the_screen",
    "tests/tools/test_read_file.py",
)


@pytest.mark.slow
def test_messages_history_and_reading_need_nothing_that_only_posix_has() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "tests.support.without_posix",
         "-p", "no:faulthandler", "-p", "no:cacheprovider", *TESTS],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
