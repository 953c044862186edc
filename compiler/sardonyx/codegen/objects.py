"""From LLVM text to object files: in a thread of its own, by way of the cache."""

from __future__ import annotations

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from sardonyx import cache
from sardonyx.codegen.support import support_text
from sardonyx.kernels.target import Target
from sardonyx.targets.host import llvm_version, target_machine

__all__ = [
    "METADATA",
    "Objects",
    "assembly",
    "compile_text",
    "machine_text",
    "optimise",
    "support_object",
]

# An unlikely branch, a store past the caches.
METADATA = '\n!0 = !{!"branch_weights", i32 1, i32 1048576}\n!1 = !{i32 1}\n'

# Explicit vectors need little.  Measured on the 59 kernels of an OCR classifier (time of these passes and of
# instruction selection, then of a run): none 1.05 s, 0.287 ms; these 1.2 s, 0.255 ms; O1 2.1 s, 0.252 ms;
# O2 2.5 s, 0.249 ms.  Without value numbering a transformer encoder takes 4.5 ms instead of 3.4.
PASSES = (
    "always_inliner",  # vector math is helper functions
    "loop_rotate",  # code generation moves invariants out of rotated loops only
    "new_gvn",  # the emitter writes every address and mask anew
    "instruction_combine",
)


def optimise(text: str, target: Target) -> Any:
    """The parsed module after the slim pipeline."""
    module = llvm.parse_assembly(text)
    builder = llvm.create_pass_builder(target_machine(target), llvm.PipelineTuningOptions(speed_level=1))
    passes = llvm.ModulePassManager()
    for name in PASSES:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, builder)
    return module


def compile_text(text: str, target: Target, *, passes: bool = True) -> bytes:
    """An object file."""
    module = optimise(text, target) if passes else llvm.parse_assembly(text)
    return bytes(target_machine(target).emit_object(module))


def assembly(text: str, target: Target, *, passes: bool = True) -> str:
    """The assembly of a module, for dumps."""
    return machine_text(optimise(text, target) if passes else llvm.parse_assembly(text), target)


def machine_text(module: Any, target: Target) -> str:
    """The assembly of a module as it is."""
    return str(target_machine(target).emit_assembly(module))


def code_size(data: bytes) -> int:
    """Bytes of machine code in an object file."""
    return sum(s.size() for s in llvm.ObjectFileRef.from_data(data).sections() if s.is_text())


def support_object(target: Target, *, use_cache: bool = True, unwind: bool = False) -> bytes:
    """The object of the support code: arena, thread pool, gate.

    ``unwind`` adds what a debugger needs to look through its frames.
    """
    support = support_text(target.triple, target.pointer_bits)
    if unwind:
        support = support.replace(" nounwind", " nounwind uwtable")
    text = f"{target.header}{support}{METADATA}"
    return _stored(text, target, use_cache) or _compile(text, target, use_cache)


def _key(text: str, target: Target) -> str:
    versions = (llvmlite.__version__, llvm_version(), PASSES)
    parts = (text, target.triple, target.cpu, " ".join(target.features), str(versions))
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=20).hexdigest()


def _stored(text: str, target: Target, use_cache: bool) -> bytes | None:
    found = cache.read("objects", _key(text, target)) if use_cache else None
    return None if found is None else bytes(found)


def _compile(text: str, target: Target, use_cache: bool) -> bytes:
    data = compile_text(text, target)
    if use_cache:
        cache.write("objects", _key(text, target), data)
    return data


class Objects:
    """Compiles modules while the caller goes on making the next ones.

    LLVM runs without the interpreter's lock, so one thread beside the caller's fills a second core; more
    would wait for each other, because llvmlite lets one call in at a time.
    """

    def __init__(self, target: Target, *, use_cache: bool = True) -> None:
        self._target = target
        self._use_cache = use_cache
        self._objects: dict[str, bytes | Future[bytes]] = {}
        self._executor: ThreadPoolExecutor | None = None
        self.compiled = 0  # how many did not come from the cache

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def add(self, symbol: str, text: str) -> None:
        """Begin to compile the LLVM text that defines a symbol."""
        found = _stored(text, self._target, self._use_cache)
        if found is not None:
            self._objects[symbol] = found
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "sardonyx-llvm")
        self.compiled += 1
        self._objects[symbol] = self._executor.submit(_compile, text, self._target, self._use_cache)

    def finish(self) -> dict[str, bytes]:
        """The objects by symbol, when the last one is there."""
        return {s: o if isinstance(o, bytes) else o.result() for s, o in self._objects.items()}
