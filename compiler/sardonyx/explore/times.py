"""A profile's times for the kernels and the nodes of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.explore.graph import Graph

__all__ = ["ForeignProfile", "check_profile", "times_data"]

_FORMAT = ("sardonyx-profile", 1)
_FIGURES = ("seconds", "share", "share_of_peak", "bound")


class ForeignProfile(ValueError):
    """A profile that is not of this model."""


def check_profile(profile: Any) -> Mapping[str, Any]:
    """The profile, if it is what `sardonyx profile --json` writes; else ValueError."""
    if not isinstance(profile, dict) or (profile.get("format"), profile.get("version")) != _FORMAT:
        name, version = _FORMAT
        raise ValueError(f"this is no profile: it should say format {name!r}, version {version}")
    for key in ("kernels", "nodes"):
        rows = profile.get(key)
        if not isinstance(rows, list) or not all(isinstance(row, dict) and _is_time(row) for row in rows):
            raise ValueError(f"the profile's {key} should be a list of objects with seconds")
    if not _is_time(profile):
        raise ValueError("the profile does not say how many seconds a run takes")
    return profile


def _is_time(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("seconds"), (int, float)) and row["seconds"] >= 0


def times_data(profile: Mapping[str, Any], kernels: Sequence[dict[str, Any]], graph: Graph) -> dict[str, Any]:
    """The seconds of a run, of each node (None: not measured), and put at each kernel its figures.

    ForeignProfile if the profile knows no kernel of this model.
    """
    figures = {row.get("kernel"): row for row in profile["kernels"]}
    measured = [kernel for kernel in kernels if kernel["symbol"] in figures]
    if kernels and not measured:
        raise ForeignProfile(
            "the profile is of another model, or of another machine: it knows none of the kernels"
        )
    for kernel in measured:
        row = figures[kernel["symbol"]]
        kernel["time"] = {key: row.get(key) for key in _FIGURES}
    seconds: list[float | None] = [None] * len(graph.nodes)
    for row in profile["nodes"]:
        number = graph.numbers.get((row.get("path", ""), row.get("name", "")))
        if number is not None:
            seconds[number] = row["seconds"]
    return {
        "seconds": profile["seconds"],
        "runs": profile.get("runs"),
        "threads": profile.get("threads"),
        "nodes": seconds,
    }
