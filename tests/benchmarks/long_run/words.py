"""The words that the world is made of, and that its agent knows: English, and no fact about this world."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Choose: TypeAlias = Callable[[random.Random], str]

FIRST = (
    "Ines", "Jonas", "Mei", "Tariq", "Olga", "Pedro", "Amara", "Lukas", "Noor", "Sven", "Yuki", "Clara",
    "Dmitri", "Fatima", "Gwen", "Hugo", "Ivana", "Kofi", "Leila", "Marco", "Nadia", "Oscar", "Priya",
    "Rafael",
)  # fmt: skip
LAST = (
    "Okafor", "Lindqvist", "Tanaka", "Haddad", "Novak", "Alvarez", "Mensah", "Berger", "Rahman", "Eklund",
    "Sato", "Dubois", "Petrov", "Aziz", "Morgan", "Keller", "Kovac", "Asante", "Karimi", "Ricci", "Silva",
)  # fmt: skip
HUES = (
    "amber", "north", "silver", "quiet", "copper", "winter", "crimson", "hollow", "bright", "stone",
    "velvet", "iron", "maple", "coral", "ember", "frost", "golden", "ivory", "jade", "lunar",
    "misty", "ocean", "pearl", "rapid", "scarlet", "tidal", "umber", "violet", "willow", "zephyr",
)  # fmt: skip
THINGS = (
    "ledger", "relay", "gateway", "harbor", "archive", "beacon", "catalog", "dispatch", "engine", "forge",
    "granary", "indexer", "journal", "kiosk", "lantern", "mailer", "notary", "orchard", "pantry", "quarry",
    "registry", "signal", "turnstile", "vault", "workshop",
)  # fmt: skip
VERBS = (
    "open",
    "close",
    "merge",
    "flush",
    "load",
    "drain",
    "parse",
    "route",
    "sign",
    "split",
    "trim",
    "wrap",
)
NOUNS = (
    "batch", "cursor", "frame", "header", "invoice", "lease", "marker", "order", "packet", "quota", "record",
    "shard", "token", "ticket", "window", "worker",
)  # fmt: skip
ROUTES = (
    "/orders", "/invoices", "/sessions", "/search", "/export", "/health", "/users", "/quotes", "/refunds",
    "/labels", "/stock", "/events", "/reports", "/teams", "/tokens", "/webhooks",
)  # fmt: skip
OBJECTS = (
    "kettle", "projector", "bicycle", "piano", "freezer", "ladder", "telescope", "canoe", "printer", "tent",
    "sofa", "drill", "aquarium", "hammock", "easel", "wheelbarrow", "globe", "typewriter", "sled", "fountain",
)  # fmt: skip
OF_OBJECTS = (
    "green", "old", "broken", "borrowed", "tall", "striped", "rusty", "spare", "wooden", "dented", "round",
    "foldable", "yellow", "heavy", "second", "tiny", "black", "antique",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
REGIONS = ("eu-west-1", "eu-north-2", "us-east-4", "us-south-1", "ap-east-3", "sa-north-1", "af-west-2")


def person(rng: random.Random) -> str:
    """Return somebody's name."""
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


def _region(rng: random.Random) -> str:
    return rng.choice(REGIONS)


def _weekday(rng: random.Random) -> str:
    return rng.choice(WEEKDAYS)


def _number(least: int, most: int) -> Choose:
    return lambda rng: str(rng.randint(least, most))


@dataclass(frozen=True, slots=True)
class Attribute:
    """Something that is decided about a service: its key in files, what people call it, and its values."""

    key: str
    names: tuple[str, ...]
    choose: Choose
    is_role: bool = False


ATTRIBUTES = (
    Attribute("max_retries", ("retry limit", "number of retries", "maximum of attempts"), _number(2, 30)),
    Attribute("timeout_ms", ("timeout", "time limit", "longest wait"), _number(100, 9_000)),
    Attribute("batch_size", ("batch size", "rows per batch", "chunk length"), _number(10, 4_000)),
    Attribute("port", ("port", "listening port", "socket number"), _number(2_000, 64_000)),
    Attribute("cache_mb", ("cache size", "memory for the cache", "megabytes of cache"), _number(16, 4_096)),
    Attribute("log_days", ("log retention", "days that logs are kept", "age of old logs"), _number(2, 400)),
    Attribute("rate_limit", ("rate limit", "requests per minute", "throttle"), _number(50, 9_000)),
    Attribute("pool_size", ("pool size", "number of connections", "open connections"), _number(2, 200)),
    Attribute("alert_percent", ("alert threshold", "threshold for alerts", "paging limit"), _number(40, 99)),
    Attribute("replicas", ("replica count", "number of replicas", "copies that run"), _number(2, 60)),
    Attribute("home_region", ("region", "home region", "data center"), _region),
    Attribute("deploy_day", ("deploy day", "day of the release", "rollout day"), _weekday),
    Attribute("on_call", ("on-call engineer", "person on call", "first to be paged"), person, is_role=True),
    Attribute("releaser", ("release manager", "person who releases", "rollout lead"), person, is_role=True),
    Attribute("reviewer", ("reviewer", "code reviewer", "second pair of eyes"), person, is_role=True),
)  # fmt: skip
BY_KEY = {attribute.key: attribute for attribute in ATTRIBUTES}


@dataclass(frozen=True, slots=True)
class Oddity:
    """A fact that has nothing to do with the work: how it is said, and what is asked."""

    says: str
    asks: str
    choose: Choose


ODDITIES = (
    Oddity("the key of the {thing} is with {value}", "Who has the key of the {thing}?", person),
    Oddity("{value} repaired the {thing}", "Who was it that repaired the {thing}?", person),
    Oddity("the {thing} is booked for {value}", "For which day is the {thing} booked?", _weekday),
    Oddity(
        "the {thing} has the inventory number {value}",
        "Which inventory number does the {thing} have?",
        _number(10_000, 99_999),
    ),
    Oddity("the {thing} cost {value} euros", "How many euros did the {thing} cost?", _number(100, 9_999)),
)
