"""The C header: it compiles as C and C++ whatever the names are, and its functions do what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sardonyx
from sardonyx.aot.c_names import c_identifiers, c_type, comment
from sardonyx.aot.header import header_text
from sardonyx.codegen.artifact import exports
from sardonyx.codegen.constants import Beside, Inside
from sardonyx_runtime import dtypes
from sardonyx_runtime.artifact import ABI
from sardonyx_runtime.dims import symbol
from sardonyx_runtime.signature import Argument, Signature

from ..helpers import make_model

COMPILERS = {
    "cc": ["-std=c99", "-x", "c"],
    "c++": ["-std=c++11", "-x", "c++"],
}
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
ODD_NAMES = [
    "int",
    "class",
    "a b",
    "a.b",
    "3",
    "*/",
    "/*",
    "??/",
    "\n",
    "é",
    "",
    "count",
    "dims",
    "x",
    "X",
    "x\\",
]


def description(**more: Any) -> dict[str, Any]:
    return {
        "sardonyx": "1.2.3",
        "abi": ABI,
        "triple": "x86_64-linux",
        "cpu": "plain",
        "model": "ab12",
        **more,
    }


def check(compiler: str, text: str, folder: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    (folder / "model.h").write_text(text, encoding="utf-8")
    program = '#include "model.h"\n#include "model.h"\nint main(void) { return 0; }\n'
    command = [compiler, *COMPILERS[compiler], *STRICT, "-Wno-unused-function", "-I", str(folder), "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_type_and_odd_names(compiler: str, tmp_path: Path) -> None:
    numbers = [t for t in dtypes.ALL if t is not dtypes.string]
    inputs = [Argument(name, numbers[i % len(numbers)], (2, i)) for i, name in enumerate(ODD_NAMES)]
    outputs = [Argument(name, t, (3,)) for name, t in zip(ODD_NAMES * 2, numbers, strict=False)]
    text = header_text("sdx_model", Signature(tuple(inputs), tuple(outputs)), description())
    assert "sdx_model_call" in text
    check(compiler, text, tmp_path)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_symbols_strings_and_nothing(compiler: str, tmp_path: Path) -> None:
    n = symbol("n")
    signatures = [
        Signature((Argument("x", dtypes.f32, (n,)),), (Argument("y", dtypes.f32, (n + 1, symbol("late"))),)),
        Signature((Argument("x", dtypes.string, (1,)),), ()),
        Signature((), ()),
    ]
    texts = [header_text(f"m{i}", s, description(model=None)) for i, s in enumerate(signatures)]
    assert ["_call(" in t for t in texts] == [False, False, True]
    assert re.search(r'"y": float\[n\+1, late\], .*allocated by the run', texts[0])
    check(compiler, "\n".join(texts), tmp_path)


def test_facts_are_there() -> None:
    signature = Signature((Argument("x", dtypes.f32, (2, 3)),), (Argument("y", dtypes.c64, (5,)),))
    text = header_text("net", signature, description())
    for part in (
        f"#define NET_ABI {ABI}\n",
        "Made by Sardonyx 1.2.3 for x86_64-linux plain.",
        "SHA-256 ab12",
        '*   "x": float[2, 3], each element float\n',
        "#define NET_SIZE_OF_INPUT_X 6 ",
        "const float x[6],",
        "float y[10])",
        "NET_OUTPUT_Y = 0,",
    ):
        assert part in text, part


def test_elements_are_as_large_as_numpys() -> None:
    sizes = {"float": 4, "double": 8, **{f"{u}int{b}_t": b // 8 for u in ("", "u") for b in (8, 16, 32, 64)}}
    for dtype in dtypes.ALL:
        kind, count = c_type(dtype)
        memory = 8 if dtype is dtypes.string else dtype.itemsize
        assert sizes[kind] * count == memory, dtype


@given(st.lists(st.text(max_size=8), max_size=12))
@settings(deadline=None)
def test_identifiers_are_c_identifiers(names: list[str]) -> None:
    made = c_identifiers(names, ["taken"])
    assert len(set(made)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", m, re.ASCII) for m in made)
    assert not {"taken", "int", "class"} & set(made)


@given(st.text())
def test_a_comment_does_not_end(name: str) -> None:
    text = comment(name)
    assert text.isascii() and text.isprintable() and "*/" not in text and "/*" not in text


@pytest.mark.parametrize("constants", [Inside, Beside])
def test_all_symbols_are_declared(constants: type[Inside] | type[Beside]) -> None:
    beside = {"weights_file": "m.weights"} if constants is Beside else {}
    text = header_text("net", Signature((), ()), description(**beside))
    declared = set(re.findall(r"\b(net_\w+)[(\[;]", text))
    assert declared >= set(exports("net", constants))
    assert "net_weights" not in declared or constants is Inside


_PROGRAM = """
#include <stdio.h>
#include "model.h"
int main(void) {
    const float x[SDX_MODEL_SIZE_OF_INPUT_X] = {1, -2, 3, -4, 5, -6};
    const uint8_t flags[3] = {1, 0, 1};
    const float c[4] = {1, 2, 3, 4};
    const uint16_t half[1] = {0x3f80};
    float y[6], conjugate[4];
    uint8_t opposite[3];
    uint16_t negative[1];
    sdx_model_context *context = sdx_model_create(1);
    int32_t code = sdx_model_call(context, x, flags, c, half, y, opposite, conjugate, negative);
    printf("%d %g %g %d%d%d %g %g %x\\n", (int)code, (double)y[1], (double)y[5], opposite[0], opposite[1],
           opposite[2], (double)conjugate[0], (double)conjugate[3], (unsigned)negative[0]);
    sdx_model_destroy(context);
    return 0;
}
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_typed_function(compiler: str, tmp_path: Path) -> None:
    """bool, complex and bfloat16 among its parameters."""
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    feeds = {
        "x": np.zeros((2, 3), np.float32),
        "flags": np.zeros(3, np.bool_),
        "c": np.zeros(2, np.complex64),
        "half": np.zeros((), ml_dtypes.bfloat16),
    }
    nodes = ["y = Abs (x)", "opposite = Not (flags)", "sum = Transpose (c)", "negative = Neg (half)"]
    sardonyx.compile_to(make_model(nodes, feeds, opset=21), tmp_path / "model.o")
    (tmp_path / "main").write_text(_PROGRAM)
    build = [compiler, *COMPILERS[compiler], *STRICT[:-1], "main", "-x", "none", "model.o", "-o", "program"]
    done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout
    assert printed == "0 2 6 010 1 4 bf80\n"
