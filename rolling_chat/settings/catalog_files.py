"""Read and write the files of the model catalog: the packaged one, and a newer one that was fetched."""

from __future__ import annotations

import functools
import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Json, JsonObject
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.toml_file import replace_file

_log = logging.getLogger("rolling_chat.settings.catalog")
MAX_BYTES = 30_000_000
"""Of a fetched catalog; litellm's has 3 MB."""

_PACKAGED = "models.json"
_MIN_MODELS = 100  # a table with fewer models is some other file
_MAX_TOKENS = 1_000_000_000
_MAX_COST = 1.0  # US dollars per token
# "responses" and "completion" models use the same call, through litellm's bridges
TEXT_MODES = frozenset({"chat", "responses", "completion"})
_SIZES = frozenset({"max_input_tokens", "max_output_tokens"})
_ABILITIES = frozenset(
    {"supports_function_calling", "supports_prompt_caching", "supports_vision", "supports_reasoning"}
)
_COST = re.compile(
    r"(?:input_cost_per_token|output_cost_per_token|cache_read_input_token_cost|cache_creation_input_token_cost)"
    r"(?:_above_(?:1hr|128k_tokens|200k_tokens|272k_tokens))?"
)


class CatalogError(Exception):
    """A file that is not a model catalog; the text is one line for the user."""


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """A model table, with the name and the date (YYYY-MM-DD) of its source."""

    source: str = ""
    date: str = ""
    models: Mapping[str, JsonObject] = field(default_factory=dict)

    @property
    def described(self) -> str:
        """A clause with the number of models, the source and the date."""
        return f"{len(self.models):,} models from {self.source or 'nowhere'}, {self.date or 'no date'}"


def reduce_table(table: Json) -> dict[str, JsonObject]:
    """Reduce a table in litellm's form to the models that accept text and the figures that are used here.

    Raises CatalogError if it is not such a table. Implausible figures are left out.
    """
    if not isinstance(table, Mapping):
        raise CatalogError("it is no table of models")
    kept: dict[str, JsonObject] = {
        str(name): dict(_figures(entry))
        for name, entry in sorted(table.items())
        if isinstance(entry, Mapping) and str(entry.get("mode")) in TEXT_MODES
    }
    if len(kept) < _MIN_MODELS:
        raise CatalogError(f"it names {len(kept)} models that take text, {_MIN_MODELS} at least are expected")
    return kept


def read_catalog(data: bytes, *, source: str, date: str) -> CatalogFile:
    """Read a table in litellm's form, or a file that `write_catalog` wrote. Raises CatalogError."""
    if len(data) > MAX_BYTES:
        raise CatalogError(f"it is larger than {MAX_BYTES:,} bytes")
    try:
        table = read_json(data)
    except ValueError as error:
        raise CatalogError("it is no JSON") from error
    if isinstance(table, Mapping) and isinstance(table.get("models"), Mapping):
        return CatalogFile(
            str(table.get("source") or source), str(table.get("date") or date), reduce_table(table["models"])
        )
    return CatalogFile(source, date, reduce_table(table))


def write_catalog(path: Path, catalog: CatalogFile) -> None:
    """Write a catalog atomically, one model per line. Raises CatalogError."""
    head = f'"source": {json.dumps(catalog.source)},\n"date": {json.dumps(catalog.date)},\n"models": {{\n'
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True, separators=(',', ':'))}"
        for name, entry in sorted(catalog.models.items())
    )
    try:
        replace_file(path, f"{{\n{head}{lines}\n}}\n}}\n")
    except SettingsError as error:
        raise CatalogError(str(error)) from error


@functools.cache
def newest_catalog(fetched: Path | None = None) -> CatalogFile:
    """Return the newer of the packaged catalog and the `fetched` one, and log if one cannot be read."""
    packaged = _read(files("rolling_chat.settings").joinpath(_PACKAGED).read_bytes)
    other = _read(fetched.read_bytes) if fetched is not None and fetched.exists() else CatalogFile()
    return max(other, packaged, key=lambda one: one.date)


def _read(read: Callable[[], bytes]) -> CatalogFile:
    try:
        table = json.loads(read())
        return CatalogFile(str(table["source"]), str(table["date"]), dict(table["models"]))
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        _log.warning("a model catalog cannot be read: %s", error)
        return CatalogFile()


def _figures(entry: JsonObject) -> Iterator[tuple[str, Json]]:
    yield "mode", str(entry["mode"])
    yield "litellm_provider", str(entry.get("litellm_provider") or "")
    for name, value in entry.items():
        if name in _ABILITIES and value is True:
            yield name, True
        elif name in _SIZES and _is_figure(value, _MAX_TOKENS):
            yield name, int(value)
        elif _COST.fullmatch(name) and _is_figure(value, _MAX_COST):
            yield name, value


def _is_figure(value: Json, most: float) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value <= most
    )
