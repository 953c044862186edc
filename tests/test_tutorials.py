"""The tutorials are true: every block runs, and prints what the page shows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .doc_pages import run_page

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.mark.parametrize(("page", "outputs"), [("tutorial.md", 10), ("write-a-pass.md", 5)])
def test_a_page_runs(page: str, outputs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # a page may import the file that it has shown
    monkeypatch.setenv("COLUMNS", "200")
    assert run_page(DOCS / page) >= outputs


def broken(tmp_path: Path, text: str) -> str:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError) as raised:
        run_page(page)
    return str(raised.value)


def test_a_page_that_is_not_true_fails(tmp_path: Path) -> None:
    assert "line 4: shown:\n3\n" in broken(tmp_path, "```python\nprint(1 + 1)\n```\n```text\n3\n```\n")
    assert "what is not shown:\n2" in broken(tmp_path, "```python\nprint(1 + 1)\n```\n")
    assert "nothing says" in broken(tmp_path, "```text\n3\n```\n")
    assert "exit code 2" in broken(tmp_path, "```console\n$ sardonyx dump no.onnx\n```\n")
    assert "ops --nothing" in broken(tmp_path, "```console\n$ sardonyx ops --nothing\n```\n")
    assert "sardonyx --version: shown:\n0" in broken(tmp_path, "```console\n$ sardonyx --version\n0\n```\n")


def test_dots_stand_for_anything(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text('```python\nprint("a\\nb\\nc")\n```\n```text\na\n...\nc\n```\n')
    assert run_page(page) == 1
    assert "page" not in sys.modules
