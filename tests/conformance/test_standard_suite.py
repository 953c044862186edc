"""ONNX's own backend tests: as they are, with every dim symbolic, and folded.

`known_failures.txt` lists what does not pass and why; a test fails if something else does not pass, or if
something listed passes.  The tests are dealt out in batches, so that they can be shared among processes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from ..tools import load_tool

TABLE = Path(__file__).with_name("known_failures.txt")
BATCHES = 16
VARIANTS = ("plain", "symbolic", "folded")


@cache
def known(variant: str) -> dict[str, str]:
    """The reasons by name of those that are known not to pass in a variant."""
    found: dict[str, str] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            variants, name, reason = line.split(maxsplit=2)
            if variant in variants.split(","):
                assert name not in found, f"{name} is listed twice"
                found[name] = reason
    return found


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("variant", VARIANTS)
def test_standard_suite(variant: str, batch: int) -> None:
    tool = load_tool("run_suite")
    cases = sorted(tool.suite(), key=lambda case: str(case.name))
    wrong: list[str] = []
    for case in cases[batch::BATCHES]:
        listed = known(variant).get(case.name, "")
        if listed.startswith("random"):
            continue
        kind, detail = tool.isolated(case, variant)
        if kind == "pass" and listed:
            wrong.append(f"{case.name} passes now: take it off the list")
        elif kind != "pass" and not listed:
            wrong.append(f"{case.name} {kind}: {detail}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_the_list_names_tests() -> None:
    names = {case.name for case in load_tool("run_suite").suite()}
    for variant in VARIANTS:
        assert known(variant).keys() <= names, known(variant).keys() - names
