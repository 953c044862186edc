"""Runs ONNX's standard backend tests through the compiler and counts what passes.

    python tools/run_suite.py                      every test, a summary by outcome
    python tools/run_suite.py --filter softmax     only tests whose name matches
    python tools/run_suite.py --list               a line per test that does not pass
    python tools/run_suite.py --variant symbolic   every static dim of the inputs made symbolic, one compilation
    python tools/run_suite.py --variant folded     all inputs as initializers: the run-time result bit for bit

Each test compiles its model, runs it on the suite's inputs and compares with the suite's outputs by its
own tolerances.  Outcomes: pass, refused (CompileError), fault (RuntimeFault), differs, error or crash
(bugs).
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import sardonyx
import sardonyx.build
import sardonyx.specialised  # now, that not each child process does it

__all__ = ["VARIANTS", "isolated", "outcome", "suite"]

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


class _Differs(Exception):
    """A result that is not what it should be."""


@cache
def suite() -> tuple[Any, ...]:
    """All tests whose models come with the onnx package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the computation of expected values
        from onnx.backend.test.loader import load_model_tests

        return tuple(case for kind in KINDS for case in load_model_tests(kind=kind))


def _model(case: Any) -> onnx.ModelProto:
    model: onnx.ModelProto
    model = case.model if case.model is not None else onnx.load(os.path.join(case.model_dir, "model.onnx"))
    return model


def _data_sets(case: Any, model: onnx.ModelProto) -> Sequence[tuple[list[Any], list[Any]]]:
    if case.data_sets is not None:
        return [([_plain(i) for i in ins], [_plain(o) for o in outs]) for ins, outs in case.data_sets]
    sets = []
    for name in sorted(os.listdir(case.model_dir)):
        folder = os.path.join(case.model_dir, name)
        if name.startswith("test_data_set"):
            sets.append(tuple(_read(folder, what, values) for what, values in _ports(model)))
    return sets  # type: ignore[return-value]


def _ports(model: onnx.ModelProto) -> list[tuple[str, Any]]:
    return [("input", model.graph.input), ("output", model.graph.output)]


def _read(folder: str, what: str, values: Any) -> list[Any]:
    """The arrays of a data set that stands in files."""
    arrays = []
    for number in range(len(values)):
        path = os.path.join(folder, f"{what}_{number}.pb")
        if os.path.exists(path):
            with open(path, "rb") as file:
                arrays.append(numpy_helper.to_array(onnx.TensorProto.FromString(file.read())))
    return arrays


def _plain(value: Any) -> Any:
    """A suite's input or output as arrays: some are given as protobuf messages."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return [_plain(v) for v in value] if isinstance(value, list) else value


def _differs(got: Any, want: Any, rtol: float, atol: float) -> str:
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"{type(got).__name__} instead of a sequence of {len(want)}"
        return next(
            (t for t in (_differs(g, w, rtol, atol) for g, w in zip(got, want, strict=True)) if t), ""
        )
    want, got = np.asarray(want), np.asarray(got)
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if want.dtype == object:
        return "" if got.tolist() == want.tolist() else "strings differ"
    a, b = (_wide(x) for x in (got, want))
    close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    wrong = int((~close).sum())
    return f"{wrong} of {close.size} values, {got[~close][:3]} instead of {want[~close][:3]}" if wrong else ""


def _wide(x: Any) -> Any:
    if x.dtype.kind in "iub":
        return x
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _same_bits(got: Any, want: Any) -> bool:
    if isinstance(want, list):
        return len(got) == len(want) and all(map(_same_bits, got, want))
    if want is None or got is None:
        return got is want
    got, want = np.asarray(got), np.asarray(want)
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    return bool(got.tolist() == want.tolist() if want.dtype == object else got.tobytes() == want.tobytes())


def _compare(case: Any, model: onnx.ModelProto, source: onnx.ModelProto) -> None:
    compiled = sardonyx.compile(model, threads=1, cache=False)
    for inputs, outputs in _data_sets(case, source):
        for got, want in zip(compiled.run(inputs), outputs, strict=True):
            text = _differs(got, want, case.rtol, case.atol)
            if text:
                raise _Differs(text)


def _as_it_is(case: Any) -> None:
    model = _model(case)
    _compare(case, model, model)


def _symbolic(case: Any) -> None:
    """Every dim of every input is a symbol of its own."""
    source = _model(case)
    model = onnx.ModelProto()
    model.CopyFrom(source)
    del model.graph.value_info[:]
    constants = {tensor.name for tensor in model.graph.initializer}
    for values in (model.graph.input, model.graph.output):
        for number, value in enumerate(values):
            if value.type.HasField("tensor_type") and value.name not in constants:
                for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                    dim.dim_param = f"{'io'[values is model.graph.output]}{number}.{axis}"
    _compare(case, model, source)


def _folded(case: Any) -> None:
    """All tensors that are fed become initializers."""
    source = _model(case)
    compiled = sardonyx.compile(source, threads=1, cache=False)
    for inputs, _ in _data_sets(case, source):
        model = onnx.ModelProto()
        model.CopyFrom(source)
        kept, rest = [], []
        for value, given in zip(source.graph.input, inputs, strict=False):
            if isinstance(given, (np.ndarray, np.generic)) and value.type.HasField("tensor_type"):
                model.graph.initializer.append(numpy_helper.from_array(np.asarray(given), value.name))
            else:
                kept.append(value)
                rest.append(given)
        del model.graph.input[:]
        model.graph.input.extend(kept)
        folded = sardonyx.compile(model, threads=1, cache=False).run(rest)
        for number, (got, want) in enumerate(zip(folded, compiled.run(inputs), strict=True)):
            if not _same_bits(got, want):
                raise _Differs(f"output {number} folded: {got!r:.200} instead of {want!r:.200}")


VARIANTS: dict[str, Callable[[Any], None]] = {"plain": _as_it_is, "symbolic": _symbolic, "folded": _folded}


def outcome(case: Any, variant: str = "plain") -> tuple[str, str]:
    """(outcome, detail) of one test."""
    try:
        VARIANTS[variant](case)
    except sardonyx.CompileError as error:
        return "refused", str(error).splitlines()[0]
    except sardonyx.RuntimeFault as error:
        return "fault", str(error)
    except _Differs as error:
        return "differs", str(error).replace("\n", " ")
    except Exception as error:
        return "error", f"{type(error).__name__} {error} {traceback.extract_tb(error.__traceback__)[-1]}"
    return "pass", ""


def isolated(case: Any, variant: str = "plain") -> tuple[str, str]:
    """The outcome, found in a child process, so that a crash is one outcome among others."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the process has threads: the child starts none of theirs
        child = os.fork()
    if child == 0:
        try:
            os.write(write, "\n".join(outcome(case, variant)).encode(errors="replace")[:60000])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) or not text:
        return "crash", f"signal {os.WTERMSIG(status)}"
    kind, _, detail = text.partition("\n")
    return kind, detail


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--filter", default="", help="a regular expression on the test's name")
    parser.add_argument("--list", action="store_true", help="print each test that does not pass")
    parser.add_argument("--variant", default="plain", choices=VARIANTS, help="how the models are changed")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: collections.Counter[str] = collections.Counter()
    for case in suite():
        if not re.search(options.filter, case.name):
            continue
        kind, detail = isolated(case, options.variant)
        counts[kind] += 1
        if options.list and kind != "pass":
            print(f"{kind}\t{case.name}\t{detail}", flush=True)
    print(", ".join(f"{v} {k}" for k, v in counts.most_common()))
    return 0 if set(counts) <= {"pass"} else 1


if __name__ == "__main__":
    sys.exit(main())
