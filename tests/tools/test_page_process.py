from __future__ import annotations

import pytest

from rolling_chat.tools import page_process
from rolling_chat.tools.page_process import to_markdown

_ADDRESS = "https://example.com/docs/"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c"),
        ("<p>one<p>two<br>three", "one\n\ntwo  \nthree"),
        (
            '<pre><code class="x language-py">def f():\n    pass</code></pre>',
            "```py\ndef f():\n    pass\n```",
        ),
        ("<table><tr><th>A<th>B<tr><td>1<td>2</table>", "| A | B |\n| --- | --- |\n| 1 | 2 |"),
        ("a_b_c 2*3*4 &lt;b&gt; &amp;amp;", "a_b_c 2*3*4 <b> &amp;"),
        ("<nav>menu</nav><p>text<footer>end</footer>", "text"),
        (f"<h1>Site</h1><main>{'long ' * 60}</main><p>other", ("long " * 60).strip()),
        ("<h1>Site</h1><main>short</main><p>other", "# Site\n\nshort\n\nother"),
        ("<title> A \n title </title><p>text", "Title: A title\n\ntext"),
        ("<title>Same</title><h1>Same</h1>", "# Same"),
        ("</p></div>text</b>", "text"),
        ("", ""),
    ],
)
def test_a_page_becomes_markdown(page: str, text: str) -> None:
    assert "\n".join(line.rstrip() for line in to_markdown(page, _ADDRESS).splitlines()) == "\n".join(
        line.rstrip() for line in text.splitlines()
    )


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("../a?b=c&d=e", "[x](https://example.com/a?b=c&d=e)"),
        ("//other.org/", "[x](https://other.org/)"),
        ("mailto:a@b.org", "[x](mailto:a@b.org)"),
        ("#part", "x"),
        ("javascript:alert(1)", "x"),
        (" java\tscript:alert(1)", "x"),
        ("JAVASCRIPT://example.com/%0aalert(1)", "x"),
        ("data:text/html,hi", "x"),
        ("file:///etc/passwd", "x"),
        ("http://[", "x"),
    ],
)
def test_links_lead_to_pages_only(link: str, shown: str) -> None:
    assert to_markdown(f'<a href="{link}">x</a>', _ADDRESS) == shown


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>bad</script>", "<style>bad</style>", "<SCRIPT>bad</SCRIPT >", "<!-- bad -->", "<?php bad ?>",
        "<template>bad</template>", "<noscript>bad</noscript>", "<svg><text>bad</text></svg>",
        "<p hidden>bad</p>", '<b aria-hidden="true">bad</b>', '<p style="color:red; Display : none">bad</p>',
        '<div style="visibility:hidden"><p>bad</p></div>', '<span style="font-size:0px">bad</span>',
        '<span style="opacity:0.0">bad</span>', "<select><option>bad</select>", '<img alt="bad" hidden>',
        '<img src="data:image/png;base64,bad">', '<iframe srcdoc="bad">bad</iframe>',
        '<a title="bad" onclick="bad">x</a>', '<input value="bad">', "<textarea>bad</textarea>",
        "".join(chr(0xE0000 + ord(char)) for char in "bad"),
    ],
)  # fmt: skip
def test_what_cannot_be_seen_is_left_out(hidden: str) -> None:
    text = to_markdown(f"<p>before {hidden} after</p>", _ADDRESS)
    assert "bad" not in text
    assert text.split()[0] == "before"
    assert text.split()[-1] == "after"
    assert text.isascii()


def test_signs_that_turn_or_hide_text_are_dropped() -> None:
    assert to_markdown("a\u202eb\u200bc\x1b[2Jd\x00e\u2066f&#x202e;g&#27;h", _ADDRESS) == "abc[2Jdefgh"


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 20_000 + "deep" + "</div>" * 20_000,
        "<b>" * 20_000 + "deep",
        "<ul><li>" * 10_000 + "deep",
        "<blockquote>" * 20_000 + "deep",
        "<table><tr><td>" * 5_000 + "deep",
        "<b>" * 20_000 + "</i>" * 20_000 + "deep",
        "<a <a " * 20_000 + ">deep",
        "deep" + "<!--" * 20_000,
        "deep" + "&" * 50_000,
        "deep" + "<![CDATA[" * 20_000,
        "<script>" * 20_000 + "</script>deep",
        "<p " + "a=b " * 50_000 + ">deep",
        "<div style='" + "display" * 50_000 + "'>deep",
    ],
    ids=lambda page: page[:12],
)
def test_a_hostile_page_takes_neither_long_nor_a_deep_stack(page: str) -> None:
    assert "deep" in to_markdown(page, _ADDRESS)


def test_a_long_page_is_converted_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_process, "_MAX_KEPT", 100)
    text = to_markdown("<ul>" + "<li><b>item</b>" * 50 + "</ul>", _ADDRESS)
    assert text == "- **item**\n" * 8 + "\n[… the page goes on]"


def test_a_script_that_speaks_of_comments_hides_nothing() -> None:
    page = "<script>a = '<!--'</script>one<style>/* <script> */</style> two <!-- <script> -->three"
    assert to_markdown(page, _ADDRESS) == "one two three"
