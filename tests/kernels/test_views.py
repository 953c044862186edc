"""Affine views: offset and strides read the elements that the movement means."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from sardonyx.core.builder import Builder
from sardonyx.core.interpret import interpret
from sardonyx.ir.graph import Block, Function, Value
from sardonyx.ir.types import TensorType
from sardonyx.kernels.views import view_of
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import symbol


def random_movement(b: Builder, x: Value, chance: random.Random) -> Value:
    """One transpose, broadcast, slice or reshape, whatever fits."""
    shape = x.type.shape
    kind = chance.choice(["transpose", "slice", "split", "merge", "unit", "broadcast"])
    if kind == "transpose":
        return b.transpose(x, chance.sample(range(len(shape)), len(shape)))
    if kind == "slice":
        starts = tuple(chance.randrange(d) for d in shape)
        steps = tuple(chance.choice([1, 2]) for _ in shape)
        sizes = tuple(max(1, (d - s) // t) for d, s, t in zip(shape, starts, steps, strict=True))
        return b.op("core.slice", x, starts=starts, sizes=sizes, steps=steps)
    axis = chance.randrange(len(shape))
    if kind == "split" and shape[axis] % 2 == 0 and len(shape) < 6:
        return b.reshape(x, [*shape[:axis], 2, shape[axis] // 2, *shape[axis + 1 :]])
    if kind == "merge" and axis + 1 < len(shape):
        return b.reshape(x, [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]])
    if kind == "broadcast" and shape[axis] == 1:
        return b.broadcast_to(x, (*shape[:axis], 3, *shape[axis + 1 :]))
    return b.reshape(x, [*shape[:axis], 1, *shape[axis:]]) if len(shape) < 6 else x


@pytest.mark.parametrize("seed", range(150))
def test_view_reads_what_movement_means(seed: int) -> None:
    chance = random.Random(seed)
    body = Block()
    shape = tuple(chance.choice([1, 2, 3, 4, 6]) for _ in range(chance.randint(1, 4)))
    x = body.add_argument(TensorType(dtypes.i64, shape), "x")
    b = Builder(body)
    value = x
    for _ in range(chance.randint(1, 5)):
        value = random_movement(b, value, chance)
    view = view_of(value)
    b.emit("core.return", [value, view.root], (), {})
    array = np.arange(math.prod(shape)).reshape(shape)
    want, root = interpret(Function("main", body), [array])
    flat = np.ascontiguousarray(root).reshape(-1)
    got = np.empty(want.shape, np.int64)
    for index in np.ndindex(*want.shape):
        place = view.offset + sum(i * s for i, s in zip(index, view.strides, strict=True))
        got[index] = flat[place]
    assert (got == want).all()


def test_symbolic_strides() -> None:
    """Heads split off a matrix of symbolic rows: a view of the matrix."""
    n, s = symbol("n"), symbol("s")
    body = Block()
    x = body.add_argument(TensorType(dtypes.f32, (n * s, 384)), "x")
    b = Builder(body)
    heads = b.transpose(b.reshape(x, (n, s, 12, 32)), (0, 2, 3, 1))
    view = view_of(heads)
    assert view.root is x and view.offset == 0
    assert view.strides == (s * 384, 32, 1, 384)


def test_what_is_no_view_stops_it() -> None:
    body = Block()
    x = body.add_argument(TensorType(dtypes.f32, (4, 6)), "x")
    b = Builder(body)
    turned = b.transpose(x, (1, 0))
    flat = b.reshape(turned, (24,))
    assert view_of(flat).root is flat
