"""How to compile, for those who look for a fault; the defaults are for everybody else."""

from __future__ import annotations

from dataclasses import dataclass, field

from sardonyx.passes.budget import Budget

__all__ = ["USUAL", "BuildOptions"]


@dataclass(frozen=True)
class BuildOptions:
    """Options of a compilation.

    ``passes``: a pipeline's text in place of the usual passes up to `fuse` (see `parse_passes`); ``verify_each``:
    check the module between passes; ``opt_limit``: how many optimisation steps may be taken (see
    ``passes/budget.py``), which ``budget`` counts; ``reproducer``: the file to write if a pass fails (default:
    one in the cache's folder).
    """

    passes: str | None = None
    verify_each: bool = False
    opt_limit: int | None = None
    reproducer: str | None = None
    budget: Budget | None = field(default=None, compare=False)


USUAL = BuildOptions()
