"""Measures the f32 math functions over all 2**32 patterns, and the f64 ones at random.

    python tools/exhaustive_math.py                      # every function, every f32
    python tools/exhaustive_math.py exp tanh --stride 97 # a sample
    python tools/exhaustive_math.py --f64 --count 20000  # f64 against mpmath

Prints the largest error in units in the last place (ULP) for each function, and where it is. The
reference of f32 is NumPy's function in f64, or for erf and normal_cdf our own f64 one, which the
tests hold to about one ULP of f64: what that adds to an error in ULP of f32 is below 1e-8.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from sardonyx.codegen.emitter import I64, PTR, Emitter, ModuleText, V, ltype
from sardonyx.codegen.math import MATH

Array = np.ndarray[Any, Any]
WIDTH = 16
_ENGINES: list[Any] = []


@dataclass(frozen=True)
class Worst:
    """The largest error of a function: in ULP, and argument, result and exact value there."""

    error: float = 0.0
    argument: float = 0.0
    result: float = 0.0
    exact: float = 0.0


@cache
def compiled(name: str, bits: int) -> Callable[[Array], Array]:
    """The function over arrays of a multiple of `WIDTH` elements."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = ModuleText()
    em = Emitter(module)
    t = ltype("f", bits, WIDTH)
    em.br("body")
    em.label("body")
    em.raw("  %i = phi i64 [ 0, %entry ], [ %after, %LATCH ]")
    x = em.load(t, em.gep(t, V(PTR, "%in"), V(I64, "%i")))
    em.store(MATH[name](em, x), em.gep(t, V(PTR, "%out"), V(I64, "%i")))
    em.raw(f"  %after = add i64 %i, {WIDTH}")
    latch = em.block
    em.cond_br(em.icmp("slt", V(I64, "%after"), V(I64, "%count")), "body", "exit")
    em.label("exit")
    em.ret()
    body = em.text().replace("%LATCH", f"%{latch}")
    head = 'define void @loop(ptr %out, ptr %in, i64 %count) "prefer-vector-width"="512"'
    ir = f"{head} {{\n{body}\n}}\n{module.render()}"
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(ir), machine)
    engine.finalize_object()
    _ENGINES.append(engine)
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    native = prototype(engine.get_function_address("loop"))

    def run(x: Array) -> Array:
        padded = np.zeros(-(-x.size // WIDTH) * WIDTH, x.dtype)
        padded[: x.size] = x
        out = np.empty_like(padded)
        native(out.ctypes.data, padded.ctypes.data, padded.size)
        return out[: x.size]

    return run


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    result: Array = np.where(x < 0, e, 1.0) / (1 + e)
    return result


REFERENCE: dict[str, Callable[[Array], Array]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "erf": lambda x: np.asarray(compiled("erf", 64)(x)),
    "normal_cdf": lambda x: np.asarray(compiled("normal_cdf", 64)(x)),
    "sigmoid": _sigmoid,
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    **{n: getattr(np, n) for n in ("cos", "cosh", "exp", "exp2", "expm1", "log", "log1p", "log2")},
    **{n: getattr(np, n) for n in ("sin", "sinh", "tan", "tanh")},
}


def errors_f32(got: Array, exact: Array) -> Array:
    """Errors in ULP of the exact value; a special result (NaN, infinity) is right or infinitely
    wrong.
    """
    rounded = exact.astype(np.float32)
    unit = np.abs(exact)
    exponent = (unit.view(np.uint64) >> np.uint64(52)).astype(np.int64) - 1023
    unit = ((np.clip(exponent, -126, 127) - 23 + 1023).astype(np.uint64) << np.uint64(52)).view(np.float64)
    error = np.abs(got.astype(np.float64) - exact) / unit
    right = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    error = np.where(right & ~np.isfinite(rounded), 0.0, error)
    return np.where(np.isnan(error), np.inf, error)


def chunk_f32(name: str, first: int, last: int, stride: int) -> Worst:
    """The worst of the patterns first, first + stride, ... below last."""
    x = np.arange(first, last, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        got = compiled(name, 32)(x)
        exact = np.asarray(REFERENCE[name](x.astype(np.float64)))
        error = errors_f32(got, exact)
    k = int(np.argmax(error))
    return Worst(float(error[k]), float(x[k]), float(got[k]), float(exact[k]))


def sweep_f32(name: str, stride: int, pool: ProcessPoolExecutor) -> Worst:
    """All patterns, in chunks of 2**20 results."""
    step = stride << 20
    starts = range(0, 1 << 32, step)
    futures = [pool.submit(chunk_f32, name, s, min(s + step, 1 << 32), stride) for s in starts]
    return max((f.result() for f in futures), key=lambda worst: worst.error)


def sample_f64(name: str, count: int) -> Worst:
    """Random doubles of moderate exponents against mpmath."""
    import mpmath  # type: ignore[import-untyped]  # a development dependency, needed here only

    functions: dict[str, Callable[[Any], Any]] = {
        "exp2": lambda x: mpmath.power(2, x),
        "log2": lambda x: mpmath.log(x) / mpmath.log(2),
        "normal_cdf": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
        "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
        "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    }
    function = functions.get(name) or getattr(mpmath, name)
    rng = np.random.default_rng()
    x = np.ldexp(rng.uniform(1, 2, count), rng.integers(-30, 9, count)) * rng.choice([-1.0, 1.0], count)
    got = compiled(name, 64)(x)
    worst = Worst()
    with mpmath.workprec(140):
        for argument, value in zip(x.tolist(), got.tolist(), strict=True):
            exact = function(mpmath.mpf(argument))
            if isinstance(exact, mpmath.mpf) and mpmath.isfinite(exact) and exact and math.isfinite(value):
                unit = mpmath.mpf(2) ** (max(mpmath.frexp(exact)[1] - 1, -1022) - 52)
                error = float(abs(value - exact) / unit)
                if error > worst.error:
                    worst = Worst(error, argument, value, float(exact))
    return worst


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Largest error in ULP of the math functions, over every f32 or at random f64.",
        epilog="The whole sweep takes some minutes per function and core.",
    )
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help=f"of {', '.join(sorted(REFERENCE))}")
    parser.add_argument("--stride", type=int, default=1, help="take every n-th f32 pattern (default: all)")
    parser.add_argument("--jobs", type=int, default=None, help="processes (default: one per core)")
    parser.add_argument("--f64", action="store_true", help="sample f64 against mpmath instead")
    parser.add_argument("--count", type=int, default=20_000, help="f64 samples per function")
    options = parser.parse_args()
    names = options.functions or sorted(REFERENCE)
    unknown = [name for name in names if name not in REFERENCE]
    if unknown:
        parser.error(f"no such function: {', '.join(unknown)}")
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in names:
            start = time.perf_counter()
            if options.f64:
                worst = pool.submit(sample_f64, name, options.count).result()
            else:
                worst = sweep_f32(name, options.stride, pool)
            seconds = time.perf_counter() - start
            where = f"at {worst.argument!r}: {worst.result!r}, exactly {worst.exact!r}"
            print(f"{name:10s} {worst.error:8.4f} ULP  {where}  ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
