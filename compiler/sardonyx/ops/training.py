"""Optimisers of ai.onnx.preview.training: one step for any number of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.broadcasting import same_shape
from sardonyx.ops.registry import onnx_op

__all__: list[str] = []

_DOMAIN = "ai.onnx.preview.training"


def _split(b: Builder, tensors: Sequence[Value], parts: int) -> list[list[Value]]:
    """The tensors of each kind (all X, then all G ...) regrouped one optimised tensor at a time, equal in shape."""
    if len(tensors) % parts:
        raise CompileError(f"{len(tensors)} tensors are not {parts} for each optimised one")
    count = len(tensors) // parts
    return [same_shape(b, *(tensors[k * count + i] for k in range(parts))) for i in range(count)]


def _joined(results: Sequence[tuple[Value, ...]]) -> tuple[Value, ...]:
    return tuple(value for kind in zip(*results, strict=True) for value in kind)


def _times(b: Builder, x: Value, factor: float) -> Value:
    return b.mul(x, b.full(factor, x))


def _spread(b: Builder, scalar: Value, like: Value) -> Value:
    return b.broadcast_to(b.reshape(b.convert(scalar, like.type.dtype), ()), like.type.shape)


def _regularised(b: Builder, x: Value, g: Value, coefficient: float) -> Value:
    return b.add(_times(b, x, coefficient), g)


@onnx_op("Adagrad", domain=_DOMAIN)
def adagrad(
    b: Builder,
    rate: Value,
    step: Value,
    *tensors: Value,
    decay_factor: float = 0.0,
    epsilon: float = 0.0,
    norm_coefficient: float = 0.0,
) -> tuple[Value, ...]:
    results = []
    for x, g, h in _split(b, tensors, 3):
        decay = b.add(b.full(1, x), _times(b, _spread(b, step, x), decay_factor))
        r = b.div(_spread(b, rate, x), decay)
        gradient = _regularised(b, x, g, norm_coefficient)
        squares = b.add(h, b.mul(gradient, gradient))
        adaptive = b.add(b.sqrt(squares), b.full(epsilon, x))
        results.append((b.sub(x, b.div(b.mul(r, gradient), adaptive)), squares))
    return _joined(results)


@onnx_op("Adam", domain=_DOMAIN)
def adam(
    b: Builder,
    rate: Value,
    step: Value,
    *tensors: Value,
    alpha: float,
    beta: float,
    epsilon: float,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Value, ...]:
    results = []
    for x, g, v, h in _split(b, tensors, 4):
        t = _spread(b, step, x)
        one = b.full(1, x)
        correction = b.div(
            b.sqrt(b.sub(one, b.pow(b.full(beta, x), t))), b.sub(one, b.pow(b.full(alpha, x), t))
        )
        started = b.gt(t, b.full(0, t))
        plain = _spread(b, rate, x)
        r = b.select(started, b.mul(plain, correction), plain)
        gradient = _regularised(b, x, g, norm_coefficient)
        momentum = b.add(_times(b, v, alpha), _times(b, gradient, 1 - alpha))
        squares = b.add(_times(b, h, beta), _times(b, b.mul(gradient, gradient), 1 - beta))
        root = b.add(b.sqrt(squares), b.full(epsilon, x))
        moved = b.sub(x, b.div(b.mul(r, momentum), root))
        results.append((_times(b, moved, 1 - norm_coefficient_post), momentum, squares))
    return _joined(results)


@onnx_op("Momentum", domain=_DOMAIN)
def momentum(
    b: Builder,
    rate: Value,
    step: Value,
    *tensors: Value,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> tuple[Value, ...]:
    moves: dict[str, Callable[[Value, Value], Value]] = {
        "standard": lambda gradient, v: v,
        "nesterov": lambda gradient, v: b.add(gradient, _times(b, v, alpha)),
    }
    if mode not in moves:
        raise CompileError(f"the mode {mode!r} of Momentum is neither standard nor nesterov")
    results = []
    for x, g, v in _split(b, tensors, 3):
        gradient = _regularised(b, x, g, norm_coefficient)
        t = _spread(b, step, x)
        weight = b.select(b.gt(t, b.full(0, t)), b.full(beta, x), b.full(1, x))
        following = b.add(_times(b, v, alpha), b.mul(weight, gradient))
        results.append((b.sub(x, b.mul(_spread(b, rate, x), moves[mode](gradient, following))), following))
    return _joined(results)
