"""Conversions against ml_dtypes for every pattern, and the interpreter's table for every pair."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from sardonyx.codegen.convert import CONVERSIONS, convert, round_to
from sardonyx.codegen.emitter import Emitter, ModuleText, V, ltype
from sardonyx.core import rounding
from sardonyx.core.small_floats import OutOfRange
from sardonyx_runtime import dtypes
from sardonyx_runtime.dtypes import DType

Array = np.ndarray[Any, Any]

WIDTHS = [1, 4, 8, 16]
REAL = [t for t in dtypes.ALL if t.kind in ("float", "signed", "unsigned", "bool")]
SMALL = [t for t in REAL if t.is_small_float]
FLOAT8 = [dtypes.f8e4m3fn, dtypes.f8e4m3fnuz, dtypes.f8e5m2, dtypes.f8e5m2fnuz]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """NumPy warns where NaN and what is out of range are converted: the subject here."""
    with np.errstate(all="ignore"):
        yield


def carrier(dtype: DType) -> Any:
    """The NumPy type with a machine type of the same representation."""
    machine = dtype.numpy.type in (np.float16, np.float32, np.float64) or (
        dtype.is_integer and dtype.bits >= 8
    )
    return dtype.numpy.type if machine else np.dtype(f"u{dtype.numpy.itemsize}").type


def run(
    jit: Any, x: Array, to: DType, width: int = 8, module: ModuleText | None = None, **options: Any
) -> Array:
    """x converted by compiled code."""
    source = dtypes.by_numpy(x.dtype)

    def lanes(e: Emitter, value: V) -> V:
        if source is dtypes.boolean:
            value = e.icmp("ne", value, e.const(value.type, 0))
        result = convert(e, value, source, to, **options)
        return e.zext(result, 8) if to is dtypes.boolean else result

    compiled = jit.compile(lanes, [carrier(source)], carrier(to), width, module)
    return np.asarray(compiled(x.view(carrier(source)))).view(to.numpy)


def assert_same(got: Array, expected: Array, x: Array) -> None:
    """The same values: bits, but any NaN for a NaN; the sign of zero counts."""
    assert got.dtype == expected.dtype
    if got.dtype.kind in "fV" or dtypes.by_numpy(got.dtype).is_float:
        wide = np.float64
        same = got.view(carrier(dtypes.by_numpy(got.dtype))) == expected.view(
            carrier(dtypes.by_numpy(got.dtype))
        )
        same &= np.signbit(got.astype(wide)) == np.signbit(expected.astype(wide))
        same |= np.isnan(got.astype(wide)) & np.isnan(expected.astype(wide))
    else:
        same = got == expected
    bad = np.flatnonzero(~same)[:5]
    assert bad.size == 0, [(x[i], got[i], expected[i]) for i in bad]


def patterns(dtype: DType) -> Array:
    """Every value of a type of at most 16 bits."""
    count = 1 << dtype.bits
    if dtype is dtypes.boolean:
        return np.array([False, True])
    return np.arange(count).astype(f"u{dtype.numpy.itemsize}").view(dtype.numpy)


def samples(dtype: DType) -> Array:
    """Every value of a narrow type; of a wide one many, with the values around every tie of the
    narrow floats.
    """
    rng = np.random.default_rng(3)
    if dtype.bits <= 16:
        return patterns(dtype)
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        powers = [s * 2**k + d for k in range(dtype.bits) for d in range(-3, 4) for s in (1, -1)]
        halves = [
            2**k + 2 ** (k - m) + d
            for k in range(8, dtype.bits)
            for m in (2, 3, 4, 8, 9, 11, 12, 24, 25)
            for d in (-1, 0, 1)
            if m < k
        ]
        edges = [v for v in powers + halves + [-h for h in halves] if info.min <= v <= info.max]
        noise = rng.integers(info.min, info.max, 20_000, dtype.numpy.type, endpoint=True)
        return np.concatenate(
            [
                np.array(edges, dtype.numpy),
                noise,
                noise >> rng.integers(0, dtype.bits, 20_000).astype(dtype.numpy),
            ]
        )
    unsigned = np.dtype(f"u{dtype.numpy.itemsize}")
    noise = rng.integers(0, 1 << (dtype.bits - 1), 30_000, np.int64).astype(unsigned).view(dtype.numpy)
    ties = np.concatenate([tie_points(t) for t in REAL if t.is_float and t.bits <= 16])
    near = ties.astype(dtype.numpy)
    near = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)]).astype(dtype.numpy)
    limits = [2.0**k + d for k in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1.5, -1, -0.5, 0, 0.5, 1)]
    special = [
        0.0,
        np.inf,
        np.nan,
        np.finfo(dtype.numpy).max,
        np.finfo(dtype.numpy).smallest_subnormal,
        *limits,
    ]
    specials = np.array(special, np.float64).astype(dtype.numpy)
    integral = rng.uniform(-70_000, 70_000, 5_000).astype(dtype.numpy)
    x = np.concatenate([noise, near, specials, integral])
    return np.concatenate([x, -x])


def tie_points(dtype: DType) -> Array:
    """The finite values of a narrow float and the middles between neighbours, in float64."""
    values = patterns(dtype).astype(np.float64)
    values = np.unique(values[np.isfinite(values)])
    beyond = values[-1] + (values[-1] - values[-2]) * np.array([0.5, 1.0, 1.5])
    if values.size > 5_000:
        values = values[np.random.default_rng(5).permutation(values.size)[:5_000]]
        values.sort()
    return np.concatenate([values, (values[1:] + values[:-1]) / 2, beyond])


def test_the_table_is_complete() -> None:
    kinds = {"f16", "bf16", "f32", "f64", "small", "integer", "bool"}
    floats = {(k, k) for k in ("f16", "bf16", "f32", "f64", "bool")}
    assert {(s, t) for s in kinds for t in kinds} - floats == set(CONVERSIONS)


@pytest.mark.parametrize("source", REAL, ids=str)
def test_every_pair_agrees_with_the_interpreter(jit: Any, source: DType) -> None:
    x = samples(source)
    for to in REAL:
        if to is not source:
            assert_same(run(jit, x, to), rounding.convert(x, to), x)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "to", [dtypes.bf16, dtypes.f8e4m3fn, dtypes.i8, dtypes.u64, dtypes.f16, dtypes.f8e8m0], ids=str
)
def test_every_width(jit: Any, to: DType, width: int) -> None:
    for source in (dtypes.f32, dtypes.f64):
        x = samples(source)
        assert_same(run(jit, x, to, width), rounding.convert(x, to), x)


@pytest.mark.parametrize("to", SMALL, ids=str)
@pytest.mark.parametrize("infinity", ["saturate", "nan"])
@pytest.mark.parametrize("saturate", [True, False])
def test_rules_out_of_range(jit: Any, to: DType, saturate: bool, infinity: str) -> None:
    for source in (dtypes.f32, dtypes.f64, dtypes.f16, dtypes.i32):
        x = samples(source)
        for round_mode in ("up", "down", "nearest") if to is dtypes.f8e8m0 else ("up",):
            rule = {"saturate": saturate, "infinity": infinity, "round_mode": round_mode}
            assert_same(run(jit, x, to, **rule), rounding.convert(x, to, OutOfRange(**rule)), x)


# -- against ml_dtypes, independently of the interpreter -------------------------------------------


@pytest.mark.parametrize("source", [t for t in REAL if t.is_float and t.bits <= 16], ids=str)
def test_widening_every_pattern(jit: Any, source: DType) -> None:
    x = patterns(source)
    for to in (dtypes.f32, dtypes.f64):
        expected = x.astype(np.float32).astype(to.numpy)
    assert_same(run(jit, x, to), expected, x)


@pytest.mark.parametrize("to", [dtypes.f16, dtypes.bf16, *FLOAT8], ids=str)
def test_narrowing_f32(jit: Any, to: DType) -> None:
    """ml_dtypes' casts are the rules without saturation; every high half of an f32 with four low
    halves.
    """
    high = np.arange(1 << 16, dtype=np.uint32) << 16
    x = np.concatenate([high | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001)]).view(np.float32)
    expected = x.astype(to.numpy)
    assert_same(run(jit, x, to, 16, saturate=False), expected, x)


@pytest.mark.parametrize("to", [dtypes.f8e4m3fn, dtypes.f8e5m2], ids=str)
def test_sign_of_float8_nan(jit: Any, to: DType) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf], np.float32)
    assert run(jit, x, to, saturate=False).tobytes() == x.astype(to.numpy).tobytes()


def test_bf16_keeps_denormals_and_quiets_nan(jit: Any) -> None:
    x = np.array([0x7F800001, 0xFF800001, 0x00018000, 0x80008001, 0x00008000], np.uint32).view(np.float32)
    got = run(jit, x, dtypes.bf16).view(np.uint16)
    assert got.tolist() == [0x7FC0, 0xFFC0, 0x0002, 0x8001, 0x0000]


@pytest.mark.parametrize("to", [dtypes.f16, dtypes.bf16], ids=str)
def test_f64_rounds_once(jit: Any, to: DType) -> None:
    """Just beside each tie, by less than an f32 sees."""
    ties = tie_points(to)
    ties = ties[np.abs(ties) < float(ml_dtypes.finfo(to.numpy).max)]
    above, below = np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)
    for x in (above, below):
        got = run(jit, x, to).astype(np.float64)
        for value, result in zip(x[::7].tolist(), got[::7].tolist(), strict=True):
            distance = abs(Fraction(value) - Fraction(result))
            assert all(distance <= abs(Fraction(value) - Fraction(n)) for n in _neighbours(result, to)), value


def _neighbours(value: float, dtype: DType) -> list[float]:
    """The finite values next to `value` in a 16-bit float."""
    bits = int(np.float64(value).astype(dtype.numpy).view(np.uint16))
    beside = [b for b in (bits - 1, bits + 1) if 0 <= b < 1 << 16]
    values = np.array(beside, np.uint16).view(dtype.numpy).astype(np.float64)
    return [v for v in values.tolist() if np.isfinite(v)]


@pytest.mark.parametrize("source", [dtypes.i64, dtypes.u64], ids=str)
@pytest.mark.parametrize("to", [dtypes.f32, dtypes.bf16, dtypes.f16], ids=str)
def test_integers_round_once(jit: Any, source: DType, to: DType) -> None:
    """Against exact arithmetic, beside ties of the target that f32 and f64 do not resolve."""
    kept = to.mantissa + 1
    top = 16 if to is dtypes.f16 else 63
    base = [(1 << k) + ((2 * j + 1) << (k - kept)) for k in range(kept + 1, top) for j in (0, 1, 5)]
    x = np.array([v + d for v in base for d in (-1, 0, 1)], source.numpy)
    got = run(jit, x, to).astype(np.float64)
    for value, result in zip(x.tolist(), got.tolist(), strict=True):
        assert result == _nearest(value, kept), value


def _nearest(value: int, kept: int) -> float:
    """A positive integer rounded to `kept` bits, ties to even."""
    drop = max(0, value.bit_length() - kept)
    quotient, rest = divmod(value, 1 << drop)
    half = 1 << drop >> 1
    if drop and (rest > half or (rest == half and quotient & 1)):
        quotient += 1
    return float(quotient << drop)


def test_float_to_integer_policy(jit: Any) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 300.7, -1.9, 2.0**31, 2.0**63, 1.8e19], np.float64)
    low32, low64 = -(2**31), -(2**63)
    expected = {
        dtypes.i32: [low32, low32, low32, low32, low32, 300, -1, low32, low32, low32],
        dtypes.i8: [0, 0, 0, 0, 0, 44, -1, 0, 0, 0],
        dtypes.i64: [low64, low64, low64, low64, low64, 300, -1, 2**31, low64, low64],
        dtypes.u32: [0, 0, 0, 0, 0, 300, 2**32 - 1, 2**31, 0, 0],
        dtypes.u64: [2**63, 2**63, 2**63, 2**63, 2**63, 300, 2**64 - 1, 2**31, 2**63, 18 * 10**18],
    }
    for to, values in expected.items():
        assert run(jit, x, to).tolist() == values, to


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("to", [dtypes.f16, dtypes.bf16], ids=str)
def test_round_to(jit: Any, to: DType, width: int) -> None:
    x = samples(dtypes.f32)
    expected = x.astype(to.numpy).astype(np.float32)
    got = jit.compile(lambda e, v: round_to(e, v, to), [np.float32], np.float32, width)(x)
    assert_same(got, expected, x)


@pytest.mark.parametrize("to", [t for t in REAL if t.is_float and t.bits <= 16], ids=str)
def test_exact_conversion(jit: Any, to: DType) -> None:
    """Every value comes back from f32, infinities too."""
    values = patterns(to)
    x = values.astype(np.float32)
    assert_same(run(jit, x, to, exact=True), values, x)


@pytest.mark.parametrize("narrow", [dtypes.f16, dtypes.f8e5m2, dtypes.bf16], ids=str)
def test_targets_without_f16_conversions(jit: Any, narrow: DType) -> None:
    """In integer arithmetic, and no instruction on half but bitcasts."""
    for source, to in [
        (dtypes.f32, narrow),
        (dtypes.f64, narrow),
        (dtypes.f16, narrow),
        (narrow, dtypes.f32),
    ]:
        if source is not to:
            module = ModuleText(has_f16_conversions=False)
            x = samples(source)
            assert_same(run(jit, x, to, module=module), rounding.convert(x, to), x)
    emitter = Emitter(ModuleText(has_f16_conversions=False))
    x = V(ltype("f", 16, 8), "%x")
    convert(emitter, x, dtypes.f16, dtypes.f64)
    round_to(emitter, V(ltype("f", 32, 8), "%y"), dtypes.f16)
    assert not [line for line in emitter.lines if "half" in line and "bitcast" not in line]
