"""Sardonyx compiles ONNX models to native code for the host CPU.

The names below are all there is to the public interface.  They are loaded on first use: importing the
package alone stays quick, which the command line depends on.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sardonyx_runtime.version import __version__

if TYPE_CHECKING:
    from sardonyx.aot.export import compile_to
    from sardonyx.dumps.dumping import dump
    from sardonyx.dumps.stages import stage_text
    from sardonyx.errors import CompileError, RuntimeFault
    from sardonyx.explanations.explainer import explain
    from sardonyx.extension import register_operator
    from sardonyx.model import CompiledModel, compile
    from sardonyx.pass_manager import register_pass

__all__ = [
    "CompileError",
    "CompiledModel",
    "RuntimeFault",
    "__version__",
    "compile",
    "compile_to",
    "dump",
    "explain",
    "register_operator",
    "register_pass",
    "stage_text",
]

_HOME = {
    "CompileError": "sardonyx.errors",
    "CompiledModel": "sardonyx.model",
    "RuntimeFault": "sardonyx.errors",
    "compile": "sardonyx.model",
    "compile_to": "sardonyx.aot.export",
    "dump": "sardonyx.dumps.dumping",
    "explain": "sardonyx.explanations.explainer",
    "register_operator": "sardonyx.extension",
    "register_pass": "sardonyx.pass_manager",
    "stage_text": "sardonyx.dumps.stages",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sardonyx' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
