"""Recurrent networks: RNN, GRU and LSTM.

The products with the inputs are one contraction for all steps; what depends on the step before is a
loop (`core.loop`) whose body holds the recurrent product and the gates.  float16 and bfloat16 compute
in float32 and round the outputs.  A step beyond a batch entry's length leaves its state as it is and
gives 0, so a reverse pass starts at the last valid step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.core.builder import Builder
from sardonyx.core.control_builder import LoopBody, build_loop
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ops.control_flow import reversed_along, same_dim, slice_at
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import DimLike

__all__: list[str] = []

Activation = Callable[[Builder, Value], Value]


def _scaled(b: Builder, x: Value, factor: float) -> Value:
    return b.mul(x, b.full(factor, x))


def _affine(b: Builder, x: Value, alpha: float, beta: float) -> Value:
    return b.add(_scaled(b, x, alpha), b.full(beta, x))


def _select_below(b: Builder, x: Value, bound: float, low: Value, high: Value) -> Value:
    return b.select(b.lt(x, b.full(bound, x)), low, high)


# name -> (default alpha, default beta, function)
_ACTIVATIONS: dict[str, tuple[float, float, Callable[[Builder, Value, float, float], Value]]] = {
    "relu": (0.0, 0.0, lambda b, x, p, q: b.max(x, b.full(0, x))),
    "tanh": (0.0, 0.0, lambda b, x, p, q: b.tanh(x)),
    "sigmoid": (0.0, 0.0, lambda b, x, p, q: b.sigmoid(x)),
    "affine": (1.0, 0.0, _affine),
    "leakyrelu": (0.01, 0.0, lambda b, x, p, q: _select_below(b, x, 0, _scaled(b, x, p), x)),
    "thresholdedrelu": (1.0, 0.0, lambda b, x, p, q: b.select(b.le(x, b.full(p, x)), b.full(0, x), x)),
    "scaledtanh": (1.0, 1.0, lambda b, x, p, q: _scaled(b, b.tanh(_scaled(b, x, q)), p)),
    "hardsigmoid": (
        0.2,
        0.5,
        lambda b, x, p, q: b.min(b.max(_affine(b, x, p, q), b.full(0, x)), b.full(1, x)),
    ),
    "elu": (1.0, 0.0, lambda b, x, p, q: _select_below(b, x, 0, _scaled(b, b.expm1(x), p), x)),
    "softsign": (0.0, 0.0, lambda b, x, p, q: b.div(x, b.add(b.abs(x), b.full(1, x)))),
    "softplus": (0.0, 0.0, lambda b, x, p, q: b.softplus(x)),
}


def _activations(
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    defaults: Sequence[str],
    directions: int,
) -> list[list[Activation]]:
    """Per direction the functions of its gates; alpha and beta are taken in order by those that use them."""
    chosen = list(names) if names else list(defaults) * directions
    if len(chosen) != len(defaults) * directions:
        raise CompileError(
            f"{len(chosen)} activations; {len(defaults)} for each of {directions} directions are needed"
        )
    alpha, beta = iter(alphas or ()), iter(betas or ())
    made: list[Activation] = []
    for name in chosen:
        entry = _ACTIVATIONS.get(name.lower())
        if entry is None:
            raise CompileError(
                f"there is no activation {name!r}; known are {', '.join(sorted(_ACTIVATIONS))}"
            )
        p, q, function = entry
        key = name.lower()
        if key in ("affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"):
            p = next(alpha, p)
        if key in ("affine", "scaledtanh", "hardsigmoid"):
            q = next(beta, q)
        made.append(lambda b, x, f=function, p=p, q=q: f(b, x, p, q))  # type: ignore[misc]
    size = len(defaults)
    return [made[i * size : (i + 1) * size] for i in range(directions)]


@dataclass
class _Cell:
    """One direction: its weights, and what a step makes of the state."""

    hidden: int
    activations: Sequence[Activation]
    clip: float | None
    recurrent: Value  # (hidden, gates * hidden)

    def gate(self, b: Builder, x: Value, number: int) -> Value:
        """One gate's columns."""
        rows = x.type.shape[0]
        starts, sizes = (0, number * self.hidden), (rows, self.hidden)
        return b.op("core.slice", x, starts=starts, sizes=sizes, steps=(1, 1))

    def clipped(self, b: Builder, x: Value) -> Value:
        if not self.clip:
            return x
        return b.max(b.min(x, b.full(self.clip, x)), b.full(-self.clip, x))

    def activate(self, b: Builder, number: int, x: Value) -> Value:
        return self.activations[number](b, self.clipped(b, x))

    def product(self, b: Builder, h: Value) -> Value:
        return b.op("core.contract", h, self.recurrent)

    def step(self, b: Builder, x: Value, state: Sequence[Value]) -> list[Value]:
        raise NotImplementedError


class _RnnCell(_Cell):
    """h = f(x W + h R + bias)"""

    def step(self, b: Builder, x: Value, state: Sequence[Value]) -> list[Value]:
        return [self.activate(b, 0, b.add(x, self.product(b, state[0])))]


@dataclass
class _GruCell(_Cell):
    """Update and reset gates z, r, then the candidate; ``reset_bias`` where the reset comes after the product."""

    reset_bias: Value | None = None
    linear_before_reset: bool = False

    def step(self, b: Builder, x: Value, state: Sequence[Value]) -> list[Value]:
        (h,) = state
        if self.linear_before_reset:
            product = self.product(b, h)
            z = self.activate(b, 0, b.add(self.gate(b, x, 0), self.gate(b, product, 0)))
            r = self.activate(b, 0, b.add(self.gate(b, x, 1), self.gate(b, product, 1)))
            inner = self.gate(b, product, 2)
            if self.reset_bias is not None:
                inner = b.add(*b.broadcast(inner, self.reset_bias))
            candidate = self.activate(b, 1, b.add(self.gate(b, x, 2), b.mul(r, inner)))
        else:
            two = b.op(
                "core.slice",
                self.recurrent,
                starts=(0, 0),
                sizes=(self.hidden, 2 * self.hidden),
                steps=(1, 1),
            )
            last = b.op(
                "core.slice",
                self.recurrent,
                starts=(0, 2 * self.hidden),
                sizes=(self.hidden, self.hidden),
                steps=(1, 1),
            )
            product = b.op("core.contract", h, two)
            z = self.activate(b, 0, b.add(self.gate(b, x, 0), self.gate(b, product, 0)))
            r = self.activate(b, 0, b.add(self.gate(b, x, 1), self.gate(b, product, 1)))
            inner = b.op("core.contract", b.mul(r, h), last)
            candidate = self.activate(b, 1, b.add(self.gate(b, x, 2), inner))
        one = b.full(1, z)
        return [b.add(b.mul(b.sub(one, z), candidate), b.mul(z, h))]


@dataclass
class _LstmCell(_Cell):
    """Gates i, o, f and the candidate c; peepholes look at the cell state."""

    peepholes: Sequence[Value] = ()
    input_forget: bool = False

    def peep(self, b: Builder, x: Value, number: int, c: Value) -> Value:
        if not self.peepholes:
            return x
        return b.add(x, b.mul(*b.broadcast(c, self.peepholes[number])))

    def step(self, b: Builder, x: Value, state: Sequence[Value]) -> list[Value]:
        h, c = state
        total = b.add(x, self.product(b, h))
        i = self.activate(b, 0, self.peep(b, self.gate(b, total, 0), 0, c))
        if self.input_forget:
            f = b.sub(b.full(1, i), i)
        else:
            f = self.activate(b, 0, self.peep(b, self.gate(b, total, 2), 2, c))
        candidate = self.activate(b, 1, self.gate(b, total, 3))
        cell = b.add(b.mul(f, c), b.mul(i, candidate))
        o = self.activate(b, 0, self.peep(b, self.gate(b, total, 1), 1, cell))
        return [b.mul(o, self.activations[2](b, cell)), cell]


_BACKWARD = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass
class _Network:
    """What the three operators share: layout, directions, lengths, states."""

    b: Builder
    gates: int
    x: Value
    weights: Value
    recurrence: Value
    bias: Value | None
    lengths: Value | None
    initial: Sequence[Value | None]
    direction: str
    hidden_size: int | None
    layout: int

    def __post_init__(self) -> None:
        b = self.b
        self.dtype = self.x.type.dtype
        if self.direction not in _BACKWARD:
            raise CompileError(f"the direction {self.direction!r} is none of {', '.join(_BACKWARD)}")
        self.backward = _BACKWARD[self.direction]
        for name, value in (("X", self.x), ("W", self.weights), ("R", self.recurrence)):
            if value.type.rank != 3:
                raise CompileError(f"{name} {value.type.describe()} needs three axes")
        hidden = self.recurrence.type.shape[-1]
        if not isinstance(hidden, int) and self.hidden_size is not None:
            hidden = self.hidden_size
        if not isinstance(hidden, int) or self.hidden_size not in (None, hidden):
            raise CompileError(
                f"hidden_size {self.hidden_size} and the weights R {self.recurrence.type.describe()} differ"
            )
        self.hidden = hidden
        wide = dtypes.f32 if self.dtype.bits == 16 else self.dtype
        count, rows = len(self.backward), self.gates * hidden
        if self.weights.type.shape[0] != count and isinstance(self.weights.type.shape[0], int):
            raise CompileError(f"the weights W {self.weights.type.describe()} are not for {count} directions")
        self.weights = self.fitted("W", self.weights, (count, rows, self.weights.type.shape[2]))
        self.x = self.fitted("X", self.x, (*self.x.type.shape[:2], self.weights.type.shape[2]))
        self.recurrence = self.fitted("R", self.recurrence, (count, rows, hidden))
        if self.bias is not None:
            self.bias = self.fitted("B", self.bias, (count, 2 * rows))
        self.x, self.weights, self.recurrence = (
            b.convert(v, wide) for v in (self.x, self.weights, self.recurrence)
        )
        self.bias = None if self.bias is None else b.convert(self.bias, wide)
        if self.layout:
            self.x = b.transpose(self.x, (1, 0, 2))
        self.steps: DimLike = self.x.type.shape[0]
        self.batch: DimLike = self.x.type.shape[1]
        if self.lengths is not None:
            self.lengths = b.convert(self.fitted("sequence_lens", self.lengths, (self.batch,)), dtypes.i64)
        shape = (self.batch, count, hidden) if self.layout else (count, self.batch, hidden)
        names = ("initial_h", "initial_c")
        self.initial = [
            None if state is None else self.fitted(name, state, shape)
            for name, state in zip(names, self.initial, strict=False)
        ]

    def fitted(self, name: str, value: Value, shape: Sequence[DimLike]) -> Value:
        """An input under the shape that it has to have; a refusal or a fault of the run where it has another."""
        need = f"{name} {value.type.describe()} has to be [{', '.join(map(str, shape))}]"
        if value.type.rank != len(shape):
            raise CompileError(need)
        for have, want in zip(value.type.shape, shape, strict=True):
            same_dim(self.b, have, want, need)
        return self.b.assume_shape(value, shape)

    def part(self, value: Value, number: int) -> Value:
        """The part of a tensor that belongs to one direction."""
        return slice_at(self.b, value, 0, number)

    def inputs(self, number: int, with_recurrent_bias: int) -> Value:
        """x W for all steps of a direction, plus the biases (the recurrent ones of the first gates only)."""
        b = self.b
        w = b.transpose(self.part(self.weights, number), (1, 0))
        flat = b.reshape(self.x, (self.steps * self.batch, self.x.type.shape[2]))
        product = b.op("core.contract", flat, w)
        if self.bias is not None:
            size = w.type.shape[1]
            both = self.part(self.bias, number)
            own = b.op("core.slice", both, starts=(0,), sizes=(size,), steps=(1,))
            other = b.op("core.slice", both, starts=(size,), sizes=(size,), steps=(1,))
            kept = with_recurrent_bias * self.hidden
            if kept != size:
                first = b.op("core.slice", other, starts=(0,), sizes=(kept,), steps=(1,))
                rest = b.broadcast_to(b.constant(0, other.type.dtype), (size - kept,))
                other = b.op("core.concat", first, rest, axis=0)
            product = b.add(*b.broadcast(product, b.add(own, other)))
        return b.reshape(product, (self.steps, self.batch, w.type.shape[1]))

    def state(self, which: int, number: int) -> Value:
        b, given = self.b, self.initial[which]
        wide = self.x.type.dtype
        if given is None:
            return b.broadcast_to(b.constant(0, wide), (self.batch, self.hidden))
        one = b.convert(given, wide)
        if self.layout:
            one = b.transpose(one, (1, 0, 2))
        return self.part(one, number)

    def run(self, cells: Sequence[_Cell], inputs: Sequence[Value]) -> list[Value]:
        """Y and the final states, in the operator's layout and type."""
        b = self.b
        sequences: list[Value] = []
        finals: list[list[Value]] = []
        for number, (cell, x, backward) in enumerate(zip(cells, inputs, self.backward, strict=True)):
            states = [self.state(which, number) for which in range(len(self.initial))]
            final, (sequence,) = build_loop(b, self.steps, None, states, self._body(cell, x, backward))
            sequences.append(reversed_along(b, sequence, 0) if backward else sequence)
            finals.append(final)
        shape = (self.steps, 1, self.batch, self.hidden)
        y = self._joined([b.reshape(s, shape) for s in sequences], 1)
        last = [
            self._joined([b.reshape(f[which], (1, self.batch, self.hidden)) for f in finals], 0)
            for which in range(len(self.initial))
        ]
        if self.layout:
            y = b.transpose(y, (2, 0, 1, 3))
            last = [b.transpose(v, (1, 0, 2)) for v in last]
        return [b.convert(v, self.dtype) for v in (y, *last)]

    def _joined(self, parts: Sequence[Value], axis: int) -> Value:
        return parts[0] if len(parts) == 1 else self.b.op("core.concat", *parts, axis=axis)

    def _body(self, cell: _Cell, inputs: Value, backward: bool) -> Any:
        def body(inner: Builder, index: DimLike, carried: Sequence[Value]) -> LoopBody:
            place = self.steps - 1 - index if backward else index
            following = cell.step(inner, slice_at(inner, inputs, 0, place), carried)
            y = following[0]
            if self.lengths is not None:
                place_value = inner.dims([place], scalar=True)
                valid = inner.lt(*inner.broadcast(place_value, self.lengths))
                valid = inner.broadcast_to(inner.reshape(valid, (self.batch, 1)), y.type.shape)
                following = [
                    inner.select(valid, new, old) for new, old in zip(following, carried, strict=True)
                ]
                y = inner.select(valid, y, inner.full(0, y))
            return LoopBody(None, following, [y])

        return body


def _transposed_recurrence(net: _Network, number: int) -> Value:
    return net.b.transpose(net.part(net.recurrence, number), (1, 0))


@onnx_op("RNN", since=7)
def rnn(
    b: Builder,
    x: Value,
    w: Value,
    r: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    activations: tuple[str, ...] | None = None,
    clip: float | None = None,
    direction: str,
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Value, ...]:
    net = _Network(b, 1, x, w, r, bias, sequence_lens, [initial_h], direction, hidden_size, layout)
    if activations == ("Tanh", "Tanh"):  # the schema's default, whatever the number of directions
        activations = None
    functions = _activations(activations, activation_alpha, activation_beta, ("Tanh",), len(net.backward))
    count = range(len(net.backward))
    cells = [_RnnCell(net.hidden, functions[n], clip, _transposed_recurrence(net, n)) for n in count]
    return tuple(net.run(cells, [net.inputs(n, 1) for n in count]))


@onnx_op("RNN", until=6)
def rnn_1(
    b: Builder, *operands: Value | None, output_sequence: int = 0, **attributes: Any
) -> tuple[Value, ...]:
    return rnn(b, *operands, **attributes)  # type: ignore[arg-type]


@onnx_op("GRU", since=7)
def gru(
    b: Builder,
    x: Value,
    w: Value,
    r: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    activations: tuple[str, ...] | None = None,
    clip: float | None = None,
    direction: str,
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[Value, ...]:
    net = _Network(b, 3, x, w, r, bias, sequence_lens, [initial_h], direction, hidden_size, layout)
    functions = _activations(
        activations, activation_alpha, activation_beta, ("Sigmoid", "Tanh"), len(net.backward)
    )
    cells, inputs = [], []
    for n in range(len(net.backward)):
        reset_bias = None
        if linear_before_reset and net.bias is not None:
            both = net.part(net.bias, n)
            reset_bias = b.op("core.slice", both, starts=(5 * net.hidden,), sizes=(net.hidden,), steps=(1,))
        cells.append(
            _GruCell(
                net.hidden,
                functions[n],
                clip,
                _transposed_recurrence(net, n),
                reset_bias,
                bool(linear_before_reset),
            )
        )
        inputs.append(net.inputs(n, 2 if linear_before_reset else 3))
    return tuple(net.run(cells, inputs))


@onnx_op("GRU", until=6)
def gru_1(
    b: Builder, *operands: Value | None, output_sequence: int = 0, **attributes: Any
) -> tuple[Value, ...]:
    return gru(b, *operands, **attributes)  # type: ignore[arg-type]


@onnx_op("LSTM", since=7)
def lstm(
    b: Builder,
    x: Value,
    w: Value,
    r: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    initial_c: Value | None = None,
    peepholes: Value | None = None,
    *,
    activation_alpha: tuple[float, ...] | None = None,
    activation_beta: tuple[float, ...] | None = None,
    activations: tuple[str, ...] | None = None,
    clip: float | None = None,
    direction: str,
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
) -> tuple[Value, ...]:
    net = _Network(b, 4, x, w, r, bias, sequence_lens, [initial_h, initial_c], direction, hidden_size, layout)
    if peepholes is not None:
        peepholes = net.fitted("P", peepholes, (len(net.backward), 3 * net.hidden))
    names = ("Sigmoid", "Tanh", "Tanh")
    functions = _activations(activations, activation_alpha, activation_beta, names, len(net.backward))
    cells, inputs = [], []
    for n in range(len(net.backward)):
        looks: list[Value] = []
        if peepholes is not None:
            row = b.convert(net.part(peepholes, n), net.x.type.dtype)
            looks = [
                b.op("core.slice", row, starts=(i * net.hidden,), sizes=(net.hidden,), steps=(1,))
                for i in range(3)
            ]
        cells.append(
            _LstmCell(
                net.hidden, functions[n], clip, _transposed_recurrence(net, n), looks, bool(input_forget)
            )
        )
        inputs.append(net.inputs(n, 4))
    return tuple(net.run(cells, inputs))


@onnx_op("LSTM", until=6)
def lstm_1(
    b: Builder, *operands: Value | None, output_sequence: int = 0, **attributes: Any
) -> tuple[Value, ...]:
    return lstm(b, *operands, **attributes)  # type: ignore[arg-type]
