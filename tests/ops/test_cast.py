"""Cast, CastLike and BitCast: every pair of types against exact arithmetic, and the tables of the text."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.errors import CompileError
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

from ..helpers import Array, check, each_engine, make_model, prepare, run_model, tensor

NUMBERS = [t for t in dtypes.ALL if t.kind in ("float", "signed", "unsigned", "bool")]
FLOAT8 = [dtypes.f8e4m3fn, dtypes.f8e4m3fnuz, dtypes.f8e5m2, dtypes.f8e5m2fnuz]
WITHOUT_NAN = [dtypes.f4e2m1, dtypes.f6e2m3, dtypes.f6e3m2]


def cast(x: Array, to: DType, engine: str = "interpreter", opset: int = 28, more: str = "") -> Array:
    (y,) = run_model(make_model(f"y = Cast <to = {to.onnx}{more}> (x)", {"x": x}, opset=opset), [x], engine)
    return np.asarray(y)


def samples(dtype: DType) -> Array:
    """All values of types of 8 bits and fewer; otherwise those at which conversions go wrong."""
    if dtype is dtypes.boolean:
        return np.array([False, True])
    if dtype.is_integer:
        low, high = (
            (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1)
            if dtype.kind == "signed"
            else (0, (1 << dtype.bits) - 1)
        )
        if dtype.bits <= 8:
            return np.arange(low, high + 1).astype(dtype.numpy)
        around = [
            b + d
            for e in (7, 8, 11, 12, 15, 16, 24, 31, 32, 53, 63)
            for b in (1 << e, 3 << e - 1)
            for d in (-1, 0, 1)
        ]
        # Numbers that round twice on the way through a shorter type.
        around += [(1 << 62) + (1 << 38) + 1, (1 << 53) + (1 << 29) + 1, (1 << 60) + (1 << 52) + 1]
        chosen = [v for n in around for v in (n, -n) if low <= v <= high]
        return np.array([0, 1, low, high, *chosen], dtype.numpy)
    if dtype.bits <= 8:
        return np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)
    powers = [2.0**e for e in range(-30, 30, 3)] + [2.0**e for e in (-149, -133, -126, 63, 64, 127)]
    steps = [Fraction(1, 1 << k) for k in (1, 2, 3, 4, 5, 8, 9, 11, 12, 24)]
    fine = [
        float(1 + a + b)
        for a in steps
        for b in (0, Fraction(1, 1 << 25), -Fraction(1, 1 << 25), Fraction(1, 1 << 40))
    ]
    scaled = [f * s for f in fine for s in (1.0, 4.0, 256.0, 2.0**-8)]
    edges = [
        6,
        5,
        7,
        7.5,
        7.75,
        28,
        30,
        240,
        248,
        448,
        464,
        465,
        57344,
        61440,
        65504,
        65519,
        65520,
        2**31,
        3e9,
        1e10,
    ]
    values = [0.0, *powers, *scaled, *edges, math.inf, math.nan]
    with np.errstate(all="ignore"):
        return np.array([*values, *(-v for v in values)]).astype(dtype.numpy)


def wrap(value: int, dtype: DType) -> int:
    low = -(1 << dtype.bits - 1) if dtype.kind == "signed" else 0
    return (value - low) % (1 << dtype.bits) + low


def to_integer(value: Any, dtype: DType) -> int:
    if isinstance(value, int):
        return wrap(value, dtype)
    width = 64 if dtype.bits == 64 or dtype is dtypes.u32 else 32
    high = 1 << (64 if dtype is dtypes.u64 else width - 1)
    fits = math.isfinite(value) and -(1 << width - 1) <= int(value) < high
    return wrap(int(value) if fits else -(1 << width - 1), dtype)


def nearest(value: Any, dtype: DType) -> Any:
    """A finite number rounded to the float type, ties to even, as a Fraction without upper end."""
    info = ml_dtypes.finfo(dtype.numpy)
    size = abs(Fraction(value))
    if size == 0:
        return Fraction(0)
    lowest = round(math.log2(float(info.smallest_normal)))
    exponent = max((size.numerator.bit_length() - size.denominator.bit_length()), lowest)
    while exponent > lowest and size < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (exponent - dtype.mantissa)
    return round(size / step) * step  # Python rounds halves to even


def to_float(value: Any, dtype: DType) -> float:
    """The float of a type that a number becomes, where the conversion saturates if the type is small."""
    largest = float(ml_dtypes.finfo(dtype.numpy).max)
    over = largest if dtype.is_small_float else math.inf
    if isinstance(value, float) and math.isnan(value):
        return -0.0 if dtype in WITHOUT_NAN else math.nan
    negative = math.copysign(1, value) < 0
    size = over if isinstance(value, float) and math.isinf(value) else nearest(value, dtype)
    size = over if size > largest else float(size)
    if size == 0 and dtype in (dtypes.f8e4m3fnuz, dtypes.f8e5m2fnuz):
        return 0.0
    return -size if negative else size


def expected(x: Array, to: DType) -> Array:
    source = dtypes.by_numpy(x.dtype)
    if source is to:  # an infinity too
        return x
    wide = (
        x.astype(np.float64)
        if source.is_float
        else x.astype(object)
        if source.bits >= 8
        else x.astype(np.int64)
    )
    values = [float(v) if source.is_float else int(v) for v in wide]
    if to is dtypes.boolean:
        return np.array([v != 0 for v in values])
    if to.is_integer:
        return (
            np.array([to_integer(v, to) for v in values], object)
            .astype(np.int64 if to.bits < 64 else to.numpy)
            .astype(to.numpy)
        )
    with np.errstate(all="ignore"):
        return np.array([to_float(v, to) for v in values]).astype(to.numpy)


def casts(x: Array, targets: list[DType], engine: str, more: str = "") -> dict[DType, Array]:
    """x in each of the types, from one model."""
    nodes = [f"y{to.onnx} = Cast <to = {to.onnx}{more}> (x)" for to in targets]
    return dict(zip(targets, run_model(make_model(nodes, {"x": x}, opset=28), [x], engine), strict=True))


@pytest.mark.parametrize("source", NUMBERS, ids=str)
@each_engine
def test_every_pair_of_types(source: DType, engine: str) -> None:
    x = samples(source)
    wrong = {}
    for to, got in casts(x, [t for t in NUMBERS if t is not dtypes.f8e8m0], engine).items():
        try:
            check(got, expected(x, to))
        except AssertionError as error:
            wrong[to] = error
    assert not wrong, "\n".join(f"{source} to {to}: {error}" for to, error in wrong.items())


@pytest.mark.parametrize("source", [dtypes.f32, dtypes.f64, dtypes.f16, dtypes.bf16], ids=str)
@each_engine
def test_float8_without_saturation(source: DType, engine: str) -> None:
    x = samples(source)
    values = x.astype(float)
    for to, got in casts(x, FLOAT8, engine, ", saturate = 0").items():
        largest = float(ml_dtypes.finfo(to.numpy).max)
        over = [not math.isnan(v) and (math.isinf(v) or nearest(v, to) > largest) for v in values]
        infinities = np.where(np.signbit(values), -math.inf, math.inf)
        want = expected(x, to)
        want[over] = (infinities[over] if to is dtypes.f8e5m2 else math.nan * infinities[over]).astype(
            to.numpy
        )
        check(got, want)


def test_signs_of_float8_nans() -> None:
    x = np.array([math.nan, -math.nan, math.inf, -math.inf], np.float32)
    for to, codes in {
        dtypes.f8e4m3fn: [0x7F, 0xFF, 0x7F, 0xFF],
        dtypes.f8e5m2: [0x7E, 0xFE, 0x7C, 0xFC],
        dtypes.f8e4m3fnuz: [0x80] * 4,
        dtypes.f8e5m2fnuz: [0x80] * 4,
    }.items():
        assert cast(x, to, more=", saturate = 0").view(np.uint8).tolist() == codes


@pytest.mark.parametrize("opset", [19, 23, 24, 28])
@each_engine
def test_saturated_infinities_by_opset(opset: int, engine: str) -> None:
    """Types with an unsigned zero make NaN of infinities before opset 24, but saturate finite numbers."""
    x = tensor("float32", [math.inf, -math.inf, 1e9, -1e9])
    for to in FLOAT8:
        largest = float(ml_dtypes.finfo(to.numpy).max)
        end = math.nan if opset < 24 and to in (dtypes.f8e4m3fnuz, dtypes.f8e5m2fnuz) else largest
        check(cast(x, to, engine, opset), tensor(to.name, [end, -end, largest, -largest]))
        like = tensor(to.name, [1.0])
        (y,) = run_model(
            make_model("y = CastLike (x, like)", {"x": x, "like": like}, opset=opset), [x, like], engine
        )
        check(y, tensor(to.name, [end, -end, largest, -largest]))


LOWEST, HIGHEST = 2.0**-127, 2.0**127
NAN = math.nan

# number: E8M0 for up, down, nearest; saturating, then not
POWERS: dict[float, tuple[float, float, float, float, float, float]] = {
    0.0: (LOWEST, LOWEST, LOWEST, NAN, NAN, NAN),
    1.0: (1, 1, 1, 1, 1, 1),
    1.25: (2, 1, 1, 2, 1, 1),
    1.5: (2, 1, 2, 2, 1, 2),
    1.75: (2, 1, 2, 2, 1, 2),
    0.75: (1, 0.5, 1, 1, 0.5, 1),
    2.0**-127: (LOWEST,) * 6,
    2.0**-130: (LOWEST, LOWEST, LOWEST, NAN, NAN, NAN),
    1.5 * 2.0**-128: (LOWEST, LOWEST, LOWEST, LOWEST, NAN, LOWEST),
    2.0**127: (HIGHEST,) * 6,
    1.25 * 2.0**127: (HIGHEST, HIGHEST, HIGHEST, NAN, HIGHEST, HIGHEST),
    1.75 * 2.0**127: (HIGHEST, HIGHEST, HIGHEST, NAN, HIGHEST, NAN),
    math.inf: (HIGHEST, HIGHEST, HIGHEST, NAN, NAN, NAN),
    -1.0: (NAN,) * 6,
}


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [1, 0])
@each_engine
def test_e8m0(mode: str, saturate: int, engine: str) -> None:
    x = np.array([*POWERS, math.nan], np.float32)
    column = ["up", "down", "nearest"].index(mode) + (0 if saturate else 3)
    want = np.array([*(row[column] for row in POWERS.values()), math.nan], np.float32).astype(
        dtypes.f8e8m0.numpy
    )
    for source in ("float32", "float64"):
        got = cast(
            x.astype(source), dtypes.f8e8m0, engine, more=f', round_mode = "{mode}", saturate = {saturate}'
        )
        assert got.view(np.uint8).tolist() == want.view(np.uint8).tolist()


@pytest.mark.parametrize("source", [t for t in NUMBERS if t is not dtypes.f8e8m0], ids=str)
@each_engine
def test_e8m0_from_every_type(source: DType, engine: str) -> None:
    x = samples(source)
    want = []
    for value in x.astype(
        np.float64 if source.is_float else object if source.bits >= 8 else np.int64
    ).tolist():
        if isinstance(value, float) and not 0 <= value < math.inf:
            want.append(254 if value == math.inf else 255)
        else:
            size = Fraction(value)
            exponent = size.numerator.bit_length() - size.denominator.bit_length() - 1 if size > 0 else -200
            exponent += sum(size > Fraction(2) ** (exponent + k) for k in (0, 1))
            want.append(255 if size < 0 else min(max(exponent + 127, 0), 254))
    assert cast(x, dtypes.f8e8m0, engine).view(np.uint8).tolist() == want


@each_engine
def test_constants_are_folded_to_the_same(engine: str) -> None:
    for source, to in [
        (dtypes.f32, dtypes.i8),
        (dtypes.f64, dtypes.bf16),
        (dtypes.i64, dtypes.f16),
        (dtypes.f32, dtypes.f4e2m1),
    ]:
        x = samples(source)
        model = make_model(f"y = Cast <to = {to.onnx}> (x)", {}, constants={"x": x}, opset=28)
        check(run_model(model, {}, engine)[0], expected(x, to))


@each_engine
def test_every_version_of_cast(engine: str) -> None:
    x = tensor("float32", [-1.5, 0.0, 7.25])
    check(
        run_model(make_model('y = Cast <to = "INT32"> (x)', {"x": x}, opset=1), [x], engine)[0],
        tensor("int32", [-1, 0, 7]),
    )
    for opset in (6, 9, 13, 19, 21, 23, 24, 25, 28):
        check(cast(x, dtypes.f64, engine, opset), tensor("float64", [-1.5, 0.0, 7.25]))
    for opset in (15, 19, 21, 23, 24, 25):
        like = tensor("int64", [])
        model = make_model("y = CastLike (x, like)", {"x": x, "like": like}, opset=opset)
        check(run_model(model, [x, like], engine)[0], tensor("int64", [-1, 0, 7]))


@pytest.mark.parametrize(
    ("node", "opset", "words"),
    [
        ("Cast <to = 16> (x)", 9, ("bfloat16", "opset 9", "float16")),
        ("Cast <to = 17> (x)", 18, ("float8e4m3fn",)),
        ("Cast <to = 99> (x)", 21, ("99",)),
        ("Cast <to = 14> (x)", 21, ("complex64",)),
        ('Cast <to = "FLAOT"> (x)', 1, ("FLAOT",)),
        ('Cast <to = 24, round_mode = "odd"> (x)', 28, ("'odd'", "nearest")),
        ("BitCast <to = 11> (x)", 26, ("32 bits", "64 bits")),
        ("BitCast <to = 8> (x)", 26, ("string",)),
    ],
)
def test_refusals(node: str, opset: int, words: tuple[str, ...]) -> None:
    with pytest.raises(CompileError) as error:
        prepare(make_model(f"[change] y = {node}", {"x": np.zeros(2, np.float32)}, opset=opset))
    assert all(word in str(error.value) for word in ("change", *words)), str(error.value)


WIDTHS = {
    t: 8 if t is dtypes.boolean else t.bits
    for t in dtypes.ALL
    if t is not dtypes.string and "float6" not in t.onnx_name
}


@pytest.mark.parametrize("source", [t for t in WIDTHS if t is not dtypes.boolean], ids=str)
@each_engine
def test_bitcast_keeps_the_bits(source: DType, engine: str) -> None:
    """To every type of the same width and back, for all codes of 8 bits and fewer."""
    width = WIDTHS[source]
    codes = np.arange(1 << min(width, 8)) * (0x0101010101010101 if width > 8 else 1)
    if width == 128:
        x = np.stack([codes, ~codes], axis=-1).view(source.numpy)[:, 0]
    elif width >= 8 or source.is_float:
        x = codes.astype(f"u{max(8, width) // 8}").view(source.numpy)
    else:
        x = (codes - (codes >= 1 << width - 1) * (source.kind == "signed") * (1 << width)).astype(
            source.numpy
        )
    targets = [t for t, w in WIDTHS.items() if w == width and t is not dtypes.boolean]
    there = [f"there{t.onnx} = BitCast <to = {t.onnx}> (x)" for t in targets]
    back = [f"back{t.onnx} = BitCast <to = {source.onnx}> (there{t.onnx})" for t in targets]
    names = [f"{way}{t.onnx}" for way in ("there", "back") for t in targets]
    results = run_model(make_model([*there, *back], {"x": x}, opset=26, outputs=names), [x], engine)
    for to, changed, same in zip(targets, results, results[len(targets) :], strict=False):
        assert changed.dtype == to.numpy
        assert low_bits(same, width) == low_bits(x, width), to
        assert low_bits(changed, width) == low_bits(x, width), to


def low_bits(x: Array, width: int) -> list[int]:
    """The bytes, or the bits of each element that count."""
    codes = np.frombuffer(x.tobytes(), np.uint8)
    return [int(c) & ((1 << min(width, 8)) - 1) for c in codes]


@each_engine
def test_bitcast_of_bool(engine: str) -> None:
    x = np.array([True, False])
    for to, want in [(dtypes.u8, [1, 0]), (dtypes.i8, [1, 0])]:
        (y,) = run_model(make_model(f"y = BitCast <to = {to.onnx}> (x)", {"x": x}, opset=26), [x], engine)
        check(y, tensor(to.name, want))
    y = tensor("uint8", [0, 1, 255])
    (x,) = run_model(make_model("y = BitCast <to = 9> (x)", {"x": y}, opset=26), [y], engine)
    check(x, np.array([False, True, True]))
