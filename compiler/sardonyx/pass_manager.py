"""Runs passes: in order, timed, verified and watched if asked for; and reads and writes pipelines as text.

A pass is a frozen dataclass: its fields are its options, its ``name`` is what pipelines call it.  The text
``"simplify,fuse{max=8}"`` is a pipeline; `sardonyx opt --passes` takes such a text, reproducers hold one.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sardonyx.errors import CompileError
from sardonyx.ir.graph import UNKNOWN, Location, Module, Op
from sardonyx.ir.printer import neighbourhood
from sardonyx.ir.verifier import verify

__all__ = [
    "Observer",
    "Pass",
    "PassFailure",
    "PassRun",
    "Step",
    "labels_of",
    "parse_passes",
    "passes_text",
    "register_pass",
    "registered_passes",
    "run_steps",
]


class Pass(Protocol):
    """A pass: ``run`` changes the module in place and says truthfully whether it did."""

    @property
    def name(self) -> str: ...

    def run(self, module: Module) -> bool: ...


@dataclass(frozen=True)
class Step:
    """A pass and the reason for its place; ``stage`` names what the module is from here on, for dumps.

    ``optional``: the program is right without it, only slower.
    """

    run: Pass
    why: str = ""
    stage: str = ""
    optional: bool = False


@dataclass(frozen=True)
class PassRun:
    """One run of a pass: its label (the second ``simplify`` is ``simplify#2``), and what came of it."""

    number: int
    label: str
    stage: str
    changed: bool
    seconds: float


class PassFailure(CompileError):
    """A pass broke down, or left a module that does not verify: a mistake of Sardonyx, not of the model.

    ``label`` names the pass, ``number`` its place among the steps; ``reproducer`` the file that was written,
    if one was.
    """

    def __init__(self, label: str, number: int, reason: str, location: Location, hint: str = "") -> None:
        self.label = label
        self.number = number
        self.reproducer = ""
        super().__init__(reason, location=location, hint=hint)


Observer = Callable[[PassRun, Module], None]


def run_steps(
    module: Module, steps: Sequence[Step], observers: Sequence[Observer] = (), *, verify_each: bool = False
) -> list[PassRun]:
    """Run the steps in order; each observer is called after each with the module as it is then.

    ``verify_each`` checks the module before the first step and after each.  CompileError for what is wrong
    with the model; `PassFailure` for what is wrong with a pass.
    """
    runs: list[PassRun] = []
    if verify_each:
        _verified(module, "", 0)
    for number, (label, step) in enumerate(zip(labels_of(steps), steps, strict=True)):
        start = time.perf_counter()
        try:
            changed = step.run.run(module)
        except PassFailure as failure:
            failure.number = number
            raise
        except CompileError:
            raise
        except Exception as error:
            raise failed(label, number, error) from error
        seconds = time.perf_counter() - start
        if verify_each:
            _verified(module, label, number)
        runs.append(PassRun(number, label, step.stage, changed, seconds))
        for observer in observers:
            observer(runs[-1], module)
    return runs


def labels_of(steps: Sequence[Step]) -> list[str]:
    """What each step is called: the pass's name, the second ``simplify`` being ``simplify#2``."""
    names = [step.run.name for step in steps]
    counts = [names[: i + 1].count(name) for i, name in enumerate(names)]
    return [n if count == 1 else f"{n}#{count}" for n, count in zip(names, counts, strict=True)]


def _verified(module: Module, label: str, number: int) -> None:
    try:
        verify(module, pass_name=label)
    except Exception as error:  # a module may be broken in ways that the verifier does not foresee
        reason = str(error) if label else f"the module does not verify: {error}"
        raise PassFailure(label or "the input", number, reason, UNKNOWN) from error


def failed(label: str, number: int, error: Exception, location: Location = UNKNOWN) -> PassFailure:
    """The failure that an unforeseen exception inside a pass is: with the op that was being worked on."""
    op = _op_at_work(error)
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    reason = f"the pass {label} broke down ({text}); this is a mistake of Sardonyx, not of the model"
    around = ""
    if op is not None:
        location = op.location or location
        try:
            around = "at\n" + neighbourhood(op)
        except Exception:
            around = f"at {op.name}"
    return PassFailure(label, number, reason, location, around)


def _op_at_work(error: BaseException) -> Op | None:
    """The op that the innermost function of the traceback held in a variable, best one called ``op``."""
    found: Op | None = None
    trace = error.__traceback__
    while trace is not None:
        variables = trace.tb_frame.f_locals
        ops = [v for v in (variables.get("op"), *variables.values()) if isinstance(v, Op)]
        found = ops[0] if ops else found
        trace = trace.tb_next
    return found


# --- pipelines as text -----------------------------------------------------------------------------------

_Made = TypeVar("_Made", bound=type)
_REGISTERED: dict[str, Callable[..., Pass]] = {}


def register_pass(made: _Made) -> _Made:
    """Make a pass known by its name, so that pipelines can contain it; to be used as a decorator.

    The class has a class attribute ``name`` (or a field with that default); its other fields are options of
    the types int, float, bool or str, with defaults.  A field ``target``, the first, is given the machine that
    code is made for.  ValueError if the name is taken.
    """
    name = _name_of(made)
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ValueError(f"a pass's name is made of small letters, digits and hyphens, not {name!r}")
    known = _REGISTERED.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (made.__module__, made.__qualname__):
        raise ValueError(f"there is a pass {name!r} already")
    _REGISTERED[name] = made
    return made


def _name_of(made: Any) -> str:
    name = vars(made).get("name", "")
    if not isinstance(name, str):  # a dataclass's slot descriptor
        name = ""
    for field in dataclasses.fields(made) if dataclasses.is_dataclass(made) else ():
        if field.name == "name":
            name = field.default
    return str(name)


def registered_passes() -> Mapping[str, Callable[..., Pass]]:
    """Every pass that a pipeline may contain, by name."""
    return _REGISTERED


_ITEM = re.compile(r"\s*([A-Za-z0-9_-]+)\s*(?:\{([^{}]*)\})?\s*(?:,|$)")


def parse_passes(text: str, known: Mapping[str, Callable[..., Pass]] | None = None) -> tuple[Pass, ...]:
    """The passes of a text such as ``"simplify,fuse{max=8}"``; several options stand side by side in the braces.

    ``known`` are the passes by name (default: the registered ones).  ValueError says what is wrong, and lists
    what would be accepted.
    """
    known = _REGISTERED if known is None else known
    passes: list[Pass] = []
    position = 0
    while position < len(text.rstrip()):
        match = _ITEM.match(text, position)
        if match is None:
            rest = text[position:].strip()
            raise ValueError(f"cannot read {rest!r} as passes; the form is name,name{{option=value}}")
        name, options = match[1], match[2]
        if name not in known:
            raise ValueError(f"there is no pass {name!r}; the passes are {', '.join(sorted(known))}")
        passes.append(_with_options(name, known[name], options or ""))
        position = match.end()
    return tuple(passes)


def _with_options(name: str, make: Callable[..., Pass], text: str) -> Pass:
    fields = {f.name: f for f in _options_of(make)}
    given: dict[str, Any] = {}
    for item in text.replace(",", " ").split():
        key, equals, value = item.partition("=")
        if key not in fields or not equals:
            names = ", ".join(f"{n}={f.default}" for n, f in fields.items()) or "none"
            raise ValueError(f"the pass {name} has no option {item!r}; its options: {names}")
        kind = type(fields[key].default)
        try:
            given[key] = _BOOLEANS[value] if kind is bool else kind(value)
        except (KeyError, ValueError):
            raise ValueError(
                f"{key}={value!r} of the pass {name} has to be of type {kind.__name__}"
            ) from None
    return make(**given)


_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


def _options_of(made: Any) -> list[Any]:
    """The fields that are options: of plain types, with defaults."""
    made = getattr(made, "func", made)  # a partial: what it fixes is no option
    if not dataclasses.is_dataclass(made):
        return []
    return [f for f in dataclasses.fields(made) if f.init and type(f.default) in (int, float, bool, str)]


def passes_text(passes: Sequence[Pass]) -> str:
    """The text of passes, with the options that are not their defaults; `parse_passes` is the inverse."""
    parts = []
    for one in passes:
        options = [
            f"{f.name}={str(value).lower() if isinstance(value, bool) else value}"
            for f in _options_of(type(one))
            if (value := getattr(one, f.name)) != f.default
        ]
        parts.append(one.name + (f"{{{' '.join(options)}}}" if options else ""))
    return ",".join(parts)
