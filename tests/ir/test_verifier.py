"""The verifier: each invariant broken once, with a look at the message."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from sardonyx.ir.declare import OpDecl, Trait
from sardonyx.ir.graph import Block, Function, Location, Module, Op, Origin, Value
from sardonyx.ir.parser import parse_module
from sardonyx.ir.types import TensorType
from sardonyx.ir.verifier import VerifyError, verify
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import symbol

from .modules import modules

TEXT = """
func @main(%x: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {
  %a = test.one %x : (tensor<f32>) -> tensor<f32> loc("main|first:One(a)")
  %b = test.if %c ({
    %inner = test.two %a, %a : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("main|second:Two(inner)")
    test.yield %inner : (tensor<f32>) -> ()
  }, {
  ^bb0(%argument: tensor<f32>):
    test.yield %argument : (tensor<f32>) -> ()
  }) : (tensor<i1>) -> tensor<f32>
  test.return %b : (tensor<f32>) -> ()
}
func @other() {
  test.return : () -> ()
}
"""
SCALAR = TensorType(dtypes.f32, ())


class Parts:
    """A correct module to be broken, with names for what is in it."""

    def __init__(self) -> None:
        self.module = parse_module(TEXT)
        self.main = self.module.main
        self.one, self.branch, self.end = self.main.body.ops
        self.then, self.otherwise = self.branch.regions
        self.two, self.inner_end = self.then.ops


@pytest.fixture
def parts() -> Parts:
    found = Parts()
    verify(found.module)
    return found


def stray() -> Value:
    return Op("test.stray", result_types=[SCALAR]).result


def set_name(p):
    p.main.name = "renamed"


def set_function_attribute(p):
    p.main.attributes["a"] = [1]


def set_module_attribute(p):
    p.module.attributes["a"] = {"b": (1, np.int64(3))}


def body_of_another(p):
    p.main.body.parent = p.module.functions["other"]


def region_of_another(p):
    p.then.parent = p.one


def region_twice(p):
    p.branch.regions[1] = p.then


def op_of_another_block(p):
    p.two.block = p.otherwise


def op_twice(p):
    p.main.body.ops.insert(1, p.one)


def empty_block(p):
    p.otherwise.ops.clear()


def no_terminator(p):
    p.main.body.ops.pop()


def terminator_inside(p):
    op = Op("test.return")
    op.block = p.main.body
    p.main.body.ops.insert(1, op)


def use_before_definition(p):
    ops = p.main.body.ops
    ops[0], ops[1] = ops[1], ops[0]


def use_outside_the_region(p):
    p.end.set_operands([p.two.result])


def use_of_the_sibling_region(p):
    p.inner_end.set_operands([p.otherwise.arguments[0]])
    p.branch.regions.reverse()


def use_of_a_stray_value(p):
    p.end.set_operands([stray()])


def use_of_another_function(p):
    other = p.module.functions["other"]
    other.body.terminator.set_operands([p.one.result])


def use_of_no_value(p):
    p.end.operands = (3,)


def use_not_counted(p):
    del p.branch.operands[0].uses[p.branch]


def use_counted_wrongly(p):
    p.one.result.uses[p.two] = 1


def use_of_no_operand(p):
    p.one.result.uses[p.end] = 1


def use_by_an_op_taken_out(p):
    Op("test.gone", [p.one.result])


def owner_wrong(p):
    p.one.result.owner = p.two


def index_wrong(p):
    p.otherwise.arguments[0].index = 1


def defined_twice(p):
    p.two.results.append(p.one.result)
    p.one.result.owner, p.one.result.index = p.two, 1


def type_is_a_string(p):
    p.one.result.type = "tensor<f32>"


def type_is_an_element_type(p):
    p.main.arguments[0].type = dtypes.f32


def dim_negative(p):
    p.one.result.type = TensorType(dtypes.f32, (-1, symbol("n")))


def dim_of_numpy(p):
    p.one.result.type = TensorType(dtypes.f32, (np.int64(3),))


def name_without_level(p):
    p.one.name = "one"


def attribute_illegal(p):
    p.one.attributes["a"] = np.zeros(3)


def attribute_illegal_inside(p):
    p.one.attributes["a"] = (1, {"b": None})


def attribute_key_illegal(p):
    p.one.attributes[3] = 3


def attribute_key_empty(p):
    p.one.attributes["a"] = {"": 3}


def location_illegal(p):
    p.one.location = Origin("main", "x", "Add")


BREAKS = [
    (set_name, "'renamed' is listed as 'main'"),
    (set_function_attribute, r"function main: the attribute 'a' is \[1\], of no legal kind"),
    (set_module_attribute, "the module: the attribute 'a'"),
    (body_of_another, "function main: the block's parent is"),
    (region_of_another, "test.if, region 0: the block's parent is"),
    (region_twice, "test.if, region 1: the block stands in two places"),
    (op_of_another_block, "test.two: the op's block is not the one it stands in"),
    (op_twice, "test.one: the op stands in two places"),
    (empty_block, "test.if, region 1: the block is empty"),
    (no_terminator, "test.if: no terminator, but the last op"),
    (terminator_inside, "test.return: a terminator, but not the last op"),
    (use_before_definition, r"test.two: operand 0 .* is not defined before its use"),
    (use_outside_the_region, r"test.return: operand 0 \(%inner.* a region that has ended"),
    (use_of_the_sibling_region, r"test.yield: operand 0 .* a region that has ended"),
    (use_of_a_stray_value, r"test.return: operand 0 .* is not defined before its use"),
    (use_of_another_function, "counts a use by <test.return.*not in this function"),
    (use_of_no_value, "operand 0 is no value but 3"),
    (use_not_counted, "test.if: operand 0 does not count this use"),
    (use_counted_wrongly, "%a: .* counts 1 uses by test.two, which has 2"),
    (use_of_no_operand, "%a: .* counts 1 uses by test.return, which has 0"),
    (use_by_an_op_taken_out, "%a: .* counts a use by <test.gone.*not in this function"),
    (owner_wrong, "test.one: result 0 does not know its owner and place"),
    (index_wrong, "test.if, region 1, argument 0 does not know its owner and place"),
    (defined_twice, "test.one: result 0 does not know"),
    (type_is_a_string, "test.one: result 0 has the type 'tensor<f32>', which is no Type"),
    (type_is_an_element_type, "function main, argument 0 has the type f32, which is no Type"),
    (dim_negative, "test.one: result 0 has a negative dim"),
    (dim_of_numpy, "test.one: result 0 has the shape .*int64.*: dims are int or Dim"),
    (name_without_level, "'one': the name of an op is level.kind"),
    (attribute_illegal, "test.one: the attribute 'a' is .*of no legal kind"),
    (attribute_illegal_inside, "test.one: the attribute 'a' is .*of no legal kind"),
    (attribute_key_illegal, "test.one: the attribute 3 is 3"),
    (attribute_key_empty, "test.one: the attribute 'a' is {'': 3}"),
    (location_illegal, "test.one: the location is Origin"),
]


@pytest.mark.parametrize(("breaks", "message"), BREAKS, ids=lambda p: getattr(p, "__name__", ""))
def test_invariant(parts, breaks, message):
    breaks(parts)
    with pytest.raises(VerifyError) as caught:
        verify(parts.module)
    assert re.search(message, str(caught.value).splitlines()[0]), str(caught.value)


def test_message_shows_the_neighbourhood(parts):
    parts.two.set_operands([stray(), parts.one.result])
    with pytest.raises(VerifyError) as caught:
        verify(parts.module, pass_name="fuse")
    assert str(caught.value) == (
        "after the pass fuse: test.two: operand 0 (%?: tensor<f32>) is not defined before its use\n"
        "  func @main(%x: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {\n"
        "    %a = test.one %x : (tensor<f32>) -> tensor<f32>\n"
        "    %b = test.if %c ({\n"
        ">     %inner = test.two %0, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"
        "      test.yield %inner : (tensor<f32>) -> ()\n"
        "    }, {\n"
        "    ^bb0(%argument: tensor<f32>):\n"
        "  from second"
    )


@given(modules())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_modules_that_are_correct(module):
    verify(module)


# --- declarations ------------------------------------------------------------------------------------

DECLARATIONS = {
    "test.one": OpDecl("test.one", ("x",), ("axis?",), lambda types, _: [types[0]], None),
    "test.stop": OpDecl("test.stop", ("*values",), (), None, None, frozenset({Trait.TERMINATOR})),
}


def declared_module() -> Module:
    body = Block([SCALAR], ["x"])
    op = body.append(Op("test.one", body.arguments, [SCALAR], {"axis": 0}))
    body.append(Op("test.stop", op.results))
    module = Module()
    module.add(Function("main", body))
    return module


def test_declared_terminator():
    verify(declared_module(), lookup=DECLARATIONS.get)
    with pytest.raises(VerifyError, match=r"test.stop: no terminator, but the last op"):
        verify(declared_module())


@pytest.mark.parametrize(
    ("attributes", "type", "message"),
    [
        ({"axes": 0}, SCALAR, "unknown"),
        ({}, TensorType(dtypes.f32, (2,)), "results are tensor<2xf32>; the rule gives tensor<f32>"),
    ],
)
def test_declaration_broken(attributes, type, message):
    module = declared_module()
    op = module.main.body.ops[0]
    op.attributes, op.location = attributes, Location((Origin("main", "Add_1", "Add"),))
    op.result.type = type
    with pytest.raises(VerifyError, match=message) as caught:
        verify(module, lookup=DECLARATIONS.get)
    assert "> " in str(caught.value)
    assert "from Add_1" in str(caught.value)
