"""One LLVM module of everything that a library holds, and the machine code of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sardonyx.aot.levels import Levels, chooses
from sardonyx.aot.modules import merge, parse, with_attributes
from sardonyx.codegen.artifact import artifact_text, cpu_text, exports
from sardonyx.codegen.constants import Beside, Inside
from sardonyx.codegen.dispatch import dispatch_text
from sardonyx.codegen.objects import METADATA, optimise
from sardonyx.codegen.support import support_text
from sardonyx.kernels.target import Target
from sardonyx.targets.host import target_machine
from sardonyx_runtime.artifact import ABI
from sardonyx_runtime.cpu import requirements

__all__ = ["assemble", "machine_code", "visible"]


def visible(prefix: str, constants: Inside | Beside, *, loadable: bool) -> tuple[str, ...]:
    """The symbols that others see; ``loadable``: the library is to be loaded by `sardonyx_runtime` too."""
    ours = exports(prefix, type(constants))
    return (*ours, "sdx_cpu", "sdx_gate") if loadable else ours


def assemble(
    levels: Levels,
    targets: Sequence[Target],
    prefix: str,
    constants: Inside | Beside,
    description: dict[str, Any],
    *,
    loadable: bool,
) -> Any:
    """The module, in which all is local that is not to be seen."""
    target = targets[0]
    plain = Target(target.triple, _PLAINEST.get(target.machine, target.cpu), layout=target.layout)
    shell = artifact_text(
        target.triple,
        prefix,
        abi=ABI,
        info=json.dumps(description).encode(),
        constants=constants,
        signature=levels.signature,
        threads=description.get("threads", 1),
    )
    support = support_text(target.triple, target.pointer_bits)
    parts = [
        *levels.modules,
        optimise(with_attributes(f"{target.header}{support}{METADATA}", target), target),
        parse(shell, plain),
        parse(cpu_text(target.triple), plain),
    ]
    if chooses(target):
        text = dispatch_text(prefix, [requirements(one.features) for one in targets])
        parts.append(parse(text, plain))
    seen = visible(prefix, constants, loadable=loadable)
    module = merge(parts, seen, target)
    if loadable and "windows" in target.triple:  # there a library says for itself what it exports
        for symbol in (*module.functions, *module.global_variables):
            if symbol.name in seen:
                symbol.storage_class = "dllexport"
    return module


# What looks at the CPU, and what reports that it does not fit, has to run on every one.
_PLAINEST = {"x86_64": "x86-64"}


def machine_code(module: Any, target: Target, constants: Inside | Beside) -> bytes:
    """The object file of a module."""
    code: bytes = target_machine(target).emit_object(module)
    return constants.place(code) if isinstance(constants, Inside) else code
