"""Keys never reach a line that is shown or logged."""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat import redaction
from rolling_chat.redaction import RedactingFilter, is_secret_name, redact, secrets_in, without_secrets


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


SECRETS = (
    "Bearer abcdef0123456789", "x-api-key: abcdef0123456789", "api-key:abcdef012345",
    'api key = "abcdef0123456789"',
    "access token :  abcdef0123456789", "Authorization: Basic abcdef0123456789",
    "authorization=abcdef0123456789",
    "?key=abcdef0123", "&token=abcdef0123", "?sig=abcdef0123", "&signature=abcdef0123",
    "&password=abcdef0123",
    "?secret=abcdef0123", "?access_token=abcdef0123", "postgres://user:abcdef0123@host/db",
    "-----BEGIN RSA PRIVATE KEY-----\nabcdef\n0123456789\n-----END RSA PRIVATE KEY-----",
    "eyJabcdef0123.abcdef0123.abcdef0123", "AKIAABCDEF0123456789", "hooks.slack.com/services/abcdef/0123",
    "xoxb-abcdef0123456789", "xapp-abcdef0123456789", "AIzaabcdef0123456789", "ya29.abcdef0123456789",
    "SG.abcdef0123456789", "ghp_abcdef0123456789", "gho_abcdef0123456789", "github_pat_abcdef0123456789",
    "glpat-abcdef0123456789", "npm_abcdef0123456789", "pypi-abcdef0123456789", "dop_v1_abcdef0123456789",
    "sk-abcdef0123456789", "pk_abcdef0123456789", "rk-abcdef0123456789", "gsk_abcdef0123456789",
    "xai-abcdef0123456789", "hf_abcdef0123456789", "nvapi-abcdef0123456789", "pplx-abcdef0123456789",
    "csk-abcdef0123456789", "r8_abcdef0123456789",
)  # fmt: skip


@given(
    st.lists(
        st.one_of(
            st.sampled_from((*SECRETS, *map(str.upper, SECRETS))),
            st.sampled_from(
                ("api", "key", ":", "=", "bearer", '"', "\n", "  ", "-----", "a b c d", "no secret here")
            ),
        ),
        max_size=12,
    ),
    st.sampled_from((" ", "\n", "", "  \n ")),
)
def test_a_long_text_is_hidden_in_parts_as_it_would_be_in_one(words: list[str], between: str) -> None:
    text = between.join(words)
    whole = redact(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redaction, "_PART", 5)
        assert redact(text) == whole
        patch.setattr(redaction, "_WORDS", ("",))  # the pattern is tried everywhere
        assert redact(text) == whole


@pytest.mark.parametrize("secret", SECRETS)
def test_every_shape_of_a_secret_is_hidden(secret: str) -> None:
    assert "abcdef" not in redact(f"it is {secret} there")


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


@pytest.mark.parametrize(
    "text",
    [
        "postgres://ada:s3cr3t-here@db/x and more",
        "cannot reach http://ada:s3cr3t-here@127.0.0.1:8080/v1",
        "http://ada:a@s3cr3t-here@host/",
        "https://s3cr3t-here0123456789abcdef@o0.ingest.example.com/1",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzM2NyM3QifQ.s3cr3t-here",
        "-----BEGIN RSA PRIVATE KEY-----\ns3cr3t-here\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\ns3cr3t-here, cut",
        "xoxb-123456789012-s3cr3t-here",
        "https://hooks.slack.com/services/T000/B000/s3cr3t-here",
        "ghp_s3cr3there0123456789abcdefghijklmnop",
        "glpat-s3cr3there0123456789",
        "?sig=s3cr3t-here&x=1",
    ],
)
def test_the_shapes_of_secrets_are_hidden(text: str) -> None:
    assert "[hidden]" in redact(text)
    assert "s3cr3t" not in redact(text)
    assert redact("AKIAIOSFODNN7EXAMPLE and ASIAIOSFODNN7EXAMPLE") == "[hidden] and [hidden]"


@pytest.mark.parametrize(
    "text",
    ["git clone ssh://git@github.com/x", "http://h:80/ and mail a@b", "skateboarding", "https://h/a:b@c"],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert redact(text) == text


SECRET_NAMES = (
    "PGPASSWORD", "MYSQL_PWD", "REDISCLI_AUTH", "GITHUB_PAT", "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "SENTRY_DSN",
    "SLACK_WEBHOOK_URL", "NPM_CONFIG__AUTH", "npm_config__authToken", "DOCKER_AUTH_CONFIG",
    "OPENAI_API_KEY_2", "API_KEY_PROD", "SECRET_KEY_BASE", "TF_VAR_db_password", "GPG_PASSPHRASE",
    "CI_JOB_JWT", "AZURE_STORAGE_CONNECTION_STRING", "SMTP_PASS", "COOKIE", "TWILIO_AUTH_TOKEN",
    "TOKEN", "PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS", "WATSONX_ZENAPIKEY", "OPENAI_APIKEY",
    "HF_TOKEN", "ANTHROPIC_AUTH_TOKEN", "DATABRICKS_CLIENT_SECRET", "SIGNING_PRIVATE_KEY",
    "my_api_key", "TS_AUTHKEY", "AWS_SECRETKEY", "SSHPASS", "BW_SESSION", "OP_SESSION_ada",
)  # fmt: skip
PLAIN_NAMES = (
    "PWD", "OLDPWD", "PATH", "HOME", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS", "XAUTHORITY",
    "TOKENIZERS_PARALLELISM", "ROLLING_CHAT_CONTEXT_MAX_HISTORY_TOKENS", "KEYBOARD", "LESSKEY",
    "PGPASSFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "SSH_PUBLIC_KEY", "STRIPE_PUBLISHABLE_KEY",
    "MAX_OUTPUT_TOKENS", "COLORTERM", "VIRTUAL_ENV", "DESKTOP_SESSION", "COMPASS",
)  # fmt: skip


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_says_that_it_holds_a_secret(name: str) -> None:
    assert without_secrets({name: "x"}) == {}
    assert without_secrets({name: "x"}, [name]) == {name: "x"}
    assert redact("got 0xfeedface", secrets_in({name: "0xfeedface"})) == "got [hidden]"


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_other_names_do_not(name: str) -> None:
    assert without_secrets({name: "x"}) == {name: "x"}
    assert secrets_in({name: "0xfeedface"}) == frozenset()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgres://ada:swordfish@db/x"),
        ("GIT_REMOTE", "https://ghp_0123456789abcdefghijklmnopqrstuvwxyz@github.com/x"),
        ("DEPLOY", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"),
        ("DATABASE_URL", "ada:swordfish@tcp(db:3306)/x"),
        ("PG", "host=db user=ada password=swordfish"),
        ("MSSQL", "Server=db;User Id=ada;Password=swordfish;"),
        ("SESSION", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"),
    ],
)
def test_a_value_says_so_by_its_shape(name: str, value: str) -> None:
    assert without_secrets({name: value}) == {}
    assert secrets_in({name: value}) >= {value}


def test_the_password_of_an_address_is_hidden_where_it_stands_alone() -> None:
    secrets = secrets_in({"DATABASE_URL": "postgres://ada:sword%20fish@db/x"})
    assert redact("sword%20fish, sword fish", secrets) == "[hidden], [hidden]"
    assert without_secrets({"DATABASE_URL": "postgres://ada@localhost/x"})


def test_every_key_variable_that_litellm_names_is_a_secret() -> None:
    folder = Path(str(find_spec("litellm").submodule_search_locations[0]))
    text = (folder / "utils.py").read_text() + (folder / "llms/openai_like/providers.json").read_text()
    named = set(re.findall(r'"([A-Z0-9_]+_(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|APIKEY))"', text))
    assert len(named) > 50
    assert [name for name in named if not is_secret_name(name)] == []


def test_a_key_is_hidden_as_it_is_sent_and_as_an_error_quotes_it() -> None:
    secrets = secrets_in({"MISTRAL_API_KEY": "just some\nwords\r\n"})
    for quoted in ("just some\nwords", repr(b"just some\nwords\r\n")):
        assert "words" not in redact(f"Illegal value {quoted}", secrets)
