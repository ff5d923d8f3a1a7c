"""Lend the terminal to another program: the user's editor or pager."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from textual.app import SuspendNotSupported

from rolling_chat.programs import FOR_USER, find_program
from rolling_chat.text import one_line, without_controls

_VARIABLES = {"editor": ("VISUAL", "EDITOR"), "pager": ("PAGER",)}
_OTHERWISE = {"editor": ("sensible-editor", "nano", "vi", "notepad"), "pager": ("less -R", "more")}
# ctrl+c and ctrl+\\ in the other program are meant only for it, but the terminal sends them to both
_FOR_THE_OTHER = ("SIGINT", "SIGQUIT")


class Lender(Protocol):
    """An app that can lend its terminal: it draws nothing meanwhile, and redraws afterwards."""

    def batch_update(self) -> AbstractContextManager[None]:
        """Postpone all drawing."""
        ...

    def suspend(self) -> AbstractContextManager[None]:
        """Restore the terminal to its state before the app."""
        ...


class ExternalError(Exception):
    """An external program could not be used; `str()` is the one line for the user."""


async def edit_text(app: Lender, text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Let the user edit `text` in $VISUAL, $EDITOR or a known editor; return the result.

    The temporary file is readable only by the user (0600) and deleted afterwards. Raises ExternalError if
    there is no editor or it fails; then nothing was changed.
    """
    command = _command(environ, "editor")
    with _file_of(text) as file:
        code = await _run(app, [*command, str(file)], environ, "editor")
        if code:
            raise ExternalError(f"The editor {_name(command)} {_end(code)}: nothing was changed.")
        try:
            edited = file.read_bytes().decode(errors="replace")
        except OSError as error:
            raise ExternalError(f"What the editor left cannot be read: {error.strerror}.") from error
    return edited if text.endswith("\n") else edited.removesuffix("\n")


async def edit_file(app: Lender, path: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Let the user edit a file in place, which need not exist. Raises ExternalError."""
    command = _command(environ, "editor")
    code = await _run(app, [*command, str(path)], environ, "editor")
    if code:
        raise ExternalError(f"The editor {_name(command)} {_end(code)}.")


async def page_text(app: Lender, text: str, environ: Mapping[str, str] = os.environ) -> None:
    """Show `text` in $PAGER, or else in less, with control characters made visible. Raises ExternalError."""
    command = _command(environ, "pager")
    # with -F, less would quit at once if all fits on one screen, and show nothing
    stays = {"LESS": f"{environ.get('LESS', '-R')} -+F"}
    with _file_of(without_controls(text)) as file:
        file.chmod(0o400)
        code = await _run(app, [*command, str(file)], {**environ, **stays}, "pager")
    if code:
        raise ExternalError(f"The pager {_name(command)} {_end(code)}.")


def _command(environ: Mapping[str, str], what: str) -> list[str]:
    for variable in _VARIABLES[what]:
        named = environ.get(variable, "").strip()
        if named:
            return _named(named, variable, environ, what)
    for command in _OTHERWISE[what]:
        name, *options = command.split()
        if program := find_program(name, environ):
            return [program, *options]
    raise ExternalError(f"There is no {what} here: set {' or '.join(_VARIABLES[what])}.")


def _named(command: str, variable: str, environ: Mapping[str, str], what: str) -> list[str]:
    """Return the command that the user set, its program found in PATH or by its absolute path."""
    try:
        name, *options = shlex.split(command)
    except ValueError as error:
        raise ExternalError(f"${variable} is not a command: {one_line(command, 60)}.") from error
    program = find_program(name, environ)
    if program is None:
        raise ExternalError(
            f"The {what} {one_line(name, 60)} cannot be started (not in PATH outside the working folder): "
            f"set {' or '.join(_VARIABLES[what])}."
        )
    return [program, *options]


async def _run(app: Lender, command: list[str], environ: Mapping[str, str], what: str) -> int:
    """Run a program in the terminal; return its exit code, negative for a signal.

    The app keeps working meanwhile, and paints afterwards.
    """
    try:
        with app.batch_update(), app.suspend(), _terminal_lent():
            # raise nothing in here: the app would not resume
            ended = await asyncio.gather(_wait_for(command, environ), return_exceptions=True)
    except SuspendNotSupported as error:
        raise ExternalError("This terminal cannot be lent to another program.") from error
    code = ended[0]
    if isinstance(code, (OSError, ValueError)):
        why = getattr(code, "strerror", None) or str(code)
        raise ExternalError(
            f"The {what} {_name(command)} cannot be started ({why}): set {' or '.join(_VARIABLES[what])}."
        ) from code
    if isinstance(code, BaseException):
        raise code
    return code


async def _wait_for(command: list[str], environ: Mapping[str, str]) -> int:
    process = await asyncio.create_subprocess_exec(*command, env={**environ, **FOR_USER})
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()


@contextmanager
def _terminal_lent() -> Iterator[None]:
    """Restore the terminal's modes after another program has used it."""
    handlers = {
        number: signal.signal(number, _not_for_us)
        for number in (getattr(signal, name, None) for name in _FOR_THE_OTHER)
        if number is not None
    }
    restore_modes = _terminal_modes()
    try:
        yield
    finally:
        restore_modes()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _not_for_us(*_: object) -> None:
    """Ignore a signal; a function, because the other program would inherit SIG_IGN."""


if sys.platform == "win32":

    def _terminal_modes() -> Callable[[], None]:
        """Do nothing: a console program restores the modes itself."""
        return lambda: None

else:
    import termios

    def _terminal_modes() -> Callable[[], None]:
        """Save the terminal's modes; return a function that restores them."""
        stdin = sys.__stdin__
        if stdin is None:
            return lambda: None
        try:
            modes = termios.tcgetattr(stdin)
        except termios.error:
            return lambda: None

        def restore() -> None:
            with suppress(termios.error):
                termios.tcsetattr(stdin, termios.TCSANOW, modes)

        return restore


@contextmanager
def _file_of(text: str) -> Iterator[Path]:
    """Create a temporary file with this text in a folder only the user can read; delete both afterwards."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="rolling-chat-"))
    except OSError as error:
        raise ExternalError(f"No file can be made for it: {error.strerror}.") from error
    try:
        file = folder / "message.md"
        try:
            file.touch(mode=0o600)
            file.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        except OSError as error:
            raise ExternalError(f"No file can be made for it: {error.strerror}.") from error
        yield file
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _name(command: list[str]) -> str:
    return one_line(command[0], 60) if command else "''"


def _end(code: int) -> str:
    return f"ended with code {code}" if code > 0 else f"was ended by signal {-code}"
