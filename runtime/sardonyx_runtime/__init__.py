"""Loads and runs compiled models; needs numpy and ml_dtypes only."""

from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.version import __version__

__all__ = ["RuntimeFault", "__version__"]
