"""The locations of the program's files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from rolling_chat.settings.errors import SettingsError

HOME_VARIABLE = "ROLLING_CHAT_HOME"
_PROGRAM = "rolling-chat"


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of the program's own files and folders, which need not exist.

    `shared_folder` is the user's `~/.agents`, which other agents read too; None without a home folder.
    """

    config_file: Path
    data_dir: Path
    database: Path
    log_file: Path
    themes_dir: Path
    history_file: Path
    drafts_dir: Path
    pastes_dir: Path
    shared_folder: Path | None = None

    @property
    def own(self) -> tuple[Path, ...]:
        """The files and folders of settings, themes and sessions, with symlinks resolved."""
        folders = (self.config_file.parent, self.themes_dir, self.data_dir, self.database.parent)
        return tuple(path.resolve() for path in (self.config_file, *folders))

    @property
    def schema_file(self) -> Path:
        """The JSON Schema of the settings, for editors."""
        return self.config_file.with_name("config.schema.json")

    @property
    def instructions_file(self) -> Path:
        """The user's own instructions for the model, for every folder."""
        return self.config_file.parent / "AGENTS.md"

    @property
    def skills_dirs(self) -> tuple[Path, ...]:
        """The user's own folders of skills; later ones take precedence."""
        return self._for_agents("skills")

    @property
    def commands_dirs(self) -> tuple[Path, ...]:
        """The user's own folders of slash commands; later ones take precedence."""
        return self._for_agents("commands")

    def _for_agents(self, name: str) -> tuple[Path, ...]:
        shared = () if self.shared_folder is None else (self.shared_folder / name,)
        return (*shared, self.config_file.parent / name)

    @property
    def mcp_file(self) -> Path:
        """The user's own MCP servers, in the JSON format of other programs."""
        return self.config_file.parent / "mcp.json"

    @property
    def mcp_logins_file(self) -> Path:
        """The tokens of MCP servers that the user has logged in to, for systems without a keyring."""
        return self.data_dir / "mcp-logins.json"

    @property
    def catalog_file(self) -> Path:
        """The model catalog that was fetched last."""
        return self.data_dir / "models.json"

    @property
    def logins_file(self) -> Path:
        """The list of providers whose keys are in the system's keyring; it holds no keys."""
        return self.data_dir / "logins.json"

    @property
    def attachments_dir(self) -> Path:
        """The folder of messages that were too large to send."""
        return self.data_dir / "attachments"


def find_paths(environ: Mapping[str, str]) -> Paths:
    """Find the platform's folders, or the one folder that ROLLING_CHAT_HOME names.

    The platform's folders come from platformdirs, which reads the process's own environment. Nothing is
    created. Raises SettingsError if the user has no home folder.
    """
    home = environ.get(HOME_VARIABLE, "")
    if home:
        folder = _expanded(home).absolute()
        return _paths(config=folder, data=folder, log=folder, shared=_shared_folder(environ))
    return _paths(
        config=_platform_folder(platformdirs.user_config_path),
        data=_platform_folder(platformdirs.user_data_path),
        log=_platform_folder(platformdirs.user_log_path),
        shared=_shared_folder(environ),
    )


def _shared_folder(environ: Mapping[str, str]) -> Path | None:
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "")
    return home / ".agents" if home.is_absolute() else None


def _paths(*, config: Path, data: Path, log: Path, shared: Path | None) -> Paths:
    return Paths(
        config_file=config / "config.toml",
        data_dir=data,
        database=data / "sessions.db",
        log_file=log / "rolling-chat.log",
        themes_dir=config / "themes",
        history_file=data / "history",
        drafts_dir=data / "drafts",
        pastes_dir=data / "pastes",
        shared_folder=shared,
    )


def _expanded(home: str) -> Path:
    try:
        return Path(home).expanduser()
    except RuntimeError:  # there is no such user, so it is an ordinary name
        return Path(home)


def _platform_folder(find: Callable[..., Path]) -> Path:
    try:
        found = find(_PROGRAM, appauthor=False)
    except RuntimeError:
        found = Path()
    # if the home folder is unknown, some versions of platformdirs raise and others keep the "~"
    if not found.is_absolute():
        raise SettingsError(f"no home folder to keep settings in; set {HOME_VARIABLE} to a folder")
    return found
