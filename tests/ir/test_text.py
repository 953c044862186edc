"""The text form: everything that is printed is parsed back the same, and errors show the place."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sardonyx.ir.attributes import Dense
from sardonyx.ir.compare import same, same_attribute
from sardonyx.ir.graph import Block, Function, Location, Module, Op, Origin, walk
from sardonyx.ir.parser import IRSyntaxError, parse_module
from sardonyx.ir.printer import print_block, print_function, print_module, print_op
from sardonyx.ir.types import TensorType, VectorType
from sardonyx.ir.verifier import verify
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import symbol

from .modules import attributes, modules, origins, texts

BATCH = symbol("batch")
ROWS = TensorType(dtypes.f32, (BATCH, 3))
ANY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def with_attribute(value) -> Module:
    body = Block()
    body.append(Op("test.op", attributes={"a": value}))
    body.append(Op("test.yield"))
    module = Module()
    module.add(Function("main", body))
    return module


def attribute_text(value, **options) -> str:
    line = print_module(with_attribute(value), **options).splitlines()[1]
    return line[line.index("{a = ") + 5 : line.rindex("} : ()")]


def parsed(text: str) -> Module:
    return parse_module(dedent(text))


# --- round trips -------------------------------------------------------------------------------------


@ANY
@given(modules(), st.booleans(), st.sampled_from([None, 0, 4, 16]))
def test_round_trip(module, generic, elide):
    text = print_module(module, generic=generic, elide=elide, resources=True)
    again = parse_module(text)
    assert same(module, again) is None
    assert print_module(again, generic=generic, elide=elide, resources=True) == text
    verify(again)


@ANY
@given(attributes, st.booleans())
def test_round_trip_of_attributes(value, generic):
    module = with_attribute(value)
    assert same(module, parse_module(print_module(module, generic=generic, elide=None))) is None


@given(origins)
def test_round_trip_of_origins(origin):
    assert Origin.parse(str(origin)) == origin


@ANY
@given(st.lists(texts, min_size=1, max_size=8))
def test_names_survive(names):
    body = Block([ROWS] * len(names), names)
    body.append(Op("test.yield", body.arguments))
    module = Module()
    module.add(Function("main", body))
    for generic in (False, True):
        assert [a.name for a in parse_module(print_module(module, generic=generic)).main.arguments] == names


def test_without_locations():
    op = Op("test.yield", location=Location((Origin("", "n", "Op"),)))
    module = Module()
    module.add(Function("main", Block()))
    module.main.body.append(op)
    assert "loc(" in print_module(module)
    assert "loc(" not in print_module(module, locations=False)
    assert same(module, parse_module(print_module(module, locations=False)), locations=False) is None


# --- what it looks like ------------------------------------------------------------------------------


def example() -> Module:
    body = Block([TensorType(dtypes.f32, ()), ROWS], ["y", "/enc/x:0"])
    y, x = body.arguments
    location = Location((Origin("main", "/enc/Floor", "Floor", ("7",)),))
    wide = body.append(Op("core.broadcast", [y], [ROWS], {"shape": (BATCH, 3)}, location=location)).result
    found = body.append(Op("core.ge", [x, wide], [TensorType(dtypes.boolean, ROWS.shape)])).result
    found.name = "7"
    inner = Block([ROWS], ["x"])
    inner.append(Op("core.yield", inner.arguments))
    body.append(Op("core.loop", [x], [ROWS], {"count": 3}, [inner]))
    body.append(Op("core.return", [found]))
    module = Module()
    module.add(Function("main", body, {"opset": 17}))
    return module


def test_short_form():
    expected = """\
        func @main(%y: tensor<f32>, %$enc$x-0: ROWS) -> BITS attributes {opset = 17} {
          %0 = core.broadcast %y {shape = #sdx.dims<"batch", 3>} : (tensor<f32>) -> ROWS FLOOR
          %_7 = core.ge %$enc$x-0, %0 : (ROWS, ROWS) -> BITS
          %1 = core.loop %$enc$x-0 {count = 3} ({
          ^bb0(%x: ROWS):
            core.yield %x : (ROWS) -> ()
          }) : (ROWS) -> ROWS
          core.return %_7 : (BITS) -> ()
        }
        """
    words = {
        "ROWS": 'tensor<?x3xf32, #sdx.dims<"batch", 3>>',
        "BITS": 'tensor<?x3xi1, #sdx.dims<"batch", 3>>',
        "FLOOR": 'loc("main|/enc/Floor:Floor(7)")',
    }
    expected = re.sub("ROWS|BITS|FLOOR", lambda m: words[m[0]], dedent(expected))
    assert print_module(example()) == expected


def test_generic_form():
    text = print_module(example(), generic=True, locations=False)
    assert text.startswith('module {\n  "func.func"() ({\n  ^bb0(%y: tensor<f32>, %$enc$x-0: tensor<?x3xf32,')
    assert (
        '%0 = "core.broadcast"(%y) {shape = #sdx.dims<"batch", 3>} : (tensor<f32>) -> tensor<?x3xf32' in text
    )
    assert "}) {count = 3 : i64} : (tensor<?x3xf32" in text
    assert (
        '}) {sym_name = "main", sdx.attributes = {opset = 17 : i64}, function_type = (tensor<f32>, ' in text
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (3, "3"),
        (1e-5, "1.0e-05"),
        (-0.0, "-0.0"),
        (1e22, "1.0e+22"),
        (float("inf"), "0x7FF0000000000000 : f64"),
        ('é"\\\n\x00', r'"é\"\\\n\00"'),
        (b'\xff"a', r'#sdx.bytes<"\FF\22a">'),
        (dtypes.u8, "ui8"),
        (VectorType(dtypes.u8), "vector<1xui8>"),
        (BATCH + 1, '#sdx.dim<"batch+1">'),
        ((BATCH, 3), '#sdx.dims<"batch", 3>'),
        ((BATCH, True), '[#sdx.dim<"batch">, true]'),
        ((1, (2.0, "x"), ()), '[1, [2.0, "x"], []]'),
        ({"a": 1, "b c": {}}, '{a = 1, "b c" = {}}'),
        (Dense(np.array([0.1, np.nan], np.float32)), "dense<[0.1, 0x7FC00000]> : tensor<2xf32>"),
        (Dense(np.zeros((50, 2), np.int8)), "dense<0> : tensor<50x2xi8>"),
        (Dense(np.zeros((0, 2), np.int8)), "dense<> : tensor<0x2xi8>"),
        (Dense(np.array([[1 - 2j]])), "dense<[[(1.0, -2.0)]]> : tensor<1x1xcomplex<f64>>"),
        (Dense(np.array(["a", '"'], object)), r'dense<["a", "\""]> : tensor<2x!sdx.string>'),
        (Dense(np.array([b"\xff"], object)), r'#sdx.strings<tensor<1x!sdx.string>, [#sdx.bytes<"\FF">]>'),
    ],
)
def test_attribute_text(value, text):
    assert attribute_text(value) == text
    again = parse_module(print_module(with_attribute(value)))
    assert same(with_attribute(value), again) is None


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3 : i64"), (2**63, "9223372036854775808 : i65"), (0.5, "0.5 : f64")]
)
def test_generic_numbers(value, text):
    line = print_module(with_attribute(value), generic=True)
    assert f"{{a = {text}}}" in line


def test_names_within_their_function():
    """An op printed alone has the names it has in its function."""
    body = example().main.body
    assert print_op(body.ops[3]) == 'core.return %_7 : (tensor<?x3xi1, #sdx.dims<"batch", 3>>) -> ()'
    assert print_op(body.ops[2].regions[0].ops[0]).startswith("core.yield %x :")
    assert print_block(body.ops[2].regions[0]).startswith("core.yield %x :")
    assert print_function(example().main) == print_module(example())


# --- constants elsewhere -----------------------------------------------------------------------------

LARGE = Dense(np.arange(20, dtype=np.float32))


def test_elided_constant():
    text = print_module(with_attribute(LARGE))
    assert f"dense_resource<{'_' * LARGE.key[0].isdigit()}{LARGE.key}> : tensor<20xf32>" in text
    found = parse_module(text, resources={LARGE.key: LARGE}).main.body.ops[0].attributes["a"]
    assert found is LARGE


def test_elided_constant_without_data():
    text = print_module(with_attribute(LARGE))
    module = parse_module(text)
    constant = module.main.body.ops[0].attributes["a"]
    assert constant == LARGE
    assert (constant.shape, constant.type, constant.key) == ((20,), LARGE.type, LARGE.key)
    assert print_module(module) == text
    with pytest.raises(IRSyntaxError, match=r"line 2, column .* the data of the constant .* resources=True"):
        _ = constant.array


def test_resource_section():
    text = print_module(with_attribute(LARGE), resources=True)
    assert "{-#\n  dialect_resources: {\n    builtin: {\n" in text
    assert f'{LARGE.key}: "0x40000000' in text
    np.testing.assert_array_equal(parse_module(text).main.body.ops[0].attributes["a"].array, LARGE.array)


def test_constants_in_place():
    assert attribute_text(LARGE, elide=None).startswith('dense<"0x00000000')
    assert attribute_text(LARGE, elide=20).startswith("dense<[0.0, 1.0")


@pytest.mark.parametrize("dtype", [t for t in dtypes.ALL if t.is_small_float], ids=str)
def test_every_element_of_small_types(dtype):
    constant = Dense(np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy), dtype)
    again = parse_module(print_module(with_attribute(constant), elide=256)).main.body.ops[0].attributes["a"]
    assert again == constant


# --- written by hand ---------------------------------------------------------------------------------


def test_names_anew_in_sibling_regions():
    module = parsed(
        """
        func @main(%c: tensor<i1>) { // a comment
          test.if %c ({ ^bb0(%a: index): test.yield %a : (index) -> () },
                      { ^bb0(%a: f32): test.yield %a : (f32) -> () }) : (tensor<i1>) -> ()
          test.yield : () -> ()
        }
        """
    )
    verify(module)
    assert [op.name for op in walk(module)] == ["test.if", "test.yield", "test.yield", "test.yield"]


def test_form_that_mlir_prints():
    module = parsed(
        """
        "builtin.module"() ({
          "func.func"() <{function_type = (f32) -> (f32, f32), sym_name = "main"}> ({
          ^bb0(%arg0: f32 loc("a.mlir":1:2)):
            %0:2 = "test.two"(%arg0) {b = 1.500000e+00 : f64} : (f32) -> (f32, f32) loc(unknown)
            "test.yield"(%0#1, %0#0) : (f32, f32) -> () loc("a.mlir":3:4)
          }) {sdx.names = {arg0 = "x"}} : () -> () loc(unknown)
        }) {sdx.attributes = {a = 1 : i64}} : () -> () loc("a.mlir":1:1)
        """
    )
    verify(module)
    two, end = module.main.body.ops
    assert end.operands == tuple(two.results[::-1])
    assert (two.attributes, module.attributes, module.main.arguments[0].name) == ({"b": 1.5}, {"a": 1}, "x")


def error_of(text: str) -> IRSyntaxError:
    with pytest.raises(IRSyntaxError) as caught:
        parsed(text)
    return caught.value


def test_error_shows_the_place():
    error = error_of("func @main(%x: f32) {\n  test.yield %y : (f32) -> ()\n}")
    assert (error.line, error.column) == (2, 14)
    assert str(error) == (
        "line 2, column 14: %y is not defined here\n    test.yield %y : (f32) -> ()\n               ^"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func @f() {", "the text ends"),
        ("fun @f() {}", "expected a function, found 'fun'"),
        ("func @f() { test.a ; }", "unexpected character ';'"),
        ('func @f() { test.a {a = "b} : () -> () }', "a string without its end"),
        ("func @f() {} func @f() {}", "there is a function 'f' already"),
        ("func @f(%a: f32, %a: f32) {}", "%a is defined already"),
        ("func @f() -> f32 {}", r"results declared \(f32\), the body ends with \(\)"),
        ("func @f(%a: f32) { test.a %a : (f64) -> () }", r"the operands are \(f32\), written as \(f64\)"),
        ("func @f() { %a, %b = test.a : () -> f32 }", "2 results named, 1 types given"),
        ("func @f() { test.a {a = 1, a = 2} : () -> () }", "'a' is given twice"),
        ("func @f() { test.a {a = #sdx.dims<1, x>} : () -> () }", "expected a dim, found 'x'"),
        ('func @f() { test.a {a = #sdx.dim<"1+">} : () -> () }', "not a dim expression"),
        ("func @f(%a: float) {}", "expected a type, found 'float'"),
        ("func @f(%a: tensor<?xf32>) {}", "needs its expression"),
        ('func @f(%a: tensor<?x3xf32, #sdx.dims<"b", 4>>) {}', "the shape and its dims differ"),
        ("func @f(%a: tensor<3xfloat>) {}", "'float' is no element type"),
        ("func @f() { test.a {a = dense<[1, 2]> : tensor<3xi8>} : () -> () }", "2 elements for tensor<3xi8>"),
        ("func @f() { test.a {a = dense<300> : tensor<i8>} : () -> () }", "300 does not fit i8"),
        ('func @f() { test.a {a = dense<"0x00"> : tensor<i32>} : () -> () }', "1 bytes for tensor<i32>"),
        ("func @f() { test.a {a = dense<x> : tensor<f32>} : () -> () }", "x"),
        ("func @f() { test.a ({ ^a: test.b : () -> () ^b: }) : () -> () }", "a region has one block here"),
        ('module { "func.func"() ({ }) : () -> () }', "needs sym_name and function_type"),
        ("func @f() {} {-# dialect_resources: 1 #-}", "expected '{', found '1'"),
    ],
)
def test_errors(text, message):
    error = error_of(text)
    assert re.search(message, str(error)), str(error)
    assert error.column >= 1


@given(modules(), st.data())
@ANY
def test_broken_text_gives_syntax_errors_only(module, data):
    """Whatever is cut out of a text, the parser either reads it or says where it is wrong."""
    text = print_module(module)
    start = data.draw(st.integers(0, len(text)))
    broken = text[:start] + text[start + data.draw(st.integers(1, 12)) :]
    try:
        parse_module(broken)
    except IRSyntaxError as error:
        assert "line" in str(error)


@pytest.mark.skipif(not shutil.which("iree-opt"), reason="needs iree-opt (pip install iree-base-compiler)")
def test_mlir_itself_reads_the_generic_form(tmp_path):
    """What MLIR prints again says the same, but for the names of values and the order of attributes."""
    module = example()
    constants = {
        f"c{i}": Dense(np.array([0, 1]).astype(t.numpy), t) for i, t in enumerate(dtypes.ALL) if t.bits
    }
    strings = {
        "s": Dense(np.array(["a", "é"], object)),
        "b": Dense(np.array([b"\xff"], object)),
        "large": LARGE,
    }
    others = {"nan": float("nan"), "least": -(2**63), "bytes": b"\x00", "mixed": (BATCH, True), "type": ROWS}
    module.main.body.ops[0].attributes |= constants | strings | others
    path = tmp_path / "module.mlir"
    path.write_text(print_module(module, generic=True, resources=True))
    options = ("allow-unregistered-dialect", "mlir-print-op-generic", "mlir-print-debuginfo")
    command = ["iree-opt", *(f"--{o}" for o in options), "--mlir-print-local-scope", str(path)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert same(module, parse_module(printed), names=False) is None


# --- comparison and speed ----------------------------------------------------------------------------


def test_differences_are_told():
    changed = example()
    changed.main.body.ops[0].attributes["shape"] = (BATCH, 4)
    assert "op 0 (core.broadcast): attribute 'shape'" in str(same(example(), changed))
    swapped = example()
    swapped.main.body.ops[1].set_operands(swapped.main.body.ops[1].operands[::-1])
    assert "op 1 (core.ge), operand 0" in str(same(example(), swapped))
    renamed = example()
    renamed.main.arguments[0].name = "z"
    assert "names 'y' and 'z'" in str(same(example(), renamed))
    assert same(example(), renamed, names=False) is None


@pytest.mark.parametrize(("a", "b"), [(1, True), (1, 1.0), (0.0, -0.0), ("a", b"a"), ((1,), (True,))])
def test_attributes_of_other_kinds_differ(a, b):
    assert not same_attribute(a, b)
    assert same_attribute(a, a)


def test_a_large_module_takes_no_more_than_linear_work():
    body = Block([ROWS], ["x"])
    value = body.arguments[0]
    for i in range(3000):
        value = body.append(Op("test.add", [value, value], [ROWS], {"axis": i, "shape": (BATCH, 3)})).result
        value.name = f"/layer.{i}/Add_output_0"
    body.append(Op("test.yield", [value]))
    module = Module()
    module.add(Function("main", body))
    start = time.process_time()
    assert same(module, parse_module(print_module(module))) is None
    assert time.process_time() - start < 2  # CPU seconds; 0.2 here, and quadratic work would take minutes
