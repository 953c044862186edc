"""Loads and runs compiled models; needs numpy and ml_dtypes only."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.version import __version__

if TYPE_CHECKING:
    from sardonyx_runtime.artifact import load

__all__ = ["RuntimeFault", "__version__", "load"]


def __getattr__(name: str) -> Any:
    """``load``, on its first use: importing the package alone stays quick."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = import_module(f"{__name__}.artifact").load
    return value
