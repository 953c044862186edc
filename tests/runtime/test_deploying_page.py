"""docs/deploying.md is true: every block runs, and prints what the page shows."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from ..doc_pages import run_page
from .test_artifact import ROOT, SYSTEM


@pytest.mark.skipif(not SYSTEM or os.uname().machine != "x86_64", reason="a page for x86-64 with Linux")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert run_page(ROOT / "docs" / "deploying.md") >= 5
    gc.collect()
