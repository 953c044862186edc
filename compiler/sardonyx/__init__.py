"""Sardonyx compiles ONNX models to native code for the host CPU."""

from sardonyx.errors import CompileError, RuntimeFault
from sardonyx.model import CompiledModel, compile
from sardonyx_runtime.version import __version__

__all__ = ["CompileError", "CompiledModel", "RuntimeFault", "__version__", "compile"]
