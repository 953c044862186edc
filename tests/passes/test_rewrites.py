"""Graphs that invite a wrong rewrite, through the whole pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..case_files import Case, read_cases, run_case
from ..helpers import each_engine

CASES = read_cases(Path(__file__).with_name("rewrite_cases.txt"))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@each_engine
def test_case(case: Case, engine: str) -> None:
    run_case(case, engine)
