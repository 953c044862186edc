"""RNN, GRU and LSTM as the operators' texts give them: loops over directions, entries and steps, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..helpers import Array

__all__ = ["ACTIVATIONS", "GATES", "Activation", "network"]

Activation = Callable[[Array], Array]


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


# name -> function of x, alpha, beta
ACTIVATIONS: dict[str, Callable[[Array, float, float], Array]] = {
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "Tanh": lambda x, a, b: np.tanh(x),
    "Sigmoid": lambda x, a, b: sigmoid(x),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: np.where(x >= 0, x, a * x),
    "ThresholdedRelu": lambda x, a, b: np.where(x > a, x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "Elu": lambda x, a, b: np.where(x >= 0, x, a * (np.exp(x) - 1)),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Softplus": lambda x, a, b: np.log(1 + np.exp(x)),
}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _default(kind: str) -> list[Activation]:
    names = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}[kind]
    return [lambda x, f=ACTIVATIONS[name]: f(x, 0, 0) for name in names]  # type: ignore[misc]


def network(
    kind: str,
    x: Array,
    w: Array,
    r: Array,
    bias: Array | None = None,
    lengths: Array | None = None,
    h: Array | None = None,
    c: Array | None = None,
    peepholes: Array | None = None,
    *,
    direction: str = "forward",
    layout: int = 0,
    clip: float | None = None,
    functions: Sequence[Activation] | None = None,
    input_forget: int = 0,
    linear_before_reset: int = 0,
) -> list[Array]:
    """Y, Y_h and (LSTM) Y_c.  ``functions`` are those of all directions, one after another."""
    x, w, r = (np.asarray(v, np.float64) for v in (x, w, r))
    if layout:
        x = x.swapaxes(0, 1)
        h, c = (v if v is None else v.swapaxes(0, 1) for v in (h, c))
    steps, batch, _ = x.shape
    directions, hidden = w.shape[0], r.shape[-1]
    gates = GATES[kind]
    bias = np.zeros((directions, 2 * gates * hidden)) if bias is None else np.asarray(bias, np.float64)
    peepholes = np.zeros((directions, 3 * hidden)) if peepholes is None else np.asarray(peepholes, np.float64)
    h, c = (np.zeros((directions, batch, hidden)) if v is None else np.array(v, np.float64) for v in (h, c))
    functions = functions or _default(kind) * directions
    size = len(functions) // directions

    def bounded(v: Array) -> Array:
        return v if clip is None else np.clip(v, -clip, clip)

    y = np.zeros((steps, directions, batch, hidden))
    for d in range(directions):
        own = functions[d * size : (d + 1) * size]
        # As in onnxruntime, the cell state is not clipped on its way to the output.
        f = [(lambda v, g=g: g(bounded(v))) if n < 2 else g for n, g in enumerate(own)]  # type: ignore[misc]
        wb, rb = np.split(bias[d], 2)
        backward = direction == "reverse" or d == 1
        for entry in range(batch):
            length = steps if lengths is None else int(lengths[entry])
            for t in range(length)[::-1] if backward else range(length):
                before = h[d, entry], c[d, entry]
                parts: Any = [np.split(v, gates) for v in (w[d] @ x[t, entry], r[d] @ before[0], wb, rb)]
                h[d, entry], c[d, entry] = _STEPS[kind](
                    f, *before, *parts, r[d], np.split(peepholes[d], 3), input_forget, linear_before_reset
                )
                y[t, d, entry] = h[d, entry]
    if layout:
        y, h, c = y.transpose(2, 0, 1, 3), h.swapaxes(0, 1), c.swapaxes(0, 1)
    return [y, h, c] if kind == "LSTM" else [y, h]


def _rnn(f: Any, h: Array, c: Array, xw: Any, hr: Any, wb: Any, rb: Any, *_: Any) -> tuple[Array, Array]:
    return f[0](xw[0] + hr[0] + wb[0] + rb[0]), c


def _gru(
    f: Any, h: Array, c: Array, xw: Any, hr: Any, wb: Any, rb: Any, r: Array, _p: Any, _i: int, linear: int
) -> tuple[Array, Array]:
    z = f[0](xw[0] + hr[0] + wb[0] + rb[0])
    reset = f[0](xw[1] + hr[1] + wb[1] + rb[1])
    if linear:
        candidate = f[1](xw[2] + wb[2] + reset * (hr[2] + rb[2]))
    else:
        candidate = f[1](xw[2] + wb[2] + np.split(r, 3)[2] @ (reset * h) + rb[2])
    return (1 - z) * candidate + z * h, c


def _lstm(
    f: Any, h: Array, c: Array, xw: Any, hr: Any, wb: Any, rb: Any, r: Array, p: Any, coupled: int, _l: int
) -> tuple[Array, Array]:
    i, o, forget, candidate = (a + b + s + t for a, b, s, t in zip(xw, hr, wb, rb, strict=True))
    i = f[0](i + p[0] * c)
    forget = 1 - i if coupled else f[0](forget + p[2] * c)
    cell = forget * c + i * f[1](candidate)
    return f[0](o + p[1] * cell) * f[2](cell), cell


_STEPS: dict[str, Callable[..., tuple[Array, Array]]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
