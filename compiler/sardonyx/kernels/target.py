"""What kernels and code generation need to know of the machine they are made for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A target machine: LLVM triple, CPU, features, and the shape of its vector unit.

    ``features`` are all that the CPU has and code may use; ``without`` what LLVM thinks a CPU of this name
    has, but which is not there.  ``layout`` is LLVM's data layout where pointers do not have 64 bits.
    """

    triple: str
    cpu: str = ""
    features: tuple[str, ...] = ()
    vector_bytes: int = 16
    registers: int = 16
    without: tuple[str, ...] = ()
    layout: str = ""

    @property
    def machine(self) -> str:
        machine = self.triple.partition("-")[0]
        return "aarch64" if machine == "arm64" else machine

    @property
    def pointer_bits(self) -> int:
        return 32 if self.layout else 64

    @property
    def header(self) -> str:
        """How the text of an LLVM module for the target begins."""
        layout = f'target datalayout = "{self.layout}"\n' if self.layout else ""
        return f'{layout}target triple = "{self.triple}"\n'

    @property
    def has_fma(self) -> bool:
        """Whether multiplying and adding with one rounding is an instruction."""
        needed = {"x86_64": "fma", "aarch64": "neon", "riscv64": "d"}.get(self.machine)
        return needed in self.features

    @property
    def has_f16_conversions(self) -> bool:
        """Whether the CPU converts between half and float by itself."""
        needed = {"x86_64": "f16c", "aarch64": "neon", "riscv64": "zfhmin"}.get(self.machine)
        return needed in self.features

    @property
    def function_attributes(self) -> str:
        """LLVM attributes for every function: the vector width that must not be split."""
        bits = self.vector_bytes * 8
        return f'nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
