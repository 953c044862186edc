"""What a compilation makes: signature, objects and weights, and the one file that holds them.

The file: eight bytes with the length of the description, the description (JSON, see ``Parts.description``),
then each object, then the weights at a multiple of 64 bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sardonyx_runtime.signature import Signature

__all__ = ["ENTRY", "Parts", "pack", "unpack"]

ENTRY = "sdx_model_run"  # the symbol of the entry point

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
_ALIGN = 64


@dataclass(frozen=True)
class Parts:
    """A compiled model: objects by name, the constants as one array of bytes (aligned to 64)."""

    signature: Signature
    objects: Mapping[str, bytes]
    weights: Bytes
    externals: Mapping[str, str] = field(default_factory=dict)  # symbols to import; never stored
    structure: tuple[Any, ...] | None = None  # of outputs that are sequences or optionals; never stored

    def description(self) -> dict[str, Any]:
        """Everything but the contents, as JSON knows it."""
        return {
            "signature": self.signature.to_json(),
            "objects": {name: len(data) for name, data in self.objects.items()},
            "weights": int(self.weights.size),
        }


def pack(parts: Parts, extra: Mapping[str, Any]) -> list[bytes | memoryview]:
    """The pieces of the file, in order; ``extra`` goes into the description."""
    text = json.dumps({**parts.description(), "extra": extra}, separators=(",", ":")).encode()
    head = len(text).to_bytes(8, "little") + text
    size = len(head) + sum(map(len, parts.objects.values()))
    padding = bytes(-size % _ALIGN)
    return [head, *parts.objects.values(), padding, parts.weights.data]


def unpack(data: memoryview) -> tuple[Parts, dict[str, Any]]:
    """The parts and the ``extra`` of a file, the weights being a view of it; ValueError if it is none."""
    length = int.from_bytes(data[:8], "little")
    description = json.loads(bytes(data[8 : 8 + length]))
    position = 8 + length
    objects = {}
    for name, size in description["objects"].items():
        objects[name] = bytes(data[position : position + size])
        position += size
    position += -position % _ALIGN
    weights = np.frombuffer(data, np.uint8, description["weights"], position)
    return Parts(Signature.from_json(description["signature"]), objects, weights), description["extra"]
