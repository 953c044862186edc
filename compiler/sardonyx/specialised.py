"""Models whose code depends on what is fed: the axes of a reduction, the length of a sequence.

Such a model is compiled when it first runs with a combination of those values and structures, once for
each.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

from sardonyx.core.aggregates import assemble
from sardonyx.errors import NeedsConstant
from sardonyx.frontend.importer import import_model
from sardonyx.frontend.load import ModelSource, load_model
from sardonyx.ir.attributes import Dense
from sardonyx.ir.graph import Function, Module, Op
from sardonyx.ir.types import OptionalType, SequenceType, TensorType, Type, describe
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import plain_symbol, substitute
from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.feeds import Feeds, accept
from sardonyx_runtime.native import NativeModel
from sardonyx_runtime.signature import Argument

__all__ = ["SpecialisedModel"]

_VARIANTS = 16  # combinations remembered

Compile = Callable[[Callable[[], Module], Mapping[str, Any]], tuple[NativeModel, tuple[Any, ...] | None]]


@dataclass(frozen=True)
class _Variant:
    """A compiled combination: the model, and how its results make up the outputs (None: one each)."""

    model: NativeModel
    structure: tuple[Any, ...] | None


class SpecialisedModel:
    """A model compiled once per combination of its ``decisive`` values and of the structures it is fed.

    Its interface is that of a compiled model.  A sequence is fed and given as a list of arrays, an empty
    optional as None.  ``outputs`` are known after the first run.
    """

    def __init__(self, model: ModelSource, error: NeedsConstant, compile_variant: Compile) -> None:
        self._source = model
        self._proto, self._base_dir = load_model(model)
        self._compile = compile_variant
        main = import_model(self._proto, base_dir=self._base_dir).main
        self._names = [a.name for a in main.arguments]
        self._types = {a.name: a.type for a in main.arguments}
        self._defaults = {n: d.array for n, d in main.attributes.get("defaults", {}).items()}
        self._output_names: tuple[str, ...] = main.attributes["outputs"]
        self.decisive: list[str] = []
        self.symbols: set[str] = set()  # dims whose values decide
        self._variants: OrderedDict[tuple[Any, ...], _Variant] = OrderedDict()
        self._add(error)

    def _add(self, error: NeedsConstant) -> None:
        """Take one more input or dim as decisive; an intermediate tensor cannot be one."""
        if error.symbols:
            if not error.symbols - self.symbols or not error.symbols <= self._bound_symbols():
                raise error
            self.symbols |= error.symbols
            return
        if error.tensor == "" or isinstance(self._types.get(error.tensor), (SequenceType, OptionalType)):
            return  # structures are always looked at
        if error.tensor not in self._types or error.tensor in self.decisive:
            raise error
        self.decisive.append(error.tensor)

    def _bound_symbols(self) -> set[str]:
        """The symbols that the inputs' shapes bind."""
        return {plain_symbol(d) for a in self.inputs for d in a.shape} - {""}

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The inputs that are tensors: name, dtype, shape."""
        tensors = [(n, t) for n, t in self._types.items() if isinstance(t, TensorType)]
        return tuple(Argument(n, t.dtype, t.shape, self._defaults.get(n)) for n, t in tensors)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs of the variant that ran last; none before the first run."""
        return next(reversed(self._variants.values())).model.outputs if self._variants else ()

    def run(self, feeds: Feeds, outputs: Sequence[str] | None = None, *, out: Any = None) -> list[Any]:
        """Run the variant for these feeds; compile it first if there is none (CompileError)."""
        variant, flat = self._chosen(feeds)
        results: list[Any] = list(variant.model.run(flat, out=out))
        if variant.structure is not None:
            leaves = iter(results)
            results = [assemble(s, leaves) for s in variant.structure]
        if outputs is None:
            return results
        place = {n: i for i, n in enumerate(self._output_names)}
        unknown = [n for n in outputs if n not in place]
        if unknown:
            raise RuntimeFault(f"there is no output {unknown[0]!r}; the outputs are {', '.join(place)}")
        return [results[place[n]] for n in outputs]

    def profile(self, feeds: Feeds, *, runs: int = 20) -> Any:
        """The profile of the variant for these feeds: see `CompiledModel.profile`."""
        variant, flat = self._chosen(feeds)
        profile: Any = variant.model.profile(flat, runs=runs)  # type: ignore[attr-defined]  # compiled here
        return profile

    def _chosen(self, feeds: Feeds) -> tuple[_Variant, list[Any]]:
        """The variant for these feeds, compiled if there is none, and what it takes of them."""
        values = self._arranged(feeds)
        structures = {
            name: _structure(values[name], kind, (name, kind))
            for name, kind in self._types.items()
            if isinstance(kind, (SequenceType, OptionalType))
        }
        arguments = {a.name: a for a in self.inputs}
        while True:
            decisive = {n: accept(values[n], arguments[n]) for n in self.decisive}
            sizes = self._sizes(values)
            key = (
                *((v.tobytes(), v.shape) for v in decisive.values()),
                *structures.values(),
                *sizes.values(),
            )
            try:
                variant = self._variants.get(key) or self._variant(key, decisive, structures, sizes)
            except NeedsConstant as error:
                known = len(self.decisive) + len(self.symbols)
                self._add(error)
                if len(self.decisive) + len(self.symbols) == known:
                    raise
                self._variants.clear()
                continue
            break
        self._variants.move_to_end(key)
        return variant, [leaf for n in self._names if n not in decisive for leaf in _leaves(values[n])]

    def export(self, path: str | os.PathLike[str], **options: Any) -> list[Path]:
        """`sardonyx.compile_to` of the model: works only where ``dims`` settle all that the code depends on.

        CompileError says what is left to depend on.
        """
        written: list[Path] = import_module("sardonyx.aot.export").compile_to(self._source, path, **options)
        return written

    def close(self) -> None:
        """Free what was compiled; a later run compiles it again."""
        for variant in self._variants.values():
            variant.model.close()
        self._variants.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _arranged(self, feeds: Feeds) -> dict[str, Any]:
        """The feeds by name, defaults filled in."""
        if isinstance(feeds, Mapping):
            unknown = [n for n in feeds if n not in self._types]
            if unknown:
                raise RuntimeFault(
                    f"there is no input {unknown[0]!r}; the inputs are {', '.join(self._names)}"
                )
            given = dict(feeds)
        else:
            needed = [n for n in self._names if n not in self._defaults]
            names = self._names if len(feeds) == len(self._names) else needed
            if len(feeds) != len(names):
                raise RuntimeFault(
                    f"{len(feeds)} feeds for {len(self._names)} inputs ({', '.join(self._names)})"
                )
            given = dict(zip(names, feeds, strict=True))
        missing = [n for n in self._names if n not in given and n not in self._defaults]
        if missing:
            raise RuntimeFault(f"the input {missing[0]!r} is missing from the feeds")
        return {n: given[n] if n in given else self._defaults[n] for n in self._names}

    def _sizes(self, values: Mapping[str, Any]) -> dict[str, int]:
        """The values of the decisive dims, from the shapes that are fed."""
        sizes: dict[str, int] = {}
        for argument in self.inputs if self.symbols else ():
            for dim, size in zip(argument.shape, np.shape(values[argument.name]), strict=False):
                if plain_symbol(dim) in self.symbols:
                    sizes.setdefault(plain_symbol(dim), size)
        return sizes

    def _variant(
        self,
        key: tuple[Any, ...],
        values: Mapping[str, np.ndarray[Any, Any]],
        structures: Mapping[str, Any],
        sizes: Mapping[str, int],
    ) -> _Variant:
        def make() -> Module:
            module = import_model(self._proto, base_dir=self._base_dir)
            _fix(module.main, values)
            for argument in module.main.arguments:
                if isinstance(argument.type, TensorType):
                    shape = tuple(substitute(d, sizes) for d in argument.type.shape)
                    argument.type = TensorType(argument.type.dtype, shape)
            return module

        variant = _Variant(*self._compile(make, structures))
        if len(self._variants) >= _VARIANTS:
            self._variants.popitem(last=False)
        self._variants[key] = variant
        return variant


def _fix(function: Function, values: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Make constants of arguments."""
    body = function.body
    for argument in [a for a in body.arguments if a.name in values]:
        dense = Dense(values[argument.name], argument.type.dtype)
        constant = Op("core.constant", (), [dense.type], {"value": dense}, location=function.location)
        constant.block = body
        constant.result.name = argument.name
        body.ops.insert(0, constant)
        argument.replace_by(constant.result)
        body.arguments.remove(argument)
    for number, argument in enumerate(body.arguments):
        argument.index = number


def _structure(value: Any, kind: Type, argument: tuple[str, Type]) -> tuple[Any, ...]:
    """The structure of what is fed to an argument (its name and type), which has to be of this type."""
    if isinstance(kind, OptionalType):
        return ("optional", ()) if value is None else _structure(value, kind.element, argument)
    if isinstance(kind, SequenceType):
        if not isinstance(value, (list, tuple)):
            raise _misfit(value, argument)
        return ("sequence", tuple(_structure(v, kind.element, argument) for v in value))
    if value is None or isinstance(value, (list, tuple)):
        raise _misfit(value, argument)
    array = np.asarray(value)
    try:
        dtype = dtypes.by_numpy(array.dtype)
    except KeyError:
        raise _misfit(value, argument) from None
    wanted = getattr(kind, "dtype", None)
    shape = kind.shape if isinstance(kind, TensorType) else array.shape
    fits = len(shape) == array.ndim and all(
        d == size or not isinstance(d, int) for d, size in zip(shape, array.shape, strict=True)
    )
    if wanted not in (None, dtype) or not fits:
        raise _misfit(value, argument)
    return ("tensor", dtype, array.shape)


def _misfit(value: Any, argument: tuple[str, Type]) -> RuntimeFault:
    name, kind = argument
    if value is None:
        have = "nothing"
    elif isinstance(value, (list, tuple)):
        have = f"a sequence of {len(value)}"
    else:
        array = np.asarray(value)
        have = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    return RuntimeFault(f"the input {name!r} has to be {describe(kind)}; {have} does not fit")


def _leaves(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in _leaves(v)]
    return [value]
