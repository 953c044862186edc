"""For all tests: a cache of their own, thrown away at the end, so that none depends on what ran before.

Property tests try the same examples each time, so that a change is judged by itself; with
``--hypothesis-profile=random`` they look for new ones.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator

import onnx
import pytest
from hypothesis import settings

from sardonyx import model_cache
from sardonyx.frontend import schemas

_numbers = itertools.count()

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


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A domain that nobody has used; nothing of it is left afterwards."""
    monkeypatch.setattr(model_cache, "_suspended", False)
    name = f"test.domain{next(_numbers)}"
    yield name
    for (where, op_type), versions in schemas.operators().items():
        if where == name:
            for version in versions:
                onnx.defs.deregister_schema(op_type, version, name)
