"""`rolling-chat completion`: the completion of the command line for a shell."""

from __future__ import annotations

from importlib import resources

from rolling_chat.cli.exits import Exit
from rolling_chat.cli.options import Options
from rolling_chat.settings.paths import Paths


def run_completion(options: Options, _paths: Paths) -> int:
    """Print the script that a shell reads (`.ci/make_completions.py` makes it)."""
    folder = resources.files("rolling_chat.cli") / "completions"
    print((folder / f"rolling-chat.{options.shell}").read_text(encoding="utf-8"), end="")
    return Exit.DONE
