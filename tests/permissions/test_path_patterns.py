"""Rules with paths: what they name, how they are written, and what no wildcard reaches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.permissions.path_patterns import FILE_TOOLS, allows, denies, is_protected, lies_in
from rolling_chat.permissions.rules import PermissionRule, find_denial, is_allowed, parse_rule, propose_rule

PROTECTED = [
    ".git/config",
    ".GIT/hooks/pre-commit",
    "sub/.git",
    ".rolling-chat/settings.toml",
    "AGENTS.md",
    "docs/Agents.MD",
    "CLAUDE.md",
    ".envrc",
    ".ssh/authorized_keys",
    ".bashrc",
    ".vscode/tasks.json",
    ".github/workflows/test.yml",
    ".local/bin/ls",
    "x/.local/bin/deep/ls",
    ".bash_aliases",
    ".inputrc",
]


@pytest.mark.parametrize(
    ("pattern", "named", "not_named"),
    [
        ("src/**", ["src/a.py", "src/deep/b.py"], ["src", "a.py", "lib/src/a.py", "srcs/a.py"]),
        ("src/", ["src/a.py", "src/deep/b.py"], ["src", "a.py"]),
        ("./src/*", ["src/a.py"], ["src/deep/b.py"]),
        ("*", ["a.py", "name with blanks"], ["src/a.py"]),
        ("*.md", ["a.md"], ["docs/a.md", "a.mdx"]),
        ("**/*.md", ["a.md", "docs/a.md", "docs/deep/a.md"], ["a.py"]),
        ("src/**/test_?.py", ["src/test_a.py", "src/x/y/test_b.py"], ["src/test_ab.py"]),
        ("docs/notes.txt", ["docs/notes.txt"], ["docs/notes-txt", "docs/notes.txt/x", "Docs/notes.txt"]),
        ("a[b].c", ["a[b].c"], ["ab.c"]),
        ("**", ["a", "a/b", "a\nb"], []),
    ],
)
def test_a_pattern_names_paths(pattern: str, named: list[str], not_named: list[str]) -> None:
    assert [path for path in (*named, *not_named) if allows(pattern, path)] == named


def test_a_backslash_is_part_of_a_name() -> None:
    assert not allows("src/**", "src\\..\\a.py")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (".env", ".ENV"),
        ("Secrets/**", "secrets/a"),
        ("stra\u00dfe/*", "STRASSE/a"),
        ("caf\u00e9", "cafe\u0301"),
    ],
)
def test_what_denies_takes_names_that_a_file_system_takes_for_the_same(pattern: str, path: str) -> None:
    assert denies(pattern, path)
    assert not allows(pattern, path)


def test_many_stars_are_matched_in_no_time_that_grows_with_their_number() -> None:
    assert not allows("**/" * 40 + "x", "a/" * 60 + "y")
    assert not allows("*" * 200 + "x", "a" * 500)


@pytest.mark.parametrize("path", PROTECTED)
def test_no_wildcard_allows_what_decides_what_runs_by_itself(path: str) -> None:
    assert is_protected(path)
    for pattern in ("**", "*", "**/*", f"{path.partition('/')[0][:-1]}*/**"):
        assert not allows(pattern, path)
    assert allows(path, path)
    assert denies("**", path)


@pytest.mark.parametrize("path", PROTECTED)
def test_a_tools_bare_name_does_not_allow_it_either(path: str) -> None:
    assert not is_allowed([parse_rule("edit_file")], "edit_file", (path,))
    assert is_allowed([parse_rule("edit_file")], "edit_file", ("src/a",))


def test_what_must_be_named_exactly_is_allowed_by_no_star() -> None:
    path, rules = "mine/sessions.db", [parse_rule("edit_file(mine/**)"), parse_rule("edit_file")]
    assert is_allowed(rules, "edit_file", (path,))
    assert not is_allowed(rules, "edit_file", (path,), exact_only=(path,))
    proposed = propose_rule("edit_file", (path,), exact_only=(path,))
    assert proposed.text == "edit_file(mine/sessions.db)"
    assert is_allowed([proposed], "edit_file", (path,), exact_only=(path,))


def test_a_pattern_that_names_a_protected_folder_reaches_into_it() -> None:
    assert allows(".git/**", ".git/info/exclude")
    assert not allows("src/**", "src/.git/config")


@pytest.mark.parametrize(
    "path",
    [
        "src/agents.py",
        ".gitignore",
        "git/config",
        "github/x.yml",
        "agents.md.txt",
        ".local/x",
        "a.local/bin/b",
    ],
)
def test_other_files_are_not_protected(path: str) -> None:
    assert not is_protected(path)


@pytest.mark.parametrize(
    ("path", "folder", "is_in"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/A/x", "/a", True), ("/ab", "/a", False), ("/b", "/", True)],
)
def test_what_lies_in_a_folder_is_known(path: str, folder: str, is_in: bool) -> None:
    assert lies_in(path, folder) is is_in


@pytest.mark.parametrize(
    "text", ["edit_file(src/**)", "write_file(*)", "move_file(**)", "delete_file(a b.txt)"]
)
def test_a_rule_with_a_path_is_written_as_it_was_read(text: str) -> None:
    rule = parse_rule(text)
    assert rule.reach == "path"
    assert rule.text == text
    assert parse_rule(rule.text) == rule


def test_a_star_alone_means_the_folder_itself_and_not_the_whole_tool() -> None:
    rule = parse_rule("edit_file(*)")
    assert is_allowed([rule], "edit_file", ("a.txt",))
    assert not is_allowed([rule], "edit_file", ("src/a.txt",))
    assert parse_rule("edit_file").reach == "tool"


@pytest.mark.parametrize("inside", ["../x", "src/../../x", "/etc/**", "~/x", "", "  ", "a\nb", "a\x1bb"])
def test_a_rule_whose_path_cannot_be_below_the_folder_is_refused(inside: str) -> None:
    with pytest.raises(ValueError, match="below the working folder"):
        parse_rule(f"edit_file({inside})")


def test_to_allow_every_path_must_be_allowed() -> None:
    rules = [parse_rule("move_file(src/**)"), parse_rule("move_file(lib/**)")]
    assert is_allowed(rules, "move_file", ("src/a", "lib/b"))
    assert not is_allowed(rules, "move_file", ("src/a", "b"))
    assert not is_allowed(rules, "edit_file", ("src/a",))
    assert not is_allowed(rules, "move_file", ())


def test_to_deny_one_path_is_enough() -> None:
    rules = [parse_rule("move_file(secrets/**)")]
    assert find_denial(rules, "move_file", ("a", "Secrets/b")) == rules[0]
    assert find_denial(rules, "move_file", ("a", "b")) is None


@pytest.mark.parametrize("denied", sorted(FILE_TOOLS))
@pytest.mark.parametrize("tool", sorted(FILE_TOOLS))
def test_a_path_that_is_denied_to_one_tool_is_denied_to_all(denied: str, tool: str) -> None:
    rule = parse_rule(f"{denied}(secrets/**)")
    assert find_denial([rule], tool, ("secrets/a",)) == rule
    assert find_denial([rule], tool, ("a",)) is None
    assert find_denial([rule], "run_command", "cat secrets/a") is None


def test_a_tool_that_is_denied_is_denied_alone() -> None:
    assert find_denial([parse_rule("delete_file")], "edit_file", ("a",)) is None


def test_rules_of_edit_file_hold_for_several_edits_at_once() -> None:
    rules = [parse_rule("edit_file(src/**)")]
    assert is_allowed(rules, "multi_edit", ("src/a",))
    assert find_denial(rules, "multi_edit", ("src/a",)) is not None
    assert propose_rule("multi_edit", ("src/a",)) == rules[0]


@pytest.mark.parametrize(
    ("paths", "rule"),
    [
        (("src/a.py",), "edit_file(src/**)"),
        (("src/deep/a.py",), "edit_file(src/deep/**)"),
        (("a.py",), "edit_file(*)"),
        (("src/a.py", "src/b.py"), "edit_file(src/**)"),
        (("src/a.py", "lib/a.py"), "edit_file(**)"),
        ((".git/config",), "edit_file(.git/config)"),
        (("src/a.py", "AGENTS.md"), "edit_file(AGENTS.md)"),
        (("~x/a",), "edit_file(./~x/**)"),
        (("**/a",), "edit_file(??/**)"),
        (("a*b/c",), "edit_file(a?b/**)"),
        ((".git/*",), "edit_file(.git/?)"),
    ],
)
def test_always_proposes_the_folder_and_for_protected_files_the_file_alone(
    paths: tuple[str, ...], rule: str
) -> None:
    assert propose_rule("edit_file", paths).text == rule


@given(
    st.lists(st.text(min_size=1).filter(lambda part: part not in {".", ".."} and "/" not in part), min_size=1)
)
def test_what_always_proposes_allows_the_same_call_and_can_be_written(parts: list[str]) -> None:
    path = "/".join(parts)
    rule = propose_rule("edit_file", (path,))
    assert is_allowed([rule], "edit_file", (path,))
    assert parse_rule(rule.text) == rule
    assert isinstance(rule, PermissionRule)
    assert rule.can_be_kept
