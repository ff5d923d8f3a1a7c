"""`rolling-chat models`: list the models to choose from, and refresh their catalog."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from rolling_chat import figures
from rolling_chat.agent.model_list import ListedModel, list_all_models, per_million
from rolling_chat.cli.configured import settings_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.providers.local_servers import find_servers
from rolling_chat.providers.plain_http import fetch
from rolling_chat.providers.stored_keys import StoredKeys
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.catalog_files import (
    MAX_BYTES,
    CatalogError,
    newest_catalog,
    read_catalog,
    write_catalog,
)
from rolling_chat.settings.paths import Paths
from rolling_chat.text import one_line

_UNKNOWN = "unknown"
_TIMEOUT = 30.0  # seconds for each read of a catalog
_HEAD = ("model", "window", "answer", "$ in", "$ out", "can", "from")


def run_models(options: Options, paths: Paths) -> int:
    """Print the models, or fetch a newer catalog with `--refresh`. Raises Failure."""
    settings = settings_of(options, paths)
    if options.refresh:
        print(f"Fetched the catalog: {_refresh(settings.catalog_address, paths)}.")
        return Exit.DONE
    catalog = load_catalog(paths.catalog_file)
    words = [word.lower() for word in options.words]
    environ, _ = StoredKeys(paths.logins_file).added_to(os.environ)
    models = [
        model
        for model in list_all_models(settings, environ, catalog, find_servers(environ))
        if all(word in model.name.lower() for word in words)
    ]
    if options.json:
        print(json.dumps([model.to_json() for model in models], indent=2))
        return Exit.DONE
    for line in _table(models):
        print(line)
    print("\nPrices are in dollars per million tokens.")
    print(f"Catalog: {newest_catalog(paths.catalog_file).described}.")
    print("rolling-chat models --refresh fetches a newer one.")
    return Exit.DONE


def _refresh(address: str, paths: Paths) -> str:
    """Fetch, check and save a catalog; return its description. Raises Failure, keeping the old one."""
    host = urlsplit(address).hostname or address
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        status, data = fetch(address, timeout=_TIMEOUT, max_bytes=MAX_BYTES + 1)
        if status != 200:
            raise CatalogError(f"status {status}")
        catalog = read_catalog(data, source=host, date=today)
        write_catalog(paths.catalog_file, catalog)
    except (OSError, CatalogError) as error:
        kept = newest_catalog(paths.catalog_file).described
        raise Failure(
            f"no catalog was taken from {one_line(address, 200)}: {error}; still used: {kept}"
        ) from error
    return catalog.described


def _table(models: Sequence[ListedModel]) -> Iterator[str]:
    """Yield the lines of two tables: models that can be reached, and models that need a key."""
    rows = [_row(model) for model in models]
    widths = [max(map(len, column)) for column in zip(_HEAD, *rows, strict=True)]
    for title, wanted in (("Ready to use", True), ("With a key", False)):
        part = [row for model, row in zip(models, rows, strict=True) if bool(model.reached_by) is wanted]
        if part:
            yield title if wanted else f"\n{title}"
            for row in (_HEAD, *part):
                cells = (
                    text.rjust(width) if 0 < place < 5 else text.ljust(width)
                    for place, (text, width) in enumerate(zip(row, widths, strict=True))
                )
                yield f"  {'  '.join(cells)}".rstrip()


def _row(model: ListedModel) -> tuple[str, ...]:
    abilities = {"tools": model.tools, "pictures": model.vision, "reasoning": model.reasoning}
    can = ", ".join(name for name, has in abilities.items() if has)
    is_unknown = all(has is None for has in abilities.values())
    origin = f"set {model.needs}" if model.needs else model.reached_by
    sources = " · ".join(dict.fromkeys(filter(None, (origin, model.window_from, model.prices_from))))
    return (
        one_line(model.name, 60),
        figures.window(model.window) if model.window else _UNKNOWN,
        figures.window(model.max_output) if model.max_output else _UNKNOWN,
        _price(model.prices.input),
        _price(model.prices.output),
        _UNKNOWN if is_unknown else can or "text only",
        sources,
    )


def _price(price: float | None) -> str:
    dollars = per_million(price)
    return _UNKNOWN if dollars is None else f"{dollars:.2f}"
