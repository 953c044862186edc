"""Strings, natively: movement, comparison, joining, splitting, case, and numbers as text and back."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper
from tests.helpers import check, each_engine, make_model, numpy_type, prepare, run_model

import sardonyx
from sardonyx.core.text import change_case
from sardonyx.core.text_numbers import format_number, parse_float
from sardonyx_runtime import dtypes

Array = np.ndarray[Any, Any]

WORDS = [
    "",
    "a",
    "ä",
    "日本語",
    "x" * 100,
    "nan",
    "Straße",
    "a\0b",
    "\udcff\udc80",
    "é" * 33,
    " ",
    "İstanbul",
]


def texts(values: Any, shape: Any = None) -> Array:
    array = np.array(values, object)
    return array if shape is None else array.reshape(shape)


def same(got: Array, want: Array) -> None:
    assert (got.dtype, got.shape) == (np.dtype(object), want.shape)
    assert got.tolist() == want.tolist()


@each_engine
@pytest.mark.parametrize(
    "line, function",
    [
        ("y = Identity (x)", lambda x: x),
        ("y = Reshape (x, shape)", lambda x: x.reshape(2, 6)),
        ("y = Transpose (x)", lambda x: x.T),
        ("y = Concat <axis = 1> (x, x)", lambda x: np.concatenate([x, x], 1)),
        ("y = Gather <axis = 1> (x, index)", lambda x: x[:, [2, 0]]),
        ("y = Slice (x, one, three, one)", lambda x: x[:, 1:3]),
        ("y = Expand (x, wide)", lambda x: np.broadcast_to(x, (5, 3, 4))),
        ("y = Tile (x, twice)", lambda x: np.tile(x, (2, 2))),
        ("y = Unsqueeze (x, one)", lambda x: x[:, None]),
    ],
)
def test_movement(line: str, function: Any, engine: str) -> None:
    x = texts(WORDS, (3, 4))
    constants = {
        "shape": np.array([2, 6]), "index": np.array([2, 0]), "one": np.array([1]), "three": np.array([3]),
        "wide": np.array([5, 3, 4]), "twice": np.array([2, 2]),
    }  # fmt: skip
    used = {k: v for k, v in constants.items() if k in line}
    model = make_model(
        [line, "z = StringConcat (y, empty)"],
        {"x": x},
        constants={**used, "empty": texts("")},
        outputs=["y", "z"],
    )
    for got in run_model(model, [x], engine):
        same(got, function(x))


@each_engine
def test_symbolic_dims(engine: str) -> None:
    x = texts(WORDS[:6], (2, 3))
    model = make_model(
        ["y = Where (c, x, z)"],
        {"c": np.zeros((2, 1), bool), "x": x, "z": x},
        dims={"x": ["n", "m"], "z": ["n", "m"], "c": ["n", 1]},
    )
    run = prepare(model, engine)
    for rows in (2, 0, 1):
        c = np.array([[True], [False]])[:rows]
        z = texts(WORDS[6:12], (2, 3))[:rows]
        same(run([c, x[:rows], z])[0], np.where(c, x[:rows], z))


@each_engine
def test_equal(engine: str) -> None:
    x, y = texts(WORDS)[:, None], texts([*WORDS, "A", "b", "日本語 "])[None]
    model = make_model("y = Equal (x, z)", {"x": x, "z": y}, dims={"x": ["n", 1]})
    check(run_model(model, [x, y], engine)[0], (x == y).astype(bool))


@each_engine
def test_concat_and_constants(engine: str) -> None:
    x = texts(WORDS, (3, 4))
    constants = {"a": texts(["<", "", "日"])[:, None], "b": texts(">")}
    model = make_model(["t = StringConcat (a, x)", "y = StringConcat (t, b)"], {"x": x}, constants=constants)
    same(run_model(model, [x], engine)[0], constants["a"] + x + ">")


def test_many_runs_and_much_memory() -> None:
    """The memory of a run's strings is taken again by the next; results stay."""
    x = texts([f"{i}" * 3000 for i in range(100)])
    run = prepare(make_model("y = StringConcat (x, x)", {"x": x}, dims={"x": ["n"]}), "compiled")
    first = run([x])[0]
    for _ in range(5):
        run([texts(["other"] * 7)])
    same(first, x + x)
    same(run([x])[0], x + x)


def test_feeds_and_outputs() -> None:
    compiled = sardonyx.compile(make_model("y = Identity (x)", {"x": texts(["a", "b"])}, dims={"x": ["n"]}))
    same(compiled.run({"x": ["a", "ß"]})[0], texts(["a", "ß"]))
    same(compiled.run([np.array(["a", "ß"])])[0], texts(["a", "ß"]))
    same(compiled.run([texts([b"a", "ß".encode()])])[0], texts(["a", "ß"]))
    for wrong in ([1, 2], texts([None]), np.array([1.0])):
        with pytest.raises(sardonyx.RuntimeFault, match="'x'"):
            compiled.run([wrong])
    with pytest.raises(sardonyx.RuntimeFault, match="strings"):
        compiled.run([texts(["a"])], out=[np.empty(1, object)])


SPLITS = [
    "",
    "a",
    ",",
    "a,b",
    "a,,b,",
    ",,a",
    "one, two",
    " a  b ",
    "\ta\u3000b\u00a0c\u2028d\n",
    "a::b:::c",
    "::",
    "日本,語",
]


@each_engine
@pytest.mark.parametrize("delimiter", ["", ",", "::", "本", "aa", None])
@pytest.mark.parametrize("most", [None, 0, 1, 2, 5])
def test_split(delimiter: str | None, most: int | None, engine: str) -> None:
    given: dict[str, Any] = {} if delimiter is None else {"delimiter": delimiter}
    given |= {} if most is None else {"maxsplit": most}
    x = texts([*SPLITS, "aaaa", "aaaaa"], (2, -1))
    node = helper.make_node("StringSplit", ["x"], ["y", "n"], **given)
    y, n = run_model(make_model([node], {"x": x}, dims={"x": ["a", "b"]}), [x], engine)
    parts = [t.split(delimiter or None, -1 if most is None else most) for t in x.ravel()]
    width = max(map(len, parts))
    check(n, np.array([len(p) for p in parts]).reshape(x.shape))
    same(y, texts([p + [""] * (width - len(p)) for p in parts]).reshape(*x.shape, width))


@each_engine
@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("stop", [None, ["Straße", "NAN", "日本語"], [*WORDS]])
def test_normalizer(action: str, sensitive: int, stop: Any, engine: str) -> None:
    given: dict[str, Any] = {"case_change_action": action, "is_case_sensitive": sensitive}
    if stop:
        given["stopwords"] = [w.encode("utf-8", "surrogateescape") for w in stop]
    node = helper.make_node("StringNormalizer", ["x"], ["y"], **given)
    x = texts(WORDS)
    (y,) = run_model(make_model([node], {"x": x}, dims={"x": ["n"]}), [x], engine)

    def lower(word: str) -> str:
        return word if sensitive else change_case(word, "lower")

    banned = {lower(w) for w in stop or ()}
    kept = [w for w in WORDS if lower(w) not in banned] or [""]
    want = [w if action == "NONE" else change_case(w, action.lower()) for w in kept]
    same(y, texts(want))


def test_case_of_every_character() -> None:
    """All code points, in strings of 61; and bytes that are no UTF-8."""
    points = [chr(c) for c in range(0x11000) if not 0xD800 <= c < 0xE000]
    x = texts(
        ["".join(points[i : i + 61]) for i in range(0, len(points), 61)]
        + ["a\udcc3z", "\udcf0\udc9f", "Ä\udce4"]
    )
    for action in ("LOWER", "UPPER"):
        node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action=action)
        (y,) = run_model(make_model([node], {"x": x}), [x], "compiled")
        same(y, texts([change_case(t, action.lower()) for t in x]))


# -- numbers


def cast(x: Array, to: int, engine: str) -> Array:
    model = make_model([helper.make_node("Cast", ["x"], ["y"], to=to)], {"x": x}, opset=21, dims={"x": ["n"]})
    return np.asarray(run_model(model, [x], engine)[0])


@each_engine
@pytest.mark.parametrize("kind", "i8 i16 i32 i64 ui8 ui16 ui32 ui64".split())
def test_integers_to_text_and_back(kind: str, engine: str) -> None:
    info = np.iinfo(numpy_type(kind))
    values = [
        v
        for v in (0, 1, -1, 9, 10, -10, 99, 100, 12345678901234567, -(2**62), info.min, info.max)
        if info.min <= v <= info.max
    ]
    x = np.array(values, numpy_type(kind))
    text = cast(x, 8, engine)
    same(text, texts([str(v) for v in values]))
    check(cast(text, dtypes.by_name(kind).onnx, engine), x)


@each_engine
def test_booleans(engine: str) -> None:
    same(cast(np.array([True, False]), 8, engine), texts(["True", "False"]))
    check(cast(texts(["1", "0", "-3", "0.5", "0.0"]), 9, engine), np.array([True, False, True, True, False]))


def floats(kind: str, count: int = 3000) -> Array:
    dtype = numpy_type(kind)
    rng = np.random.RandomState(0)
    special = [
        0.0,
        -0.0,
        1,
        -1,
        0.1,
        100,
        1e-4,
        9.99995e-5,
        1e-5,
        1e15,
        1e16,
        9.999e15,
        123456,
        2.5,
        np.inf,
        -np.inf,
        np.nan,
    ]
    with np.errstate(all="ignore"):
        powers = np.array([2.0**e for e in range(-1074, 1024)]).astype(dtype)
        bits = rng.randint(0, 2**63, count, np.int64).view(np.uint64) >> np.uint64(64 - 8 * dtype.itemsize)
        bits |= rng.randint(0, 2, count).astype(np.uint64) << np.uint64(8 * dtype.itemsize - 1)
        noise = bits.astype(f"u{dtype.itemsize}").view(dtype)
        usual = (rng.randint(-(10**6), 10**6, count) / 10.0 ** rng.randint(0, 9, count)).astype(dtype)
        return np.concatenate([np.array(special).astype(dtype), powers, -powers[::7], noise, usual])


@pytest.mark.parametrize("kind", "f16 bf16 f32 f64".split())
def test_floats_to_text(kind: str) -> None:
    x = floats(kind)
    same(cast(x, 8, "compiled"), texts([format_number(v) for v in x]))


@pytest.mark.parametrize("kind", "f16 bf16".split())
def test_every_half_precision_number(kind: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(numpy_type(kind))
    text = cast(x, 8, "compiled")
    same(text, texts([format_number(v) for v in x]))
    check(cast(text, dtypes.by_name(kind).onnx, "compiled"), x)


@pytest.mark.parametrize("kind", "f16 bf16 f32 f64".split())
def test_text_to_floats(kind: str) -> None:
    """What was written comes back; digits in any number are rounded once, ties and their neighbours as well."""
    dtype = numpy_type(kind)
    x = floats(kind)
    text = [format_number(v) for v in x]
    check(cast(texts(text), dtypes.by_name(kind).onnx, "compiled"), x)
    rng = np.random.RandomState(1)
    hard = [
        f"{rng.randint(1, 10)}{rng.randint(0, 2**62):019d}{tail}e{rng.randint(-345, 310)}"
        for tail in ("", "1", "." + "0" * 30 + "7")
        for _ in range(400)
    ]
    with np.errstate(all="ignore"):
        finite = np.unique(np.abs(x[np.isfinite(x)].astype(np.float64)))
        for low in finite[:: max(1, len(finite) // 400)]:
            high = float(np.nextafter(dtype.type(low), dtype.type(np.inf))) if kind != "bf16" else low
            middle = format(ml_exact(low) + ml_exact(high), "f")
            hard += [middle, middle + ("1" if "." in middle else ".1")]
    hard += [
        "1e400",
        "-1e400",
        "1e-400",
        "0e999",
        "1e99999999999",
        "0." + "0" * 400 + "1e400",
        "9" * 400,
        "1" + "0" * 300 + "e-300",
    ]
    hard += [
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
    ]
    want = np.array([parse_float(t, dtypes.by_name(kind)) for t in hard], dtype)
    check(cast(texts(hard), dtypes.by_name(kind).onnx, "compiled"), want)


def ml_exact(x: float) -> Any:
    """Half of a float, exactly, as a decimal."""
    from decimal import Decimal, getcontext

    getcontext().prec = 1200
    return Decimal(x) / 2


@each_engine
@pytest.mark.parametrize("kind", ["f32", "f64", "i32", "ui8"])
def test_forms_of_numbers(kind: str, engine: str) -> None:
    good = [
        "1",
        "+2",
        "-3",
        " 4 ",
        "\t5\n",
        "6.",
        ".5",
        "-0",
        "1e2",
        "1E+2",
        "100e-2",
        "inf",
        "-Infinity",
        "+INF",
        "NaN",
        "-nan",
    ]
    x = cast(texts(good), dtypes.by_name(kind).onnx, engine)
    wide = np.array([float(t) for t in good])
    if kind.startswith("f"):
        check(x, wide.astype(numpy_type(kind)))
    else:
        model = make_model(
            [helper.make_node("Cast", ["x"], ["y"], to=dtypes.by_name(kind).onnx)], {"x": wide}
        )
        check(x, run_model(model, [wide], engine)[0])


@each_engine
@pytest.mark.parametrize(
    "text",
    ["", " ", "a", "1a", "1 2", "--1", "1e", "e5", ".", "1.2.3", "0x10", "infin", "na", "+-1", "1_0", "٣"],
)
def test_what_is_no_number(text: str, engine: str) -> None:
    with pytest.raises(sardonyx.RuntimeFault, match=r"element 1 .* no number"):
        cast(texts(["1", text]), 1, engine)


@each_engine
@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_small_floats(kind: str, engine: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, kind))
    x = np.array([0.5, -1.25, 3, 0], dtype)
    same(cast(x, 8, engine), texts(["0.5", "-1.25", "3.0", "0.0"]))
    check(cast(texts(["0.5", "-1.25", "3", "0"]), dtypes.by_numpy(dtype).onnx, engine), x)


# -- regular expressions

PATTERNS = [
    "", "a", "abc", "a|b|", "(ab)*", "a+b?c*", "a{2}", "a{2,}", "a{0,3}b", "(a|bc){2,3}", "[abc]", "[^abc]", "[a-c0-9_-]+", "[]a]",
    r"\d+\.\d*", r"\w+@\w+\.com", r"[\w.\-]{0,25}@(yahoo|gmail)\.com", ".*", ".", "^abc$", "(^a|b)c", "(a|^)b($|c)", "x*",
    r"\s*\S+\s*", "[à-ÿ]+", "日.語?", r"[^\x00-\x7f]*", r"\x41\x{65e5}", "(?:ab|cd)+", "(?P<n>a)b", "a*?b", "a[[:digit:]]+[[:^alpha:]]", r"\[\]\(\)", r"\w+\b.*", r".*\Bb\B.*", r"\ba\b", r"(\ba\B|\B)*.", r"www\.\bcom\b",
]  # fmt: skip
SUBJECTS = [
    "", "a", "b", "c", "ab", "abc", "abab", "aa", "aaa", "aaab", "bcbc", "abca", "abcbc", "-", "_9", "]", "1.", "12.34", ".5", "me@x.com",
    "me.you@gmail.com", "@yahoo.com", "a\nb", "\n", " x ", "à", "ÿé", "日本語", "日本", "x日", "A日", "abcd", "cdab", "a1!", "a12 ", "[](){}", "xxx", "a b", "www.com", "bc", "b", "ac",
]  # fmt: skip


def python_pattern(pattern: str) -> str:
    """The same in Python's syntax: ASCII classes, no POSIX ones."""
    for name, chars in {"[[:digit:]]": "[0-9]", "[[:^alpha:]]": "[^A-Za-z]", r"\x{65e5}": "日"}.items():
        pattern = pattern.replace(name, chars)
    return pattern.replace(r"\s", r"[\t\n\f\r ]").replace(r"\S", r"[^\t\n\f\r ]")


@each_engine
@pytest.mark.parametrize("pattern", PATTERNS)
def test_regular_expressions(pattern: str, engine: str) -> None:
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    x = texts(SUBJECTS, (2, -1))
    (y,) = run_model(make_model([node], {"x": x}), [x], engine)
    compiled = re.compile(python_pattern(pattern), re.ASCII)
    check(y, np.array([compiled.fullmatch(s) is not None for s in SUBJECTS]).reshape(2, -1))


@pytest.mark.parametrize(
    "pattern", ["(a", "a)", "[a", "*a", r"\Qa", "(?=a)", "(?i)a", r"\1", "a{2,1}", r"\pL", "a**"]
)
def test_patterns_that_are_refused(pattern: str) -> None:
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    with pytest.raises(sardonyx.CompileError, match="pattern"):
        sardonyx.compile(make_model([node], {"x": texts(["a"])}))


@each_engine
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("lengths", [(1, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize("skips", [0, 1, 5])
@pytest.mark.parametrize("of_text", [False, True])
def test_tf_idf(mode: str, lengths: tuple[int, int], skips: int, of_text: bool, engine: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    words = np.array(["a", "ä", "", "dd", "e"], object)
    pool = np.array([2, 3, 4, 2, 3, 0, 1, 4, 4, 3, 2])  # three words, then four pairs
    x = np.random.RandomState(0).randint(0, 6, (4, 12)) % 5
    tokens = {"pool_strings": words[pool].tolist()} if of_text else {"pool_int64s": pool.tolist()}
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode=mode, min_gram_length=lengths[0], max_gram_length=lengths[1],
        max_skip_count=skips, ngram_counts=[0, 3], ngram_indexes=[6, 0, 1, 2, 3, 5, 4],
        weights=[0.5, 2, 1, 3, 0.25, 7, 1], **tokens,
    )  # fmt: skip
    feeds = words[x] if of_text else x
    model = make_model([node], {"x": feeds}, dims={"x": ["n", "c"]})
    model.graph.output[0].type.tensor_type.elem_type = 1
    want = ort.InferenceSession(model.SerializeToString()).run(None, {"x": feeds})[0]
    check(run_model(model, [feeds], engine)[0], want)
    for width in (1, 0):  # too short for pairs
        short = run_model(model, [feeds[:, :width]], engine)[0]
        assert short.shape == want.shape and not short[:, [2, 3, 5, 4]].any()
