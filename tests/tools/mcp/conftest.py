from __future__ import annotations

from collections.abc import Iterator

import keyring
import pytest
from keyring.backends.fail import Keyring as NoKeyring


@pytest.fixture(autouse=True)
def no_keyring() -> Iterator[None]:
    """No keyring: the one of another test is found by its class."""
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    yield
    keyring.set_keyring(before)
