"""Protobuf to IR: the only package that knows protobuf and ``onnx.defs``.

The onnx level as :func:`import_model` makes it:

- A node is ``Op("onnx.<OpType>", ...)``.  ONNX attributes keep their names and are plain values: int,
  float, str (bytes where they are no UTF-8), Dense, Type, tuples of these; inside functions also
  :class:`AttributeReference`.  Our own: ``sdx.opset`` (the version of the operator's domain), ``sdx.domain``
  (unless it is the default one), ``sdx.function`` (name of the model's function that is called),
  ``sdx.regions`` (names of the graph attributes, in the order of the regions).
- Trailing inputs left out are dropped; others are results of an ``onnx.none`` op.  An output left out is a
  result without a name.
- Initializers are ``core.constant`` ops at the head of the block; one that is an input of the main graph
  as well is an argument with a value in the function's ``defaults``.
- Subgraphs are regions, with arguments for their inputs and ``onnx.yield`` at the end; they use the values
  of enclosing graphs directly.  A function ends in ``core.return``.
- Only arguments of ``main`` and constants have a type; every result is of unknown type.
"""

from sardonyx.frontend.function_bodies import import_function, schema_function
from sardonyx.frontend.importer import import_model
from sardonyx.frontend.load import load_model
from sardonyx.frontend.references import AttributeReference, bind_references
from sardonyx.frontend.schemas import check_types

__all__ = [
    "AttributeReference",
    "bind_references",
    "check_types",
    "import_function",
    "import_model",
    "load_model",
    "schema_function",
]
