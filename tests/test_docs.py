"""The generated pages are up to date, and the pages' links lead somewhere."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

from .tools import load_tool

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"])
HINT = "run `python tools/generate_docs.py`"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return load_tool("generate_docs")


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_reference_of_the_ir(generator: ModuleType) -> None:
    assert read("ir.md") == generator.ir_page(), HINT


def test_table_of_operators(generator: ModuleType) -> None:
    page = read("operators.md")
    if f"onnx {version('onnx')}." not in page:
        pytest.skip(f"the page is of another version of onnx than {version('onnx')}")
    assert page == generator.operators_page(), HINT


def test_examples_of_the_architecture(generator: ModuleType) -> None:
    page = read("architecture.md")
    machine = generator.made_with() in page  # else only what does not depend on LLVM's version
    assert page == generator.fill_examples(page, machine=machine), HINT


def test_every_stage_has_an_example(generator: ModuleType) -> None:
    found = re.findall(r"<!-- example ([\w-]+) -->", read("architecture.md"))
    assert found == list(generator.Stage)


def test_every_operation_is_explained(generator: ModuleType) -> None:
    unexplained = [name for name, d in generator.all_declarations().items() if not d.doc]
    assert not unexplained


def test_every_rule_of_a_result_is_explained(generator: ModuleType) -> None:
    declarations = generator.all_declarations().values()
    unexplained = [d.name for d in declarations if d.infer is not None and not d.rule.endswith(".")]
    assert not unexplained


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_named_exist(page: Path) -> None:
    """Paths in backquotes are of files or folders that are there, from the root or from the compiler."""
    for path in re.findall(
        r"`((?:compiler|runtime|tests|tools|docs|codegen|kernels|passes|core|ir)/[\w./]*)`",
        page.read_text(encoding="utf-8"),
    ):
        places = [ROOT / path, ROOT / "compiler" / "sardonyx" / path]
        assert any(p.exists() for p in places), path
