"""The C header of a model: its functions, inputs and outputs (docs/abi.md says what they mean)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx.aot.c_names import c_identifiers, c_type, comment
from sardonyx.codegen.support import ENTROPY, STATUS, THREADS
from sardonyx_runtime import dtypes
from sardonyx_runtime.dims import symbols_of
from sardonyx_runtime.signature import Argument, Signature

__all__ = ["FIRST_WORDS", "header_text"]

FIRST_WORDS = "/* A compiled ONNX model as C functions"  # how every header begins

_HEAD = """\
{first} named {prefix}_...
 *
 * Made by Sardonyx {version} for {target}.
{facts} */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* The version of this interface; {prefix}_abi says which one the library has. */
#define {upper}_ABI {abi}
extern const uint32_t {prefix}_abi;

/* The library's description (JSON in UTF-8, ended by a zero byte), and its bytes without the zero. */
extern const char {prefix}_info[];
extern const int64_t {prefix}_info_size;

/* A context: what one run at a time uses, as 64-bit words. */
typedef int64_t {prefix}_context;
enum {{
{words}
}};

"""

_FUNCTIONS = """\
/* A new context whose runs use so many threads; NULL if there is no memory. */
{prefix}_context *{prefix}_create(int64_t threads);

/* The same, with memory from an allocator: allocate(user, size, alignment), release(user, memory). */
{prefix}_context *{prefix}_create_with(int64_t threads, void *(*allocate)(void *, int64_t, int64_t),
{space}void (*release)(void *, void *), void *user);

/* Frees a context and what it holds; NULL is allowed. */
void {prefix}_destroy({prefix}_context *context);

/* One run: an address for each input and each output; the extents of all inputs, one input behind the other;
 * room for those of all outputs, which it fills.  Returns 0, or the code of a fault. */
int32_t {prefix}_run({prefix}_context *context, const void *const *inputs, const int64_t *input_dims,
{run_space}void **outputs, int64_t *output_dims);

/* The words for the last run's fault, ended by a zero and cut to `size` bytes.
 * Returns the bytes of the whole text. */
int64_t {prefix}_error(const {prefix}_context *context, char *buffer, int64_t size);

/* Frees an output that a run allocated. */
void {prefix}_free({prefix}_context *context, void *memory);
"""

_INSIDE = """
/* The constants, which contexts are made with. */
extern const char {prefix}_weights[];
"""

_BESIDE = """
/* Maps the file with the constants; NULL stands for the one that the library was compiled with, beside it.
 * Contexts that are made before do so themselves.
 * Returns 0; 1 if the file cannot be mapped, 2 if its size, 3 if its contents are wrong. */
int32_t {prefix}_open(const char *path);
"""

_FOOT = """
#ifdef __cplusplus
}}
#endif

#endif /* {guard} */
"""


def header_text(prefix: str, signature: Signature, description: Mapping[str, Any]) -> str:
    """The header of a model whose symbols begin with ``prefix``; the description is the library's own."""
    upper = prefix.upper()
    guard = f"{upper}_H_"
    parts = [
        _HEAD.format(
            first=FIRST_WORDS,
            version=description["sardonyx"],
            target=_target(description),
            facts=_facts(description),
            guard=guard,
            upper=upper,
            prefix=prefix,
            abi=description["abi"],
            words=_words(upper),
        ),
        _ports(upper, "INPUT", "Inputs", signature.inputs, signature),
        _ports(upper, "OUTPUT", "Outputs", signature.outputs, signature),
        _FUNCTIONS.format(
            prefix=prefix,
            space=" " * len(f"{prefix}_context *{prefix}_create_with("),
            run_space=" " * len(f"int32_t {prefix}_run("),
        ),
        (_BESIDE if "weights_file" in description else _INSIDE).format(prefix=prefix),
        _call(prefix, signature),
        _FOOT.format(guard=guard),
    ]
    return "".join(parts)


def _target(description: Mapping[str, Any]) -> str:
    """Triple and CPU, on one line of a comment."""
    text = " ".join(str(description[key]) for key in ("triple", "cpu") if description.get(key))
    return re.sub(r"[^\w.+, -]", "?", text, flags=re.ASCII)


def _facts(description: Mapping[str, Any]) -> str:
    digest = description.get("model")
    return f" * The model has the SHA-256 {digest}.\n" if isinstance(digest, str) else ""


def _words(upper: str) -> str:
    rows = [
        ("THREADS", THREADS, "how many threads a run may use"),
        ("CODE", STATUS, "status of the last run: code, number, value, second value"),
        ("NUMBER", STATUS + 1, ""),
        ("VALUE", STATUS + 2, ""),
        ("SECOND", STATUS + 3, ""),
        ("ENTROPY", ENTROPY, "what random numbers without a seed start from"),
    ]
    return ",\n".join(
        f"    {upper}_WORD_{name} = {number}{f' /* {text} */' if text else ''}" for name, number, text in rows
    )


def _ports(upper: str, kind: str, title: str, arguments: Sequence[Argument], signature: Signature) -> str:
    """What is fed or given: a comment, and the numbers of the inputs or outputs by name."""
    late = signature.late_symbols()
    names = c_identifiers([a.name for a in arguments], ["COUNT", "DIMS"], upper=True)
    lines = [f"/* {title}, in the order of their addresses."]
    for argument in arguments:
        notes = ""
        if argument.default is not None:
            notes = "; optional in the model, but has to be given here"
        elif kind == "OUTPUT" and any(symbols_of(d) & late for d in argument.shape):
            notes = "; allocated by the run"
        lines.append(f" *   {comment(argument.name)}: {_shape(argument)}{notes}")
    lines += [" */", "enum {"]
    for number, (name, argument) in enumerate(zip(names, arguments, strict=True)):
        lines.append(f"    {upper}_{kind}_{name} = {number}, /* {comment(argument.name)} */")
    lines.append(f"    {upper}_{kind}_COUNT = {len(arguments)},")
    dims = sum(len(a.shape) for a in arguments)
    lines += [f"    {upper}_{kind}_DIMS = {dims} /* extents of all of them */", "};", ""]
    for name, argument in zip(names, arguments, strict=True):
        size = _size(argument)
        if size is not None:
            lines.append(f"#define {upper}_SIZE_OF_{kind}_{name} {size} /* elements */")
    return "\n".join([*lines, "", ""])


def _shape(argument: Argument) -> str:
    extents = ", ".join(comment(str(d))[1:-1] for d in argument.shape)
    kind, count = c_type(argument.dtype)
    stored = {1: kind, 2: f"two {kind}"}[count]
    return f"{argument.dtype.onnx_name}[{extents}], each element {stored}"


def _call(prefix: str, signature: Signature) -> str:
    """A function with a parameter for each tensor, where all shapes are known."""
    arguments = [*signature.inputs, *signature.outputs]
    if any(_size(a) is None or a.dtype is dtypes.string for a in arguments):
        return ""
    names = c_identifiers(
        [a.name for a in arguments], ["inputs", "outputs", "input_dims", "output_dims", f"{prefix}_run"]
    )
    count = len(signature.inputs)
    space = " " * len(f"static inline int32_t {prefix}_call(")
    parameters = [
        f"{'const ' if number < count else ''}{_parameter(argument, name)}"
        for number, (argument, name) in enumerate(zip(arguments, names, strict=True))
    ]
    dims = [str(d) for a in signature.inputs for d in a.shape]
    ranks = sum(len(a.shape) for a in signature.outputs)
    listed = f",\n{space}".join([f"{prefix}_context *context", *parameters])
    return (
        "\n/* One run; the arrays are dense, in row-major order. */\n"
        f"static inline int32_t {prefix}_call({listed}) {{\n"
        f"    const void *inputs[] = {{{', '.join(names[:count]) or '0'}}};\n"
        f"    void *outputs[] = {{{', '.join(names[count:]) or '0'}}};\n"
        f"    const int64_t input_dims[] = {{{', '.join(dims) or '0'}}};\n"
        f"    int64_t output_dims[{max(1, ranks)}];\n"
        f"    return {prefix}_run(context, inputs, input_dims, outputs, output_dims);\n"
        "}\n"
    )


def _parameter(argument: Argument, name: str) -> str:
    kind, count = c_type(argument.dtype)
    size = _size(argument)
    return f"{kind} {name}[{size * count}]" if size else f"{kind} *{name}"


def _size(argument: Argument) -> int | None:
    """How many elements a tensor has; None where that is not known."""
    extents = [d for d in argument.shape if isinstance(d, int)]
    return math.prod(extents) if len(extents) == len(argument.shape) else None
