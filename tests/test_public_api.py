"""The public interface: the names that are promised, and no others."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import sardonyx
import sardonyx_runtime

NAMES = [
    "CompileError",
    "CompiledModel",
    "RuntimeFault",
    "__version__",
    "compile",
    "compile_to",
    "dump",
    "explain",
    "register_operator",
    "register_pass",
    "stage_text",
]


def test_names_of_the_compiler() -> None:
    assert sorted(sardonyx.__all__) == NAMES
    for name in NAMES:
        assert getattr(sardonyx, name) is not None
    assert set(NAMES) <= set(dir(sardonyx))


def test_names_of_the_runtime() -> None:
    assert set(sardonyx_runtime.__all__) >= {"RuntimeFault", "__version__"}
    for name in sardonyx_runtime.__all__:
        assert getattr(sardonyx_runtime, name) is not None


def test_one_fault_one_version() -> None:
    assert sardonyx.RuntimeFault is sardonyx_runtime.RuntimeFault
    assert sardonyx.__version__ == sardonyx_runtime.__version__


def test_two_error_families() -> None:
    assert issubclass(sardonyx.CompileError, Exception)
    assert not issubclass(sardonyx.CompileError, sardonyx.RuntimeFault)
    assert not issubclass(sardonyx.RuntimeFault, sardonyx.CompileError)


def test_no_other_names() -> None:
    with pytest.raises(AttributeError, match="'sardonyx' has no attribute 'compyle'"):
        sardonyx.compyle  # noqa: B018


def test_signatures() -> None:
    compile = inspect.signature(sardonyx.compile).parameters
    assert next(iter(compile)) == "model"
    assert compile["threads"].default is None
    assert all(p.kind is p.KEYWORD_ONLY for p in list(compile.values())[1:])
    run = inspect.signature(sardonyx.CompiledModel.run).parameters
    assert list(run)[:3] == ["self", "feeds", "outputs"]
    assert run["out"].kind is run["out"].KEYWORD_ONLY


@pytest.mark.parametrize("name", [n for n in NAMES if n != "__version__"])
def test_everything_public_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(sardonyx, name))


@pytest.mark.parametrize("package", ["sardonyx", "sardonyx_runtime"])
def test_importing_is_quick(package: str) -> None:
    """Neither package loads anything heavy before it is used."""
    code = f"import sys, {package}; print(sorted({{'numpy', 'onnx', 'llvmlite'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
