"""Find the signatures in source files, by parsers if they are installed, else by regular expressions.

It runs as a process of its own (`python -I outline_process.py FILE`): a parser may need a deep stack or crash
on a hostile source, and only a process can be stopped. It imports nothing of the program.

FILE is JSON: a list of pairs of a suffix and a text. For each, it prints a list of [line, depth, signature].
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

Entry: TypeAlias = tuple[int, int, str]  # line from 1, depth from 0, signature

_LONGEST_LINE = 300  # characters of a line to examine
_MAX_SIGNATURE = 160
_MAX_ENTRIES = 2_000  # of one file

_WORDS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|final|abstract|async|override"
)
_MODIFIERS = _WORDS + r"|sealed|open|data|inline|suspend|virtual|partial|readonly|unsafe|case|implicit)\s+)*"
_TYPES = (
    r"(?:class|interface|enum|struct|record|trait|object|protocol|extension|namespace|module|union|actor)"
)
_NO_NAME = r"(?!(?:if|for|while|switch|catch|return|else|do|try|new|throw|await|sizeof|function|using)\b)"
_BRACED = (
    rf"{_MODIFIERS}{_TYPES}\s+[\w$]|{_MODIFIERS}(?:fun|func|function\*?|def)\s+[\w$<(]"
    rf"|{_MODIFIERS}{_NO_NAME}(?:[\w$<>\[\],.?]+\s+){{1,3}}{_NO_NAME}[\w$]+\s*\([^;]*\)[^;=]*\{{\s*$"
)
_SCRIPT = (
    rf"{_MODIFIERS}(?:{_TYPES}\s+[\w$]|function\b|type\s+[\w$]+[^=]*=)"
    rf"|{_MODIFIERS}(?:const|let|var)\s+[\w$]+\s*(?::[^=]+)?=\s*(?:async\s*)?"
    r"(?:function\b|\([^()]*\)[^=]*=>|[\w$]+\s*=>)"
    rf"|(?:(?:get|set|\*)\s+)?{_MODIFIERS}{_NO_NAME}[\w$#]+\s*(?:<[^<>]*>)?"
    r"\((?:(?!function|=>)[^;])*\)[^;=]*\{\s*$"
)
_C = (
    r"(?:typedef\s+)?(?:struct|class|enum|union|namespace)\s+\w[^;]*$|#\s*define\s+\w+\("
    rf"|{_NO_NAME}(?:[A-Za-z_][\w*&:<>,~]*\s+[*&]*)+[\w:~]+\s*\([^;]*\)?[^;=]*\{{?\s*$"
)
_RUST = (
    r"(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|const|async|unsafe|extern(?:\s+\"[^\"]*\")?)\s+)*"
    r"(?:fn|struct|enum|trait|impl|mod|type|union)\b|macro_rules!"
)
_SHELL = r"(?:function\s+)?[\w-]+\s*\(\)|function\s+[\w-]+"
_PATTERNS = {
    "py": r"(?:async\s+)?def\s+\w|class\s+\w",
    "js": _SCRIPT, "jsx": _SCRIPT, "mjs": _SCRIPT, "cjs": _SCRIPT, "ts": _SCRIPT, "tsx": _SCRIPT,
    "go": r"func\b|type\s+\w",
    "rs": _RUST,
    "java": _BRACED, "cs": _BRACED, "kt": _BRACED, "scala": _BRACED, "swift": _BRACED, "php": _BRACED,
    "dart": _BRACED, "c": _C, "h": _C, "cc": _C, "cpp": _C, "hpp": _C, "cxx": _C,
    "rb": r"def\s+\S|class\s+\S|module\s+\S",
    "sh": _SHELL, "bash": _SHELL,
    "lua": r"(?:local\s+)?function\s+\w|[\w.]+\s*=\s*function\b",
    "ex": r"def\w*\s+\w", "exs": r"def\w*\s+\w",
    "sql": r"(?i:create\s+(?:or\s+replace\s+)?\w+(?:\s+\w+)?)",
    "md": r"#{1,6}\s", "toml": r"\[", "ini": r"\[", "cfg": r"\[",
}  # fmt: skip
_END = re.compile(r"\s*(?:[{:]|=>?)$")  # the beginning of a body

# the modules of grammars, and the function of each that returns its language
_GRAMMARS = {
    "js": "javascript", "jsx": "javascript", "mjs": "javascript", "cjs": "javascript",
    "ts": "typescript:language_typescript", "tsx": "typescript:language_tsx", "go": "go", "rs": "rust",
    "java": "java", "cs": "c_sharp", "c": "c", "h": "c",
    "cc": "cpp", "cpp": "cpp", "hpp": "cpp", "cxx": "cpp",
    "rb": "ruby", "php": "php:language_php", "sh": "bash", "bash": "bash",
}  # fmt: skip
_SIGNED = re.compile(
    r"(?:abstract_)?(?:class|struct|enum|union|interface|trait|impl|function|method|constructor|module"
    r"|namespace|internal_module|file_scoped_namespace|type_alias|type|record|delegate|macro|mod"
    r"|singleton_method|generator_function)"
    r"(?:_(?:declaration|definition|item|specifier|elem|signature|spec))?"
)
_CLOSED = re.compile(r"(?:function|method|constructor|generator_function|singleton_method)")
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function", "generator_function"})


def outline(suffix: str, text: str) -> list[Entry]:
    """Return the signatures of a text, by the best available method for its language."""
    if suffix == "py":
        try:
            return _limited(_of_python(ast.parse(text).body, 0))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return _limited(_by_pattern(suffix, text))
    parser = _parser(_GRAMMARS.get(suffix, ""))
    return _limited(_by_parser(parser, text) if parser is not None else _by_pattern(suffix, text))


def _limited(entries: Iterator[Entry]) -> list[Entry]:
    return [entry for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False)]


def _of_python(body: list[ast.stmt], depth: int) -> Iterator[Entry]:
    """Yield classes and functions, including those under a condition, but not those in functions."""
    for node in body:
        match node:
            case ast.ClassDef():
                bases = ", ".join(map(ast.unparse, (*node.bases, *node.keywords)))
                yield node.lineno, depth, _short(f"class {node.name}" + (f"({bases})" if bases else ""))
                yield from _of_python(node.body, depth + 1)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                word = "def" if isinstance(node, ast.FunctionDef) else "async def"
                returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                yield node.lineno, depth, _short(f"{word} {node.name}({ast.unparse(node.args)}){returns}")
            case ast.If() | ast.Try() | ast.With():
                yield from _of_python([*node.body, *getattr(node, "orelse", ())], depth)


def _by_pattern(suffix: str, text: str) -> Iterator[Entry]:
    expression = re.compile(_PATTERNS[suffix])
    indents: list[int] = []
    is_fenced = False
    for number, line in enumerate(text.split("\n"), start=1):
        line = line[:_LONGEST_LINE].expandtabs(4)  # noqa: PLW2901  # only a part of it is examined
        bare = line.lstrip()
        if suffix == "md":
            is_fenced ^= bare.startswith("```")
        if is_fenced or not expression.match(bare):
            continue
        indent = len(bare) - len(bare.lstrip("#")) if suffix == "md" else len(line) - len(bare)
        while indents and indents[-1] >= indent:
            indents.pop()
        yield number, len(indents), _short(bare)
        indents.append(indent)


def _parser(grammar: str) -> Any:
    """Return a parser of a grammar; None if it is not installed."""
    if not grammar:
        return None
    module, _, function = grammar.partition(":")
    try:
        sitter = import_module("tree_sitter")
        language = getattr(import_module(f"tree_sitter_{module}"), function or "language")()
        return sitter.Parser(sitter.Language(language))
    except (ImportError, AttributeError, ValueError, TypeError):
        return None  # not there, or of another version than the grammar


def _by_parser(parser: Any, text: str) -> Iterator[Entry]:
    source = text.encode("utf-8", errors="replace")
    open_nodes = [(parser.parse(source).root_node, 0)]
    while open_nodes:
        node, depth = open_nodes.pop()
        below = depth
        if _is_signed(node):
            yield node.start_point[0] + 1, depth, _signature(node, source)
            below += 1
        if not _hides(node):
            open_nodes += [(child, below) for child in reversed(node.named_children)]


def _is_signed(node: Any) -> bool:
    if node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        return value is not None and value.type in _FUNCTIONS
    if not node.is_named or not _SIGNED.fullmatch(node.type):
        return False
    has_body = node.child_by_field_name("body") is not None
    is_named = any(node.child_by_field_name(field) is not None for field in ("name", "declarator", "type"))
    return is_named and (has_body or not node.type.endswith("specifier"))


def _hides(node: Any) -> bool:
    """Return whether a node's contents are skipped, because it is the body of a function."""
    return bool(_CLOSED.match(node.type)) or node.type in {"variable_declarator", "arrow_function"}


def _signature(node: Any, source: bytes) -> str:
    body = node.child_by_field_name("body")
    if body is None and node.type == "variable_declarator":
        body = node.child_by_field_name("value").child_by_field_name("body")
    end = body.start_byte if body is not None else min(node.end_byte, node.start_byte + 4 * _MAX_SIGNATURE)
    text = source[node.start_byte : min(end, node.start_byte + 8 * _MAX_SIGNATURE)].decode(errors="replace")
    word = "type " if node.type == "type_spec" else ""  # Go groups several under the word
    return _short(word + (text if body is not None else text.partition("\n")[0]))


def _short(text: str) -> str:
    line = _END.sub("", " ".join(text[: 4 * _MAX_SIGNATURE].split()))
    return line if len(line) <= _MAX_SIGNATURE else f"{line[: _MAX_SIGNATURE - 1]}…"


def main(arguments: list[str]) -> int:
    """Print the outlines of the files."""
    files = json.loads(Path(arguments[0]).read_bytes())
    sys.stdout.write(json.dumps([outline(suffix, text) for suffix, text in files]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
