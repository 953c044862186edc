"""`sardonyx opt`: passes on text, failures replayed and reduced."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import sardonyx as package
from sardonyx.ir.parser import parse_module
from sardonyx.ir.printer import print_module

from .conftest import Sardonyx

PLUGIN = Path(__file__).with_name("plugin.py")


@pytest.fixture
def core(floor_ge: Path, tmp_path: Path) -> Path:
    path = tmp_path / "core.mlir"
    path.write_text(package.stage_text(str(floor_ge), "core", resources=True), encoding="utf-8")
    return path


def test_passes_give_what_compiling_gives(sardonyx: Sardonyx, floor_ge: Path, core: Path) -> None:
    result = sardonyx("opt", core, "-p", "layout,simplify,fold{moves=true},fuse", "--verify-each")
    assert result.code == 0
    assert result.out == package.stage_text(str(floor_ge), "fused", resources=True)


def test_down_to_planned_memory_from_standard_input(
    sardonyx: Sardonyx, floor_ge: Path, core: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(core.read_text(encoding="utf-8")))
    result = sardonyx("opt", "-", "-p", "layout,simplify,fold{moves=true},fuse,schedule,plan-memory,codegen")
    assert result.code == 0
    assert result.out in package.stage_text(str(floor_ge), "planned", resources=True)


def test_no_passes_lose_nothing(sardonyx: Sardonyx, core: Path, tmp_path: Path) -> None:
    text = core.read_text(encoding="utf-8")
    assert sardonyx("opt", core).out == text
    generic = tmp_path / "generic.mlir"
    assert sardonyx("opt", core, "--mlir", "-o", generic).code == 0
    assert '"core.ge"(' in generic.read_text(encoding="utf-8")
    assert sardonyx("opt", generic).out == text


def test_an_onnx_file(sardonyx: Sardonyx, floor_ge: Path) -> None:
    result = sardonyx("opt", floor_ge, "-p", "lower", "--no-locations", "--time-passes")
    assert "core.floor" in result.out and "loc(" not in result.out
    assert "lower" in result.err and "100 %" in result.err and "changed" in result.err


@pytest.mark.parametrize(
    ("passes", "words"),
    [
        ("fold,flod", "there is no pass 'flod'; the passes are codegen, fold"),
        ("fuse{most=2}", "the pass fuse has no option 'most=2'; its options: max=64"),
        ("fuse{max=many}", "max='many' of the pass fuse has to be of type int"),
        ("fuse{max=2", "cannot read 'fuse{max=2' as passes"),
    ],
)
def test_passes_that_cannot_be_read(sardonyx: Sardonyx, core: Path, passes: str, words: str) -> None:
    result = sardonyx("opt", core, "-p", passes)
    assert result.code == 2
    assert words in result.err


def test_text_that_is_no_ir(sardonyx: Sardonyx, tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text("func @main() {\n  core.retorn\n", encoding="utf-8")
    result = sardonyx("opt", path)
    assert result.code == 3
    assert "line 3" in result.err


def test_a_limit_of_steps(sardonyx: Sardonyx, core: Path) -> None:
    none = sardonyx("opt", core, "-p", "fuse", "--opt-bisect", "0")
    assert "0 of 2 optimisation steps were taken" in none.err
    assert none.out.count("core.fused") == 3
    one = sardonyx("opt", core, "-p", "fuse", "--opt-bisect", "1")
    assert "the last: fuse: pull into the group of its user: core." in one.err
    assert one.out.count("core.fused") == 2


def test_passes_are_listed(sardonyx: Sardonyx) -> None:
    out = sardonyx("opt", "--list-passes").out
    assert "fuse" in out and "max=64" in out


def test_a_pass_that_breaks_down(sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path) -> None:
    """The error says where; the reproducer fails alike, and can be reduced to one op."""
    file = tmp_path / "broken.mlir"
    passes = "lower,simplify,breaks-at-floor,fuse"
    failed = sardonyx("run", floor_ge, "--load", PLUGIN, "--passes", passes, "--reproducer", file)
    assert failed.code == 70
    assert "node 'Floor_0' (Floor): the pass breaks-at-floor broke down (KeyError: 'nothing')" in failed.err
    assert ">   %f = core.floor %x" in failed.err.replace("%0", "%f")
    assert f"sardonyx opt --reproduce {file}" in failed.err
    text = file.read_text(encoding="utf-8")
    assert "// passes: breaks-at-floor\n" in text and "// versions: sardonyx" in text and "plugin.py" in text
    again = sardonyx("opt", "--reproduce", file, "--load", PLUGIN)
    assert again.code == 70
    assert "the pass breaks-at-floor broke down" in again.err
    small = tmp_path / "small.mlir"
    reduced = sardonyx("opt", "--reproduce", file, "--reduce", "--load", PLUGIN, "-o", small)
    assert reduced.code == 0, reduced.err
    assert "reduced to 2; breaks-at-floor fails as before" in reduced.err
    kept = parse_module(small.read_text(encoding="utf-8"))
    assert [op.name for op in kept.main.body.ops] == ["core.floor", "core.return"]
    assert sardonyx("opt", "--reproduce", small, "--load", PLUGIN).code == 70


def test_a_reproducer_is_kept_without_being_asked(
    sardonyx: Sardonyx, floor_ge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path))
    failed = sardonyx("run", floor_ge, "--load", PLUGIN, "--passes", "lower,breaks-at-floor,fuse")
    (file,) = (tmp_path / "reproducers").iterdir()
    assert str(file) in failed.err


def test_a_pass_that_leaves_broken_ir(sardonyx: Sardonyx, floor_ge: Path, core: Path, tmp_path: Path) -> None:
    result = sardonyx("opt", core, "--load", PLUGIN, "-p", "loses-an-operand", "--verify-each")
    assert result.code == 70
    assert "after the pass loses-an-operand: core.ge has 1 operands" in result.err
    file = tmp_path / "broken.mlir"
    passes = "lower,loses-an-operand,fuse"
    ran = sardonyx(
        "run", floor_ge, "--load", PLUGIN, "--passes", passes, "--verify-each", "--reproducer", file
    )
    assert ran.code == 70
    assert sardonyx("opt", "--reproduce", file, "--load", PLUGIN).code == 70


def test_what_does_not_fail_cannot_be_reduced(sardonyx: Sardonyx, core: Path) -> None:
    result = sardonyx("opt", core, "-p", "fuse", "--reduce")
    assert result.code == 2
    assert "there is nothing to reduce" in result.err
    result = sardonyx("opt", core, "--reproduce")
    assert result.code == 3
    assert "no reproducer" in result.err


def test_a_file_to_load_that_fails(sardonyx: Sardonyx, core: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("1 / 0\n", encoding="utf-8")
    result = sardonyx("opt", core, "--load", path)
    assert result.code == 2
    assert "ZeroDivisionError" in result.err


def test_printing_is_stable(core: Path) -> None:
    text = core.read_text(encoding="utf-8")
    assert print_module(parse_module(text), resources=True) == text
