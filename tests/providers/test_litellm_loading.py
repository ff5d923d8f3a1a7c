"""litellm is imported late and prints nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(code: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env={**clean, "HOME": str(folder), "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_no_module_of_ours_imports_it_or_an_http_client(tmp_path: Path) -> None:
    code = """
        import sys
        import rolling_chat.providers.model_provider, rolling_chat.providers.discovery
        heavy = {"litellm", "openai", "httpx", "aiohttp", "pydantic", "tiktoken"} & set(sys.modules)
        sys.exit(", ".join(sorted(heavy)) or 0)
    """
    done = _run(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_session_with_every_kind_of_failure_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-from-a-dotenv-file-0123456789\n")
    code = """
        import asyncio, os
        from pathlib import Path
        from rolling_chat.messages import Message
        from rolling_chat.providers.model_provider import ModelProvider
        from rolling_chat.providers.protocol import ProviderError, Request
        from rolling_chat.providers.retries import RetryPolicy
        from rolling_chat.settings.catalog import load_catalog
        from tests.support.servers import Break, Fail, OpenAIServer, Reply

        async def main():
            provider = ModelProvider(
                environ=os.environ, catalog=load_catalog(), log_file=Path("log.txt"),
                retries=RetryPolicy(minutes=0),
            )
            await provider.warm_up("openai/x", None)
            steps = [Reply("hi"), Fail(401, "no sk-secret-0123456789abcdef"), Fail(400, "bad"), Fail(500, ""),
                     Fail(500, ""), Break(Reply("a b c"))]
            async with OpenAIServer(steps, window=500) as server:
                for model, text in [("openai/x", "hi")] * 5 + [
                    ("openai/x", "word " * 900), ("demo/offline", "hi"), ("nobody/x", "hi"),
                    ("openai/meta-llama-3-8b", "hi"), ("anthropic/claude-sonnet-5", "hi"),
                ]:
                    api_base = server.api_base if model.startswith("openai/") else None
                    request = Request(model, (Message("user", text),), api_base=api_base)
                    try:
                        async for _ in provider.stream(request):
                            pass
                    except ProviderError:
                        pass
            assert "OPENAI_API_KEY" not in os.environ, "a .env was loaded"

        asyncio.run(main())
    """
    done = _run(code, tmp_path, ROLLING_CHAT_OFFLINE_DELAY="0")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    log = tmp_path / "log.txt"
    assert not log.exists() or "sk-secret" not in log.read_text()


def test_a_log_file_that_cannot_be_written_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    code = """
        from pathlib import Path
        from rolling_chat.providers.litellm_loading import load_litellm
        load_litellm(Path("a-file/log.txt"))
        import gc
        assert gc.isenabled()
    """
    done = _run(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_installed_litellm_brings_no_startup_hook() -> None:
    from importlib.metadata import files

    names = [str(file) for file in files("litellm") or ()]
    if not names:
        pytest.skip("litellm's list of files is not installed")
    assert not [name for name in names if name.endswith(".pth")]
