"""Keys as terminals send them, by what they are good for."""

from __future__ import annotations

ESC, ENTER, TAB, BACKSPACE = "\x1b", "\r", "\t", "\x7f"
CTRL_A, CTRL_U, CTRL_Q, CTRL_Z = "\x01", "\x15", "\x11", "\x1a"
F6 = "\x1b[17~"

MOVING = ("\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F")
WITH_MODIFIERS = (
    *(f"\x1b[1;{modifier}{key}" for modifier in (2, 3, 4, 5, 6) for key in "ABCDHF"),
    "\x1b[5;5~",
    "\x1b[6;5~",
    "\x1b[Z",
)
CONTROL = tuple(chr(code) for code in range(1, 32) if chr(code) not in "\x11\x1a\x1b")
ALT = tuple(f"\x1b{letter}" for letter in "abdfnpy.<>")
FUNCTION = ("\x1bOP", "\x1bOQ", "\x1bOR", "\x1b[15~", F6, "\x1b[18~", "\x1b[2~", "\x1b[3~", "\x1b[24~")
KITTY = ("\x1b[13;2u", "\x1b[13;5u", "\x1b[97;5u", "\x1b[27u", "\x1b[9;2u", "\x1b[57358u", "\x1b[97;1:3u")
ANSWERS = ("y", "n", "a", "1", "2", "3", ENTER, ESC, TAB, "\x1b[B")
READING = (
    "j",
    "k",
    "g",
    "G",
    "n",
    "p",
    "u",
    "U",
    "v",
    "y",
    "c",
    "m",
    "o",
    "e",
    "/",
    "h",
    "l",
    ENTER,
    " ",
    *MOVING,
)
FINDING = ("l", "e", "x", "the", ENTER, "\x1b[B", "\x1b[A", "\x1b[13;2u")
SHOWING = ("p", "x", "q", ENTER, " ", "r", "d", *MOVING)

# How each mode is come into, and what is pressed there.
MODES: dict[str, tuple[str, tuple[str, ...]]] = {
    "reading": (F6, READING),
    "finding": ("\x06", FINDING),
    "searching the history": ("\x12", ("s", "a", "y", "\x12", ENTER, ESC)),
    "help": ("\x1bOP", SHOWING),
    "context": ("\x07", SHOWING),
    "details": ("\x0f", MOVING),
    "completing": ("/", ("r", "c", "s", TAB, ENTER, "\x1b[A", "\x1b[B")),
    "editor": ("\x18", ("\x05", "\x18", "a")),
    "answering": (TAB, ANSWERS),
}

# What terminals and bad lines send that is no key.
REPLIES = (
    "\x1b[I",
    "\x1b[O",
    "\x1b[?2026;2$y",
    "\x1b[?1;2c",
    "\x1b[10;20R",
    "\x1b]11;rgb:0000/0000/0000\x1b\\",
    "\x1b[8;24;80t",
)
ODD_BYTES = (
    b"\xe9",
    b"\xff\xfe",
    b"\xf0\x9f",
    b"\x1b[M !\xe9",
    b"\x1b[200~a\x9bb\x1b[201~",
    b"\x1b[1114112;1u",
    b"\x1b[99999999999999u",
    b"\x1b[48;99999;99999;0;0t",
    b"\x1bP1$r0m\r/quit\r\x1b\\",
    b"\x1b_Gi=1;OK\x1b\\",
    b"\x1b[;;;;;;;;u",
    b"\x1b[<999999999;1;1M",
    b"\x00",
)


def pasted(text: str) -> str:
    """As a terminal sends a paste: a line ends with what Enter sends."""
    return "\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~"


def mouse(button: int, column: int, row: int, *, up: bool = False) -> str:
    """A mouse report; columns and rows count from 1."""
    return f"\x1b[<{button};{column};{row}{'m' if up else 'M'}"
