"""The C header: it compiles as C and C++ whatever the names are, and its functions do what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sardonyx.aot.c_names import c_identifiers, c_type, comment
from sardonyx.aot.header import header_text
from sardonyx_runtime import dtypes
from sardonyx_runtime.artifact import ABI
from sardonyx_runtime.dims import symbol
from sardonyx_runtime.signature import Argument, Signature

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
