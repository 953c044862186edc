"""Names of target systems: short ones as people write them, LLVM's, and those of the linker that crosses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

import llvmlite.binding as llvm

from sardonyx.errors import CompileError
from sardonyx.targets.llvm_targets import initialise

__all__ = ["KNOWN", "Triple", "host_triple", "parse_triple"]

# What libraries are linked for; objects can be made for whatever LLVM knows.
KNOWN = (
    *("x86_64-linux-gnu", "x86_64-linux-musl", "aarch64-linux-gnu", "aarch64-linux-musl"),
    *("riscv64-linux-gnu", "riscv64-linux-musl", "x86_64-windows-gnu"),
    *("aarch64-macos", "x86_64-macos", "wasm32-wasi"),
)

_MACHINES = {"amd64": "x86_64", "x64": "x86_64", "x86-64": "x86_64", "arm64": "aarch64", "wasm": "wasm32"}
# Without the version that may stand behind them.
_SYSTEMS = {
    "linux": "linux",
    **dict.fromkeys(("windows", "win", "mingw"), "windows"),
    **dict.fromkeys(("macos", "macosx", "darwin"), "macos"),
    **dict.fromkeys(("wasi", "wasip"), "wasi"),
}
_ENVIRONMENTS = re.compile(r"(gnu|musl|msvc)[a-z0-9_]*")
_MACOS = "11.0.0"  # the oldest system with a version for arm64


@dataclass(frozen=True)
class Triple:
    """A machine, a system (empty if it is none of those known here) and its environment."""

    machine: str
    system: str
    environment: str
    llvm: str

    @property
    def short(self) -> str:
        """As in `KNOWN`."""
        return "-".join(part for part in (self.machine, self.system, self.environment) if part)

    @property
    def suffix(self) -> str:
        """Of a library of the system."""
        return {"windows": ".dll", "macos": ".dylib", "wasi": ".wasm"}.get(self.system, ".so")


def parse_triple(text: str) -> Triple:
    """The triple of a short name (``aarch64-linux-musl``) or of LLVM's form; CompileError if LLVM has none."""
    machine, *rest = text.lower().split("-")
    machine = _MACHINES.get(machine, machine)
    words = [re.sub(r"[\d.]+$", "", word) for word in rest]
    system = next((_SYSTEMS[word] for word in words if word in _SYSTEMS), "")
    if machine == "wasm32" and not rest:
        system = "wasi"
    environment = next((word for word in words if _ENVIRONMENTS.fullmatch(word)), "")
    if system in ("linux", "windows"):
        environment = environment or "gnu"
    elif system:
        environment = ""
    forms = {
        "linux": f"{machine}-unknown-linux-{environment}",
        "windows": f"{machine}-{'w64' if environment == 'gnu' else 'pc'}-windows-{environment}",
        "macos": f"{'arm64' if machine == 'aarch64' else machine}-apple-macosx{_MACOS}",
        "wasi": f"{machine}-unknown-wasi",
    }
    full = forms.get(system, text)
    initialise()
    try:
        llvm.Target.from_triple(full)
    except RuntimeError:
        close = get_close_matches(text, KNOWN, 3, 0.5)
        hint = f"did you mean {' or '.join(close)}? " if close else ""
        raise CompileError(
            f"LLVM knows no target {text!r}",
            hint=f"{hint}libraries are linked for {', '.join(KNOWN)}; objects are made for any triple of LLVM",
        ) from None
    return Triple(machine, system, environment, full)


def host_triple() -> Triple:
    return parse_triple(llvm.get_process_triple())
