"""The passes on IR text: each file of ``text/`` is one pass, cases are parted by ``// -----``.

A case says what to run (``// PASSES: fuse{max=8}``) and what has to come of it: patterns of FileCheck's
(``// CHECK: ...``), or the message of an error (``// ERROR: ...``, each to be found in it).  The module is
verified before and after each pass; the result is printed without locations unless the case says
``// LOCATIONS``, and has to parse back.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from sardonyx.codegen import emit_pass
from sardonyx.errors import CompileError
from sardonyx.ir.parser import parse_module
from sardonyx.ir.printer import print_module
from sardonyx.kernels.target import Target
from sardonyx.pass_manager import registered_passes, run_steps
from sardonyx.pipeline import steps_of
from sardonyx.source import parse_ir

assert emit_pass.__all__  # registers a pass

FOLDER = Path(__file__).with_name("text")
# Not the host: schedules depend on the vector unit.
TARGET = Target("x86_64-unknown-linux-gnu", "", ("avx2", "fma"), vector_bytes=32, registers=16)


@dataclass(frozen=True)
class Case:
    name: str
    text: str

    def all(self, key: str) -> list[str]:
        return re.findall(rf"^// {key}: (.*)$", self.text, re.MULTILINE)


def read_cases() -> list[Case]:
    cases = []
    for path in sorted(FOLDER.glob("*.mlir")):
        for number, text in enumerate(path.read_text(encoding="utf-8").split("// -----\n")):
            title = re.match(r"\s*// (\S.*)", text)
            assert title is not None, f"case {number} of {path.name} has no title"
            cases.append(Case(f"{path.stem}: {title[1]}", text))
    return cases


CASES = read_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_case(case: Case) -> None:
    (passes,) = case.all("PASSES")
    errors = case.all("ERROR")
    if errors:
        with pytest.raises(CompileError) as raised:
            run_steps(parse_ir(case.text), steps_of(passes, TARGET), verify_each=True)
        for words in errors:
            assert words in str(raised.value), str(raised.value)
        return
    module = parse_ir(case.text)
    before = print_module(module)
    runs = run_steps(module, steps_of(passes, TARGET), verify_each=True)
    after = print_module(module)
    assert any(r.changed for r in runs) == (before != after), "a pass says whether it changed something"
    assert print_module(parse_module(after)) == after
    check_file(case.text, print_module(module, locations="// LOCATIONS" in case.text))


def check_file(patterns: str, text: str) -> None:
    """Fail unless the text has the lines that the patterns ask for."""
    options = Options("case", check_prefixes=["CHECK"], comment_prefixes=["COM"])
    parser = Parser(options, io.StringIO(patterns), *pattern_for_opts(options))
    matcher = Matcher(options, FInput("output", text), parser)
    matcher.stderr = io.StringIO()
    assert matcher.run() == 0, f"{matcher.stderr.getvalue()}\n{text}"


def test_every_pass_has_a_file() -> None:
    known = {name for name, made in registered_passes().items() if made.__module__.startswith("sardonyx.")}
    assert {path.stem for path in FOLDER.glob("*.mlir")} == known | {"verifier"}
