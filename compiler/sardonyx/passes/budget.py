"""The budget of optimisation steps: what a search for the rewrite at fault turns off, one by one.

Every optional rewrite asks `allowed` before it is done.  Without a budget the answer is yes.  With one, the
steps are counted through all passes; after the limit the answer is no, and the module stays as it is,
correct but slower.  The same model asks in the same order each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sardonyx.ir.graph import Op

__all__ = ["Budget", "allowed", "limited"]


@dataclass
class Budget:
    """``limit`` steps may be taken (None: all, and they are counted); ``last`` says which was the last."""

    limit: int | None = None
    asked: int = 0
    last: str = ""

    @property
    def taken(self) -> int:
        return self.asked if self.limit is None else min(self.asked, self.limit)


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(limit: int | None) -> Iterator[Budget]:
    """Passes inside have this budget."""
    budget = Budget(limit)
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)


def allowed(pass_name: str, what: str, op: Op) -> bool:
    """Whether a pass may rewrite an op; ``what`` names the rewrite, for the report."""
    budget = _current.get()
    if budget is None:
        return True
    budget.asked += 1
    if budget.limit is not None and budget.asked > budget.limit:
        return False
    budget.last = f"{pass_name}: {what}: {op.name} of {op.location.names}"
    return True
