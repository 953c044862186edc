"""docs/ahead-of-time.md is true: every block runs, and prints what the page shows."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from sardonyx.targets.host import host_target

from ..doc_pages import run_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ahead-of-time.md"
HERE = sys.platform.startswith("linux") and host_target().machine == "x86_64" and shutil.which("cc")


@pytest.mark.skipif(not HERE, reason="a page for x86-64 with Linux and a C compiler")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert run_page(PAGE) >= 8
