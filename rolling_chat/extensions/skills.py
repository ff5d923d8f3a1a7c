"""Skills: folders with a `SKILL.md`, in the format of agentskills.io, with instructions for a task.

Every request lists them with their descriptions; the model reads the text of a skill only to use it.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.extensions.front_matter import FrontMatterError, parse_markdown, read_regular_file
from rolling_chat.figures import plural
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.project_files import SKILL_FILE, FileKind, skill_files
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.text import exact, printable

MAX_LISTED = 16_000
"""The maximum characters of the list of skills in a request; fewer in a small window."""

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_NAME, _MAX_DESCRIPTION, _MAX_FIELD = 64, 1_024, 500  # the format's own limits
_MAX_SKILLS = 200  # in one of the user's folders
_MAX_FILES, _MAX_DEPTH = 100, 4  # of a skill's files that are named to the model
_HEAD = (
    "You have skills: instructions for particular tasks. Before a task that one of them is about, call "
    "skill(name), and follow what it says."
)


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill. `folder` is resolved, `text` are the instructions for a model that uses the skill.

    `source` names the file for the user. `is_own`: it is the user's, not the project's. A skill that is not
    `for_model` can only be used by the user. `allowed_tools` is only its author's suggestion and permits
    nothing.
    """

    name: str
    description: str
    folder: Path
    text: str
    source: str
    is_own: bool
    for_model: bool = True
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    metadata: Mapping[str, str] | None = None

    def row(self, *, is_short: bool = False) -> str:
        """Return the line that lists the skill in every request."""
        return f"- {self.name}" if is_short else f"- {self.name}: {self.description}"

    def full_text(self) -> str:
        """Return the text for a model that uses the skill: its instructions, and its other files' names."""
        files = list(itertools.islice(_files_of(self.folder), _MAX_FILES + 1))
        more = ", and more" if len(files) > _MAX_FILES else ""
        named = ", ".join(exact(name) for name in files[:_MAX_FILES])
        where = f"[The skill {self.name} is in {printable(str(self.folder), 400)}; paths are relative to it."
        what = f" Its other files, which read_file reads by their whole paths: {named}{more}" if files else ""
        return f"{self.text}\n\n{where}{what}]"


@dataclass(frozen=True, slots=True)
class Skills:
    """The skills of one session. `faults` are lines about skills that are not used or not fully listed."""

    all: tuple[Skill, ...] = ()
    faults: tuple[str, ...] = ()
    listed: tuple[tuple[Skill, str], ...] = ()  # the skills listed in requests, with their lines

    def find(self, name: str) -> Skill | None:
        """Return the skill of that name, if any."""
        return next((skill for skill in self.all if skill.name == name.strip().lower()), None)

    @property
    def text(self) -> str:
        """The skills' part of the system prompt; empty if none is listed."""
        return "\n".join([_HEAD, *(row for _, row in self.listed)]) if self.listed else ""

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders whose files the model may read."""
        return tuple(skill.folder for skill in self.all)


def read_skills(trust: FolderTrust, paths: Paths, max_chars: int = MAX_LISTED) -> Skills:
    """Read the user's own skills and the folder's trusted ones; on equal names, the nearest wins.

    The list in a request takes at most `max_chars` characters; the last skills may lose their descriptions.
    """
    found: dict[str, Skill] = {}
    faults: list[str] = []
    for path, source, data in _sources(trust, paths, faults):
        is_own = data is None
        try:
            skill = _parse(path, read_regular_file(path) if data is None else data, source, is_own=is_own)
            _require_apart(skill, trust)
        except FrontMatterError as error:
            faults.append(f"The skill {source} is left out: {error}.")
            continue
        found.pop(skill.name, None)
        found[skill.name] = skill
    skills = tuple(sorted(found.values(), key=lambda skill: skill.name))
    listed = tuple(_listed([skill for skill in skills if skill.for_model], max_chars, faults))
    return Skills(skills, tuple(faults), listed)


def _sources(trust: FolderTrust, paths: Paths, faults: list[str]) -> Iterator[tuple[Path, str, bytes | None]]:
    """Yield each skill's file, its name for the user, and its content if already read."""
    for folder in paths.skills_dirs:
        files = list(
            itertools.islice((path for path in skill_files(folder) if path.exists()), _MAX_SKILLS + 1)
        )
        if len(files) > _MAX_SKILLS:
            faults.append(f"Of {printable(str(folder), 200)} only the first {_MAX_SKILLS} skills are used.")
        yield from ((path, printable(str(path), 200), None) for path in files[:_MAX_SKILLS])
    for file in trust.contents(FileKind.SKILL):
        yield file.path, printable(file.name, 200), file.data


def _parse(path: Path, data: bytes, source: str, *, is_own: bool) -> Skill:
    """Parse a skill's file. Raises FrontMatterError."""
    file = parse_markdown(data)
    name = file.text("name", 200) or path.parent.name
    if len(name) > _MAX_NAME or _NAME.fullmatch(name) is None:
        raise FrontMatterError(
            f"“{printable(name, 70)}” is not a valid name: "
            "lowercase letters, digits and single hyphens, at most 64"
        )
    description = file.text("description", _MAX_DESCRIPTION)
    if not description:
        raise FrontMatterError("it has no description")
    return Skill(
        name,
        description,
        path.parent.resolve(),
        file.body,
        source,
        is_own,
        for_model=not file.flag("disable-model-invocation"),
        license=file.text("license", _MAX_FIELD),
        compatibility=file.text("compatibility", _MAX_FIELD),
        allowed_tools=file.words("allowed-tools", _MAX_FIELD),
        metadata=file.table("metadata", _MAX_FIELD),
    )


def _require_apart(skill: Skill, trust: FolderTrust) -> None:
    """Refuse a project's skill whose folder has other contents: the model may read all of that folder.

    Raises FrontMatterError.
    """
    if skill.is_own:
        return
    if not skill.folder.is_relative_to(trust.root) or trust.folder.is_relative_to(skill.folder):
        raise FrontMatterError("its folder is a link to one that holds more than the skill")


def _listed(skills: Sequence[Skill], max_chars: int, faults: list[str]) -> Iterator[tuple[Skill, str]]:
    """Yield the skills to list in a request, with their lines; all names have priority over descriptions."""
    sizes = itertools.accumulate(len(skill.row(is_short=True)) + 1 for skill in skills)
    named = [skill for skill, size in zip(skills, sizes, strict=True) if size <= max_chars]
    room = max_chars - sum(len(skill.row(is_short=True)) + 1 for skill in named)
    short = 0
    for skill in named:
        more = len(skill.row()) - len(skill.row(is_short=True))
        is_short = more > room
        short += is_short
        room -= 0 if is_short else more
        yield skill, skill.row(is_short=is_short)
    because = f"all together take at most {max_chars:,} characters of a request"
    if short:
        faults.append(f"{plural(short, 'skill')} without the description in requests: {because}.")
    if len(named) < len(skills):
        faults.append(f"{plural(len(skills) - len(named), 'skill')} not in requests at all: {because}.")


def _files_of(folder: Path, depth: int = 0) -> Iterator[str]:
    """Yield the sorted names of files in a skill's folder, except `SKILL.md`; follows no symlinks."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(itertools.islice(entries, 10 * _MAX_FILES), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        if entry.name.startswith(".") or (not depth and entry.name == SKILL_FILE):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < _MAX_DEPTH:
                yield from (f"{entry.name}/{name}" for name in _files_of(folder / entry.name, depth + 1))
        elif entry.is_file(follow_symlinks=False):
            yield entry.name
