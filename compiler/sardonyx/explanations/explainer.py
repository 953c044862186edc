"""Explains what became of ONNX nodes: compiles the model and watches the passes work on them.

Nothing is worked out anew: types come from the values that `lower` made, reasons from `fuse`, the schedule from
the kernel, places from the memory plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from sardonyx.explanations.explanation import Change, Explanation, FusionFact, OperationFact, ValueFact
from sardonyx.explanations.kernel_facts import KernelFacts
from sardonyx.frontend import schemas
from sardonyx.frontend.load import ModelSource
from sardonyx.interpreter import compiling
from sardonyx.ir.declare import lookup
from sardonyx.ir.graph import Module, Op, Origin, Value, walk
from sardonyx.ir.printer import function_lines
from sardonyx.ir.types import describe
from sardonyx.kernels.target import Target
from sardonyx.pass_manager import PassRun, Step, run_steps
from sardonyx.passes.decisions import Decision, Decisions
from sardonyx.passes.fuse import Fuse
from sardonyx.passes.lower import LowerToCore
from sardonyx.passes.plan_memory import plan_memory
from sardonyx.passes.schedule import schedule
from sardonyx.pipeline import level_of, pipeline
from sardonyx.source import open_source
from sardonyx.targets.host import host_target

__all__ = ["explain", "explain_nodes"]


def explain(model: ModelSource, node: str, *, target: Target | None = None) -> Explanation:
    """What became of the ONNX node of this name, or of the only one that a pattern (``*/Softmax``) matches.

    It tells the node's types and the rules that gave them, what each pass did to it, with which neighbours it
    shares a kernel and why, and the kernels that compute it: schedule, vectors, memory, estimated cost.
    ``target`` is the machine to compile for, by default this one.

    ValueError if no node or more than one is meant (`explain_nodes` explains each); CompileError if the model
    cannot be compiled.
    """
    found = explain_nodes(model, node, target=target)
    if len(found) > 1:
        some = ", ".join(e.node for e in found[:8]) + (" ..." if len(found) > 8 else "")
        raise ValueError(f"{node!r} means {len(found)} nodes: {some}")
    return found[0]


def explain_nodes(model: ModelSource, pattern: str, *, target: Target | None = None) -> list[Explanation]:
    """The explanation of every node of a name, or whose name matches a pattern; errors as for `explain`."""
    target = target or host_target()
    module = open_source(model).module()
    if level_of(module) != "onnx":
        raise ValueError("only models with ONNX nodes can be explained, not text of a later stage")
    watch = _Watch(_chosen(module, pattern))
    decisions = Decisions()
    with compiling():
        steps = _until_fused(pipeline(target))
        steps = tuple(replace(step, run=_watched(step.run, watch, decisions)) for step in steps)
        run_steps(module, steps, (watch.after_pass,))
        left = _by_origin(module)
        grouped = {op for group in walk(module) if group.name == "core.fused" for op in group.regions[0].ops}
        program = schedule(module.main, target, "model")
        plan_memory(program)
    facts = KernelFacts(program)
    fusion = _fusion(decisions.made)
    return [
        Explanation(
            node=seen.origin.name,
            operator=seen.origin.op_type,
            domain=schemas.domain_name(seen.op.attributes.get("sdx.domain", "")),
            version=seen.version,
            opset=seen.op.attributes.get("sdx.opset", 0),
            path=seen.origin.path,
            outcome=_outcome(seen, left.get(seen.origin, []), grouped, facts),
            values=tuple(seen.values),
            operations=tuple(seen.operations),
            changes=tuple(seen.changes),
            fusion=tuple(fusion.get(seen.origin, ())),
            kernels=tuple(facts.of(seen.origin)),
        )
        for seen in watch.nodes
    ]


def _until_fused(steps: Sequence[Step]) -> tuple[Step, ...]:
    (last,) = [i for i, step in enumerate(steps) if step.stage == "fused"]
    return tuple(steps[: last + 1])


def _watched(run: Any, watch: _Watch, decisions: Decisions) -> Any:
    """The pass, with what it can tell being listened to."""
    if isinstance(run, LowerToCore):
        return replace(run, on_node=watch.on_node)
    return replace(run, decisions=decisions) if isinstance(run, Fuse) else run


# --- which nodes -----------------------------------------------------------------------------------------


def _chosen(module: Module, pattern: str) -> dict[Origin, Op]:
    """The nodes of a name, else those whose name matches the pattern."""
    nodes = {
        origin: op for op in walk(module) if (origin := _origin(op)) is not None
    }  # unlike in name or graph
    found = {o: op for o, op in nodes.items() if o.name == pattern} or {
        o: op for o, op in nodes.items() if fnmatchcase(o.name, pattern)
    }
    if not found:
        names = list(dict.fromkeys(o.name for o in nodes))
        by_name = get_close_matches(pattern, names, 5, 0.5)
        by_output = [o.name for o in nodes if pattern in o.outputs]
        if by_output:
            hint = f"the node that gives the value {pattern!r} is {by_output[0]}"
        elif by_name:
            hint = f"did you mean {', '.join(by_name)}?"
        else:
            more = f" and {len(names) - 8} others" if len(names) > 8 else ""
            hint = f"its nodes are {', '.join(names[:8]) or 'none'}{more}"
        raise ValueError(f"the model has no node {pattern!r}; {hint}")
    return found


_NO_NODES = frozenset({"onnx.none", "onnx.yield", "core.return"})


def _origin(op: Op) -> Origin | None:
    """The node that an op of the onnx level is."""
    origins = op.location.origins
    if not origins or op.name in _NO_NODES or origins[-1].op_type in ("", "initializer"):
        return None
    return origins[-1]


# --- what the passes do to them --------------------------------------------------------------------------


@dataclass
class _Seen:
    """A node, and what was seen of it so far."""

    origin: Origin
    op: Op
    values: list[ValueFact] = field(default_factory=list)
    operations: list[OperationFact] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    results: list[Value | None] = field(default_factory=list)
    lowered: int = 0  # how often: the body of a loop that is unrolled is lowered for each pass
    last: str = ""  # the pass that left nothing of it

    @property
    def version(self) -> int:
        a = self.op.attributes
        if "sdx.function" in a or "sdx.opset" not in a:
            return 0  # a function of the model
        return schemas.find(self.origin.op_type, a.get("sdx.domain", ""), a["sdx.opset"]).since


class _Watch:
    """Listens to the passes on behalf of some nodes."""

    def __init__(self, nodes: dict[Origin, Op]) -> None:
        self.nodes = [_Seen(origin, op) for origin, op in nodes.items()]
        self._by_origin = {seen.origin: seen for seen in self.nodes}

    def on_node(self, op: Op, operands: Sequence[Value | None], results: Sequence[Value | None]) -> None:
        origin = _origin(op)
        seen = self._by_origin.get(origin) if origin is not None else None
        if seen is None:
            return
        seen.lowered += 1
        if seen.lowered == 1:
            seen.results = list(results)
            seen.values += _values("input", op.operands, operands)
            seen.values += _values("output", op.results, results)

    def after_pass(self, run: PassRun, module: Module) -> None:
        found = _by_origin(module)
        texts = _texts(module) if run.stage == "resolved" else {}
        for seen in self.nodes:
            ops = found.get(seen.origin, [])
            if run.stage == "resolved":
                seen.operations = [_operation(op, texts[op]) for op in ops]
            names = Counter(op.name for op in ops)
            removed, added = seen.names - names, names - seen.names
            if removed or added:
                seen.changes.append(Change(run.label, _counted(removed), _counted(added)))
            if not names and not seen.last:
                seen.last = run.label
            seen.names = names


def _values(use: str, formal: Sequence[Value], actual: Sequence[Value | None]) -> Iterator[ValueFact]:
    for number, value in enumerate(formal):
        known = actual[number] if number < len(actual) else None
        if value.name or known is not None:
            yield ValueFact(use, value.name, describe(known.type) if isinstance(known, Value) else "")


def _by_origin(module: Module) -> dict[Origin, list[Op]]:
    """The ops that stem from each node; not the groups that hold them, nor what ends a block."""
    found: dict[Origin, list[Op]] = {}
    for op in walk(module):
        for origin in op.location.origins if op.name not in ("core.fused", "core.yield") else ():
            found.setdefault(origin, []).append(op)
    return found


def _texts(module: Module) -> dict[Op, str]:
    """The first line of each op, without types."""
    texts: dict[Op, str] = {}
    for function in module.functions.values():
        lines, places = function_lines(function, elide=4, locations=False)
        texts |= {op: lines[at.start].strip().partition(" : (")[0] for op, at in places.items()}
    return texts


def _operation(op: Op, text: str) -> OperationFact:
    declaration = lookup(op.name)
    rule = declaration.rule if declaration is not None else ""
    meaning = declaration.doc if declaration is not None else ""
    return OperationFact(text, tuple(describe(r.type) for r in op.results), rule, meaning)


def _counted(names: Counter[str]) -> tuple[str, ...]:
    return tuple(f"{count} {name}" if count > 1 else name for name, count in names.items())


def _fusion(decisions: Sequence[Decision]) -> dict[Origin, dict[FusionFact, None]]:
    """The decisions in which each node takes part; equal ones once."""
    found: dict[Origin, dict[FusionFact, None]] = {}
    for d in decisions:
        producers, consumers = d.producer_nodes.origins, d.consumer_nodes.origins
        for origin in dict.fromkeys(producers + consumers):
            mine, its = origin in producers, origin in consumers
            side = "itself" if mine and its else "consumer" if mine else "producer"
            others = () if side == "itself" else consumers if mine else producers
            names = tuple(o.name for o in others)
            fact = FusionFact(side, names, d.producer, d.consumer, d.fused, d.reason)
            found.setdefault(origin, {})[fact] = None
    return found


# --- the outcome -----------------------------------------------------------------------------------------

_REMAINS: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"core.require", "core.bind_dims"}),
        "it is a check, or a size read, of the program that launches the kernels",
    ),
    (frozenset({"core.bind_result"}), "it is a size that control flow of the program passes on"),
    (
        frozenset({"core.reshape", "core.assume"}),
        "it only names the memory of its input anew: no code",
    ),
    (frozenset({"core.constant"}), "its result is a constant, computed when compiling"),
    (
        frozenset({"core.dims", "core.iota"}),
        "its result follows from the sizes of the inputs: the program writes it where it is needed",
    ),
)


def _outcome(seen: _Seen, left: Sequence[Op], grouped: set[Op], facts: KernelFacts) -> str:
    """What is left of a node, in a sentence."""
    launches = facts.launches(seen.origin)
    if any(op.name in ("core.if", "core.loop") for op in left) and seen.op.regions:
        bodies = f"; kernels launched in its bodies: {len(launches)}" if launches else ""
        return f"it is control flow of the program that launches the kernels{bodies}"
    if launches:
        names = dict.fromkeys(o.name for op in launches for o in op.location.origins)
        others = [n for n in names if n != seen.origin.name]
        kernels = "computed by one kernel" if len(launches) == 1 else f"takes part in {len(launches)} kernels"
        shared = f", together with {_some(others)}" if others else " of its own"
        return f"{kernels}{shared}"
    if seen.lowered == 0:
        return "nothing needs its result, or it stands in a branch that is never taken"
    alone = {op.name for op in left if op not in grouped}
    for kinds, sentence in _REMAINS:
        if alone & kinds:
            return sentence
    if left:
        return f"a part of {_some(sorted({op.name for op in left}))}, which no kernel computes"
    if seen.changes and seen.last != seen.changes[0].label:
        return f"nothing is left of it: {seen.last} removed its last operation, unused or rewritten into those of others"
    return _never_made(seen)


def _never_made(seen: _Seen) -> str:
    """The outcome of a node for which no operation was made."""
    values = [v for v in seen.results if isinstance(v, Value)]
    made = values[0].op if values else None
    if made is not None and made.name == "core.constant":
        return "its result is a constant, computed when compiling"
    if values and (made is None or seen.origin not in made.location.origins):
        return f"it adds no operation: its result is the value {values[0].name or '(unnamed)'!r} itself"
    return "nothing is left of it: nothing needs what it computes"


def _some(names: Sequence[str], most: int = 6) -> str:
    more = f" and {len(names) - most} others" if len(names) > most else ""
    return ", ".join(names[:most]) + more
