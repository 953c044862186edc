"""A profile beside a model."""

from __future__ import annotations

from typing import Any

import pytest

from sardonyx.explore import ForeignProfile, check_profile, explore

from .conftest import floor_ge, layers, profile_of


def test_times_of_kernels_and_nodes() -> None:
    profile = profile_of(explore(layers(1)))
    found = explore(layers(1), profile=profile)
    assert [k["time"]["seconds"] for k in found.main["kernels"] if k["launches"]] == [
        k["seconds"] for k in profile["kernels"]
    ]
    seconds = dict(zip((n["name"] for n in found.main["nodes"]), found.main["times"]["nodes"], strict=True))
    assert seconds["x"] is None
    for row in profile["nodes"]:
        assert seconds[row["name"]] == row["seconds"]


def test_a_profile_of_another_model() -> None:
    profile = profile_of(explore(layers(1)))
    with pytest.raises(ForeignProfile, match="another model"):
        explore(floor_ge(), profile=profile)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "trace"}, "no profile"),
        ({"version": 2}, "no profile"),
        ({"kernels": {}}, "kernels should be"),
        ({"nodes": [{"name": "a"}]}, "nodes should be"),
        ({"seconds": "1"}, "how many seconds"),
    ],
)
def test_what_is_no_profile(change: dict[str, Any], message: str) -> None:
    profile = profile_of(explore(floor_ge()))
    assert check_profile(profile) is profile
    with pytest.raises(ValueError, match=message):
        check_profile({**profile, **change})
    with pytest.raises(ValueError, match="no profile"):
        check_profile([])
