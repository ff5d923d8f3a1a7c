"""Split a shell command into its simple commands, or report that this is not possible with certainty.

The grammar is a small subset that bash, dash and POSIX sh all read in the same way. Anything else (an
expansion, a redirection, a comment, a group, a reserved word, a control character) makes the whole command
unreadable, so that only the user can decide whether it is allowed.
"""

from __future__ import annotations

import os
import re
import string
import sys
from dataclasses import dataclass

_PLAIN = frozenset(string.ascii_letters + string.digits + "_-./:,+=@%^")
_PATTERN = frozenset("*?[]~")  # the shell may expand a word that contains one
_BLANK = frozenset(" \t")
_SEPARATOR = re.compile(r"&&|\|\||[;&|\n]")
_ENDS_LINE = frozenset(";&\n")  # separators that may follow the last command
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[.*\])?\+?=")
_RESERVED = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "for",
        "in",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "select",
        "function",
        "time",
        "coproc",
        "{",
        "}",
        "[[",
        "]]",
        "!",
    ]
)
# builtins of bash that run code in an argument (`test -v 'a[$(x)]'`) or set variables (`printf -v PATH .`)
_EVALUATING = frozenset(["printf", "test"])


class UnreadableCommandError(ValueError):
    """A command that cannot be split with certainty."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command line without its quotes; `is_literal`: the program gets exactly this text."""

    text: str
    is_literal: bool = True


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple shell command: a program and its arguments."""

    words: tuple[Word, ...]

    def begins_with(self, prefix: tuple[str, ...]) -> bool:
        """Return whether the command begins with these words."""
        return self._literal(len(prefix)) == prefix

    def is_exactly(self, words: tuple[str, ...]) -> bool:
        """Return whether the command consists of exactly these words."""
        return len(self.words) == len(words) and self._literal(len(words)) == words

    @property
    def literal(self) -> tuple[str, ...]:
        """The command's words up to the first that the shell would expand."""
        return self._literal(len(self.words))

    def _literal(self, count: int) -> tuple[str, ...]:
        literal: list[str] = []
        for word in self.words[:count]:
            if not word.is_literal:
                break
            literal.append(word.text)
        return tuple(literal)


def split_command(text: str) -> tuple[SimpleCommand, ...]:
    """Split a shell command line into its simple commands, at least one. Raises UnreadableCommandError."""
    if os.name == "nt":
        raise UnreadableCommandError("a shell with another grammar")
    if not all(char.isprintable() or char in "\t\n" for char in text):
        raise UnreadableCommandError("a control character")
    if not text.isascii() and sys.getfilesystemencoding() != "utf-8":
        raise UnreadableCommandError("a character that this system may read in two ways")
    return _Splitter(text).split()


class _Splitter:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._commands: list[SimpleCommand] = []
        self._words: list[Word] = []

    def split(self) -> tuple[SimpleCommand, ...]:
        last = ";"
        while self._at < len(self._text):
            separator = _SEPARATOR.match(self._text, self._at)
            if self._text[self._at] in _BLANK:
                self._at += 1
            elif separator is None:
                self._words.append(self._word())
            else:
                last = separator[0]
                self._end_command(last)
                self._at = separator.end()
        if self._words:
            self._end_command("")
        elif not self._commands or last not in _ENDS_LINE:
            raise UnreadableCommandError("a command that is not finished")
        return tuple(self._commands)

    def _end_command(self, separator: str) -> None:
        if not self._words:
            if separator == "\n":
                return
            raise UnreadableCommandError("an empty command")
        first = self._words[0].text
        if first in _RESERVED or _ASSIGNMENT.match(first):
            raise UnreadableCommandError("a reserved word or an assignment")
        if first in _EVALUATING:
            raise UnreadableCommandError("a builtin that evaluates its arguments")
        self._commands.append(SimpleCommand(tuple(self._words)))
        self._words = []

    def _word(self) -> Word:
        text, is_literal = "", True
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in _PLAIN:
                text, self._at = text + char, self._at + 1
            elif char in _PATTERN:
                text, self._at, is_literal = text + char, self._at + 1, False
            elif char == "'":
                text += self._until_single_quote()
            elif char == '"':
                text += self._until_double_quote()
            elif char == "\\":
                text += self._escaped()
            elif char in _BLANK or _SEPARATOR.match(char):
                break
            else:
                raise UnreadableCommandError(f"{char!r} outside quotes")
        return Word(text, is_literal)

    def _until_single_quote(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise UnreadableCommandError("a quote that is not closed")
        quoted, self._at = self._text[self._at + 1 : end], end + 1
        return quoted

    def _until_double_quote(self) -> str:
        self._at += 1
        quoted = ""
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return quoted
            if char in "$`":
                raise UnreadableCommandError("an expansion")
            if char == "\\":
                char = self._text[self._at + 1 : self._at + 2]
                if char not in ('"', "\\", "$", "`"):
                    raise UnreadableCommandError("a backslash in quotes")
                self._at += 1
            quoted, self._at = quoted + char, self._at + 1
        raise UnreadableCommandError("a quote that is not closed")

    def _escaped(self) -> str:
        char = self._text[self._at + 1 : self._at + 2]
        if not char or not char.isascii() or not char.isprintable():
            raise UnreadableCommandError("a backslash before the end of a line")
        self._at += 2
        return char
