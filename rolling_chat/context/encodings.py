"""Find OpenAI's token encodings on this machine; never use the network.

tiktoken downloads an encoding that it cannot find, with no timeout. So its files are looked for first,
where a user keeps them (`TIKTOKEN_CACHE_DIR`) or where litellm carries them, and an encoding that is
in neither place is None.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

# tiktoken names a cached file by the SHA-1 of its address.
_FILES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
# The o200k pattern panics on some runs of a million characters, so text is encoded in items.
_PIECE_CHARS = 100_000
_load_lock = threading.Lock()
_log = logging.getLogger(__name__)

ENCODINGS = tuple(_FILES)


@cache
def find_encoding(name: str) -> Encoding | None:
    """Return the encoding `name`, or None if its file is not on this machine."""
    folder = _folder_with(_FILES.get(name, ""))
    if folder is None:
        return None
    with _load_lock:
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        try:
            import tiktoken  # noqa: PLC0415  # 40 ms that a caller with another estimator never pays

            return tiktoken.get_encoding(name)
        except (ImportError, OSError, ValueError) as error:
            _log.warning("encoding %s cannot be loaded from %s: %s", name, folder, error)
            return None
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before


def count_encoded(encoding: Encoding, text: str) -> int:
    """Count the tokens of `text`, in parts if it is long; each cut adds at most one token."""
    if len(text) <= _PIECE_CHARS:
        return len(encoding.encode_ordinary(text))
    parts = (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))
    return sum(len(encoding.encode_ordinary(part)) for part in parts)


def _folder_with(file_name: str) -> Path | None:
    if not file_name:
        return None
    for variable in ("TIKTOKEN_CACHE_DIR", "CUSTOM_TIKTOKEN_CACHE_DIR"):
        folder = os.environ.get(variable)
        if folder and (Path(folder) / file_name).is_file():
            return Path(folder)
    spec = importlib.util.find_spec("litellm")
    for location in (spec and spec.submodule_search_locations) or ():
        folder_path = Path(location) / "litellm_core_utils" / "tokenizers"
        if (folder_path / file_name).is_file():
            return folder_path
    return None
