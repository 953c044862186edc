"""Compiling for other vector units than the host's best, and by the plain kernels."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest

from sardonyx import model as driver
from sardonyx.kernels import select
from sardonyx.kernels.target import Target
from sardonyx.model import CompiledModel
from sardonyx.targets.host import host_target

_AVX2 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "popcnt", "sse4.1", "sse4.2", "ssse3")

TARGETS: dict[str, Callable[[], Target]] = {
    "host": host_target,
    "avx2": lambda: Target(host_target().triple, "x86-64-v3", _AVX2, vector_bytes=32, registers=16),
    "sse2": lambda: Target(host_target().triple, "x86-64", ("sse", "sse2"), vector_bytes=16, registers=16),
}


def compile_for(
    patch: pytest.MonkeyPatch,
    model: onnx.ModelProto,
    target: str = "host",
    *,
    plain: bool = False,
    threads: int = 1,
) -> CompiledModel:
    """The model compiled for a target of `TARGETS`; ``plain``: products by their plain kernels."""
    chosen = TARGETS[target]()
    if not host_target().triple.startswith("x86_64") and target != "host":
        pytest.skip("the target is an x86-64")
    if not set(chosen.features) <= {
        *host_target().features,
        *(f.replace("_", ".") for f in host_target().features),
    }:
        pytest.skip(f"this host cannot run code for {target}")
    with patch.context() as inner:
        inner.setattr(driver, "host_target", lambda: chosen)
        if plain:
            inner.setattr(select, "is_fast", lambda dtype: False)
        return driver.compile(model, threads=threads)
