"""Kinds of long output of tools, and lines that somebody would look for in them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

_WORDS = [
    "the",
    "of",
    "a",
    "in",
    "that",
    "with",
    "for",
    "on",
    "as",
    "by",
    "from",
    "this",
    "which",
    "when",
    "after",
    "before",
    "between",
    "under",
    "report",
    "system",
    "result",
    "model",
    "value",
    "order",
    "field",
    "group",
    "point",
    "house",
    "water",
    "paper",
    "river",
    "market",
    "winter",
    "garden",
    "letter",
    "number",
    "people",
    "story",
    "music",
    "science",
    "history",
    "nature",
    "theory",
    "school",
    "office",
    "summer",
    "forest",
    "window",
    "table",
    "road",
    "city",
]
_NAMES = [
    "auth",
    "billing",
    "cart",
    "catalog",
    "email",
    "export",
    "import",
    "index",
    "ledger",
    "media",
    "notify",
    "orders",
    "profile",
    "search",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """Make the lines of one kind of output, and the lines that are hidden in it.

    `wrap` makes a text of the lines, `needles` are lines that differ from the others in one way each.
    """

    line: Callable[[random.Random, int], str]
    needles: tuple[str, ...]
    wrap: Callable[[list[str]], str] = "\n".join
    lines: int = 2_000


def haystack(kind: Kind, needle: str, place: float, rng: random.Random) -> str:
    """Return a text of `kind` with `needle` at a share of its lines."""
    lines = [kind.line(rng, number) for number in range(kind.lines)]
    lines[min(len(lines) - 1, int(place * len(lines)))] = needle
    return kind.wrap(lines)


def _log(rng: random.Random, number: int) -> str:
    said = rng.choice(
        (
            f"request {rng.randrange(9999)} served in {rng.randrange(10, 99)}ms",
            f"cache hit for key user:{rng.randrange(999)}",
            f"user {rng.choice(_NAMES)}{rng.randrange(99)} signed in from {_address(rng)}",
            f"job {rng.getrandbits(32):08x} queued",
        )
    )
    level = rng.choice(("INFO ", "INFO ", "INFO ", "DEBUG"))
    return f"2026-03-01T08:{_clock(number)}Z {level} [{rng.choice(_NAMES)}] {said}"


def _access(rng: random.Random, number: int) -> str:
    path, method = f"/{rng.choice(_NAMES)}/{rng.randrange(500)}", rng.choice(("GET", "GET", "POST"))
    asked = f'[01/Mar/2026:08:{_clock(number)} +0000] "{method} {path} HTTP/1.1"'
    return f"{_address(rng)} - - {asked} {rng.choice((200, 200, 200, 304))} {rng.randrange(200, 9000)}"


def _address(rng: random.Random) -> str:
    return f"10.2.{rng.randrange(255)}.{rng.randrange(255)}"


def _clock(number: int) -> str:
    return f"{number // 60 % 60:02}:{number % 60:02}"


def _row(rng: random.Random, number: int) -> dict[str, object]:
    return {
        "id": number,
        "customer": f"{rng.choice(_NAMES)}-{rng.randrange(400)}",
        "status": rng.choice(("paid", "shipped", "open")),
        "amount": round(rng.uniform(10, 99), 2),
        "tags": rng.sample(_NAMES, 2),
    }


def _json_line(rng: random.Random, number: int) -> str:
    return json.dumps(_row(rng, number))


def _search(rng: random.Random, number: int) -> str:
    file = f"{_name(number, 8)}_{number // 8 % 40}.py"
    left = rng.choice(("session", "self._session", "old_session"))
    right = f"open_session({rng.choice(_NAMES)}, timeout={rng.randrange(9)})"
    return f"src/{_name(number, 160)}/{file}:{number % 8 * 17 + 3}:    {left} = {right}"


def _name(number: int, every: int) -> str:
    return _NAMES[number // every % len(_NAMES)]


def _file(rng: random.Random, number: int) -> str:
    file = f"{rng.choice(_NAMES)}_{rng.choice(_WORDS)}.{rng.choice(('ts', 'ts', 'tsx', 'css'))}"
    return f"packages/{_name(number, 150)}/src/{rng.choice(_NAMES)}/{file}"


def _code(rng: random.Random, number: int) -> str:
    name, other = rng.choice(_NAMES), rng.choice(_NAMES)
    match number % 9:
        case 0:
            return f"def {name}_{other}_{number}({other}: str, limit: int = {rng.randrange(99)}) -> int:"
        case 1:
            return f'    """Return the {name} of {other}."""'
        case 2:
            return f"    {name} = load_{other}({other}, limit)"
        case 3:
            return f"    for item in {name}:"
        case 4:
            return f"        total_{other} += item.{name}"
        case 5:
            return f"    if not {name}:"
        case 6:
            return f"        return {rng.randrange(9)}"
        case 7:
            return f"    return len({name}) + total_{other}"
        case _:
            return ""


def _diff(rng: random.Random, number: int) -> str:
    if number % 50 == 0:
        name = f"src/{_name(number, 50)}/{_name(number, 100)}.py"
        head = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}"
        return f"{head}\n@@ -{number + 1},24 +{number + 1},25 @@"
    if number % 25 == 0:
        return f"@@ -{number * 2},24 +{number * 2 + 1},25 @@ def {rng.choice(_NAMES)}():"
    sign, left, right = rng.choice((" ", " ", "+", "-")), rng.choice(_NAMES), rng.choice(_NAMES)
    return f"{sign}    {left} = {right}.get({rng.choice(_NAMES)!r}, {rng.randrange(99)})"


def _csv(rng: random.Random, number: int) -> str:
    if number == 0:
        return "id,day,region,product,units,price"
    day = f"2026-0{rng.randrange(1, 7)}-{rng.randrange(10, 28)}"
    region = rng.choice(("north", "south", "east"))
    sold = f"{rng.choice(_NAMES)},{rng.randrange(1, 90)},{rng.uniform(5, 80):.2f}"
    return f"{10_000 + number},{day},{region},{sold}"


def _process(rng: random.Random, number: int) -> str:
    if number == 0:
        return "USER       PID %CPU %MEM STAT COMMAND"
    user, state = rng.choice(("www", "app", "root")), rng.choice(("S", "S", "R"))
    use = f"{rng.uniform(0, 2):.1f}  {rng.uniform(0, 3):.1f}"
    command = f"/usr/bin/{rng.choice(_NAMES)}d --port={rng.randrange(4000, 9000)}"
    return f"{user:<8} {3000 + number:>6}  {use} {state}    {command}"


def _test(rng: random.Random, number: int) -> str:
    file = f"tests/{_name(number, 150)}/test_{rng.choice(_NAMES)}.py"
    name = f"test_{rng.choice(_NAMES)}_{rng.choice(_WORDS)}_{number}"
    return f"{file}::{name} PASSED [{number // 20:>3}%]"


def _prose(rng: random.Random, _: int) -> str:
    words = [rng.choice(_WORDS) for _ in range(rng.randrange(8, 18))]
    return " ".join(words).capitalize() + "."


def _pretty(rows: list[str]) -> str:
    return json.dumps({"total": len(rows), "next": None, "rows": [json.loads(row) for row in rows]}, indent=2)


def _array(rows: list[str]) -> str:
    return "[\n  " + ",\n  ".join(rows) + "\n]"


_ROWS = (
    '{"id": 77123, "customer": "cart-12", "status": "charged_back", "amount": 20.5, "tags": ["cart"]}',
    '{"id": 77124, "customer": "auth-90", "status": "paid", "amount": -48213.75, "tags": ["auth", "media"]}',
    '{"id": 77125, "customer": null, "status": "open", "amount": 31.07, "tags": ["index", "cart"]}',
    '{"id": 77126, "customer": "media-3", "status": "paid", "amount": 4.1, "tags": ["cart"], "held": 1}',
)

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "log": Kind(
            _log,
            (
                "2026-03-01T08:12:09Z FATAL [ledger] out of disk on volume 7, stopping",
                "2026-03-01T08:12:09Z INFO  [ledger] migration 0042 renamed column owner to holder",
                "2026-03-01T08:12:09Z INFO  [cart] request 5121 served in 48211ms",
                "Segmentation fault (core dumped)",
            ),
        ),
        "access log": Kind(
            _access,
            (
                '10.2.14.77 - - [01/Mar/2026:08:31:07 +0000] "GET /orders/88 HTTP/1.1" 503 312',
                '10.2.14.77 - - [01/Mar/2026:08:31:07 +0000] "DELETE /profile/12 HTTP/1.1" 200 812',
                '10.2.14.77 - - [01/Mar/2026:08:31:07 +0000] "GET /../../etc/shadow HTTP/1.1" 200 1812',
            ),
        ),
        "JSON": Kind(_json_line, _ROWS, _array),
        "JSON, indented": Kind(_json_line, _ROWS, _pretty),
        "JSON lines": Kind(_json_line, _ROWS),
        "search": Kind(
            _search,
            (
                "src/legacy/bridge.py:7:    session = open_session(auth, timeout=3)",
                "src/auth/auth_0.py:99:    session = reuse_session(auth, shared=True)",
                "src/cart/cart_3.py:20:# never open a session here, see the incident of May",
            ),
        ),
        "files": Kind(
            _file,
            (
                "packages/cart/src/auth/private_key.pem",
                "packages/vendor/old/README",
                "packages/cart/src/cart/.env",
            ),
        ),
        "code": Kind(
            _code,
            (
                "    LEASE_SECONDS = 5400  # agreed with operations",
                "def emergency_shutdown(reason: str) -> None:",
                "    subprocess.run(command, shell=True)",
            ),
        ),
        "diff": Kind(
            _diff,
            (
                "+    eval(request.body)",
                "-    verify_signature(token)",
                "+    email = import.get('media', 'sk-live-51Hq')",
            ),
        ),
        "table": Kind(
            _csv,
            (
                "17500,2026-03-14,north,cart,4999,12.50",
                "17500,2026-03-14,atlantis,cart,12,12.50",
                "17500,2026-03-14,north,cart,,12.50",
            ),
        ),
        "processes": Kind(
            _process,
            (
                "www        8812  98.7  41.0 R    /usr/bin/searchd --port=4410",
                "mallory    8812  0.4  1.0 S    /usr/bin/searchd --port=4410",
                "app        8812  0.4  1.0 Z    [exportd] <defunct>",
            ),
        ),
        "tests": Kind(
            _test,
            (
                "tests/cart/test_orders.py::test_refund_after_close FAILED [ 41%]",
                "E       assert 41 == 42",
                "tests/cart/test_orders.py::test_refund_after_close SKIPPED (needs a printer) [ 41%]",
            ),
        ),
        "prose": Kind(
            _prose,
            (
                "The passphrase of the archive is heliotrope-9.",
                "In Lisbon the committee voted to postpone the launch to October.",
                "Paper for the office of 1,250 euros was never delivered to Mrs. Okonkwo.",
            ),
        ),
    }
)
