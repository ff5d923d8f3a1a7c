"""Permission reaches exactly as far as its rule says, whatever a model writes around it."""

from __future__ import annotations

import pytest

from rolling_chat.permissions.rules import (
    PermissionRule,
    find_denial,
    is_allowed,
    parse_rule,
    propose_rule,
)

RUN = "run_command"
GIT_STATUS = "run_command(git status *)"

ALLOWED_BY_GIT_STATUS = [
    "git status",
    "git  status\t--short",
    "git status --short -- 'a file' \"b file\" c\\ d",
    "git 'status' \"--short\"",
    "g'i't status",
    "\\git status",
    "git status *.py ~/x [ab]?",
    "git status 'a;b|c&d$(e)`f`>g'",
    'git status "a;b|c&d>g\\$(e)\\`f\\`"',
    "git status HEAD^ a@b 100%",
    "git status; git status",
    "git status && git status || git status | git status & git status",
    "git status\ngit status\n\n",
    "git status |\n git status",
    "git status 'a\nb'",
    "git status 'grün'",
    "git status --output=x",
]

ATTACKS_ON_GIT_STATUS = [
    "",
    " ",
    "git",
    "git statusx",
    "gitstatus",
    "git stash",
    "git -c core.pager=x status",
    "git -C / status",
    "git --exec-path=. status",
    "./git status",
    "/tmp/git status",
    "~/git status",
    "g?t status",
    "git stat*",
    "{git,x} status",
    # other commands behind, before, beside and within
    "git status; rm x",
    "git status ;rm x",
    "git status;rm x",
    "rm x; git status",
    "git status && rm x",
    "git status || rm x",
    "git status | sh",
    "git status |& sh",
    "git status & rm x",
    "git status\nrm x",
    "git status\n\nrm x",
    "git status 'a'\nrm x",
    "git status \\\n; rm x",
    "git status\\\nx",
    "git status \\",
    "git status $(rm x)",
    'git status "$(rm x)"',
    "git status `rm x`",
    'git status "`rm x`"',
    "git status <(rm x)",
    "git status >(rm x)",
    "git status $((a[$(rm x)]))",
    "git status ${x:=$(rm x)}",
    "git status ${x@P}",
    "git status $x",
    'git status "$x"',
    "git status $'a'",
    'git status $"a"',
    "(git status)",
    "( git status; rm x )",
    "{ git status; rm x; }",
    "git() { rm x; }; git status",
    "function git { rm x; }\ngit status",
    "git status () { rm x; }",
    "if git status; then rm x; fi",
    "while git status; do rm x; done",
    "! git status",
    "time git status",
    "coproc git status",
    "[[ git status ]]",
    "case git in git) git status;; esac",
    # redirections and here-documents
    "git status > x",
    "git status >x",
    "git status>x",
    "git status >> x",
    "git status 2>x",
    "git status 2>&1",
    "git status &> x",
    "git status >| x",
    "git status <> x",
    "git status < x",
    "git status <<END\nEND",
    "git status <<'END'\nEND",
    "git status <<< x",
    "> x git status",
    # assignments and programs that run others
    "X=1 git status",
    "PATH=. git status",
    "GIT_PAGER='rm x' git status",
    "X+=1 git status",
    "X[1]=1 git status",
    "'X'=1 git status",
    "env git status",
    "env X=1 git status",
    "sudo git status",
    "xargs git status",
    "nohup git status",
    "command git status",
    "exec git status",
    "eval git status",
    "builtin git status",
    "nice git status",
    "sh -c 'git status'",
    "bash -c 'git status; rm x'",
    "find . -exec git status ;",
    "alias git=rm; git status",
    "cd /tmp && git status",
    "export PATH=. && git status",
    ". ./x; git status",
    # what only looks like nothing, or ends otherwise for the shell than for the eye
    "git status # rm x",
    "#x\ngit status",
    "git status !rm",
    "git status \x00 rm",
    "git status\rrm x",
    "git status\x0brm x",
    "git status\x0crm x",
    "git status\x85rm x",
    "git status\u2028rm x",
    "git status\u00a0x",
    "git status\u200b",
    "git status \u202e",
    "git status '\x1b'",
    "git status \udc0a",
    "git status \x01",
    "git status \x7f",
    "git status 'open",
    'git status "open',
    'git status "a\\',
    "git status ;;",
    "git status ;& rm x",
    "git status &&",
    "git status |",
    "; git status",
    "& git status",
    "git status && && git status",
    "git status & && rm x",
]


def allows(text: str, command: str, *more: str) -> bool:
    return is_allowed([parse_rule(each) for each in (text, *more)], RUN, command)


@pytest.mark.parametrize("command", ALLOWED_BY_GIT_STATUS)
def test_a_prefix_allows_its_command_with_any_arguments(command: str) -> None:
    assert allows(GIT_STATUS, command)


@pytest.mark.parametrize("command", ATTACKS_ON_GIT_STATUS)
def test_a_prefix_allows_nothing_else(command: str) -> None:
    assert not allows(GIT_STATUS, command)


@pytest.mark.parametrize(
    ("rules", "command", "is_covered"),
    [
        (["run_command(make test)"], "make test", True),
        (["run_command(make test)"], "make test ", True),
        (["run_command(make test)"], "make test -B", False),
        (["run_command(make test)"], "make", False),
        (["run_command(make test)"], "make test; rm x", False),
        (["run_command(make test)", GIT_STATUS], "git status && make test", True),
        (["run_command(make test)", GIT_STATUS], "git status && make test x", False),
        (["run_command(a > b; c $(d))"], "a > b; c $(d)", True),
        (["run_command(a > b; c $(d))"], "a > b; c $(e)", False),
        (["run_command(a > b; c $(d))"], "git status; a > b; c $(d)", False),
        (["run_command(=ls *.py)"], "ls *.py", True),
        (["run_command(=ls *.py)"], "ls a.py", False),
        (["run_command(=ls *)"], "ls /", False),
        (["run_command"], "anything; at > all", True),
        (["run_command(*)"], "anything; at > all", True),
        (["read_file"], "git status", False),
        ([], "git status", False),
    ],
)
def test_an_exact_rule_allows_that_command_and_a_tool_all_of_them(
    rules: list[str], command: str, is_covered: bool
) -> None:
    assert is_allowed([parse_rule(text) for text in rules], RUN, command) == is_covered


DENIED_BY_RM = [
    "rm x",
    "rm",
    "'rm' x",
    "r\\m x",
    "/bin/rm x",
    "git status; rm x",
    "git status && rm x",
    "git status\nrm x",
    "git status | rm x",
    "sudo rm x",
    "env X=1 rm x",
    "X=1 rm x",
    "find . -exec rm {} +",
    "ls | xargs rm",
    "echo rm x | sh",
    "bash -c 'cd /tmp && rm x'",
    "echo $(rm x)",
    "echo `r''m x`",
    "(rm x)",
    "r\\\nm x",
    "if true; then rm x; fi",
    "rm x > y",
    "command rm x",
    "test -v 'a[$(rm x)]'",
    "su -c'rm x'",
    "env -S'rm x'",
    "rm$IFS-rf${IFS}x",
    "r$()m x",
    "r${u}m x",
    "r$@m x",
    "make; RM x",
    "/bin/r? x",
    "ls; /b*/[r]m x",
    "make; rm.exe x",
]
NOT_DENIED_BY_RM = [
    "git status",
    "grep rm x",
    "echo 'rm x' | cat",
    "ls rm",
    "git commit -m 'rm x'",
    "rmdir x",
]


@pytest.mark.parametrize("command", DENIED_BY_RM)
def test_a_denied_program_is_denied_wherever_it_stands(command: str) -> None:
    assert find_denial([parse_rule("run_command(rm *)")], RUN, command)


@pytest.mark.parametrize("command", NOT_DENIED_BY_RM)
def test_a_denied_program_that_is_only_named_is_not_denied(command: str) -> None:
    assert not find_denial([parse_rule("run_command(rm *)")], RUN, command)


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git push --force",
        "git -C /x push",
        "git -c a=b push origin",
        "/usr/bin/git push",
        "x; git push",
        "$(git push)",
        "bash -c 'git push'",
    ],
)
def test_a_denied_subcommand_is_denied_behind_options_too(command: str) -> None:
    rule = parse_rule("run_command(git push *)")
    assert find_denial([rule], RUN, command) == rule
    assert not find_denial([rule], RUN, "git commit -m push")
    assert not find_denial([rule], RUN, "git status push")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("git status --short", "run_command(git status *)"),
        ("git log -3 -- 'a b'", "run_command(git log *)"),
        ("ls -la", "run_command(ls *)"),
        ("'ls' -la", "run_command(ls *)"),
        ("git push", "run_command(git push)"),
        ("git -C x status", "run_command(git -C x status)"),
        ("git status; ls", "run_command(git status; ls)"),
        ("git status > x", "run_command(git status > x)"),
        ("ls $(x)", "run_command(ls $(x))"),
        ("touch *.py", "run_command(=touch *.py)"),
        ("rm x", "run_command(rm x)"),
        ("=x", "run_command(==x)"),
        (" make", "run_command(= make)"),
        ("make\ntest", "run_command(make\ntest)"),
    ],
)
def test_the_rule_that_always_makes_can_be_read_back_and_allows_the_command(command: str, text: str) -> None:
    rule = propose_rule(RUN, command)
    assert rule.text == text
    assert parse_rule(text) == rule
    assert is_allowed([rule], RUN, command)


WRITES = [
    "--output=x",
    "--output x",
    "HEAD '--output=x'",
    "-p; git {0} --output=x",
    "-S -- --output=x",
    "*",
    "[-]x",
    "--outpu?=x",
]


@pytest.mark.parametrize("subcommand", ["blame", "diff", "log", "shortlog", "show"])
@pytest.mark.parametrize("arguments", WRITES)
def test_a_prefix_of_git_does_not_allow_a_file_to_be_written(subcommand: str, arguments: str) -> None:
    command = f"git {subcommand} {arguments.format(subcommand)}"
    rule = propose_rule(RUN, f"git {subcommand} -3 -- '*.py'")
    assert rule.text == f"run_command(git {subcommand} *)"
    assert not is_allowed([rule], RUN, command)
    assert is_allowed([propose_rule(RUN, command)], RUN, command)
    assert find_denial([rule], RUN, command)
    assert is_allowed([rule], RUN, f"git {subcommand} -3 HEAD^ -- src/*.py '*'")


@pytest.mark.parametrize(
    "command",
    [
        "printf -v 'a[$(touch x)]' y",
        "printf -v PATH .; ls",
        "printf %n PATH",
        "printf *",
        "test -v 'a[$(touch x)]'",
        "'te'st -? 'a[b]'",
    ],
)
def test_a_builtin_that_evaluates_its_arguments_is_only_remembered_as_the_exact_command(command: str) -> None:
    rule = propose_rule(RUN, command)
    assert rule == PermissionRule(RUN, "exact", command)
    assert is_allowed([rule], RUN, command)
    others = [propose_rule(RUN, other) for other in ("printf a", "test -f x", "ls")]
    assert not is_allowed(others, RUN, command)


PROGRAMS = """
file bash zsh env sudo doas xargs python python3 node ruby perl find ssh nohup time watch make nice awk sed
tar rg sort less vim npm npx cargo pytest docker pip uv eval exec command timeout git
"""


@pytest.mark.parametrize(
    "program",
    [*PROGRAMS.split(), "sh", "/bin/ls", "./ls"],
)
def test_a_program_that_can_run_others_is_only_remembered_as_the_exact_command(program: str) -> None:
    assert propose_rule(RUN, f"{program} x").reach == "exact"
    assert propose_rule(RUN, program).reach == "exact"


def test_a_rule_of_another_tool_is_the_tool() -> None:
    assert propose_rule("edit_file", "a.py") == PermissionRule("edit_file")
    assert is_allowed([parse_rule("edit_file")], "edit_file", "a.py")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no rule"),
        ("run_command(", "is no rule"),
        ("run command", "is no rule"),
        ("(git *)", "is no rule"),
        ("run_command()", "names no command"),
        ("run_command(=)", "names no command"),
        ("run_command(git status:*)", "needs a blank before"),
        ("run_command(rm*)", "needs a blank before"),
        ("run_command(a; b *)", "plain words"),
        ("run_command($X *)", "plain words"),
        ("run_command(X=1 git *)", "plain words"),
        ("run_command(ls *.py *)", "plain words"),
        ("list_files(src/**)", "which only run_command, fetch_url and the tools that change files take"),
    ],
)
def test_a_rule_that_cannot_be_read_says_why(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_rule(text)
