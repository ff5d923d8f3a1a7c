"""Every failure becomes one of a few kinds, with one line that says what to do."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from rolling_chat.messages import Message
from rolling_chat.providers.errors import classify
from rolling_chat.providers.protocol import ErrorKind, ProviderError, Request
from rolling_chat.providers.retries import PassingError
from tests.providers.conftest import MakeProvider
from tests.support.servers import AnthropicServer, Fail, OpenAIServer


class StatusError(Exception):
    """An error as the HTTP clients raise it."""

    def __init__(self, status_code: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.message = message
        self.response = httpx.Response(status_code, headers=headers)


class APIConnectionError(Exception):
    """litellm's word for whatever it has no word for."""

    status_code = 500


def _caused_by(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def test_a_missing_key_names_the_variable() -> None:
    error = classify(StatusError(401, "no key"), "mistral/mistral-large-latest", environ={})

    assert error.kind is ErrorKind.BAD_KEY
    assert str(error) == "No key for mistral: set MISTRAL_API_KEY."


def test_a_key_that_is_refused_names_the_variable_it_came_from() -> None:
    error = classify(
        StatusError(401, "Incorrect API key provided: sk-abcdefghijklmnop"),
        "gemini/gemini-2.5-pro",
        environ={"GOOGLE_API_KEY": "sk-abcdefghijklmnop"},
    )

    assert error.kind is ErrorKind.BAD_KEY
    assert "GOOGLE_API_KEY" in str(error)
    assert "abcdefghijklmnop" not in str(error) + error.detail


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, '{"error":"registry.ollama.ai/library/gemma2:2b does not support tools"}'),
        (500, "Unsupported param: tools"),
        (500, "tools param requires --jinja flag"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (404, "No endpoints found that support tool use."),
    ],
)
def test_a_model_without_tools_is_said_to_take_them_as_text(status: int, said: str) -> None:
    error = classify(StatusError(status, said), "openai/gemma")
    assert error.kind is ErrorKind.BAD_REQUEST
    assert not isinstance(error, PassingError)
    assert 'put tool_calls = "text" below [models."openai/gemma"]' in str(error)


def test_geminis_400_for_a_bad_key_is_a_bad_key() -> None:
    error = classify(
        StatusError(400, "API key not valid. Please pass a valid API key."), "gemini/gemini-2.5-pro"
    )
    assert error.kind is ErrorKind.BAD_KEY


def test_an_unknown_model_brings_the_nearest_names() -> None:
    error = classify(
        StatusError(404, "The model `gpt-7` does not exist"),
        "openai/gpt-7",
        nearest=lambda _model: ["gpt-5.4"],
    )

    assert error.kind is ErrorKind.MODEL_UNKNOWN
    assert str(error) == (
        'Unknown model "openai/gpt-7"; nearest: gpt-5.4. '
        "api.openai.com says: The model `gpt-7` does not exist"
    )


def test_a_model_that_ollama_lacks_can_be_pulled() -> None:
    error = classify(StatusError(404, "model 'qwen3' not found"), "ollama/qwen3")
    assert "ollama pull qwen3" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        StatusError(500, "litellm.InternalServerError: OpenAIException - Connection error."),
        _caused_by(APIConnectionError("oh"), httpx.ConnectError("All connection attempts failed")),
        ConnectionRefusedError(111, "refused"),
    ],
)
def test_a_connection_that_cannot_be_made_is_no_network(error: Exception) -> None:
    classified = classify(error, "openai/gpt-5.4")

    assert classified.kind is ErrorKind.NO_NETWORK
    assert isinstance(classified, PassingError)


def test_a_server_of_ones_own_is_named_by_its_address_without_its_password() -> None:
    error = classify(ConnectionRefusedError(), "openai/x", api_base="http://ada:pw@127.0.0.1:9/v1")

    assert "127.0.0.1:9" in str(error)
    assert "pw" not in str(error)


def test_whatever_is_in_litellms_connection_error_is_not_always_the_connection() -> None:
    error = classify(APIConnectionError("No module named 'mcp'"), "openai/x")

    assert error.kind is ErrorKind.UNKNOWN
    assert "No module named 'mcp'" in str(error)


@pytest.mark.parametrize(
    ("headers", "seconds"), [({"retry-after": "7"}, 7.0), ({"retry-after-ms": "250"}, 0.25), ({}, None)]
)
def test_throttling_carries_the_servers_own_delay(headers: dict[str, str], seconds: float | None) -> None:
    error = classify(StatusError(429, "slow down", headers), "openai/gpt-5.4")

    assert error.kind is ErrorKind.THROTTLED
    assert isinstance(error, PassingError)
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached. Please try again in 2s. Visit our page", 2.0),
        ("Please try again in 1m2.5s.", 62.5),
        ("try again in 500ms", 0.5),
        ("Please retry in 48.9s.", 48.9),
        ("please retry after 20 seconds", 20.0),
        ('"retryDelay": "48s"', 48.0),
        ("Try again in 2 minutes", 120.0),
        ("Please wait 7 seconds before trying again", 7.0),
        ("too many requests, try again later", None),
        ("try again in a moment", None),
    ],
)
def test_a_delay_in_the_words_is_read(text: str, seconds: float | None) -> None:
    error = classify(StatusError(429, text), "openai/gpt-5.4")
    assert isinstance(error, PassingError)
    assert error.retry_after == seconds


GEMINIS_MINUTE = (
    "You exceeded your current quota, please check your plan.\n* Quota exceeded for metric: "
    "generate_content_free_tier_input_token_count, limit: 250000\nPlease retry in 48.9s."
)


def test_a_quota_that_is_there_again_in_a_minute_is_throttling_that_passes() -> None:
    error = classify(StatusError(429, GEMINIS_MINUTE), "gemini/gemini-2.5-pro")
    assert isinstance(error, PassingError)
    assert error.retry_after == 48.9
    assert "credit" not in str(error)


def test_a_days_quota_is_not_waited_for() -> None:
    text = GEMINIS_MINUTE.replace("input_token_count", "requests_per_day")
    error = classify(StatusError(429, text), "gemini/gemini-2.5-pro")
    assert error.kind is ErrorKind.THROTTLED
    assert not isinstance(error, PassingError)
    assert "today" in str(error)


def test_a_retry_after_may_be_a_date() -> None:
    error = classify(StatusError(429, "", {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}), "openai/x")
    assert error.retry_after == 0.0


def test_an_empty_account_is_not_worth_another_try() -> None:
    error = classify(
        StatusError(429, "You exceeded your current quota (insufficient_quota)"), "openai/gpt-5.4"
    )

    assert error.kind is ErrorKind.THROTTLED
    assert not isinstance(error, PassingError)
    assert "add credit" in str(error)


def test_a_request_over_the_accounts_minute_says_so_and_is_not_sent_again() -> None:
    message = "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 14810"
    error = classify(StatusError(413, message), "groq/openai/gpt-oss-120b")

    assert error.kind is ErrorKind.THROTTLED
    assert not isinstance(error, PassingError)
    assert "14,810" in str(error)
    assert "6,000" in str(error)


LOST = {
    "a name that resolved before": (OSError("[Errno -3] Temporary failure in name resolution"), "", True),
    "refused by another machine": (
        ConnectionRefusedError(111, "Connection refused"),
        "http://10.0.0.7:9/v1",
        False,
    ),
    "no way to it": (httpx.ConnectError("[Errno 101] Network is unreachable"), "", False),
    "no connection in time": (httpx.ConnectTimeout("timed out"), "", False),
    "a connection reset": (httpx.ReadError("Connection reset by peer"), "http://127.0.0.1:9/v1", False),
}
WRONG = {
    "a name that never resolved": (OSError("[Errno -2] Name or service not known"), "", False),
    "nobody listens on this machine": (
        ConnectionRefusedError(111, "refused"),
        "http://127.0.0.1:9/v1",
        False,
    ),
    "nor by its name": (httpx.ConnectError("All connection attempts failed"), "http://localhost:9/v1", True),
    "nor in IPv6": (httpx.ConnectError("All connection attempts failed"), "http://[::1]:9/v1", True),
    "a certificate": (
        httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed"),
        "",
        True,
    ),
    "no TLS at all": (httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number"), "", True),
}


@pytest.mark.parametrize(
    ("error", "api_base", "reached", "passes"),
    [(*case, passes) for cases, passes in ((LOST, True), (WRONG, False)) for case in cases.values()],
    ids=[*LOST, *WRONG],
)
def test_a_lost_network_may_come_back_and_a_wrong_address_does_not(
    error: Exception, api_base: str, reached: bool, passes: bool
) -> None:
    wrapped = _caused_by(StatusError(500, "litellm.InternalServerError: Connection error."), error)
    classified = classify(wrapped, "openai/x", api_base=api_base or None, reached=reached)
    assert classified.kind is ErrorKind.NO_NETWORK
    assert isinstance(classified, PassingError) is passes


def test_an_ollama_that_does_not_run_is_not_waited_for() -> None:
    error = classify(ConnectionRefusedError(111, "refused"), "ollama/qwen3", environ={})
    assert not isinstance(error, PassingError)
    assert "ollama serve" in str(error)


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_a_server_error_is_overload(status: int) -> None:
    error = classify(StatusError(status, "Overloaded"), "anthropic/claude-sonnet-5")

    assert error.kind is ErrorKind.OVERLOADED
    assert isinstance(error, PassingError)


def test_too_long_carries_both_numbers() -> None:
    error = classify(
        StatusError(400, "prompt is too long: 219898 tokens > 200000 maximum"), "anthropic/claude-sonnet-5"
    )

    assert (error.kind, error.limit, error.requested) == (ErrorKind.TOO_LONG, 200_000, 219_898)
    assert "219,898 tokens where 200,000 fit" in str(error)
    assert "/rolling-context" in str(error)


def test_what_broke_in_mid_answer_is_interrupted_and_not_sent_again() -> None:
    for error in (httpx.ReadError("reset"), StatusError(503, "gone"), TimeoutError()):
        classified = classify(error, "openai/x", began=True)
        assert classified.kind is ErrorKind.INTERRUPTED
        assert not isinstance(classified, PassingError)


def test_an_overflow_in_mid_answer_stays_an_overflow() -> None:
    error = classify(Exception("Reached context length of 1000 tokens"), "lm_studio/x", began=True)
    assert (error.kind, error.limit) == (ErrorKind.TOO_LONG, 1000)


def test_a_timeout_says_how_long_it_was_waited() -> None:
    error = classify(TimeoutError(), "openai/x", timeout=600)
    assert "within 600 seconds" in str(error)


def test_a_refusal_that_nobody_foresaw_is_quoted_on_one_line_without_control_characters() -> None:
    error = classify(StatusError(400, "bad\x1b[31m " + "x" * 900), "openai/x")

    assert error.kind is ErrorKind.BAD_REQUEST
    assert str(error).isprintable()
    assert len(str(error)) < 300


def test_what_was_classified_stays_as_it_is_however_it_was_wrapped() -> None:
    error = ProviderError(ErrorKind.BAD_REQUEST, "x")
    assert classify(error, "openai/x") is error
    assert classify(_caused_by(StatusError(500, "y"), error), "openai/x") is error


@pytest.mark.parametrize(
    ("body", "quote"),
    [
        ({"error": {"message": "Invalid messages[3].content: expected a string"}}, None),
        ({"error": {"message": "Unsupported [temperature] {x}: use [top_p]"}}, None),
        ([{"error": {"code": 400, "message": "contents[2].parts[0] must not be empty"}}], None),
        ({"detail": [{"loc": ["body", "messages", 0], "msg": "field required"}]}, "field required"),
        ({"detail": "Something [x] is off"}, "Something [x] is off"),
        ("messages[3].content is bad", "messages[3].content is bad"),
        ("", "no reason given"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "model"), [(OpenAIServer, "openai/m"), (AnthropicServer, "anthropic/claude-sonnet-4-5")]
)
async def test_what_the_server_said_of_a_refusal_is_quoted(
    make_provider: MakeProvider,
    kind: type[OpenAIServer | AnthropicServer],
    model: str,
    body: Any,
    quote: str | None,
) -> None:
    if quote is None:
        holder = body[0] if isinstance(body, list) else body
        quote = holder["error"]["message"]
    provider = make_provider({"ANTHROPIC_API_KEY": "sk-ant-any"})
    async with kind([Fail(400, body)]) as server:
        request = Request(model, (Message("user", "hi"),), max_tokens=9, api_base=server.api_base)
        with pytest.raises(ProviderError) as caught:
            await anext(provider.stream(request))
    assert str(caught.value).endswith(f"refused the request: {quote}")


@pytest.mark.parametrize("key", ["kv-secret\nvalue", "kv-sécret-value"])
@pytest.mark.parametrize(
    ("model", "name", "kind"),
    [
        ("openai/m", "OPENAI_API_KEY", OpenAIServer),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY", AnthropicServer),
    ],
)
async def test_a_key_that_no_header_can_carry_fails_at_once_and_is_not_quoted(
    make_provider: MakeProvider, model: str, name: str, kind: Any, key: str
) -> None:
    async with kind() as server:
        request = Request(model, (Message("user", "hi"),), max_tokens=9, api_base=server.api_base)
        with pytest.raises(ProviderError, match="check the characters of the key") as caught:
            await anext(make_provider({name: key}).stream(request))
    assert not isinstance(caught.value, PassingError)
    assert "cret" not in str(caught.value) + caught.value.detail


async def test_the_line_end_of_a_key_from_a_file_is_not_sent(make_provider: MakeProvider) -> None:
    async with OpenAIServer() as server:
        request = Request("openai/m", (Message("user", "hi"),), api_base=server.api_base)
        provider = make_provider({"OPENAI_API_KEY": "sk-0123456789\r\n"})
        assert [delta async for delta in provider.stream(request)]


def test_an_answer_about_another_connection_is_not_a_lost_network() -> None:
    error = classify(StatusError(400, "cannot fetch the image: connection refused"), "openai/m")
    assert error.kind is ErrorKind.BAD_REQUEST
    assert not isinstance(error, PassingError)


@pytest.mark.parametrize("status", [501, 505])
def test_what_a_server_cannot_do_is_not_tried_again(status: int) -> None:
    assert not isinstance(classify(StatusError(status, "Not Implemented"), "openai/m"), PassingError)


@pytest.mark.parametrize(
    "said",
    [
        "model requires more system memory (5.6 GiB) than is available (3.1 GiB)",
        "unable to load model: /models/m.gguf",
    ],
)
def test_a_model_that_the_server_has_no_room_for_is_said_and_not_tried_again(said: str) -> None:
    error = classify(StatusError(500, said), "ollama/m")
    assert not isinstance(error, PassingError)
    assert said in str(error)
