"""Builds core ops: computes their types, and simplifies while building.

``b.ge(x, y)`` makes the op ``core.ge``; any declared kind works.  Three things happen on the way:
ops that change nothing give back their operand, exact ops of constants are folded, and integer
arithmetic on dims (the tail of every ``Shape``) gives a ``core.dims`` op, so that shapes stay shapes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from sardonyx.errors import CompileError, NeedsConstant
from sardonyx.ir.attributes import Dense
from sardonyx.ir.declare import Trait, TypeRuleError, lookup
from sardonyx.ir.graph import UNKNOWN, Block, Location, Op, Value
from sardonyx.ir.types import Shape, TensorType
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimError, DimLike, broadcast_dim, symbol, symbols_of
from sardonyx_runtime.dtypes import DType

__all__ = ["Builder", "constant_of", "dims_in"]

_FOLD_BYTES = 1 << 16  # larger results are folded only if they are no larger than what they are made of
_SPREAD_BYTES = 512  # repetitions of a constant stay broadcasts beyond this
_SYMBOLIC_SIZE = 256  # elements up to which an integer constant takes part in dim arithmetic


def constant_of(value: Value) -> np.ndarray[Any, Any] | None:
    """The array of a constant; None if the value is not one."""
    op = value.op
    return op.attributes["value"].array if op is not None and op.name == "core.constant" else None


def dims_in(value: Value) -> np.ndarray[Any, Any] | None:
    """The elements of an integer tensor as an array of dims (ints and expressions), where they are known."""
    op = value.op
    if op is None:
        return None
    if op.name == "core.dims":
        items = np.empty(len(op.attributes["values"]), dtype=object)
        items[:] = op.attributes["values"]
        return items.reshape(value.type.shape)
    if op.name == "core.constant":
        dense = op.attributes["value"]
        if (dense.dtype.is_integer or dense.dtype is dtypes.boolean) and dense.array.size <= _SYMBOLIC_SIZE:
            return np.asarray(dense.array.tolist(), dtype=object).reshape(dense.array.shape)
    return None


class Builder:
    """Appends core ops to a block, all at the current location."""

    def __init__(self, block: Block, *, opset: int = 0, location: Location = UNKNOWN) -> None:
        self.block = block
        self.opset = opset
        self.location = location
        self.outputs = (
            1  # the outputs of the node at hand that are wanted: one more than the last one's number
        )
        self._fresh = itertools.count(1)
        self._bound: dict[tuple[Value, int], tuple[DimLike, ...]] = {}
        self._constants: dict[tuple[str, str], Value] = {}
        self._folds_all = False

    @contextmanager
    def folding(self) -> Iterator[None]:
        """Fold what is constant whatever its size: for tables, and for weights that are brought into another form."""
        before, self._folds_all = self._folds_all, True
        try:
            yield
        finally:
            self._folds_all = before

    def child(self, block: Block) -> Builder:
        """A builder for a body of control flow in this block: it sees all that is defined so far."""
        inner = Builder(block, opset=self.opset, location=self.location)
        inner._fresh = self._fresh
        inner._bound = dict(self._bound)
        inner._constants = dict(self._constants)
        return inner

    def __getattr__(self, kind: str) -> Callable[..., Value]:
        if lookup(f"core.{kind.rstrip('_')}") is None:
            raise AttributeError(kind)

        def make(*operands: Value, **attributes: Any) -> Value:
            return self.op(f"core.{kind.rstrip('_')}", *operands, **attributes)

        return make

    def op(self, name: str, *operands: Value, **attributes: Any) -> Value:
        """The result of a core op, simplified if possible; CompileError if its rule is broken."""
        decl = lookup(name)
        assert decl is not None, name
        try:
            (type_,) = decl.result_types([o.type for o in operands], attributes)
        except (TypeRuleError, DimError) as error:
            raise CompileError(
                str(error), location=self.location, operands=[(o.name, o.type) for o in operands]
            ) from error
        assert isinstance(type_, TensorType)
        if name in _UNCHANGED and operands[0].type == type_:
            return operands[0]
        if (
            decl.symbolic is not None
            and (shaped := self._symbolic(decl, operands, attributes, type_)) is not None
        ):
            return shaped
        if (
            Trait.EXACT in decl.traits
            and (folded := self._fold(decl, operands, attributes, type_)) is not None
        ):
            return folded
        return self.emit(name, operands, [type_], attributes).result

    def several(self, name: str, *operands: Value, **attributes: Any) -> tuple[Value, ...]:
        """The results of a core op with more than one; folded where all operands are small constants."""
        decl = lookup(name)
        assert decl is not None and decl.evaluate is not None, name
        try:
            types = decl.result_types([o.type for o in operands], attributes)
        except (TypeRuleError, DimError) as error:
            raise CompileError(
                str(error), location=self.location, operands=[(o.name, o.type) for o in operands]
            ) from error
        arrays = [constant_of(o) for o in operands]
        static = all(isinstance(t, TensorType) and t.is_static for t in types)
        known = static and all(a is not None and a.nbytes <= _FOLD_BYTES for a in arrays)
        if known and not _mentions_dims(attributes):
            values = decl.evaluate(attributes, *arrays)
            return tuple(self.constant(v, t.dtype) for v, t in zip(values, types, strict=True))  # type: ignore[attr-defined]
        return tuple(self.emit(name, operands, types, attributes).results)

    def emit(
        self, name: str, operands: Sequence[Value], types: Sequence[Any], attributes: dict[str, Any]
    ) -> Op:
        """Append an op as it is."""
        return self.block.append(Op(name, operands, types, attributes, location=self.location))

    def _fold(
        self, decl: Any, operands: Sequence[Value], attributes: dict[str, Any], type_: TensorType
    ) -> Value | None:
        if not type_.is_static or decl.evaluate is None:
            return None
        arrays = [constant_of(o) for o in operands]
        if any(a is None for a in arrays) or _mentions_dims(attributes):
            return None
        size = int(np.prod(type_.shape, dtype=np.int64)) * type_.dtype.itemsize  # type: ignore[arg-type]
        if decl.name == "core.transpose" and type_.dtype.is_float and not self._folds_all:
            return None  # waits for `passes/fold.py`
        spread = decl.name in ("core.broadcast", "core.iota")
        if not self._folds_all and size > (
            _SPREAD_BYTES if spread else max(_FOLD_BYTES, sum(a.nbytes for a in arrays if a is not None))
        ):
            return None
        if decl.name in _DIVISIONS and type_.dtype.is_integer and (arrays[-1] == 0).any():  # type: ignore[union-attr]
            return None  # the fault belongs to the run
        if decl.fault is not None and decl.fault(attributes, *arrays):
            return None
        return self.constant(decl.evaluate(attributes, *arrays), type_.dtype)

    def _symbolic(
        self, decl: Any, operands: Sequence[Value], attributes: dict[str, Any], type_: TensorType
    ) -> Value | None:
        if (
            type_.rank > 1
            or not type_.is_static
            or not (type_.dtype.is_integer or type_.dtype is dtypes.boolean)
        ):
            return None
        if not any(o.op is not None and o.op.name == "core.dims" for o in operands):
            return None
        arrays = [dims_in(o) for o in operands]
        if any(a is None for a in arrays):
            return None
        result = decl.symbolic(attributes, *arrays)
        if result is None:
            return None
        result = np.asarray(result, dtype=object)  # NumPy gives the element of a rank-0 array itself
        if any(r is None for r in result.ravel()):
            return None
        return self.dims(result.ravel().tolist(), type_.dtype, scalar=type_.rank == 0)

    def constant(self, value: Any, dtype: DType | None = None) -> Value:
        """A constant tensor from anything NumPy takes."""
        dense = value if isinstance(value, Dense) else Dense(np.asarray(value), dtype)
        if dense.array.nbytes > 64:
            return self.emit("core.constant", (), [dense.type], {"value": dense}).result
        key = (str(dense.type), dense.key)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.emit(
                "core.constant", (), [dense.type], {"value": dense}
            ).result
        return found

    def dims(self, values: Iterable[Any], dtype: DType = dtypes.i64, *, scalar: bool = False) -> Value:
        """An integer tensor holding dims; a constant where all are known."""
        items = tuple(values)
        if not any(isinstance(v, Dim) for v in items):
            array = np.array(items, dtype.numpy)
            return self.constant(array.reshape(()) if scalar else array.reshape(len(items)), dtype)
        type_ = TensorType(dtype, () if scalar else (len(items),))
        attributes: dict[str, Any] = {"values": items, "dtype": dtype}
        if scalar:
            attributes["scalar"] = True
        return self.emit("core.dims", (), [type_], attributes).result

    def dims_of(self, value: Value, *, minimum: int = 0) -> tuple[DimLike, ...]:
        """The elements of an integer tensor of rank 0 or 1 as dims.

        Where they are not known at compile time they become fresh symbols, read from the tensor at run
        time; each must then be at least ``minimum``.
        """
        known = dims_in(value)
        if known is not None:
            return tuple(known.ravel().tolist())
        size = self.length_of(value)
        if (value, minimum) in self._bound:
            return self._bound[value, minimum]
        names = tuple(self.fresh_symbol(value.name or "d") for _ in range(size))
        self.emit("core.bind_dims", (value,), (), {"symbols": names, "minimum": minimum})
        self._bound[value, minimum] = tuple(symbol(n) for n in names)
        return self._bound[value, minimum]

    def bind(
        self, rule: str, tensors: Sequence[Value], stems: Sequence[str], **attributes: Any
    ) -> tuple[DimLike, ...]:
        """Fresh symbols bound at run time from integer tensors, by a rule of `core.bind_dims`."""
        for tensor in tensors:
            self.length_of(tensor)
        names = tuple(self.fresh_symbol(stem) for stem in stems)
        self.emit("core.bind_dims", tensors, (), {"symbols": names, "rule": rule, **attributes})
        return tuple(symbol(n) for n in names)

    def fresh_symbol(self, stem: str) -> str:
        """A symbol name no other dim has."""
        return f"{stem}.{self.location.names}.{next(self._fresh)}"

    def external_call(
        self, function: str, operands: Sequence[Value], dtypes: tuple[DType, ...], shapes: tuple[Shape, ...]
    ) -> Op:
        """A call of a user's function, known by its key; any number of results."""
        attributes = {"function": function, "dtypes": dtypes, "shapes": shapes}
        decl = lookup("core.external_call")
        assert decl is not None
        try:
            types = decl.result_types([o.type for o in operands], attributes)
        except TypeRuleError as error:
            raise CompileError(str(error), location=self.location) from error
        return self.emit("core.external_call", operands, types, attributes)

    def next_number(self) -> int:
        """A number that no other op of the function was given."""
        return next(self._fresh)

    def require(self, relation: str, left: Any, right: Any, message: str) -> None:
        """Have a relation between dims checked at run time; at once where both are known."""
        self.emit(
            "core.require", (), (), {"relation": relation, "left": left, "right": right, "message": message}
        )

    def full(self, value: Any, like: Value) -> Value:
        """A scalar spread over the shape and type of another value."""
        return self.broadcast_to(self.constant(value, like.type.dtype), like.type.shape)

    def static_dims(self, x: Value, axes: Iterable[int], reason: str) -> tuple[int, ...]:
        """The extents of some axes that decide the form of the code; NeedsConstant where one is symbolic."""
        dims = [x.type.shape[axis] for axis in axes]
        deciding = frozenset[str]().union(*(symbols_of(d) for d in dims))
        if deciding:
            raise NeedsConstant(reason, x.name, deciding, location=self.location, operands=[(x.name, x.type)])
        return tuple(int(d) for d in dims)

    def length_of(self, value: Value) -> int:
        """The number of elements of a tensor that gives a shape; NeedsConstant where it is symbolic."""
        reason = "an input that gives a shape has itself a symbolic length; the rank would be unknown"
        return math.prod(self.static_dims(value, range(value.type.rank), reason))

    def expect_shape(self, x: Value, shape: Iterable[DimLike], message: str) -> Value:
        """x under the shape it has to have.

        CompileError where another one is known already; what is symbolic is checked by the run.
        """
        wanted = tuple(shape)
        if x.type.rank != len(wanted):
            raise CompileError(message)
        for have, want in zip(x.type.shape, wanted, strict=True):
            if have != want:
                if not isinstance(have, Dim) and not isinstance(want, Dim):
                    raise CompileError(message)
                self.require("equal", have, want, message)
        return x if x.type.shape == wanted else self.assume_shape(x, wanted)

    def assume_shape(self, x: Value, shape: Iterable[DimLike]) -> Value:
        """x under a shape known to be equal at run time (a `require` says so)."""
        return self.op("core.assume", x, shape=tuple(shape))

    def broadcast_to(self, x: Value, shape: Shape) -> Value:
        """x repeated to the shape, NumPy's rule, one direction."""
        return self.op("core.broadcast", x, shape=tuple(shape))

    def broadcast(self, *values: Value) -> list[Value]:
        """All values broadcast against each other, NumPy's rule; unlike symbols are checked at run time."""
        shape = self.broadcast_shape(*values)
        return [self.broadcast_to(v, shape) for v in values]

    def broadcast_shape(self, *values: Value) -> Shape:
        """The shape that all values broadcast to."""
        result: Shape = ()
        for value in values:
            result = self.joint_shape(result, value.type.shape, values)
        return result

    def joint_shape(self, a: Shape, b: Shape, values: Sequence[Value] = ()) -> Shape:
        """The shape two shapes broadcast to."""
        rank = max(len(a), len(b))
        a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
        dims_: list[DimLike] = []
        for left, right in zip(a, b, strict=True):
            try:
                joint = broadcast_dim(left, right)
            except DimError as error:
                shapes = " and ".join(f"[{', '.join(map(str, v.type.shape))}]" for v in values)
                raise CompileError(
                    f"the shapes {shapes} do not broadcast: {error}",
                    location=self.location,
                    operands=[(v.name, v.type) for v in values],
                    hint="two dims broadcast if they are equal or one of them is 1",
                ) from error
            if not (left == right or left == 1 or right == 1):
                names = " and ".join(f"{v.name or '?'} {v.type.describe()}" for v in values)
                self.require("broadcast", left, right, f"the shapes of {names} do not broadcast")
            dims_.append(joint)
        return tuple(dims_)

    def convert(self, x: Value, to: DType, **attributes: Any) -> Value:
        """x in another element type."""
        return self.op("core.convert", x, to=to, **attributes)

    def reshape(self, x: Value, shape: Iterable[DimLike]) -> Value:
        return self.op("core.reshape", x, shape=tuple(shape))

    def transpose(self, x: Value, permutation: Iterable[int]) -> Value:
        permutation = tuple(permutation)
        return (
            x
            if permutation == tuple(range(len(permutation)))
            else self.op("core.transpose", x, permutation=permutation)
        )

    def reduce(self, kind: str, x: Value, axes: Iterable[int], *, keepdims: bool = False) -> Value:
        """A reduction; with keepdims the reduced axes stay with extent 1."""
        axes = tuple(sorted(axes))
        result = self.op("core.reduce", x, kind=kind, axes=axes) if axes else x
        if keepdims and axes:
            result = self.reshape(result, [1 if i in axes else d for i, d in enumerate(x.type.shape)])
        return result


def _mentions_dims(attributes: dict[str, Any]) -> bool:
    """Whether an attribute is known only at run time, such as the place of a slice."""
    values = attributes.values()
    return any(isinstance(d, Dim) for v in values for d in (v if isinstance(v, tuple) else (v,)))


_DIVISIONS = frozenset({"core.div", "core.rem", "core.mod"})
_UNCHANGED = frozenset({"core.convert", "core.broadcast", "core.reshape", "core.bitcast", "core.assume"})
