"""Reproducers: a file with all it takes to see a pass fail again.

The file is IR text: the module as it was before the pass, its constants included, and comment lines in front
that name the passes to run, the versions, the machine and the command.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import llvmlite
import numpy as np

from sardonyx import cache
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Module
from sardonyx.ir.printer import print_module
from sardonyx.kernels.target import Target
from sardonyx.pass_manager import Pass, PassFailure, Step, passes_text, run_steps
from sardonyx.passes.budget import limited
from sardonyx.passes.schedule import Schedule
from sardonyx.targets.host import llvm_version
from sardonyx_runtime.version import __version__

__all__ = ["Reproducer", "read", "text_of", "write_for"]

_TITLE = "// Sardonyx reproducer"


@dataclass(frozen=True)
class Reproducer:
    """What a file says: the passes to run, how the pass failed, and the module's text."""

    passes: str
    failure: str
    text: str


def write_for(
    failure: PassFailure,
    make: Callable[[], Module],
    steps: Sequence[Step],
    target: Target,
    path: str | None,
    opt_limit: int | None = None,
) -> PassFailure:
    """The failure with a reproducer written and named.

    The steps before the one that failed are run again on a fresh module: only a failure pays for this.  If
    that does not work either (a full disk, a module that is made otherwise each time), the failure says so.
    """
    try:
        before, rest = steps[: failure.number], steps[failure.number :]
        module = make()
        with limited(opt_limit):
            run_steps(module, [Step(_quiet(s.run)) for s in before])
        if failure.label == "codegen":  # found while scheduling, or behind the last step
            passes = "schedule,plan-memory,codegen" if rest else "codegen"
        else:
            passes = passes_text([s.run for s in rest[:1]])
        text = text_of(module, passes, failure, target)
        place = Path(path) if path else _default_place(text)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    except (OSError, CompileError, ValueError) as error:
        failure.add_note(f"no reproducer could be written: {error}")
        return failure
    hint = f"{failure.hint}\n  " if failure.hint else ""
    hint += f"a reproducer was written; replay it with: sardonyx opt --reproduce {place}"
    named = PassFailure(failure.label, failure.number, failure.reason, failure.location, hint)
    named.reproducer = str(place)
    return named


def _quiet(run: Pass) -> Pass:
    """A schedule that tells nobody of its kernels."""
    return Schedule(run.target) if isinstance(run, Schedule) else run


def _default_place(text: str) -> Path:
    folder = cache.folder()
    root = (
        folder / "reproducers" if folder is not None else Path(tempfile.gettempdir(), "sardonyx-reproducers")
    )
    return root / f"{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}.mlir"


def text_of(module: Module, passes: str, failure: BaseException, target: Target) -> str:
    """The file's text."""
    cause = failure.__cause__ or failure
    trace = "".join(traceback.format_exception(cause)).rstrip().splitlines()
    head = {
        "passes": passes,
        "failure": str(failure).splitlines()[0],
        "command": " ".join(sys.argv),
        "versions": f"sardonyx {__version__}, llvmlite {llvmlite.__version__}, LLVM {'.'.join(map(str, llvm_version()))}, "
        f"numpy {np.__version__}, onnx {version('onnx')}, Python {platform.python_version()}",
        "machine": f"{target.triple} {target.cpu} {' '.join(target.features)}",
    }
    lines = [_TITLE, *(f"// {key}: {value}" for key, value in head.items())]
    lines += [f"//   {line}" for line in trace]
    return "\n".join(lines) + "\n\n" + print_module(module, elide=16, resources=True)


def read(text: str) -> Reproducer:
    """What a reproducer says; CompileError if the text is none."""
    head = dict(re.findall(r"^// (\w+): (.*)$", text, re.MULTILINE))
    if not text.startswith(_TITLE) or "passes" not in head:
        raise CompileError(
            "the file is no reproducer: it does not begin with its passes",
            hint=f"the first lines of one are: {_TITLE} / // passes: ...; use --passes to run other IR",
        )
    return Reproducer(head["passes"], head.get("failure", ""), text)
