"""Models whose code depends on the values of inputs: the axes of a reduction, the steps of a slice.

Such a model is compiled when it first runs with a combination of those values, once for each.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from sardonyx.errors import NeedsConstant
from sardonyx.frontend.importer import import_model
from sardonyx.frontend.load import ModelSource, load_model
from sardonyx_runtime.feeds import Feeds, accept, arrange
from sardonyx_runtime.native import NativeModel
from sardonyx_runtime.signature import Argument

__all__ = ["SpecialisedModel"]

_VARIANTS = 16  # combinations of values remembered

Compile = Callable[[onnx.ModelProto], NativeModel]


class SpecialisedModel:
    """A model compiled once per combination of values of its ``decisive`` inputs.

    Its interface is that of a compiled model; ``outputs`` are known after the first run.
    """

    def __init__(self, model: ModelSource, error: NeedsConstant, compile_variant: Compile) -> None:
        self._proto, self._base_dir = load_model(model)
        self._compile = compile_variant
        module = import_model(self._proto, base_dir=self._base_dir)
        arguments = module.main.arguments
        defaults = module.main.attributes.get("defaults", {})
        self.inputs: tuple[Argument, ...] = tuple(
            Argument(a.name, a.type.dtype, a.type.shape, defaults[a.name].array if a.name in defaults else None)
            for a in arguments
        )
        self.decisive: list[str] = []
        self._variants: OrderedDict[tuple[Any, ...], NativeModel] = OrderedDict()
        self._add(error)

    def _add(self, error: NeedsConstant) -> None:
        """Take one more input as decisive; an intermediate tensor cannot be one."""
        if error.tensor not in {a.name for a in self.inputs} or error.tensor in self.decisive:
            raise error
        self.decisive.append(error.tensor)

    @property
    def outputs(self) -> tuple[Argument, ...]:
        """The outputs of the variant that ran last."""
        return next(reversed(self._variants.values())).outputs if self._variants else ()

    def run(
        self, feeds: Feeds, outputs: Sequence[str] | None = None, *, out: Any = None
    ) -> list[Any]:
        """Run the variant for these values; compile it first if there is none (CompileError)."""
        values = arrange(feeds, self.inputs)
        named = {a.name: v for a, v in zip(self.inputs, values, strict=True)}
        while True:
            decisive = {a.name: accept(named[a.name], a) for a in self.inputs if a.name in self.decisive}
            key = tuple((v.tobytes(), v.shape) for v in decisive.values())
            try:
                model = self._variants.get(key) or self._variant(key, decisive)
            except NeedsConstant as error:
                self._add(error)
                self._variants.clear()
                continue
            break
        self._variants.move_to_end(key)
        rest = {k: v for k, v in named.items() if k not in decisive}
        return model.run(rest, outputs, out=out)

    def _variant(self, key: tuple[Any, ...], values: Mapping[str, np.ndarray[Any, Any]]) -> NativeModel:
        proto = onnx.ModelProto()
        proto.CopyFrom(self._proto)
        for kept in (proto.graph.input, proto.graph.initializer):
            for item in [i for i in kept if i.name in values]:
                kept.remove(item)
        proto.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in values.items())
        model = self._compile(proto)
        if len(self._variants) >= _VARIANTS:
            self._variants.popitem(last=False)
        self._variants[key] = model
        return model


