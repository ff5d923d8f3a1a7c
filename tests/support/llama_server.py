"""A real llama.cpp server on a tiny random model: exact usage, a hard window, real refusals, no download.

The model's vocabulary is the 256 bytes and four control tokens, so a token is a byte of UTF-8. Run as a
program it serves until it is ended: `python -m tests.support.llama_server MODEL WINDOW`; the first line
of its output is its port.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_SECONDS

_ROOT = Path(__file__).parents[2]
_WIDTH, _LAYERS, _HEADS, _FEED_FORWARD = 64, 2, 4, 128
_TRAINED_WINDOW = 131_072
_BOS, _EOS = 256, 259
_RUNS = ["a" * 2**power for power in range(1, 5)]
_CONTROL = ["<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>"]
# what a template that knows tools puts before the messages, and below an answer that calls them
_TOOLS = """{% if tools %}<|im_start|>system
# Tools
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
Return <tool_call>{"name": ..., "arguments": ...}</tool_call><|im_end|>
{% endif %}"""
_CALLS = """{% if m['tool_calls'] %}{% for c in m['tool_calls'] %}
<tool_call>
{"name": "{{ c['function']['name'] }}", "arguments": {{ c['function']['arguments'] | tojson }}}
</tool_call>{% endfor %}{% endif %}"""
_TEMPLATE = """{% for m in messages %}<|im_start|>{{ m['role'] }}
{% if m['content'] %}{{ m['content'] }}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@dataclass(frozen=True)
class LlamaServer:
    """A running server; `window` in tokens, each a byte."""

    api_base: str
    window: int
    model: str = "openai/tiny-random"


@contextlib.contextmanager
def llama_server(folder: Path, window: int = 2048, *, tools: bool = False) -> Iterator[LlamaServer]:
    """Serve a model built in `folder` (once, however many processes ask) for as long as the block lasts.

    With `tools` its template has a place for them, and they take room; up to 16 letters "a" are one token.
    """
    model = _build_once(folder, tools=tools)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.llama_server", str(model), str(window)],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline() or 0)
        assert port, "the llama.cpp server did not start"
        address = f"http://127.0.0.1:{port}"
        _wait_until_healthy(address, process)
        yield LlamaServer(f"{address}/v1", window)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


def write_model(path: Path, *, tools: bool = False) -> None:
    """Write a small Llama with random weights; the same bytes at every call."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(_TRAINED_WINDOW)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_FEED_FORWARD)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    runs = _RUNS if tools else []
    _add_vocabulary(writer, gguf, runs)
    end = "<|im_end|>"
    writer.add_chat_template(_TOOLS + _TEMPLATE.replace(end, _CALLS + end, 1) if tools else _TEMPLATE)
    random = np.random.default_rng(0)

    def matrix(name: str, rows: int, columns: int) -> None:
        weights = random.standard_normal((rows, columns)) * 0.5 / np.sqrt(columns)
        writer.add_tensor(name, weights.astype(np.float32))

    size = 256 + len(_CONTROL) + len(runs)
    matrix("token_embd.weight", size, _WIDTH)
    output = (random.standard_normal((size, _WIDTH)) * 0.3).astype(np.float32)
    output[128:] = output[:32] = 0  # so that it writes printable characters
    writer.add_tensor("output.weight", output)
    ones = np.ones(_WIDTH, np.float32)
    writer.add_tensor("output_norm.weight", ones)
    for layer in range(_LAYERS):
        prefix = f"blk.{layer}."
        writer.add_tensor(prefix + "attn_norm.weight", ones)
        writer.add_tensor(prefix + "ffn_norm.weight", ones)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"{prefix}{name}.weight", _WIDTH, _WIDTH)
        matrix(prefix + "ffn_gate.weight", _FEED_FORWARD, _WIDTH)
        matrix(prefix + "ffn_up.weight", _FEED_FORWARD, _WIDTH)
        matrix(prefix + "ffn_down.weight", _WIDTH, _FEED_FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer: Any, gguf: Any, runs: list[str]) -> None:
    tokens = [*_byte_characters(), *_CONTROL, *runs]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    kinds = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(_CONTROL)
    writer.add_token_types(kinds + [gguf.TokenType.NORMAL] * len(runs))
    halves = [run[: len(run) // 2] for run in runs]
    writer.add_token_merges([f"{half} {half}" for half in halves] or ["a b"])
    writer.add_bos_token_id(_BOS)
    writer.add_eos_token_id(_EOS)
    writer.add_add_bos_token(False)


def _byte_characters() -> list[str]:
    """GPT-2's table: a visible character for each byte."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    table = {byte: chr(byte) for byte in visible}
    table.update({byte: chr(256 + place) for place, byte in enumerate(hidden)})
    return [table[byte] for byte in range(256)]


def _build_once(folder: Path, *, tools: bool) -> Path:
    """The model's file; written beside its place and moved there, so that no half of one is ever seen."""
    path = folder / ("tiny-random-tools.gguf" if tools else "tiny-random.gguf")
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"tiny-random.{os.getpid()}.draft"
        write_model(draft, tools=tools)
        draft.replace(path)
    return path


def _wait_until_healthy(address: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "the llama.cpp server ended"
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    raise AssertionError("the llama.cpp server did not get ready within a minute")


def _serve(model: str, window: int) -> None:
    import socket

    import xllamacpp

    # below those that the system gives away: it may give one away again before the model is loaded
    for port in random.Random(os.getpid()).sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            break
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.cpuparams.n_threads = 1  # more of them spin, and starve everything else on a small machine
    parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    parameters.n_gpu_layers = 0
    parameters.ctx_shift = False
    parameters.n_predict = 256
    parameters.use_jinja = True
    parameters.offline = True
    parameters.verbosity = 1
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server = xllamacpp.Server(parameters)
    print(port, flush=True)
    ended.wait()
    del server


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
