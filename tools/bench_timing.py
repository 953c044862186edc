"""Times two functions in turn, so that both see the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["medians"]


def medians(
    first: Callable[[], Any], second: Callable[[], Any], budget: float, grain: float = 1e-4
) -> tuple[float, float]:
    """Median seconds of both within about ``budget`` seconds; calls shorter than ``grain`` are timed in a row."""
    for fn in (first, second, first, second):
        fn()
    start = time.perf_counter()
    first()
    second()
    once = max(time.perf_counter() - start, 1e-7)
    inner = max(1, int(grain / once))
    rounds = max(7, min(400, int(budget / (once * inner))))
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for fn, into in zip((first, second), times, strict=True):
            start = time.perf_counter()
            for _ in range(inner):
                fn()
            into.append((time.perf_counter() - start) / inner)
    return float(np.median(times[0])), float(np.median(times[1]))
