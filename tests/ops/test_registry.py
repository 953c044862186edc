"""The registry against the schemas: every version of every elementwise operator, with its parameters."""

from __future__ import annotations

import inspect
from itertools import pairwise

import pytest

from sardonyx import ops
from sardonyx.frontend import schemas
from sardonyx.ops import registry

assert ops.__all__  # the import fills the registry

NAMES = """
Abs Acos Acosh Add And Asin Asinh Atan Atanh BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast
CastLike Ceil Celu Clip Cos Cosh DequantizeLinear Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual
HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not
Or PRelu Pow QuantizeLinear Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt
Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor
"""
ELEMENTWISE = NAMES.split()

Parameter = inspect.Parameter

VERSIONS = [(op_type, version) for op_type in ELEMENTWISE for version in schemas.versions(op_type, "")]


def parameters(entry: registry.Entry) -> list[Parameter]:
    """The parameters after the builder."""
    return list(inspect.signature(entry.function).parameters.values())[1:]


@pytest.mark.parametrize(("op_type", "version"), VERSIONS)
def test_every_version_is_served_with_its_attributes(op_type: str, version: int) -> None:
    entry = registry.find(op_type, "", version)
    assert entry is not None
    schema = schemas.find(op_type, "", version)
    keywords = {p.name: p for p in parameters(entry) if p.kind is Parameter.KEYWORD_ONLY}
    assert set(keywords) == set(schema.attributes)
    for name, parameter in keywords.items():
        attribute = schema.attributes[name]
        if parameter.default is Parameter.empty:
            assert attribute.required or attribute.default is not None
        elif attribute.default is not None:
            assert parameter.default in (attribute.default, None)


@pytest.mark.parametrize(("op_type", "version"), VERSIONS)
def test_every_version_is_served_with_its_inputs(op_type: str, version: int) -> None:
    entry = registry.find(op_type, "", version)
    assert entry is not None
    inputs = schemas.find(op_type, "", version).inputs
    given = [p for p in parameters(entry) if p.kind is not Parameter.KEYWORD_ONLY]
    if inputs[-1].option == "variadic":
        least = sum(p.kind is Parameter.POSITIONAL_OR_KEYWORD for p in given)
        assert given[-1].kind is Parameter.VAR_POSITIONAL
        assert least <= max(inputs[-1].least, 1)
    else:
        assert [p.default is None for p in given] == [i.option == "optional" for i in inputs]


def test_versions_of_the_domain_have_no_gap_and_no_overlap() -> None:
    for op_type in ELEMENTWISE:
        served = [e for e in registry.entries() if e.op_type == op_type and e.domain == ""]
        assert served[0].since <= schemas.versions(op_type, "")[0]
        for earlier, later in pairwise(served):
            assert earlier.until + 1 == later.since
        assert served[-1].until >= schemas.newest_opset("")
