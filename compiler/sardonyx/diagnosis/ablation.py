"""Finds the pass, and then the rewrite, that makes a result wrong.

A pass is innocent if the result stays wrong without it.  Where leaving one out cures the result, the
optimisation steps are bisected: the first step with which the result is wrong is the one to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.build_options import BuildOptions
from sardonyx.errors import CompileError, RuntimeFault
from sardonyx.model import CompiledModel, compile_with
from sardonyx.pass_manager import Pass, passes_text
from sardonyx.passes.budget import Budget
from sardonyx.passes.fuse import Fuse
from sardonyx.pipeline import pipeline, steps_of
from sardonyx.targets.host import host_target

__all__ = ["Ablation", "Trial", "ablate", "bisect_steps", "usual_passes"]

Judge = Callable[[CompiledModel], bool]  # runs a model; whether its results are right


@dataclass(frozen=True)
class Trial:
    """What came of leaving a pass out: ``verdict`` is ``cured``, ``still wrong`` or an error's text."""

    removed: str
    passes: str
    verdict: str


@dataclass(frozen=True)
class Ablation:
    """``trials`` in the order of the passes; ``step`` is the number of the first wrong step, ``rewrite`` its text."""

    trials: tuple[Trial, ...]
    step: int | None = None
    rewrite: str = ""


def usual_passes() -> str:
    """The usual pipeline up to the groups, as text."""
    steps = pipeline(host_target())
    return passes_text([s.run for s in steps if s.run.name not in ("schedule", "plan-memory")])


def ablate(
    model: Any,
    judge: Judge,
    *,
    passes: str | None = None,
    progress: Callable[[str], None] = lambda what: None,
    **options: Any,
) -> Ablation:
    """Leave out one pass after the other, then bisect the steps if one of them is at fault.

    ``judge`` runs a compiled model and says whether its results are right; ``passes`` is the pipeline (default:
    the usual one).  ``options`` go to `compile`.
    """
    text = passes or usual_passes()
    steps = [s.run for s in steps_of(text, host_target())]
    trials = []
    for number, one in enumerate(steps):
        without = _without(steps, number)
        if without is None:
            continue
        progress(f"without {one.name}")
        trials.append(Trial(one.name, without, _verdict(model, judge, without, options)))
    if not any(t.verdict == "cured" for t in trials):
        return Ablation(tuple(trials))
    step, rewrite = bisect_steps(model, judge, passes=passes, progress=progress, **options)
    return Ablation(tuple(trials), step, rewrite)


def _without(steps: Sequence[Pass], number: int) -> str | None:
    """The pipeline without a pass; grouping cannot be left out, but groups can have one op each."""
    one = steps[number]
    if one.name in ("lower", "schedule", "plan-memory") or one == Fuse(1):
        return None
    others: list[Pass] = list(steps)
    others[number : number + 1] = [Fuse(1)] if isinstance(one, Fuse) else []
    return passes_text(others)


def _verdict(model: Any, judge: Judge, passes: str, options: dict[str, Any]) -> str:
    try:
        right = judge(compile_with(BuildOptions(passes), model, **options))
    except (CompileError, RuntimeFault) as error:
        return f"failed: {str(error).splitlines()[0]}"
    return "cured" if right else "still wrong"


def bisect_steps(
    model: Any,
    judge: Judge,
    *,
    passes: str | None = None,
    progress: Callable[[str], None] = lambda what: None,
    **options: Any,
) -> tuple[int | None, str]:
    """The number of the first optimisation step with which the result is wrong, and what it does.

    (None, "") if the result is wrong without any step, or right with all of them.
    """

    def right(limit: int | None, budget: Budget) -> bool:
        progress(f"with {'all' if limit is None else limit} steps")
        return judge(compile_with(BuildOptions(passes, opt_limit=limit, budget=budget), model, **options))

    count = Budget()
    if right(None, count) or not right(0, Budget()):
        return None, ""
    low, high = 0, count.asked  # right with low steps, wrong with high
    while high - low > 1:
        middle = (low + high) // 2
        if right(middle, Budget()):
            low = middle
        else:
            high = middle
    last = Budget()
    right(high, last)
    return high, last.last
