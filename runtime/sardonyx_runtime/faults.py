"""What the status codes of a run mean, in words."""

from __future__ import annotations

from sardonyx_runtime.signature import Signature

__all__ = ["CPU", "FAULTS", "NO_CONTEXT", "UNKNOWN", "explain"]

CPU = 7  # a library's code does not run on this CPU

# By code (docs/abi.md), the text: `value` and `second` are the status's values, the others texts by its number.
# Libraries hold the same texts for programs that are not in Python.
FAULTS = {
    1: "the input {input!r} does not have the size the model takes: {value} instead of {second}",
    2: "node {node}: {message}: {value} and {second}",
    3: "node {node}: a dim computed from the data is {value}{tensors}",
    4: "there is no memory for {value} bytes",
    5: "the sizes overflow: a tensor would be larger than memory can be",
    6: "there is no memory for a string of {value} bytes",
    CPU: "the CPU does not have the features that the model was compiled for",
    16: "node {node}: integer division by zero{tensors}",
    17: "node {node}: the index {value} is out of range{tensors}",
    18: "node {node}: its external function returned {value}{tensors}",
    19: "node {node}: element {value} of its input is no number{tensors}",
}
NO_CONTEXT = "there is no context: it could not be made"
UNKNOWN = "the run failed with code {code}, which this version does not know"


def explain(signature: Signature, code: int, number: int, value: int, second: int) -> tuple[str, str]:
    """The text of a fault, and the node that is to blame ("" where none is)."""
    template = FAULTS.get(code)
    if template is None:
        return UNKNOWN.format(code=code), ""
    node, message, name, tensors = "", "", "", ""
    if code == 1:
        name = signature.inputs[number].name
    elif code == 2:
        node, message = signature.messages[number]
    elif "{node}" in template:
        node = signature.nodes[number]
        tensors = signature.tensors[number] if number < len(signature.tensors) else ""
    fields = {"node": node, "input": name, "message": message, "tensors": tensors}
    return template.format(value=value, second=second, **fields), node
