"""The shape of a CPU's vector unit, by its features."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["vector_unit"]

_AVX512 = {"avx512f", "avx512bw", "avx512vl", "avx512dq"}


def vector_unit(triple: str, features: Collection[str]) -> tuple[int, int]:
    """Bytes and number of the registers."""
    has = set(features)
    if has >= _AVX512:
        return 64, 32
    if "avx2" in has:
        return 32, 16
    many = triple.startswith(("aarch64", "arm64", "riscv64"))
    return 16, 32 if many else 16
