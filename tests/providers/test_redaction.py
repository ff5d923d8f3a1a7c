"""Keys never reach a line that is shown or logged."""

from __future__ import annotations

import logging

import pytest

from rolling_chat.providers.redaction import RedactingFilter, redact, secrets_in


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abc123def456ghi789",
        "Authorization: Bearer abcdef0123456789abcdef",
        "{'x-api-key': 'abcdef0123456789abcdef'}",
        "https://host/v1/models?key=AIzaSyA0123456789abcdefghijklmno&alt=sse",
        "api_key=abcdef0123456789",
        "gsk_0123456789abcdefghij",
    ],
)
def test_what_looks_like_a_key_is_hidden(text: str) -> None:
    hidden = redact(text)

    assert "[hidden]" in hidden
    assert "0123456789" not in hidden
    assert "abc123" not in hidden


def test_a_key_of_the_environment_is_hidden_wherever_it_stands() -> None:
    secrets = secrets_in(
        {"MISTRAL_API_KEY": "just some words", "MY_TOKEN": "0xfeedface", "HOME": "/home/ada"}
    )

    assert (
        redact("a=just some words, b=0xfeedface, c=/home/ada", secrets)
        == "a=[hidden], b=[hidden], c=/home/ada"
    )


def test_plain_words_stay() -> None:
    text = "The key word of this basic example: ask-me-anything, risk-averse, 1200 tokens > 1000 maximum"
    assert redact(text) == text


def test_a_log_record_is_hidden_with_its_traceback() -> None:
    try:
        raise ValueError("bad key topsecret")
    except ValueError as error:
        record = logging.LogRecord(
            "x",
            logging.ERROR,
            __file__,
            1,
            "with %s",
            ("topsecret",),
            (ValueError, error, error.__traceback__),
        )

    assert RedactingFilter({"topsecret"}).filter(record)
    assert "topsecret" not in logging.Formatter().format(record)
