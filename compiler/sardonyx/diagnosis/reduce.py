"""Reduces a module for which something holds (a pass fails) to a small one for which it still holds.

Moves, tried from large to small until none helps: return fewer results, or an earlier value; take ops out of ``@main``,
their results becoming arguments; drop functions and arguments that nothing uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sardonyx.errors import CompileError
from sardonyx.ir.graph import Function, Module, Op, walk
from sardonyx.ir.parser import parse_module
from sardonyx.ir.printer import print_module

__all__ = ["reduce_module"]

Holds = Callable[[Module], bool]


def reduce_module(text: str, holds: Holds, progress: Callable[[int], None] = lambda ops: None) -> str:
    """The text of a smaller module for which ``holds`` is true; ``text`` itself if it can't be made smaller.

    ``holds`` may change the module that it is given.  ``progress`` is told how many ops are left.
    """
    best = _Candidate(text)
    while True:
        for smaller in _smaller(best):
            if smaller.size < best.size and smaller.holds(holds):
                best = smaller
                progress(best.ops)
                break
        else:
            return best.text


class _Candidate:
    def __init__(self, text: str) -> None:
        self.text = text
        self.module = parse_module(text)
        self.ops = sum(1 for _ in walk(self.module))
        main = self.module.main
        self.size = (self.ops, len(main.results), len(self.module.functions), len(main.arguments))

    def holds(self, holds: Holds) -> bool:
        try:
            return holds(self.module)
        except CompileError:
            return False


def _smaller(best: _Candidate) -> Iterator[_Candidate]:
    """Candidates, the most daring first."""
    results = len(best.module.main.results)
    for keep in range(results if results > 1 else 0):
        yield _changed(best, lambda module, keep=keep: _return_only(module.main, keep))  # type: ignore[misc]
    for number in range(results):
        yield _changed(best, lambda module, number=number: _return_operand(module.main, number))  # type: ignore[misc]
    count = len(best.module.main.body.ops) - 1  # all but the terminator
    length = count
    while length:
        for start in range(0, count, length):
            chosen = range(start, min(start + length, count))
            yield _changed(best, lambda module, chosen=chosen: _cut(module.main, chosen))  # type: ignore[misc]
        length //= 2
    yield _changed(best, lambda module: None)


def _changed(best: _Candidate, change: Callable[[Module], None]) -> _Candidate:
    module = parse_module(best.text)
    change(module)
    _tidy(module)
    return _Candidate(print_module(module, resources=True))


def _return_only(main: Function, keep: int) -> None:
    terminator = main.body.terminator
    terminator.set_operands([terminator.operands[keep]])
    names = main.attributes.get("outputs")
    if names:
        main.attributes["outputs"] = (names[keep],)
        main.attributes["declared_outputs"] = {
            k: v for k, v in main.attributes.get("declared_outputs", {}).items() if k == names[keep]
        }


def _return_operand(main: Function, number: int) -> None:
    """Return what a result is computed from instead of it."""
    terminator = main.body.terminator
    op = terminator.operands[number].op
    if op is not None and op.operands and _is_value(op):
        values = list(terminator.operands)
        values[number] = op.operands[0]
        terminator.set_operands(values)


def _cut(main: Function, chosen: range) -> None:
    """Take ops out; what others use of them becomes an argument."""
    ops = [main.body.ops[i] for i in chosen]
    for op in reversed(ops):
        for number, result in enumerate(op.results):
            if result.uses and _is_value(op):
                name = _fresh(main, result.name or f"{op.kind}{number}")
                result.replace_by(main.body.add_argument(result.type, name))
        if not any(r.uses for r in op.results):
            op.erase()


def _is_value(op: Op) -> bool:
    """Whether the results are tensors, which can be given as well as computed."""
    return not op.name.startswith("loop.")


def _fresh(main: Function, name: str) -> str:
    taken = {a.name for a in main.arguments}
    text, number = name, 0
    while text in taken:
        number += 1
        text = f"{name}_{number}"
    return text


def _tidy(module: Module) -> None:
    """Drop what nothing uses: values, arguments, functions."""
    main = module.main
    for op in reversed(main.body.ops[:-1]):
        if op.results and not any(r.uses for r in op.results) and not op.name.startswith("loop."):
            op.erase()
    used = [a for a in main.arguments if a.uses]
    if not main.body.ops or not main.body.ops[0].name.startswith("loop."):
        main.body.arguments[:] = used
        for index, argument in enumerate(used):
            argument.index = index
        if "inputs" in main.attributes:
            main.attributes["inputs"] = tuple(a.name for a in used)
            defaults = main.attributes.get("defaults", {})
            main.attributes["defaults"] = {k: v for k, v in defaults.items() if k in {a.name for a in used}}
    called = {
        op.attributes[key]
        for op in walk(module)
        for key in ("kernel", "sdx.function")
        if key in op.attributes
    }
    if called or len(module.functions) > 1:
        module.functions = {n: f for n, f in module.functions.items() if n == "main" or n in called}
