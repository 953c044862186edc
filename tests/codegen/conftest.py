"""JIT-compiles an emitted lane function into a loop over arrays, for the tests of this folder."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import llvmlite.binding as llvm
import numpy as np
import pytest

from sardonyx.codegen.emitter import I64, PTR, Emitter, LType, ModuleText, V, ltype

_TYPES = {
    np.dtype(np.float16): ltype("f", 16),
    np.dtype(np.float32): ltype("f", 32),
    np.dtype(np.float64): ltype("f", 64),
    **{np.dtype(f"{s}int{b}"): ltype("i", b) for s in ("", "u") for b in (8, 16, 32, 64)},
}

LaneFunction = Callable[..., V]
ArrayFunction = Callable[..., np.ndarray]


def _loop_text(function: LaneFunction, inputs: list[LType], output: LType, module: ModuleText) -> str:
    """A function `loop(out, in..., count)` over whole vectors."""
    em = Emitter(module)
    index, after = V(I64, "%i"), "%after"
    em.br("body")
    em.label("body")
    em.raw(f"  %i = phi i64 [ 0, %entry ], [ {after}, %LATCH ]")
    operands = [em.load(t, em.gep(t, V(PTR, f"%in{k}"), index)) for k, t in enumerate(inputs)]
    em.store(function(em, *operands), em.gep(output, V(PTR, "%out"), index))
    em.raw(f"  {after} = add i64 %i, {output.width}")
    em.cond_br(em.icmp("slt", V(I64, after), V(I64, "%count")), "body", "exit")
    latch = em.block
    em.label("exit")
    em.ret()
    parameters = ", ".join(["ptr %out", *[f"ptr %in{k}" for k in range(len(inputs))], "i64 %count"])
    body = em.text().replace("%LATCH", f"%{latch}")
    attributes = '"prefer-vector-width"="512"'
    return f"define void @loop({parameters}) {attributes} {{\n{body}\n}}\n{module.render()}"


class Jit:
    """Keeps the engines alive that own the compiled code."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.host_features = [name for name, has in llvm.get_host_cpu_features().items() if has]
        self._features = llvm.get_host_cpu_features().flatten()
        self._engines: list[llvm.ExecutionEngine] = []

    def compile(
        self,
        function: LaneFunction,
        inputs: list[type],
        output: type,
        width: int = 8,
        module: ModuleText | None = None,
    ) -> ArrayFunction:
        """The function over arrays of any length of the given NumPy types, `width` lanes at a time.

        `module` says what the emitter may use; the machine code uses all of the host anyway.
        """
        dtypes = [np.dtype(t) for t in inputs]
        types = [_TYPES[t].with_width(width) for t in dtypes]
        out = _TYPES[np.dtype(output)].with_width(width)
        parsed = llvm.parse_assembly(_loop_text(function, types, out, module or ModuleText()))
        parsed.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=self._features, opt=2
        )
        engine = llvm.create_mcjit_compiler(parsed, machine)
        engine.finalize_object()
        self._engines.append(engine)
        address = engine.get_function_address("loop")
        native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (1 + len(types)), ctypes.c_int64)(address)

        def run(*arrays: np.ndarray) -> np.ndarray:
            count = arrays[0].size
            padded = -(-count // width) * width
            operands = []
            for array, dtype in zip(arrays, dtypes, strict=True):
                operand = np.zeros(padded, dtype)
                operand[:count] = array.ravel()
                operands.append(operand)
            result = np.empty(padded, np.dtype(output))
            native(result.ctypes.data, *[a.ctypes.data for a in operands], padded)
            return result[:count]

        return run


@pytest.fixture(scope="session")
def jit() -> Iterator[Jit]:
    """Compiles lane functions: `jit.compile(function, [np.float32], np.float32, width)`."""
    yield Jit()
