"""Answers as models give them, giants, and hostile ones; the same at every call."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.support.mixed_text import mixed_text

_CODE = (
    "def read(self, path: str) -> int:",
    '    """Return how many lines were read."""',
    "    return len(values[index + 1:])  # the rest",
    "if not found:",
    "    raise ValueError(f'no {name!r} in {path}')",
)


def mixed_markdown(size: int, seed: int = 1) -> str:
    """About `size` characters of headings, prose, lists, fences, tables and quotes."""
    rng, parts, written = random.Random(seed), [], 0
    kinds = (_heading, _paragraph, _paragraph, _paragraph, _bullets, _fence, _table, _quote)
    while written < size:
        parts.append(rng.choice(kinds)(rng))
        written += len(parts[-1]) + 2
    return "\n\n".join(parts)


def one_fence(size: int) -> str:
    """Python in a single fence."""
    return "```python\n" + _repeated(size, lambda number: f"{_CODE[number % 5]}\n") + "```\n"


def one_paragraph(size: int) -> str:
    """Prose without a single line break."""
    return _repeated(size, lambda number: f"Sentence {number} says *this* and `that` about the parser. ")


def one_list(size: int) -> str:
    """A list without an end."""
    return _repeated(size, lambda number: f"- item {number} with **bold** words and a `name`\n")


def one_table(size: int) -> str:
    """A table without an end."""
    head = "| number | name | what it says |\n| --- | --- | --- |\n"
    return head + _repeated(size, lambda number: f"| {number} | name_{number % 97} | some words about it |\n")


GIANTS = {"fence": one_fence, "paragraph": one_paragraph, "list": one_list, "table": one_table}


def hostile_answers(size: int) -> dict[str, str]:
    """What a screen may choke on, about `size` characters of each, by a name."""
    return {name: (text * (size // len(text) + 1))[:size] for name, text in _HOSTILE.items()} | {
        "one long line": "x" * size,
        "one long line in a fence": "```\n" + "x" * size + "\n```",
        "a fence that never ends": "```python\n" + "if x: # '''\n" * (size // 12),
        "every character there is": "".join(_every_character())[:size],
    }


def in_pieces(text: str, size: int) -> list[str]:
    """The text in pieces of `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


# Each is repeated up to the size that is wanted.
_HOSTILE = {
    "unclosed everything": "**bold _and `code [link](http:// ![image]( <b> ~~gone~ ``` ````\n> - 1. * + # \n",
    "deep quotes": ">" * 60 + " deep\n",
    "deep lists": "".join(f"{'  ' * depth}- level {depth}\n" for depth in range(40)),
    "brackets": "[" * 200 + "](" * 200,
    "emphasis": "*a _b **c __d *e " * 4 + "\n",
    "backticks": "` `` ``` ```` ````` ",
    "tables that do not agree": "| a | b |\n|---|\n| 1 | 2 | 3 |\n| --- | --- |\n|\n||||||||\n",
    "html and entities": "<script>alert(1)</script> <!-- &amp;&#0;&#x110000;&nosuch; <![CDATA[ <a href='\n",
    "rich's own markup": "[bold red]not[/] [/nothing] [link=http://x]y[/link] \\[ [@click=app.quit]z[/]\n",
    "references": "[a]: http://x 'y'\n[a] [a][] [b][a] [^1]\n[^1]: note\n",
    "terminal control": "\x1b[2J\x1b[31m\x1b]0;title\x07\x1b]52;c;aGk=\x07\x1b[?1049l\x1bc "
    "\x9b31m\x00\x07\x08\x7f\r\x1b[?1000h\x1b[?25h\x1b[>1u\x1b]8;;http://x\x1b\\\x1bP+q\x1b\\\x90\x9d ",
    "right to left": "שלום עולם مرحبا \u202eevil\u202c \u2067iso\u2069 12 ",
    "wide": "漢字かな한글 １２ 👩‍💻🏳️‍🌈👍🏽🇩🇪 ",
    "combining": "Z̸̡̢̛̗a̐̑̒l̓̔̕g̀́̂o" + "\u0301" * 60 + " ",
    "zero width": "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u200e\u200f ",
    "line ends of every kind": "a\rb\r\nc\vd\fe\u0085f\u2028g\u2029h\n",
    "tabs": "\ta\tbb\tccc\t\t\n",
    "half characters and strangers": "\ufffd\ufffe\U000e0001\U0010ffff\ue000\u0000 ",
}


def _every_character() -> Iterator[str]:
    yield from (chr(number) for number in range(0x11000) if not 0xD800 <= number < 0xE000)


def _repeated(size: int, part: object) -> str:
    assert callable(part)
    parts, written = [], 0
    while written < size:
        parts.append(part(len(parts)))
        written += len(parts[-1])
    return "".join(parts)


def _heading(rng: random.Random) -> str:
    return f"{'#' * rng.randint(1, 3)} About `{rng.choice(_CODE).split()[0]}` and the rest"


def _paragraph(rng: random.Random) -> str:
    words = mixed_text(rng, rng.randint(150, 700)).replace("\n", " ").split(" ")
    for at in range(0, len(words) - 1, 9):
        words[at] = rng.choice(("**{}**", "*{}*", "`{}`", "[{}](https://example.com/a)")).format(
            words[at] or "it"
        )
    return " ".join(words)


def _bullets(rng: random.Random) -> str:
    marks = ("-", "1.")
    mark = rng.choice(marks)
    items = (
        f"{'  ' * (number % 2)}{mark} {_words(rng, 12)} with `code`" for number in range(rng.randint(3, 8))
    )
    return "\n".join(items)


def _fence(rng: random.Random) -> str:
    lines = "\n".join(rng.choice(_CODE) for _ in range(rng.randint(4, 25)))
    return f"```{rng.choice(('python', 'sh', ''))}\n{lines}\n```"


def _table(rng: random.Random) -> str:
    rows = "\n".join(
        f"| {number} | {_words(rng, 3)} | `{_words(rng, 1)}` |" for number in range(rng.randint(3, 9))
    )
    return f"| no | name | code |\n| ---: | --- | --- |\n{rows}"


def _quote(rng: random.Random) -> str:
    return "\n".join(f"> {_words(rng, 10)}" for _ in range(rng.randint(1, 4)))


def _words(rng: random.Random, count: int) -> str:
    return " ".join(mixed_text(rng, 400).split()[:count]).replace("|", "/")
