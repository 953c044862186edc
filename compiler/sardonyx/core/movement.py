"""Core ops that only move elements: each result element is an operand element or a fill value.

They have no code of their own: a consumer evaluates them by mapping its index to the operand's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.core.rules import one_dtype, tensors
from sardonyx.ir.declare import Trait, TypeRuleError, declare
from sardonyx.ir.types import TensorType, Type
from sardonyx_runtime.dims import Dim, DimError, DimLike, broadcast_dim, product

__all__: list[str] = []

Array = np.ndarray[Any, Any]
M, E = Trait.MOVEMENT, Trait.EXACT


def _constant_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The type of the value."""
    return [attributes["value"].type]


declare(
    "core.constant",
    "",
    "value",
    infer=_constant_rule,
    evaluate=lambda attributes: attributes["value"].array,
    traits=[E],
    doc="a constant tensor",
    example="%y = core.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>",
)


def _dims_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The attribute `dtype`; one axis as long as `values`, or none with `scalar`."""
    values = attributes["values"]
    shape = () if attributes.get("scalar", False) else (len(values),)
    return [TensorType(attributes["dtype"], shape)]


declare(
    "core.dims",
    "",
    "values dtype scalar?",
    infer=_dims_rule,
    doc="the values of dims as an integer tensor of rank 1, or of rank 0 with `scalar`",
    example='%y = core.dims {values = #sdx.dims<"n", 3>, dtype = i64} : () -> tensor<2xi64>',
)


def _iota_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The attributes `dtype` and `shape`."""
    shape = tuple(attributes["shape"])
    if not 0 <= attributes["axis"] < len(shape):
        raise TypeRuleError(f"iota: axis {attributes['axis']} of shape {shape}")
    return [TensorType(attributes["dtype"], shape)]


def _iota(attributes: Mapping[str, Any]) -> Array:
    shape, axis = tuple(attributes["shape"]), attributes["axis"]
    line = np.arange(shape[axis]).astype(attributes["dtype"].numpy)
    return np.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


declare(
    "core.iota",
    "",
    "shape axis dtype",
    infer=_iota_rule,
    evaluate=_iota,
    traits=[E, M],
    doc="the index along an axis",
    example=(
        '%y = core.iota {shape = #sdx.dims<"n", 4>, axis = 0, dtype = i64}'
        ' : () -> tensor<?x4xi64, #sdx.dims<"n", 4>>'
    ),
)


def _takes_part(have: DimLike, want: DimLike) -> bool:
    """Whether a dim is the other, or one of several that were broadcast against each other to give it."""
    if have == want:
        return True
    atoms = [] if isinstance(want, int) else [a for m, c in want.terms if c == len(m) == 1 for a in m]
    one = len(atoms) == 1 and not isinstance(want, int) and len(want.terms) == 1
    return one and atoms[0].name == "bcast" and any(_takes_part(have, a) for a in atoms[0].args)


def _broadcast_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x, the attribute `shape`; aligned at the last axis, each dim of x is 1, the wanted one, or
    a symbol that takes part in it."""
    (x,) = tensors(types, "broadcast")
    shape: tuple[DimLike, ...] = tuple(attributes["shape"])
    if len(shape) < x.rank:
        raise TypeRuleError(f"broadcast: {x.describe()} has more axes than {list(map(str, shape))}")
    for have, want in zip(x.shape, shape[len(shape) - x.rank :], strict=True):
        try:
            fits = (
                have == 1
                or _takes_part(have, want)
                or (isinstance(have, Dim) and broadcast_dim(have, want) == want)
            )
        except DimError:
            fits = False
        if not fits:
            raise TypeRuleError(f"broadcast: the dim {have} of {x.describe()} does not become {want}")
    return [TensorType(x.dtype, shape)]


declare(
    "core.broadcast",
    "x",
    "shape",
    infer=_broadcast_rule,
    evaluate=lambda attributes, x: np.broadcast_to(x, tuple(attributes["shape"])),
    symbolic=lambda attributes, x: np.broadcast_to(x, tuple(attributes["shape"])),
    traits=[E, M],
    doc="repeat along axes of extent 1 (aligned at the last axis, as NumPy does); a symbolic dim may be 1 at run time",
    example=(
        '%y = core.broadcast %x {shape = #sdx.dims<"n", 4>}'
        ' : (tensor<4xf32>) -> tensor<?x4xf32, #sdx.dims<"n", 4>>'
    ),
)


def _reshape_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x, the attribute `shape`, which has as many elements."""
    (x,) = tensors(types, "reshape")
    shape = tuple(attributes["shape"])
    size = product(shape)
    if isinstance(size, int) and isinstance(x.size, int) and size != x.size:
        raise TypeRuleError(
            f"reshape: {x.describe()} has {x.size} elements, {list(map(str, shape))} has {size}"
        )
    return [TensorType(x.dtype, shape)]


def _reshape(attributes: Mapping[str, Any], x: Array) -> Array:
    return x.reshape(tuple(attributes["shape"]))


declare(
    "core.reshape",
    "x",
    "shape",
    infer=_reshape_rule,
    evaluate=_reshape,
    symbolic=_reshape,
    traits=[E, M],
    doc="the same elements in the same order under another shape",
    example=(
        '%y = core.reshape %x {shape = #sdx.dims<"4*n">}'
        ' : (tensor<?x4xf32, #sdx.dims<"n", 4>>) -> tensor<?xf32, #sdx.dims<"4*n">>'
    ),
)


def _assume_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x, the attribute `shape`, which has its rank and its known dims."""
    (x,) = tensors(types, "assume")
    shape = tuple(attributes["shape"])
    if len(shape) != x.rank or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(shape, x.shape, strict=True)
    ):
        raise TypeRuleError(f"assume: {x.describe()} cannot have the shape {list(map(str, shape))}")
    return [TensorType(x.dtype, shape)]


declare(
    "core.assume",
    "x",
    "shape",
    infer=_assume_rule,
    evaluate=lambda attributes, x: x,
    symbolic=lambda attributes, x: x,
    traits=[E, M],
    doc="x itself; its dims are known by other names as well (a `core.require` checks that they are equal)",
    example='%y = core.assume %x {shape = [4]} : (tensor<?xf32, #sdx.dims<"n">>) -> tensor<4xf32>',
)


def _transpose_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x, its dims in the order of `permutation`."""
    (x,) = tensors(types, "transpose")
    permutation = tuple(attributes["permutation"])
    if sorted(permutation) != list(range(x.rank)):
        raise TypeRuleError(f"transpose: {list(permutation)} is no permutation of the axes of {x.describe()}")
    return [TensorType(x.dtype, tuple(x.shape[p] for p in permutation))]


def _transpose(attributes: Mapping[str, Any], x: Array) -> Array:
    return x.transpose(tuple(attributes["permutation"]))


declare(
    "core.transpose",
    "x",
    "permutation",
    infer=_transpose_rule,
    evaluate=_transpose,
    symbolic=_transpose,
    traits=[E, M],
    doc="axis i of the result is axis permutation[i] of the operand",
    example="%y = core.transpose %x {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>",
)


def _slice_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x, the attribute `sizes`."""
    (x,) = tensors(types, "slice")
    starts, sizes, steps = (tuple(attributes[k]) for k in ("starts", "sizes", "steps"))
    if not len(starts) == len(sizes) == len(steps) == x.rank:
        raise TypeRuleError(f"slice: {x.describe()} needs one start, size and step per axis")
    if any(s == 0 for s in steps):
        raise TypeRuleError("slice: a step is 0")
    return [TensorType(x.dtype, sizes)]


def _slice(attributes: Mapping[str, Any], x: Array) -> Array:
    index = []
    for start, size, step in zip(attributes["starts"], attributes["sizes"], attributes["steps"], strict=True):
        end = start + size * step
        index.append(slice(start, end if end >= 0 else None, step) if size else slice(0, 0))
    return x[tuple(index)]


declare(
    "core.slice",
    "x",
    "starts sizes steps",
    infer=_slice_rule,
    evaluate=_slice,
    symbolic=_slice,
    traits=[E, M],
    doc="`sizes` elements from `starts` on, every `steps`-th; negative steps run backwards; all are within the operand",
    example="%y = core.slice %x {starts = [1], sizes = [2], steps = [3]} : (tensor<8xf32>) -> tensor<2xf32>",
)


PAD_MODES = ("constant", "reflect", "edge", "wrap")


def _repeat_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x; its shape, `axis` being `count` times as long."""
    (x,) = tensors(types, "repeat")
    axis, count = attributes["axis"], attributes["count"]
    if not 0 <= axis < x.rank or count < 1:
        raise TypeRuleError(f"repeat: axis {axis} of {x.describe()}, {count} times")
    return [TensorType(x.dtype, (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :]))]


declare(
    "core.repeat",
    "x",
    "axis count",
    infer=_repeat_rule,
    evaluate=lambda attributes, x: np.repeat(x, attributes["count"], attributes["axis"]),
    traits=[E, M],
    doc="each element `count` times in a row along an axis",
    example="%y = core.repeat %x {axis = 0, count = 2} : (tensor<4xf32>) -> tensor<8xf32>",
)


def _unfold_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x; its shape with `axis` replaced by two axes, `count` and `size`."""
    (x,) = tensors(types, "unfold")
    axis = attributes["axis"]
    if not 0 <= axis < x.rank or attributes["step"] < 1 or attributes["dilation"] < 1:
        raise TypeRuleError(f"unfold: axis {axis} of {x.describe()}, a window every {attributes['step']}")
    return [
        TensorType(x.dtype, (*x.shape[:axis], attributes["count"], attributes["size"], *x.shape[axis + 1 :]))
    ]


def _unfold(attributes: Mapping[str, Any], x: Array) -> Array:
    starts = np.arange(attributes["count"])[:, None] * attributes["step"]
    places = starts + np.arange(attributes["size"]) * attributes["dilation"]
    return np.asarray(np.take(x, places, attributes["axis"]))


declare(
    "core.unfold",
    "x",
    "axis count size step dilation",
    infer=_unfold_rule,
    evaluate=_unfold,
    traits=[E, M],
    doc=(
        "`count` windows of an axis, one every `step` places, each of `size` elements `dilation` apart: an axis of "
        "windows and one of their elements; all are within the operand"
    ),
    example=(
        "%y = core.unfold %x {axis = 0, count = 6, size = 3, step = 1, dilation = 1}"
        " : (tensor<8xf32>) -> tensor<6x3xf32>"
    ),
)


def _pad_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of x; each dim of x with `low` and `high` added."""
    kinds = tensors(types, "pad")
    one_dtype(kinds, "pad")
    x, mode = kinds[0], attributes.get("mode", "constant")
    low, high = tuple(attributes["low"]), tuple(attributes["high"])
    if mode not in PAD_MODES or (len(kinds) == 2) != (mode == "constant"):
        raise TypeRuleError(
            f"pad: mode {mode!r} with {len(kinds)} operands; the modes are {', '.join(PAD_MODES)}"
        )
    if not len(low) == len(high) == x.rank or any(v.rank for v in kinds[1:]):
        raise TypeRuleError(f"pad: {x.describe()} needs one low and high pad per axis and a rank-0 value")
    return [TensorType(x.dtype, tuple(a + d + b for a, d, b in zip(low, x.shape, high, strict=True)))]


def _pad(attributes: Mapping[str, Any], x: Array, *value: Array) -> Array:
    """Every mode maps an index along an axis to one of the operand; the constant mode leaves some out."""
    mode = attributes.get("mode", "constant")
    low, high = attributes["low"], attributes["high"]
    if mode == "constant":
        result = np.full(
            [a + d + b for a, d, b in zip(low, x.shape, high, strict=True)], value[0][()], x.dtype
        )
        result[tuple(slice(a, a + d) for a, d in zip(low, x.shape, strict=True))] = x
        return result
    for axis, (before, size, after) in enumerate(zip(low, x.shape, high, strict=True)):
        if before or after:
            place = np.arange(-before, size + after)
            if mode == "wrap":
                place %= size
            elif mode == "reflect":
                place = np.minimum(np.abs(place), 2 * (size - 1) - np.abs(place))
            x = np.take(x, np.clip(place, 0, size - 1), axis)
    return x


declare(
    "core.pad",
    "x value?",
    "low high mode?",
    infer=_pad_rule,
    evaluate=_pad,
    traits=[E, M],
    doc=(
        "`low` elements before and `high` after each axis (none negative: slice crops): `value`, or what `mode` "
        "says: the nearest element (edge), those mirrored at it (reflect), those of the other end (wrap)"
    ),
    example="%y = core.pad %x, %value {low = [1], high = [1]} : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>",
)


def _concat_rule(types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Type]:
    """The dtype of the parts; their shape, with the sum of their dims along `axis`; all else has to be equal."""
    parts = tensors(types, "concat")
    if not parts:
        raise TypeRuleError("concat: at least one operand is needed")
    one_dtype(parts, "concat")
    axis, first = attributes["axis"], parts[0]
    if not 0 <= axis < first.rank:
        raise TypeRuleError(f"concat: axis {axis} of {first.describe()}")
    for part in parts[1:]:
        same = part.rank == first.rank and all(
            i == axis or a == b for i, (a, b) in enumerate(zip(part.shape, first.shape, strict=True))
        )
        if not same:
            raise TypeRuleError(f"concat on axis {axis}: {first.describe()} and {part.describe()} do not fit")
    total: DimLike = 0
    for part in parts:
        total = total + part.shape[axis]
    return [TensorType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))]


declare(
    "core.concat",
    "*parts",
    "axis",
    infer=_concat_rule,
    evaluate=lambda attributes, *parts: np.concatenate(parts, axis=attributes["axis"]),
    symbolic=lambda attributes, *parts: np.concatenate(parts, axis=attributes["axis"]),
    traits=[E, M],
    doc="the operands one after another along an axis",
    example="%z = core.concat %x, %y {axis = 0} : (tensor<4xf32>, tensor<3xf32>) -> tensor<7xf32>",
)
