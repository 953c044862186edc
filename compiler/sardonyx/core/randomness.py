"""Random numbers: a function of an index and a key, what makes runs differ, and NumPy's old stream.

The generator is Philox4x32 with ten rounds (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel
random numbers: as easy as 1, 2, 3", SC 2011): it has no state, so elements are computed in any order, by any
number of threads, and equal indices and keys give equal numbers everywhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.ir.declare import TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime import dtypes

__all__ = ["MULTIPLIERS", "ROUNDS", "WEYL", "philox"]

Array = np.ndarray[Any, Any]

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)  # what the two words of the key grow by from round to round
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(attributes: Mapping[str, Any], index: Array, key: Array) -> Array:
    """The first 64 of the 128 bits for the counter (index, 0) under a 64-bit key."""
    c = [index & _LOW, index >> _HALF, np.zeros_like(index), np.zeros_like(index)]
    k = [key & _LOW, key >> _HALF]
    for _ in range(ROUNDS):
        first, second = c[0] * np.uint64(MULTIPLIERS[0]), c[2] * np.uint64(MULTIPLIERS[1])
        c = [(second >> _HALF) ^ c[1] ^ k[0], second & _LOW, (first >> _HALF) ^ c[3] ^ k[1], first & _LOW]
        k = [(word + np.uint64(step)) & _LOW for word, step in zip(k, WEYL, strict=True)]
    return np.asarray(c[0] | (c[1] << _HALF))


def _entropy_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """A single ui64."""
    return [TensorType(dtypes.u64, ())]


declare(
    "core.entropy",
    "",
    "number",
    infer=_entropy_rule,
    evaluate=lambda attributes: np.array(secrets.randbits(64), np.uint64),
    doc="a key that differs from run to run, and by its `number` within a run",
    example="%key = core.entropy {number = 0} : () -> tensor<ui64>",
)


def _twister_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """f64, the attribute `shape`."""
    if not 0 <= attributes["seed"] < 1 << 32:
        raise TypeRuleError(f"mersenne_twister: the seed {attributes['seed']} is not within 0 to 2^32 - 1")
    return [TensorType(dtypes.f64, tuple(attributes["shape"]))]


declare(
    "core.mersenne_twister",
    "",
    "seed shape",
    infer=_twister_rule,
    evaluate=lambda attributes: np.asarray(
        np.random.RandomState(attributes["seed"]).random_sample(tuple(attributes["shape"]))
    ),
    doc="numbers from 0 to below 1 as `numpy.random.RandomState(seed).random_sample(shape)` gives them (MT19937)",
    example="%y = core.mersenne_twister {seed = 1, shape = [4]} : () -> tensor<4xf64>",
)
