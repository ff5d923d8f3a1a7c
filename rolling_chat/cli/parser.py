"""Parse the command line into `Options`.

A command is given by its function, as "module:function", and imported only when it runs, so that no command
waits for another's imports.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, cast

from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options

if TYPE_CHECKING:
    from rolling_chat.settings.paths import Paths

REPLAY_FORMATS = ("table", "json")
FORMATS = ("text", "json", "stream-json")
INPUT_FORMATS = ("text", "stream-json")
EXPORT_FORMATS = ("markdown", "jsonl", "html", "json")
SHELLS = ("bash", "zsh", "fish")
APPROVALS = ("read-only", "plan", "ask", "edits", "all")
# The value of -p without a text: everything comes from the pipe.
FROM_PIPE = ""

_CHAT = "rolling_chat.cli.interactive:run_chat"
_SCRIPT = "rolling_chat.cli.script:run_script"
_DOCTOR = "rolling_chat.cli.doctor:run_doctor"
_TOKEN_LOG = "rolling_chat.cli.token_log:run_token_log"
_LIST_SESSIONS = "rolling_chat.cli.saved_sessions:list_sessions"

_EXAMPLES = """\
examples:
  rolling-chat                                 chat in this folder
  rolling-chat --continue                      go on with this folder's newest session
  rolling-chat -p "what does this folder do?"  ask once, print the answer
  git diff | rolling-chat -p "review this"     the pipe's text is sent along
  rolling-chat --model anthropic/claude-sonnet-4-5
  rolling-chat -c context.enabled=true         one setting, for this run
"""

_REPLAY = """\
Build every prompt that would have been sent, as the rolling pipeline plans it.

FILE is a JSON array of messages, or JSONL with one conversation a line ({"id", "messages"}, perhaps
"tools"), gzip or not; Parquet with a column "messages" (a list of structs, or JSON text), perhaps "id"
and "tools"; a folder or a pattern of such files; or a saved session's id (any unique start). A model was
called before every assistant message, and would be called at the end where the last message is the
user's or a tool's. Rolling is on unless -c context.enabled=false is given.

What cannot be read is named on stderr, and the rest goes on. --jobs N makes the same rows in the same
order by N processes. With --output, the same command goes on where it was stopped.

JSON is one object a line: "file" is where the conversation was read; "request" counts from 1 within its
conversation; "at_message" is the place, from 0, of the message before which the model was called. "kept",
"dropped", "masked", "truncated" and "summarised" count messages and add up to those before that place
("kept": sent whole; a message that had to be repaired counts as kept, or as dropped where it was left out).
"overflow" is null, or the line of the refusal; the requests after it go on. Sizes are in tokens:
"token_count" is the estimate of the prompt, for a saved session with what the provider counted of it;
"bound" is the most that it can be; "reserve" and "margin" are kept free. "cached_prefix_tokens" is what a
request has in common with the one sent before it.
"""


def read_options(argv: Sequence[str]) -> Options:
    """Parse a command line. Raises Failure with one line for anything unknown."""
    parser = make_parser(with_commands=bool(argv))
    parser.refuse_unknown(argv)
    options = parser.parse_args(list(argv), namespace=Options())
    if options.run == _CHAT and options.print is not None:
        options.run = _SCRIPT
    elif options.run == _DOCTOR and options.tokens:
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
        _add_commands(parser)
    return parser


def _add_commands(parser: _Parser) -> None:
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)
    _add_sessions(commands)
    _add_replay(commands)
    _add_inspect(commands)
    _add_models(commands)
    _add_usage(commands)
    _add_settings_command(commands)
    _add_logins(commands)
    _add_acp(commands)
    _add_mcp(commands)
    _add_completion(commands)
    _add_serve(commands)
    doctor = commands.add_parser(
        "doctor", help="show versions, folders, model, encodings, and what is missing"
    )
    doctor.set_defaults(run=_DOCTOR)
    _add_settings(doctor)
    doctor.add_argument(
        "--tokens", action="store_true", help="how good the token counts of all sent requests were, by model"
    )
    doctor.add_argument("--json", action="store_true", help="with --tokens: the figures as JSON")
    doctor.add_argument("--svg", metavar="FILE", help="with --tokens: also draw them")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    # after a command, its default must not override an option before the command
    default: Any = [] if parser.prog == "rolling-chat" else argparse.SUPPRESS
    parser.add_argument(
        "--model", metavar="NAME", default="" if default == [] else default, help="the model to ask"
    )
    parser.add_argument(
        "-c",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=default,
        help="one setting for this run",
    )


def _add_chat_options(parser: argparse.ArgumentParser) -> None:
    _add_settings(parser)
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
        help="go on with the newest session of this folder",
    )
    which.add_argument(
        "--resume",
        metavar="ID",
        help="go on with a session, by its id as `sessions list` shows it; any unique start will do",
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
        "--tools", metavar="LIST|none", help="the tools that the model is offered, with commas"
    )
    parser.add_argument(
        "--max-iterations", metavar="N", type=_positive, help="how often a turn may go back to the tools"
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


def _add_sessions(commands: argparse._SubParsersAction[_Parser]) -> None:
    sessions = commands.add_parser(
        "sessions", help="list, search, show, export, import, copy or delete saved sessions"
    )
    sessions.set_defaults(run=_LIST_SESSIONS, json=False)
    actions = sessions.add_subparsers(title="actions", metavar="ACTION", parser_class=_Parser)
    listing = actions.add_parser("list", help="all sessions, the newest first")
    listing.add_argument("--json", action="store_true", help="as a JSON array")
    listing.set_defaults(run=_LIST_SESSIONS)
    for name, run, what in (
        ("show", "rolling_chat.cli.one_session:show_session", "what is known of one session"),
        ("export", "rolling_chat.cli.one_session:export_session", "one session as a document, to stdout"),
        ("delete", "rolling_chat.cli.one_session:delete_session", "one session, for good"),
    ):
        action = actions.add_parser(name, help=what)
        action.add_argument(
            "session",
            metavar="ID",
            help="the session's id as `sessions list` shows it; any unique start will do",
        )
        action.set_defaults(run=run)
        if name == "delete":
            action.add_argument("--yes", action="store_true", help="do not ask")
        elif name == "export":
            action.add_argument(
                "--format", choices=EXPORT_FORMATS, default="markdown", help="default: markdown"
            )
    _add_search(actions)
    bringing = actions.add_parser(
        "import", help="make sessions of a file: a JSON array of messages, or JSONL"
    )
    bringing.add_argument(
        "file", metavar="FILE", help="OpenAI-format messages, or conversations; gzip or not"
    )
    bringing.set_defaults(run="rolling_chat.cli.session_import:import_sessions")
    for name, what in (
        ("push", "copy sessions of this machine into the database that [sessions] store names"),
        ("pull", "copy sessions of that database to this machine"),
    ):
        copying = actions.add_parser(name, help=what)
        copying.add_argument(
            "names",
            metavar="ID",
            nargs="*",
            help="ids as `sessions list` shows them; any unique start will do",
        )
        copying.add_argument("--all", action="store_true", help="every session; only what is new travels")
        copying.add_argument("--json", action="store_true", help="as a JSON array")
        copying.set_defaults(run=f"rolling_chat.cli.session_copies:{name}_sessions")


def _add_search(actions: argparse._SubParsersAction[_Parser]) -> None:
    search = actions.add_parser("search", help="what was said in any session, best first")
    search.add_argument(
        "words", metavar="WORDS", nargs="+", help='"words in quotes" stand together, word* begins one'
    )
    search.add_argument("--limit", metavar="N", type=_positive, default=20, help="default: 20")
    search.add_argument("--json", action="store_true", help="as a JSON array")
    search.set_defaults(run="rolling_chat.cli.saved_sessions:search_sessions")


def _add_replay(commands: argparse._SubParsersAction[_Parser]) -> None:
    replay = commands.add_parser(
        "replay",
        help="run a transcript through the context pipeline, request by request",
        description=_REPLAY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    replay.set_defaults(run="rolling_chat.cli.replay:run_replay")
    replay.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="transcripts, folders or patterns, - for standard input, or a saved session's id",
    )
    _add_settings(replay)
    replay.add_argument(
        "--max-input-tokens", metavar="N", type=_positive, help="the window W (default: the model's own)"
    )
    replay.add_argument(
        "--reserved-output-tokens", metavar="N", type=_whole, help="what is kept free for the answer"
    )
    replay.add_argument(
        "--format", choices=REPLAY_FORMATS, help="default: table on a terminal, json elsewhere"
    )
    replay.add_argument("--json", action="store_true", help="the same as --format json")
    replay.add_argument("--emit-prompts", action="store_true", help="each row with the prompt itself")
    replay.add_argument("--svg", metavar="FILE", help="also draw the prompt's tokens over the requests")
    replay.add_argument(
        "--jobs", metavar="N", type=_positive, default=1, help="replay by so many processes (default: 1)"
    )
    replay.add_argument(
        "--output",
        metavar="FILE",
        help="write the rows into a file (.jsonl, .jsonl.gz, .parquet); run again, it goes on after a stop",
    )


def _add_inspect(commands: argparse._SubParsersAction[_Parser]) -> None:
    inspect = commands.add_parser(
        "inspect", help="list a session's requests, or show what became of every message of one"
    )
    inspect.set_defaults(run="rolling_chat.cli.inspect:run_inspect")
    inspect.add_argument(
        "request",
        metavar="REQUEST",
        help="a session to list its requests; a request (q7b60935b), or SESSION:N for the N-th of a session",
    )
    inspect.add_argument(
        "--verify",
        action="store_true",
        help="exit with 1 unless it is what was sent, to the byte; of a session, every request",
    )
    inspect.add_argument("--json", action="store_true", help="the report, or the list, as JSON")


def _add_models(commands: argparse._SubParsersAction[_Parser]) -> None:
    models = commands.add_parser(
        "models", help="list the models that can be reached, with windows and prices; fetch a newer catalog"
    )
    models.set_defaults(run="rolling_chat.cli.models:run_models")
    models.add_argument("words", metavar="WORD", nargs="*", help="only names with all of these words")
    models.add_argument("--json", action="store_true", help="as a JSON array; null is unknown")
    models.add_argument(
        "--refresh", action="store_true", help="fetch the catalog from the address in catalog_address"
    )
    _add_settings(models)


def _add_usage(commands: argparse._SubParsersAction[_Parser]) -> None:
    usage = commands.add_parser("usage", help="what all sessions have used and cost, by day, model or folder")
    usage.set_defaults(run="rolling_chat.cli.usage:run_usage")
    usage.add_argument("--by", choices=("day", "model", "folder"), default="day", help="default: day")
    usage.add_argument("--json", action="store_true", help="as a JSON array; a cost that is null is unknown")


def _add_settings_command(commands: argparse._SubParsersAction[_Parser]) -> None:
    settings = commands.add_parser(
        "settings", help="list the settings that apply in this folder, and where each comes from"
    )
    settings.set_defaults(run="rolling_chat.cli.settings:run_settings")
    settings.add_argument("--json", action="store_true", help="as a JSON object")
    settings.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of config.toml, for editors"
    )
    _add_settings(settings)


def _add_logins(commands: argparse._SubParsersAction[_Parser]) -> None:
    login = commands.add_parser("login", help="store a provider's API key in the system's keyring")
    login.set_defaults(run="rolling_chat.cli.login:run_login")
    login.add_argument(
        "provider",
        metavar="PROVIDER",
        nargs="?",
        default="",
        help="such as anthropic; nothing: list what is stored",
    )
    logout = commands.add_parser("logout", help="take a provider's API key out of the keyring")
    logout.set_defaults(run="rolling_chat.cli.login:run_logout")
    logout.add_argument("provider", metavar="PROVIDER", help="such as anthropic")


def _add_acp(commands: argparse._SubParsersAction[_Parser]) -> None:
    acp = commands.add_parser(
        "acp", help="be the agent of an editor that speaks the Agent Client Protocol, on stdin and stdout"
    )
    acp.set_defaults(run="rolling_chat.cli.acp:run_acp")
    _add_settings(acp)
    acp.add_argument(
        "--trust",
        action="store_true",
        default=argparse.SUPPRESS,
        help="trust the instructions and settings of every folder that the editor opens",
    )
    acp.add_argument(
        "--login",
        metavar="PROVIDER",
        nargs="?",
        const="",
        default=None,
        help="store a provider's API key in the system's keyring, and exit",
    )


def _add_mcp(commands: argparse._SubParsersAction[_Parser]) -> None:
    mcp = commands.add_parser("mcp", help="list, add and remove MCP servers, and log in to them")
    listing_run = "rolling_chat.cli.mcp:list_servers"
    mcp.set_defaults(run=listing_run, json=False)
    actions = mcp.add_subparsers(title="actions", metavar="ACTION", parser_class=_Parser)
    listing = actions.add_parser("list", help="start all servers, and print how each is doing")
    listing.add_argument("--json", action="store_true", help="as a JSON array")
    listing.set_defaults(run=listing_run)
    _add_settings(listing)
    adding = actions.add_parser("add", help="add a server to your own mcp.json")
    adding.add_argument("--url", metavar="URL", default="", help="the address of a server that runs")
    adding.add_argument(
        "--header", metavar="NAME=VALUE", action="append", default=[], help="a header for --url"
    )
    adding.add_argument(
        "--env", metavar="NAME=VALUE", action="append", default=[], help="a variable for the program"
    )
    adding.add_argument("server", metavar="NAME", help="the name of the server")
    adding.add_argument(
        "program", metavar="COMMAND", nargs=argparse.REMAINDER, help="the program and its arguments"
    )
    adding.set_defaults(run="rolling_chat.cli.mcp:add_server")
    for name, run, what in (
        ("remove", "remove_server", "remove a server from your own mcp.json"),
        ("login", "log_in", "log in to a server in the browser"),
        ("logout", "log_out", "forget the login to a server"),
    ):
        action = actions.add_parser(name, help=what)
        action.add_argument("server", metavar="NAME", help="the name of the server")
        action.set_defaults(run=f"rolling_chat.cli.mcp:{run}")


def _add_completion(commands: argparse._SubParsersAction[_Parser]) -> None:
    completion = commands.add_parser(
        "completion", help="print the completion of this command line for a shell"
    )
    completion.set_defaults(run="rolling_chat.cli.completion:run_completion")
    completion.add_argument("shell", choices=SHELLS)


def _add_serve(commands: argparse._SubParsersAction[_Parser]) -> None:
    serve = commands.add_parser("serve", help="show the chat in a browser on this machine")
    serve.set_defaults(run="rolling_chat.cli.serve:run_serve")
    serve.add_argument("--port", metavar="N", type=_whole, default=8000, help="0: any (default: 8000)")
    serve.add_argument(
        "words", metavar="-- OPTIONS", nargs="*", help="options for each chat, such as -- --model NAME"
    )


def _whole(text: str) -> int:
    return 0 if text == "0" else _positive(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
