"""What kernels need to know of the machine they are made for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A target machine: LLVM triple, features, and the shape of its vector unit."""

    triple: str
    cpu: str = ""
    features: tuple[str, ...] = ()
    vector_bytes: int = 16
    registers: int = 16

    @property
    def has_fma(self) -> bool:
        return "fma" in self.features or self.triple.startswith("aarch64")

    @property
    def function_attributes(self) -> str:
        """LLVM attributes for every function: the vector width that must not be split."""
        bits = self.vector_bytes * 8
        return f'nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
