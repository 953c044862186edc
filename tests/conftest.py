"""For all tests: a cache of their own, thrown away at the end, so that none depends on what ran before.

Property tests try the same examples each time, so that a change is judged by itself; with
``--hypothesis-profile=random`` they look for new ones.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None)
settings.register_profile("random", derandomize=False)
settings.load_profile("repeatable")


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
