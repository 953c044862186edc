"""For all tests: a cache of their own, thrown away at the end, so that none depends on what ran before."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="sardonyx-tests-", ignore_cleanup_errors=True) as folder:
        before = os.environ.get("SARDONYX_CACHE_DIR")
        os.environ["SARDONYX_CACHE_DIR"] = folder
        yield
        if before is None:
            del os.environ["SARDONYX_CACHE_DIR"]
        else:
            os.environ["SARDONYX_CACHE_DIR"] = before
