"""The shape of a CPU's vector unit, by its features."""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["vector_unit"]

_AVX512 = {"avx512f", "avx512bw", "avx512vl", "avx512dq"}


def vector_unit(triple: str, features: Collection[str]) -> dict[str, int]:
    """Bytes and number of the registers, as fields of a `Target`."""
    has = set(features)
    if has >= _AVX512:
        return {"vector_bytes": 64, "registers": 32}
    if "avx2" in has:
        return {"vector_bytes": 32, "registers": 16}
    many = triple.startswith(("aarch64", "arm64", "riscv64"))
    return {"vector_bytes": 16, "registers": 32 if many else 16}
