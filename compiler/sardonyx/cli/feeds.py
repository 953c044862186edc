"""Input data from the command line: files, random values, zeros, ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import Dim, DimError, evaluate, symbols_of
from sardonyx_runtime.signature import Argument

__all__ = [
    "Feeds",
    "InputOption",
    "SeedOption",
    "SizeOption",
    "ThreadsOption",
    "feeds_of",
    "make_feeds",
    "parse_dims",
    "parse_inputs",
]

InputOption = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="NAME=DATA", help="Data of one input; random if left out."),
]
SizeOption = Annotated[
    list[str] | None,
    typer.Option("--dim", "-d", metavar="NAME=SIZE", help="The size of a symbolic dim; 1 if left out."),
]
ThreadsOption = Annotated[int | None, typer.Option(min=1, help="Threads of a run [default: all cores].")]
SeedOption = Annotated[int, typer.Option(help="Seed of random inputs.")]

Array = np.ndarray[Any, Any]

_FILL = re.compile(
    r"(?P<kind>random|zeros|ones)(:(?P<shape>\d+([x,]\d+)*|scalar))?(:(?P<low>-?[\d.]+)\.\.(?P<high>-?[\d.]+))?"
)


@dataclass(frozen=True)
class Feeds:
    """The arrays by input name, and the sizes that were chosen for dims nobody gave."""

    arrays: dict[str, Array]
    assumed: dict[str, int]


@dataclass(frozen=True)
class _Fill:
    """An input to be made up: ``shape`` None is the model's own."""

    kind: str
    shape: tuple[int, ...] | None = None
    bounds: tuple[float, float] | None = None


def feeds_of(
    inputs: Sequence[Argument], data: Sequence[str] | None, dims: Sequence[str] | None, seed: int
) -> Feeds:
    """What the options ``--input``, ``--dim`` and ``--seed`` stand for; a usage error for what is none."""
    return make_feeds(inputs, parse_inputs(data or (), inputs), parse_dims(dims or (), inputs), seed)


def parse_inputs(options: Sequence[str], inputs: Sequence[Argument]) -> dict[str, Array | _Fill]:
    """The ``--input NAME=SPEC`` options by name; a usage error for what is none."""
    known = {a.name: a for a in inputs}
    given: dict[str, Array | _Fill] = {}
    for option in options:
        name, equals, spec = option.rpartition("=")
        if not equals:
            raise _wrong(f"{option!r} is not NAME=FILE.npy or NAME=random")
        if name not in known:
            raise _wrong(f"the model has no input {name!r}; its inputs are {', '.join(known)}")
        given[name] = _fill(spec) if _FILL.fullmatch(spec) else _from_file(spec, known[name])
    return given


def parse_dims(options: Sequence[str], inputs: Sequence[Argument]) -> dict[str, int]:
    """The ``--dim NAME=SIZE`` options."""
    names = sorted({s for a in inputs for d in a.shape for s in symbols_of(d)})
    sizes: dict[str, int] = {}
    for option in options:
        name, equals, size = option.rpartition("=")
        if not equals or not size.isdecimal():
            raise typer.BadParameter(f"{option!r} is not NAME=SIZE", param_hint="--dim")
        if name not in names:
            have = ", ".join(names) or "none"
            raise typer.BadParameter(
                f"the inputs have no dim {name!r}; their dims by name: {have}", param_hint="--dim"
            )
        sizes[name] = int(size)
    return sizes


def make_feeds(
    inputs: Sequence[Argument], given: Mapping[str, Array | _Fill], dims: Mapping[str, int], seed: int
) -> Feeds:
    """An array for every input without a default.

    Dims come from ``dims``, then from the shapes given, then are 1.  Random floats are normally distributed,
    random integers are 0 or 1 (what every input can take), unless bounds are given.
    """
    sizes = dict(dims)
    for argument in inputs:
        _bind(argument, _shape_of(given.get(argument.name)), sizes)
    assumed = {}
    generator = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for argument in inputs:
        value = given.get(argument.name)
        if value is None and argument.default is not None:
            continue
        if not isinstance(value, _Fill | None):
            arrays[argument.name] = value
            continue
        fill = value or _Fill("random")
        shape = fill.shape
        if shape is None:
            for dim in argument.shape:
                for name in symbols_of(dim) - sizes.keys():
                    sizes[name] = assumed[name] = 1
            shape = _evaluated(argument, sizes)
        arrays[argument.name] = _made(fill, argument, shape, generator)
    return Feeds(arrays, assumed)


def _wrong(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="--input")


def _fill(spec: str) -> _Fill:
    match = _FILL.fullmatch(spec)
    assert match is not None
    shape, low, high = match["shape"], match["low"], match["high"]
    sizes = None
    if shape is not None:
        sizes = () if shape == "scalar" else tuple(map(int, re.split("[x,]", shape)))
    return _Fill(match["kind"], sizes, None if low is None else (float(low), float(high)))


def _from_file(path: str, argument: Argument) -> Array:
    try:
        array: Array = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise _wrong(
            f"there is no file {path!r} for {argument.name!r} (or write random, random:2x3, zeros, ones)"
        ) from None
    except (OSError, ValueError, EOFError) as error:
        raise _wrong(f"{path!r} cannot be read as a .npy file: {error}") from None
    if not isinstance(array, np.ndarray):
        raise _wrong(f"{path!r} holds several arrays (.npz); save one with numpy.save")
    if array.dtype.kind == "V" and array.dtype.itemsize == argument.dtype.itemsize:
        return array.view(argument.dtype.numpy)  # .npy keeps no names of bfloat16 and smaller types
    return array


def _shape_of(value: Array | _Fill | None) -> tuple[int, ...] | None:
    return None if value is None else value.shape


def _bind(argument: Argument, shape: tuple[int, ...] | None, sizes: dict[str, int]) -> None:
    """Take the sizes of plain symbols from a shape; whether all fits is for the run to say."""
    for dim, size in zip(argument.shape, shape or (), strict=False):
        names = list(symbols_of(dim))
        if isinstance(dim, Dim) and len(names) == 1 and str(dim) == names[0]:
            sizes.setdefault(names[0], size)


def _evaluated(argument: Argument, sizes: Mapping[str, int]) -> tuple[int, ...]:
    try:
        return tuple(evaluate(d, sizes) for d in argument.shape)
    except DimError as error:
        raise _wrong(f"the shape of {argument.name!r} cannot be computed: {error}") from None


def _made(fill: _Fill, argument: Argument, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    dtype = argument.dtype
    if dtype is dtypes.string:
        return np.full(shape, "text", dtype=object)
    if fill.kind != "random":
        return np.full(shape, fill.kind == "ones").astype(dtype.numpy)
    if dtype.kind in ("float", "complex"):
        values = (
            generator.standard_normal(shape)
            if fill.bounds is None
            else generator.uniform(*fill.bounds, shape)
        )
        return np.asarray(values).astype(dtype.numpy)
    low, high = fill.bounds or (0, 1)
    if low > high:
        raise _wrong(f"the bounds {low:g}..{high:g} of {argument.name!r} are empty")
    return np.asarray(generator.integers(int(low), int(high), shape, endpoint=True)).astype(dtype.numpy)
