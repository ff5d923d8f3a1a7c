"""The commands of the command line, such as `sessions` and `replay`, with their options."""

from __future__ import annotations

import argparse
from typing import Any, TypeAlias

REPLAY_FORMATS = ("table", "json")
EXPORT_FORMATS = ("markdown", "jsonl", "html", "json")
SHELLS = ("bash", "zsh", "fish")

DOCTOR = "rolling_chat.cli.doctor:run_doctor"
_LIST_SESSIONS = "rolling_chat.cli.saved_sessions:list_sessions"

_REPLAY = """\
Build every prompt that would have been sent, as the rolling pipeline plans it.

FILE is a JSON array of messages, or JSONL with one conversation per line ({"id", "messages"}, optionally
"tools"), gzipped or not; Parquet with a column "messages" (a list of structs, or JSON text), optionally
"id" and "tools"; a folder or a pattern of such files; or a saved session's id (any unique prefix). A model
was called before every assistant message, and would be called at the end if the last message is the user's
or a tool's. Rolling is on unless -c context.enabled=false is given.

Files that cannot be read are named on stderr, and the others are replayed. --jobs N produces the same rows
in the same order with N processes. With --output, the same command resumes an interrupted run.

JSON output is one object per line: "file" is the conversation's file; "request" counts from 1 within the
conversation; "at_message" is the index, from 0, of the message before which the model was called. "kept",
"dropped", "masked", "truncated" and "summarised" count messages and add up to those before that index
("kept": sent whole; a message that had to be repaired counts as kept, or as dropped if it was omitted).
"overflow" is null, or the line of the refusal; later requests are still replayed. Sizes are in tokens:
"token_count" is the estimate of the prompt, for a saved session corrected by the provider's counts;
"bound" is its upper bound; "reserve" and "margin" are kept free. "cached_prefix_tokens" is the size of the
prefix that a request shares with the one sent before it.
"""

_Commands: TypeAlias = "argparse._SubParsersAction[Any]"  # noqa: SLF001 - argparse has no public name for it


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add all commands to the parser of the command line."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
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
    doctor.set_defaults(run=DOCTOR)
    add_settings(doctor)
    doctor.add_argument(
        "--tokens",
        action="store_true",
        help="the accuracy of the token counts of all sent requests, by model",
    )
    doctor.add_argument("--json", action="store_true", help="with --tokens: the figures as JSON")
    doctor.add_argument("--svg", metavar="FILE", help="with --tokens: also draw them")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options `--model` and `-c`."""
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


def _add_sessions(commands: _Commands) -> None:
    sessions = commands.add_parser(
        "sessions", help="list, search, show, export, import, copy or delete saved sessions"
    )
    sessions.set_defaults(run=_LIST_SESSIONS, json=False)
    actions = sessions.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="all sessions, the newest first")
    listing.add_argument("--json", action="store_true", help="as a JSON array")
    listing.set_defaults(run=_LIST_SESSIONS)
    for name, run, what in (
        ("show", "rolling_chat.cli.one_session:show_session", "the facts of one session"),
        ("export", "rolling_chat.cli.one_session:export_session", "one session as a document, to stdout"),
        ("delete", "rolling_chat.cli.one_session:delete_session", "one session, for good"),
    ):
        action = actions.add_parser(name, help=what)
        action.add_argument(
            "session",
            metavar="ID",
            help="the session's id as `sessions list` shows it; any unique prefix works",
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
        "import", help="import sessions from a file: a JSON array of messages, or JSONL"
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
            help="ids as `sessions list` shows them; any unique prefix works",
        )
        copying.add_argument("--all", action="store_true", help="every session; only new data is copied")
        copying.add_argument("--json", action="store_true", help="as a JSON array")
        copying.set_defaults(run=f"rolling_chat.cli.session_copies:{name}_sessions")


def _add_search(actions: _Commands) -> None:
    search = actions.add_parser("search", help="messages of all sessions, best matches first")
    search.add_argument(
        "words", metavar="WORDS", nargs="+", help='"words in quotes" match as a phrase, word* as a prefix'
    )
    search.add_argument("--limit", metavar="N", type=positive, default=20, help="default: 20")
    search.add_argument("--json", action="store_true", help="as a JSON array")
    search.set_defaults(run="rolling_chat.cli.saved_sessions:search_sessions")


def _add_replay(commands: _Commands) -> None:
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
    add_settings(replay)
    replay.add_argument(
        "--max-input-tokens", metavar="N", type=positive, help="the window W (default: the model's own)"
    )
    replay.add_argument(
        "--reserved-output-tokens", metavar="N", type=whole, help="tokens reserved for the answer"
    )
    replay.add_argument(
        "--format", choices=REPLAY_FORMATS, help="default: table on a terminal, json elsewhere"
    )
    replay.add_argument("--json", action="store_true", help="the same as --format json")
    replay.add_argument("--emit-prompts", action="store_true", help="each row with the prompt itself")
    replay.add_argument("--svg", metavar="FILE", help="also draw the prompt's tokens over the requests")
    replay.add_argument(
        "--jobs", metavar="N", type=positive, default=1, help="the number of processes (default: 1)"
    )
    replay.add_argument(
        "--output",
        metavar="FILE",
        help="write the rows into a file (.jsonl, .jsonl.gz, .parquet); run again to resume after a stop",
    )


def _add_inspect(commands: _Commands) -> None:
    inspect = commands.add_parser(
        "inspect", help="list a session's requests, or show the fate of every message of one"
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
        help="exit with 1 unless it is exactly what was sent; for a session, check every request",
    )
    inspect.add_argument("--json", action="store_true", help="the report, or the list, as JSON")


def _add_models(commands: _Commands) -> None:
    models = commands.add_parser(
        "models", help="list the models that can be reached, with windows and prices; fetch a newer catalog"
    )
    models.set_defaults(run="rolling_chat.cli.models:run_models")
    models.add_argument("words", metavar="WORD", nargs="*", help="only names with all of these words")
    models.add_argument("--json", action="store_true", help="as a JSON array; null is unknown")
    models.add_argument(
        "--refresh", action="store_true", help="fetch the catalog from the address in catalog_address"
    )
    add_settings(models)


def _add_usage(commands: _Commands) -> None:
    usage = commands.add_parser("usage", help="the usage and cost of all sessions, by day, model or folder")
    usage.set_defaults(run="rolling_chat.cli.usage:run_usage")
    usage.add_argument("--by", choices=("day", "model", "folder"), default="day", help="default: day")
    usage.add_argument("--json", action="store_true", help="as a JSON array; a cost that is null is unknown")


def _add_settings_command(commands: _Commands) -> None:
    settings = commands.add_parser(
        "settings", help="list the settings that apply in this folder, and where each comes from"
    )
    settings.set_defaults(run="rolling_chat.cli.settings:run_settings")
    settings.add_argument("--json", action="store_true", help="as a JSON object")
    settings.add_argument(
        "--schema", action="store_true", help="print the JSON Schema of config.toml, for editors"
    )
    add_settings(settings)


def _add_logins(commands: _Commands) -> None:
    login = commands.add_parser("login", help="store a provider's API key in the system's keyring")
    login.set_defaults(run="rolling_chat.cli.login:run_login")
    login.add_argument(
        "provider",
        metavar="PROVIDER",
        nargs="?",
        default="",
        help="such as anthropic; without it, list the stored keys",
    )
    logout = commands.add_parser("logout", help="delete a provider's API key from the keyring")
    logout.set_defaults(run="rolling_chat.cli.login:run_logout")
    logout.add_argument("provider", metavar="PROVIDER", help="such as anthropic")


def _add_acp(commands: _Commands) -> None:
    acp = commands.add_parser(
        "acp", help="run as the agent of an editor, by the Agent Client Protocol on stdin and stdout"
    )
    acp.set_defaults(run="rolling_chat.cli.acp:run_acp")
    add_settings(acp)
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


def _add_mcp(commands: _Commands) -> None:
    mcp = commands.add_parser("mcp", help="list, add and remove MCP servers, and log in to them")
    listing_run = "rolling_chat.cli.mcp:list_servers"
    mcp.set_defaults(run=listing_run, json=False)
    actions = mcp.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="start all servers, and print the state of each")
    listing.add_argument("--json", action="store_true", help="as a JSON array")
    listing.set_defaults(run=listing_run)
    add_settings(listing)
    adding = actions.add_parser("add", help="add a server to your own mcp.json")
    adding.add_argument("--url", metavar="URL", default="", help="the address of a running server")
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


def _add_completion(commands: _Commands) -> None:
    completion = commands.add_parser(
        "completion", help="print the completion of this command line for a shell"
    )
    completion.set_defaults(run="rolling_chat.cli.completion:run_completion")
    completion.add_argument("shell", choices=SHELLS)


def _add_serve(commands: _Commands) -> None:
    serve = commands.add_parser("serve", help="show the chat in a browser on this machine")
    serve.set_defaults(run="rolling_chat.cli.serve:run_serve")
    serve.add_argument("--port", metavar="N", type=whole, default=8000, help="0: any (default: 8000)")
    serve.add_argument(
        "words", metavar="-- OPTIONS", nargs="*", help="options for each chat, such as -- --model NAME"
    )


def whole(text: str) -> int:
    """Parse an option that is a whole number, perhaps 0. Raises ArgumentTypeError."""
    return 0 if text == "0" else positive(text)


def positive(text: str) -> int:
    """Parse an option that is a positive whole number. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
