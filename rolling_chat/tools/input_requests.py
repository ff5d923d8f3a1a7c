"""Detect from a failed command and its output whether it asked for input, which commands do not get."""

from __future__ import annotations

import re

_READ = 20_000  # characters at the end of the output

_SAID = re.compile(
    r"""
      EOFError | EOF\ when\ reading\ a\ line
    | a\ terminal\ is\ required | a\ password\ is\ required | no\ tty\ present
    | terminal\ prompts\ disabled | could\ not\ read\ (?:Username|Password)
    | Host\ key\ verification\ failed | can't\ open\ /dev/tty | cannot\ open\ /dev/tty
    | Permission\ denied\ \([^)]*(?:password|keyboard-interactive)
    | (?:input\ device|standard\ input|stdin|input)\ is\ not\ (?:a|from\ a)\ (?:tty|terminal)
    | not\ an\ interactive\ (?:terminal|tty) | inappropriate\ ioctl\ for\ device
    | must\ be\ run\ from\ a\ terminal | non-interactive\ (?:mode|shell|terminal)
    | ^Aborted!$
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
# the shell's own builtin fails silently without input; with `<` or after `|` it has input
_READS = re.compile(r"(?:^|[;&\n{(]|\b(?:then|do|else))\s*read\b(?![^;&|\n]*<)")


def asks_for_input(command: str, output: str) -> bool:
    """Return whether a command that failed asked for input."""
    return _SAID.search(output[-_READ:]) is not None or _READS.search(command) is not None
