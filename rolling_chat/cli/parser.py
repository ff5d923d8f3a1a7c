"""Parse the command line into `Options`.

A command is given by its function, as "module:function", and imported only when it runs, so that no command
waits for another's imports.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn, cast

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.cli.subcommands import DOCTOR, add_commands, add_settings, positive

if TYPE_CHECKING:
    from rolling_chat.settings.paths import Paths

FORMATS = ("text", "json", "stream-json")
INPUT_FORMATS = ("text", "stream-json")
APPROVALS = ("read-only", "plan", "ask", "edits", "all")
# The value of -p without a text: everything comes from the pipe.
FROM_PIPE = ""

_CHAT = "rolling_chat.cli.interactive:run_chat"
_SCRIPT = "rolling_chat.cli.script:run_script"
_TOKEN_LOG = "rolling_chat.cli.token_log:run_token_log"

_EXAMPLES = """\
examples:
  rolling-chat                                 chat in this folder
  rolling-chat --continue                      continue this folder's newest session
  rolling-chat -p "what does this folder do?"  ask once, print the answer
  git diff | rolling-chat -p "review this"     send the piped text, too
  rolling-chat --model anthropic/claude-sonnet-4-5
  rolling-chat -c context.enabled=true         one setting, for this run
"""


def read_options(argv: Sequence[str]) -> Options:
    """Parse a command line. Raises Failure with one line for anything unknown."""
    parser = make_parser(with_commands=bool(argv))
    parser.refuse_unknown(argv)
    options = parser.parse_args(list(argv), namespace=Options())
    if options.run == _CHAT and options.print is not None:
        options.run = _SCRIPT
    elif options.run == DOCTOR and options.tokens:
        options.run = _TOKEN_LOG
    return options


def command_of(options: Options) -> Callable[[Options, Paths], int]:
    """Import and return the command's function, which returns the exit code."""
    module, _, function = options.run.partition(":")
    return cast("Callable[[Options, Paths], int]", getattr(import_module(module), function))


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and suggest the nearest existing option."""

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message} (rolling-chat --help lists all)", Exit.USAGE)

    def refuse_unknown(self, argv: Sequence[str]) -> None:
        """Report an unknown option before argparse takes the word after it for a command."""
        known = set(_all_options(self))
        for word in argv:
            if word == "--":
                return
            option = word.split("=")[0]
            if option.startswith("--") and option not in known:
                near = difflib.get_close_matches(option, sorted(known), n=1)
                self.error(f"unknown option {option}" + (f"; did you mean {near[0]}?" if near else ""))


class _Version(argparse.Action):
    """An action that looks up the version only on demand, because that takes 50 ms."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        from rolling_chat import __version__

        print(f"rolling-chat {__version__}")
        parser.exit()


def _all_options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of `parser` and of every command below it."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to ask
        yield from action.option_strings
        if isinstance(action.choices, dict):
            for command in action.choices.values():
                yield from _all_options(command)


def make_parser(*, with_commands: bool = True) -> _Parser:
    """Return the parser of the command line; creating the commands takes as long as reading the settings."""
    parser = _Parser(
        prog="rolling-chat",
        description="A chat agent for the terminal that never runs out of context.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=_CHAT)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    _add_chat_options(parser)
    _add_script_options(parser)
    if with_commands:
        add_commands(parser)
    return parser


def _add_chat_options(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    parser.add_argument(
        "--api-base",
        metavar="URL",
        default="",
        help="the address of the model's server (default: the provider's own)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--continue",
        dest="resume_newest",
        action="store_true",
        help="continue the newest session of this folder",
    )
    which.add_argument(
        "--resume",
        metavar="ID",
        help="continue a session, by its id as `sessions list` shows it; any unique prefix works",
    )
    parser.add_argument(
        "--no-save",
        dest="save",
        action="store_false",
        help="keep the session in memory only; it is gone at the end",
    )
    parser.add_argument(
        "--plain", action="store_true", help="chat in plain lines, for screen readers: no full screen"
    )
    parser.add_argument(
        "--trust", action="store_true", help="trust this folder's own instructions and settings, for this run"
    )
    parser.add_argument("--approvals", choices=APPROVALS, help="which tools may run without asking")
    parser.add_argument(
        "--tools", metavar="LIST|none", help="the tools offered to the model, separated by commas"
    )
    parser.add_argument(
        "--max-iterations", metavar="N", type=positive, help="the maximum number of tool iterations in a turn"
    )


def _add_script_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-p",
        "--print",
        nargs="?",
        const=FROM_PIPE,
        metavar="TEXT",
        help="ask once, print the answer and exit",
    )
    parser.add_argument(
        "--output-format", choices=FORMATS, default="text", help="what -p prints (default: text)"
    )
    parser.add_argument(
        "--input-format",
        choices=INPUT_FORMATS,
        default="text",
        help="what -p reads: one text, or a message a line (default: text)",
    )
    parser.add_argument(
        "--json-schema", metavar="FILE", default="", help="have -p answer with JSON that matches a schema"
    )
