from __future__ import annotations

import pytest

from rolling_chat.web_addresses import is_local, network_of, parse_address, parse_pattern


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("HTTPS://Docs.Python.org:443/3/?q=a#top", "https://docs.python.org/3/?q=a"),
        ("http://example.com", "http://example.com/"),
        ("http://example.com:8080?x", "http://example.com:8080/?x"),
        ("https://example.com./ä?q=ö", "https://example.com/%C3%A4?q=%C3%B6"),
        ("http://münchen.de/", "http://xn--mnchen-3ya.de/"),
        ("http://pаypal.com/", "http://xn--pypal-4ve.com/"),  # its second letter is Cyrillic
        ("http://[2606:4700:0:0::1111]:80/", "http://[2606:4700::1111]/"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
    ],
)
def test_an_address_has_one_spelling(text: str, url: str) -> None:
    assert parse_address(text).url == url
    assert parse_address(url).url == url


@pytest.mark.parametrize(
    "text",
    [
        "", "example.com", "//example.com", "file:///etc/passwd", "ftp://example.com/", "javascript:alert(1)",
        "gopher://127.0.0.1/", "http://", "http:///x", "http://user@example.com/", "http://a:b@example.com/",
        "http://example.com:0/", "http://example.com:65536/", "http://example.com:x/", "http://a b/",
        "http://example.com\\@evil.com/", "http://example.com/\nHost: x", "http://exa\u202emple.com/",
        "http://2130706433/", "http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://0x7f000001/", "http://127.1/",
        "http://0/", "http://1.2.3.4.5/", "http://1.2.3.256/", "http://127.0.0.1%2eexample.com/",
        "http://[::1%25eth0]/", "http://[::1", "http://::1/", "http://a..b/", "http://-a/", "http://a%00b/",
        "http://example.com:80:80/", f"http://example.com/{'x' * 5_000}",
    ],
)  # fmt: skip
def test_what_programs_read_differently_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(?:has|is) "):
        parse_address(text)


@pytest.mark.parametrize(
    ("numbers", "network"),
    [
        ("8.8.8.8 1.1.1.1 2606:4700::1111", "public"),
        ("127.0.0.1 127.255.0.1 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 ::1 fd12:3456::1", "private"),
        (
            "0.0.0.0 0.1.2.3 169.254.169.254 100.64.0.1 100.100.100.200 192.0.0.8 192.0.2.1 192.88.99.1",
            "special",
        ),
        ("198.18.0.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 168.63.129.16", "special"),
        (":: fe80::1 fec0::1 ff02::1 2001:db8::1 fd00:ec2::254 ::127.0.0.1 ::ffff:127.0.0.1", "special"),
        ("::ffff:8.8.8.8 64:ff9b::7f00:1 64:ff9b:1::a00:1 2002:7f00:1:: 2001:0:1:: 100::1", "special"),
        ("2606:4700::5efe:7f00:1", "special"),
    ],
)
def test_only_a_public_number_is_public(numbers: str, network: str) -> None:
    for number in numbers.split():
        assert network_of(number) == network, number


def test_a_host_that_is_local_is_known_without_being_looked_up() -> None:
    for host in (
        "localhost",
        "a.localhost",
        "127.0.0.1",
        "[::1]",
        "printer.local",
        "metadata.google.internal",
    ):
        assert is_local(parse_address(f"http://{host}/")), host
    assert not is_local(parse_address("http://example.com/"))
    assert not is_local(parse_address("http://8.8.8.8/"))


@pytest.mark.parametrize(
    ("pattern", "allowed", "other"),
    [
        (
            "example.com",
            "http://example.com/ https://example.com/x",
            "http://example.com:81/ http://a.example.com/",
        ),
        ("*.example.com", "https://a.b.example.com/", "https://example.com/ https://badexample.com/"),
        ("example.com:8080", "http://example.com:8080/ https://example.com:8080/", "http://example.com/"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/x", "https://127.0.0.1:8000/ http://127.0.0.1/"),
        ("https://Example.com/", "https://example.com/", "http://example.com/"),
        ("[::1]:80", "http://[::1]/", "http://127.0.0.1/"),
    ],
)
def test_a_pattern_allows_its_host_at_the_port_that_it_names(pattern: str, allowed: str, other: str) -> None:
    rule = parse_pattern(pattern)
    assert all(rule.allows(parse_address(url)) for url in allowed.split())
    assert not any(rule.allows(parse_address(url)) for url in other.split())


def test_only_a_pattern_with_scheme_host_and_port_opens_the_local_network() -> None:
    address = parse_address("http://127.0.0.1/")
    assert parse_pattern("http://127.0.0.1").opens(address), "the scheme names the port"
    assert parse_pattern("http://127.0.0.1:80").opens(address)
    assert not parse_pattern("127.0.0.1:80").opens(address), "an answer makes such a rule for any host"
    assert not parse_pattern("127.0.0.1").opens(address)
    assert not parse_pattern("http://*.localhost:80").opens(parse_address("http://a.localhost/"))


def test_a_host_is_denied_with_all_that_is_below_it_and_at_every_port() -> None:
    rule = parse_pattern("example.com")
    for url in ("http://example.com/", "https://example.com:444/", "http://a.example.com/"):
        assert rule.denies(parse_address(url))
    assert not rule.denies(parse_address("http://notexample.com/"))
    assert not parse_pattern("https://example.com").denies(parse_address("http://example.com/"))


@pytest.mark.parametrize(
    "text", ["", "*", "exa mple.com", "http://", "a/b", "file://a", "0x7f.1", "a:0", "a:70000"]
)
def test_what_names_no_host_is_no_pattern(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the text of a rule says what is wrong with it
        parse_pattern(text)
