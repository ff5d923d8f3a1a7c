"""What each extra adds to an installation: packages, megabytes, and the seconds of its import."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_NOT_FOR_USERS = {"test", "benchmark"}
# what is imported first of each, when it is first used
_IMPORTS = {
    "mcp": "mcp",
    "acp": "acp",
    "web": "textual_serve.server",
    "otel": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "keyring": "keyring",
    "outline": "tree_sitter",
    "postgres": "psycopg_pool",
    "parquet": "pyarrow.parquet",
    "ray": "ray.data",
}


def extras() -> list[str]:
    """Return the extras that users may install, in their order."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name not in _NOT_FOR_USERS]


def run() -> Iterator[str]:
    """A line an extra, each installed into an environment of its own."""
    with tempfile.TemporaryDirectory() as folder:
        base_packages, base_size = _installed(Path(folder) / "base", str(_ROOT))
        yield f"base: {base_packages} packages, {base_size} MB"
        for name in extras():
            home = Path(folder) / name
            packages, size = _installed(home, f"{_ROOT}[{name}]")
            took = f", {_import_seconds(home, _IMPORTS[name]):.2f} s" if name in _IMPORTS else ""
            yield f"{name}: {packages - base_packages} packages, {max(0, size - base_size)} MB{took}"


def _installed(home: Path, requirement: str) -> tuple[int, int]:
    """Install into a new environment; return its packages, and its size in megabytes."""
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    python = home / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", requirement], check=True)
    (site,) = home.glob("lib/python*/site-packages")
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
    return len(list(site.glob("*.dist-info"))), round(size / 1_000_000)


def _import_seconds(home: Path, module: str) -> float:
    """Return the seconds that an import takes, the second time."""
    script = f"import time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
    for _ in range(2):
        ran = subprocess.run(
            [home / "bin" / "python", "-c", script], capture_output=True, check=True, text=True
        )
    return float(ran.stdout)
