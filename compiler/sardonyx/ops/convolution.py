"""Conv, and what convolutions and pooling share: auto_pad, strides, channels first and last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.core.builder import Builder
from sardonyx.errors import CompileError
from sardonyx.ir.graph import Value
from sardonyx.ir.types import Shape
from sardonyx.ops.registry import onnx_op
from sardonyx_runtime.dims import Dim, DimLike, ceildiv, floordiv, maximum

__all__ = [
    "Window",
    "add_bias",
    "channels_first",
    "channels_last",
    "make_window",
    "with_channels",
    "with_kernel",
]


@dataclass(frozen=True)
class Window:
    """Where a kernel meets the spatial axes: lows of all axes, then highs, in ``pads``."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[DimLike, ...]


def channels_last(b: Builder, x: Value) -> Value:
    """(n, c, spatial...) as (n, spatial..., c)."""
    return b.transpose(x, (0, *range(2, x.type.rank), 1))


def channels_first(b: Builder, x: Value) -> Value:
    """(n, spatial..., c) as (n, c, spatial...)."""
    return b.transpose(x, (0, x.type.rank - 1, *range(1, x.type.rank - 1)))


def make_window(
    sizes: Shape,
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    auto_pad: str,
) -> Window:
    """The window over spatial axes of these sizes, defaults filled in and ``auto_pad`` resolved."""
    spatial = len(sizes)
    strides = (1,) * spatial if not strides else tuple(strides)
    dilations = (1,) * spatial if not dilations else tuple(dilations)
    for name, given, want in (
        ("kernel_shape", kernel, spatial),
        ("strides", strides, spatial),
        ("dilations", dilations, spatial),
        ("pads", pads or (0,) * (2 * spatial), 2 * spatial),
    ):
        if len(given) != want:
            raise CompileError(
                f"{name} {list(given)} has {len(given)} entries; {spatial} spatial axes need {want}"
            )
    if any(v < 1 for v in (*kernel, *strides, *dilations)):
        raise CompileError(
            f"kernel_shape {list(kernel)}, strides {list(strides)} "
            f"and dilations {list(dilations)} have to be positive"
        )
    resolved: tuple[DimLike, ...] = tuple(pads) if pads else (0,) * (2 * spatial)
    if auto_pad == "VALID":
        resolved = (0,) * (2 * spatial)
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        resolved = _same_pads(sizes, kernel, strides, dilations, upper=auto_pad == "SAME_UPPER")
    elif auto_pad not in ("NOTSET", ""):
        raise CompileError(f"auto_pad {auto_pad!r} is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    return Window(tuple(kernel), strides, dilations, resolved)


def _same_pads(
    sizes: Shape, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], *, upper: bool
) -> tuple[DimLike, ...]:
    """Pads for an output of ceil(size / stride); an odd one goes to the end (upper) or the beginning."""
    small: list[DimLike] = []
    large: list[DimLike] = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        span = (k - 1) * dilation + 1
        total = maximum((ceildiv(size, stride) - 1) * stride + span - size, 0)
        small.append(floordiv(total, 2))
        large.append(total - small[-1])
    return (*small, *large) if upper else (*large, *small)


@onnx_op("Conv")
def conv(
    b: Builder,
    x: Value,
    w: Value,
    bias: Value | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: tuple[int, ...] | None = None,
    group: int = 1,
    kernel_shape: tuple[int, ...] | None = None,
    pads: tuple[int, ...] | None = None,
    strides: tuple[int, ...] | None = None,
) -> Value:
    rank = x.type.rank
    if rank < 3 or w.type.rank != rank:
        raise CompileError(
            f"Conv takes x (n, c, spatial...) and weights of the same rank of at least 3, "
            f"not {x.type.describe()} and {w.type.describe()}"
        )
    w = with_kernel(b, w, kernel_shape)
    x, w = with_channels(b, x, w, 1, group)
    kernel = tuple(int(k) for k in w.type.shape[2:])
    window = make_window(x.type.shape[2:], kernel, strides, dilations, pads, auto_pad)
    y = b.op(
        "core.convolve",
        channels_last(b, x),
        w,
        strides=window.strides,
        dilations=window.dilations,
        pads=window.pads,
        group=group,
    )
    if bias is not None:
        y = add_bias(b, y, bias)
    return channels_first(b, y)


def with_channels(b: Builder, x: Value, w: Value, axis: int, group: int) -> tuple[Value, Value]:
    """x and the weights, the channels of x (1 / group of them on an axis of the weights) being equal."""
    channels, taken = x.type.shape[1], w.type.shape[axis]
    if channels != taken * group and (isinstance(channels, Dim) or isinstance(taken, Dim)):
        b.require(
            "equal", channels, taken * group, f"the channels of {x.name} do not fit the weights {w.name}"
        )
        if isinstance(taken, int):
            x = b.assume_shape(x, (x.type.shape[0], taken * group, *x.type.shape[2:]))
        elif isinstance(channels, int):
            w = b.assume_shape(w, [channels // group if i == axis else d for i, d in enumerate(w.type.shape)])
    return x, w


def add_bias(b: Builder, y: Value, bias: Value) -> Value:
    """The bias, one number for each filter, added to a channels-last result."""
    filters = y.type.shape[-1]
    misfit = f"the bias {bias.type.describe()} has to be one number for each of {filters} filters"
    bias = b.expect_shape(bias, (filters,), misfit)
    return b.add(y, b.broadcast_to(bias, y.type.shape))


def with_kernel(b: Builder, w: Value, kernel_shape: tuple[int, ...] | None) -> Value:
    """The weights under the extents that ``kernel_shape`` tells; they may not contradict it."""
    if kernel_shape is None:
        kernel_shape = b.static_dims(w, range(2, w.type.rank), "the weights have symbolic kernel extents")
    message = f"kernel_shape {list(kernel_shape)} does not fit the weights {w.type.describe()}"
    return b.expect_shape(w, (*w.type.shape[:2], *kernel_shape), message)
