"""How to compile, for those who look for a fault; the defaults are for everybody else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sardonyx.passes.budget import Budget

__all__ = ["USUAL", "BuildOptions", "Debug"]


@dataclass(frozen=True)
class Debug:
    """Code for debuggers: the folder for texts and library, and whether perf gets a map instead of a library."""

    folder: Path
    perf_map: bool = False


@dataclass(frozen=True)
class BuildOptions:
    """Options of a compilation.

    ``passes``: a pipeline's text in place of the usual passes up to `fuse` (see `parse_passes`); ``verify_each``:
    check the module between passes; ``opt_limit``: how many optimisation steps may be taken (see
    ``passes/budget.py``), which ``budget`` counts; ``reproducer``: the file to write if a pass fails (default:
    one in the cache's folder); ``debug``: make debug information (see ``debugging.py``).
    """

    passes: str | None = None
    verify_each: bool = False
    opt_limit: int | None = None
    reproducer: str | None = None
    debug: Debug | None = None
    budget: Budget | None = field(default=None, compare=False)


USUAL = BuildOptions()
