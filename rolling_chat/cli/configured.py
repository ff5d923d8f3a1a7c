"""The settings of one run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.settings.load import Faults, load_settings
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.trust import FolderTrust


def here() -> Path:
    """Return the current working folder. Raises Failure if it was deleted."""
    try:
        return Path.cwd()
    except OSError as error:
        raise Failure("the working folder is gone; change to another and try again", Exit.USAGE) from error


def trust_of(options: Options, paths: Paths) -> FolderTrust:
    """Return the trust in the working folder's own files."""
    return FolderTrust(here(), paths, everything=options.trust)


def settings_of(
    options: Options, paths: Paths, faults: Faults | None = None, trust: FolderTrust | None = None
) -> Settings:
    """Load the settings, and apply the command line's options on top.

    Raises SettingsError, unless `faults` collects the errors.
    """
    overrides = [*as_settings(options), *options.settings]
    trust = trust or trust_of(options, paths)
    return load_settings(paths, here(), os.environ, overrides, faults, trust=trust)


def as_settings(options: Options) -> Iterator[str]:
    """Yield the options that are settings, in the syntax of `-c`."""
    if options.approvals:
        yield f'agent.approvals="{options.approvals}"'
    if options.max_iterations:
        yield f"agent.max_tool_iterations={options.max_iterations}"
    if options.tools is not None:
        import json  # most runs name no tools

        names = [name.strip() for name in options.tools.split(",") if name.strip()]
        yield f"agent.tools={json.dumps(names[0] if names in (['none'], ['all']) else names)}"
