"""Runs ONNX's standard backend tests through the compiler and counts what passes.

    python tools/run_suite.py                     every node test, a summary by outcome
    python tools/run_suite.py --filter softmax    only tests whose name matches
    python tools/run_suite.py --list              a line per test that does not pass

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
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

import sardonyx

__all__ = ["outcome"]


def plain(value: Any) -> Any:
    """A suite's input or output as arrays: some are given as protobuf messages."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return [plain(v) for v in value] if isinstance(value, list) else value


def differs(got: Any, want: Any, rtol: float, atol: float) -> str:
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"{type(got).__name__} instead of a sequence of {len(want)}"
        return next((t for t in (differs(g, w, rtol, atol) for g, w in zip(got, want, strict=True)) if t), "")
    want, got = np.asarray(want), np.asarray(got)
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if want.dtype == object:
        return "" if got.tolist() == want.tolist() else "strings differ"
    a, b = (x if x.dtype.kind in "iub" else x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (got, want))
    close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    return "" if close.all() else f"{int((~close).sum())} of {close.size} values, first {got[~close][:3]} instead of {want[~close][:3]}"


def outcome(case: Any) -> tuple[str, str]:
    """(outcome, detail) of one test."""
    try:
        model = sardonyx.compile(case.model, threads=1)
    except sardonyx.CompileError as error:
        return "refused", str(error).splitlines()[0]
    except Exception as error:
        return "error", f"{type(error).__name__} {error} {traceback.extract_tb(error.__traceback__)[-1]}"
    try:
        for inputs, outputs in case.data_sets:
            results = model.run([plain(i) for i in inputs])
            for got, want in zip(results, outputs, strict=True):
                text = differs(got, plain(want), case.rtol, case.atol)
                if text:
                    return "differs", text
    except sardonyx.RuntimeFault as error:
        return "fault", str(error)
    except Exception as error:
        return "error", f"{type(error).__name__} {error} {traceback.extract_tb(error.__traceback__)[-1]}"
    return "pass", ""


def isolated(case: Any) -> tuple[str, str]:
    """The outcome, found in a child process, so that a crash is one outcome among others."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, "\n".join(outcome(case)).encode(errors="replace")[:60000])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) or not text:
        return "crash", f"signal {os.WTERMSIG(status)}"
    kind, _, detail = text.partition("\n")
    return kind, detail


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="a regular expression on the test's name")
    parser.add_argument("--list", action="store_true", help="print each test that does not pass")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: collections.Counter[str] = collections.Counter()
    for case in collect_testcases(None):
        if not re.search(options.filter, case.name):
            continue
        kind, detail = isolated(case)
        counts[kind] += 1
        if options.list and kind != "pass":
            print(f"{kind}\t{case.name}\t{detail}", flush=True)
    print(", ".join(f"{v} {k}" for k, v in counts.most_common()))
    return 0 if set(counts) <= {"pass"} else 1


if __name__ == "__main__":
    sys.exit(main())
