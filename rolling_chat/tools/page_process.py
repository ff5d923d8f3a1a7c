"""Convert a web page to Markdown.

It runs as a process of its own (`python -I page_process.py FILE CHARSET ADDRESS`): a hostile page may need
much time, memory or stack, and only a process can be stopped. It imports nothing of the program.

The page is first rewritten without scripts, styles and hidden parts, with only the attributes that Markdown
can express, and nested no deeper than the converter can follow.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

_MAX_DEPTH = 60
_MAX_MEMORY = 1_500_000_000  # bytes
_MAX_KEPT = 500_000  # characters of a page to convert, which takes some seconds
_GOES_ON = "[… the page goes on]"
_MIN_MAIN = 200  # characters of a page's main part; a shorter one has only the title

_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
)
_LEFT_OUT = frozenset([
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "embed", "canvas", "audio",
    "video", "select", "textarea", "dialog", "nav", "footer",
    "title", "head",
])  # fmt: skip
_KEPT = frozenset([
    "a", "b", "blockquote", "br", "caption", "code", "dd", "del", "div", "dl", "dt", "em", "figcaption", "h1",
    "h2", "h3", "h4", "h5", "h6", "hr", "i", "kbd", "li", "main", "ol", "p", "pre", "s", "samp", "section",
    "strong", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "article",
])  # fmt: skip
_BLOCKS = frozenset([
    "article", "blockquote", "div", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "main", "ol", "p", "pre",
    "section", "table", "ul",
])  # fmt: skip
# the elements whose omitted end tags are implied, by the tag that implies them
_ENDS = {
    **dict.fromkeys(_BLOCKS, frozenset(["p"])),
    "li": frozenset(["li", "p"]), "dt": frozenset(["dt", "dd", "p"]), "dd": frozenset(["dt", "dd", "p"]),
    "td": frozenset(["td", "th", "p"]), "th": frozenset(["td", "th", "p"]),
    "tr": frozenset(["td", "th", "tr", "p"]),
}  # fmt: skip
_HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|(?:opacity|font-size)\s*:\s*0(?![.\d]*[1-9])",
    re.IGNORECASE,
)
# constructs whose missing end a parser would search for repeatedly
_SWALLOWED = re.compile(
    r"<(script|style)\b.*?(?:</\1\b[^>]*>|\Z)|<!--.*?(?:--!?>|\Z)|<[!?].*?(?:>|\Z)", re.IGNORECASE | re.DOTALL
)
# characters that are invisible or change the direction of text
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)


class _Rewriter(HTMLParser):
    """Rewrites a page from its visible parts."""

    def __init__(self, address: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = ""
        self.is_cut = False
        self._address = address
        self._open: list[
            tuple[str, bool, bool]
        ] = []  # tags, whether each was written, and whether it is left out
        self._count: Counter[str] = Counter()  # of the open tags
        self._left_out = 0
        self._written = 0
        self._size = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Write a tag with the supported attributes, and record that it is open."""
        while self._open and self._open[-1][0] in _ENDS.get(tag, ()):
            self._close()
        given = {name: value or "" for name, value in attrs}
        if tag in _VOID:
            self._write_void(tag, given)
            return
        is_left_out = tag in _LEFT_OUT or _is_hidden(given)
        is_written = tag in _KEPT and not is_left_out and not self._left_out and self._written < _MAX_DEPTH
        if is_written:
            is_written = self._write(f"<{tag}{self._attributes(tag, given)}>")
        self._open.append((tag, is_written, is_left_out))
        self._count[tag] += 1
        self._left_out += is_left_out
        self._written += is_written

    def handle_endtag(self, tag: str) -> None:
        """Close a tag and the tags that are still open in it; ignore one that is not open."""
        if not self._count[tag]:
            return
        while self._close() != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Write the visible characters of a text."""
        text = _UNSEEN.sub("", data)
        if not self._left_out:
            self._write(escape(text, quote=False))
        elif self._open[-1][0] == "title" and not self.title:
            self.title = " ".join(text.split())[:300]

    def _close(self) -> str:
        tag, was_written, was_left_out = self._open.pop()
        self._count[tag] -= 1
        self._left_out -= was_left_out
        self._written -= was_written
        if was_written:
            self.parts.append(f"</{tag}>")
        return tag

    def finish(self) -> str:
        """Return the page with all tags closed."""
        self.close()
        while self._open:
            self._close()
        return "".join(self.parts)

    def _write(self, part: str) -> bool:
        """Add a part, unless the page is already too long; return whether it was added."""
        self._size += len(part)
        if self._size > _MAX_KEPT:
            self.is_cut = True
            return False
        self.parts.append(part)
        return True

    def _write_void(self, tag: str, given: dict[str, str]) -> None:
        if self._left_out or _is_hidden(given):
            return
        if tag in {"br", "hr"}:
            self._write(f"<{tag}>")
        elif tag == "img" and (words := " ".join(_UNSEEN.sub("", given.get("alt", "")).split())):
            self._write(f"[picture: {escape(words[:300], quote=False)}]")

    def _attributes(self, tag: str, given: dict[str, str]) -> str:
        if tag == "a":
            address = self._absolute(given.get("href", ""))
            return f' href="{escape(address)}"' if address else ""
        if tag in {"code", "pre"} and (
            named := re.search(r"lang(?:uage)?-([\w+#-]{1,20})", given.get("class", ""))
        ):
            return f' class="language-{escape(named[1])}"'
        if tag == "ol" and given.get("start", "").isdecimal():
            return f' start="{given["start"][:6]}"'
        return ""

    def _absolute(self, link: str) -> str:
        """Return the absolute address of a link; "" for one within the page, and for an invalid one."""
        link = _UNSEEN.sub("", link).strip()
        if not link or link.startswith("#"):
            return ""
        try:
            address = urljoin(self._address, link)
            scheme = urlsplit(address).scheme
        except ValueError:
            return ""
        return address if scheme in {"http", "https", "mailto"} and len(address) < 2_000 else ""


def _is_hidden(given: dict[str, str]) -> bool:
    return (
        "hidden" in given
        or given.get("aria-hidden", "").lower() == "true"
        or (_HIDDEN.search(given.get("style", "")) is not None)
    )


def to_markdown(page: str, address: str) -> str:
    """Return the text of a page as Markdown, beginning with its title."""
    from bs4 import BeautifulSoup  # noqa: PLC0415  # only needed after hostile parts are dropped
    from markdownify import ATX, MarkdownConverter  # noqa: PLC0415

    rewriter = _Rewriter(address)
    rewriter.feed(_SWALLOWED.sub("", page))
    soup = BeautifulSoup(rewriter.finish(), "html.parser")
    main = soup.find("main")
    if main is None or len(main.get_text()) < _MIN_MAIN:
        main = soup
    converter = MarkdownConverter(
        heading_style=ATX, bullets="-", escape_asterisks=False, escape_underscores=False,
        code_language_callback=_language,
    )  # fmt: skip
    text = str(converter.convert_soup(main))
    lines = [line.rstrip() for line in text.split("\n")]
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    if rewriter.is_cut:
        body += f"\n\n{_GOES_ON}"
    title = rewriter.title
    return f"Title: {title}\n\n{body}" if title and title not in body[: 2 * len(title) + 10] else body


def _language(element: object) -> str:
    """Return the language of a code block, as named by the page."""
    code = element.find("code") if hasattr(element, "find") else None
    for one in (element, code):
        for name in one.get("class") or () if one is not None and hasattr(one, "get") else ():
            return str(name).removeprefix("language-")
    return ""


def _limit_memory() -> None:
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415

    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    except (OSError, ValueError):
        return  # the system does not support this limit, or has a lower one


def main(arguments: list[str]) -> int:
    """Print the Markdown of a page."""
    file, charset, address = arguments
    _limit_memory()
    page = Path(file).read_bytes().decode(charset, errors="replace")
    sys.stdout.buffer.write(to_markdown(page, address).encode("utf-8", errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
