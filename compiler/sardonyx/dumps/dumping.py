"""Collects what every pass leaves behind: for `sardonyx.dump`, and for `sardonyx dump --after`.

A `Watch` is told of each pass and of each kernel's code while a model is compiled, and keeps texts of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from sardonyx.codegen.compile import kernel_text, whole_program_text
from sardonyx.dumps.stage_printer import ModuleSubject, NodeChoice, NoSuchNode, StagePrinter, kernel_locations
from sardonyx.dumps.stages import Stage, code_text
from sardonyx.errors import CompileError
from sardonyx.frontend.load import ModelSource
from sardonyx.ir.graph import Module
from sardonyx.kernels.target import Target
from sardonyx.parts import ENTRY
from sardonyx.pass_manager import Observer, PassRun, Step, labels_of, run_steps
from sardonyx.passes.program import Program
from sardonyx.pipeline import pipeline, remaining
from sardonyx.source import open_source
from sardonyx.targets.host import host_target

__all__ = ["Dump", "PassDump", "Watch", "current", "dump", "dump_passes", "write_tree"]


@dataclass(frozen=True)
class PassDump:
    """The module behind a pass.  The first of a model is what came in, under the name ``import``.

    ``label`` is the pass's name (the second ``simplify`` is ``simplify#2``), ``stage`` the stage that is reached
    with it, if one is; ``changed`` what the pass says, ``seconds`` its time; ``text`` the module.
    """

    label: str
    stage: str
    changed: bool
    seconds: float
    text: str
    before: str = field(default="", repr=False)

    @property
    def diff(self) -> str:
        """What the pass changed, as a unified diff; empty if nothing."""
        return "".join(
            difflib.unified_diff(
                self.before.splitlines(keepends=True),
                self.text.splitlines(keepends=True),
                f"before {self.label}",
                f"after {self.label}",
            )
        )


@dataclass
class Dump:
    """One compiled model: its ``passes`` in order, and the LLVM IR of each kernel by symbol (``llvm``)."""

    passes: list[PassDump] = field(default_factory=list)
    llvm: dict[str, str] = field(default_factory=dict)
    target: Target | None = field(default=None, repr=False)

    def after(self, label: str) -> str:
        """The text behind a pass; KeyError names those there are."""
        for one in self.passes:
            if one.label == label:
                return one.text
        raise KeyError(f"no pass {label!r} was run; there were {', '.join(p.label for p in self.passes)}")

    def stage(self, name: str) -> str:
        """The text of a stage, code stages included; KeyError if it was not reached."""
        for one in reversed(self.passes):
            if one.stage == name:
                return one.text
        if name in (Stage.LLVM, Stage.LLVM_OPT, Stage.ASM, Stage.OBJECT) and self.llvm:
            return "\n".join(self.code(symbol, name) for symbol in self.llvm)
        raise KeyError(f"the stage {name!r} was not reached")

    def code(self, symbol: str, stage: str = "asm") -> str:
        """One kernel at a stage of the code: ``llvm``, ``llvm-opt``, ``asm`` or ``object``."""
        assert self.target is not None
        return code_text(self.llvm[symbol], Stage(stage), self.target)


class Watch:
    """Keeps texts of one compilation, or (without a ``dump``) nothing."""

    def __init__(
        self,
        dump: Dump | None = None,
        printer: StagePrinter | None = None,
        *,
        wanted: Callable[[str], bool] = lambda label: True,
    ) -> None:
        self.dump = dump
        self._printer = printer or StagePrinter()
        self._wanted = wanted
        self._last = ""

    def module(self, module: Module, steps: Sequence[Step]) -> None:
        """The compilation begins."""
        if self.dump is not None:
            self._note(PassRun(-1, "import", _stage_of(steps), True, 0.0), module)

    @property
    def observers(self) -> list[Observer]:
        return [] if self.dump is None else [self._note]

    def code(self, symbol: str, llvm: str, target: Target) -> None:
        """A kernel's LLVM IR was made."""
        if self.dump is not None:
            self.dump.llvm[symbol], self.dump.target = llvm, target

    def _note(self, run: PassRun, module: Module) -> None:
        if self.dump is None or not self._wanted(run.label):
            return
        try:
            text = self._printer.text(ModuleSubject(module))
        except NoSuchNode:
            if not self._last:  # there never was one
                raise
            text = _NOTHING
        before, self._last = self._last, text
        self.dump.passes.append(PassDump(run.label, run.stage, run.changed, run.seconds, text, before))


def dump_passes(
    model: ModelSource,
    printer: StagePrinter | None = None,
    *,
    target: Target | None = None,
    code: bool = True,
    last: str | None = None,
) -> tuple[Dump, CompileError | None]:
    """Every pass of a model, and the error that ended its compilation, if one did.

    ``code``: the kernels' LLVM IR as well; ``last`` is the label of the last pass to run.  ValueError if there is
    none of that label.
    """
    target = target or host_target()
    found = Dump(target=target)
    watch = Watch(found, printer)
    try:
        module = open_source(model).module()
        steps = remaining(module, pipeline(target))
        if last is not None:
            labels = labels_of(steps)
            if last not in labels:
                raise ValueError(f"no pass {last!r} is run; the passes are {', '.join(labels)}")
            steps = steps[: labels.index(last) + 1]
        watch.module(module, steps)
        run_steps(module, steps, watch.observers)
        if code and last is None:
            program = Program.from_module(module)
            nodes = printer.nodes if printer is not None else NodeChoice()
            places = kernel_locations(program)
            for symbol, function in program.kernels.items():
                if nodes.choose(places.get(symbol, function.location)):
                    watch.code(symbol, kernel_text(function, symbol, target), target)
            if nodes.pattern is None:
                watch.code(ENTRY, whole_program_text(program, target, ENTRY), target)
    except CompileError as error:
        return found, error
    return found, None


_NOTHING = "// nothing that is left stems from such nodes\n"


def _stage_of(steps: Sequence[Step]) -> str:
    """The stage of a module that still has these steps before it."""
    return "onnx" if steps and steps[0].run.name == "lower" else ""


_dumps: ContextVar[tuple[list[Dump], StagePrinter] | None] = ContextVar("dumps", default=None)


def current() -> Watch:
    """The watch for a compilation that begins."""
    active = _dumps.get()
    if active is None:
        return Watch()
    dumps, printer = active
    dumps.append(Dump())
    return Watch(dumps[-1], printer)


def active() -> bool:
    """Whether compilations are being watched; they must then not come from the cache."""
    return _dumps.get() is not None


@contextmanager
def dump(
    folder: str | Path | None = None,
    *,
    locations: bool = True,
    elide: int | None = 16,
    changed_only: bool = False,
    diff: bool = False,
) -> Iterator[list[Dump]]:
    """Collect every stage of every model that is compiled inside.

        with sardonyx.dump() as dumps:
            sardonyx.compile("model.onnx")
        print(dumps[0].after("fuse"))

    With ``folder`` they are written there when the block ends, also if a compilation failed: see `write_tree`,
    which ``changed_only`` and ``diff`` are for.  ``locations`` and ``elide`` are as for `stage_text`.
    """
    dumps: list[Dump] = []
    token = _dumps.set((dumps, StagePrinter(locations=locations, elide=elide)))
    try:
        yield dumps
    finally:
        _dumps.reset(token)
        if folder is not None:
            for number, one in enumerate(dumps):
                place = Path(folder) if len(dumps) == 1 else Path(folder, f"model{number}")
                write_tree(one, place, changed_only=changed_only, diff=diff)


def write_tree(one: Dump, folder: Path, *, changed_only: bool = False, diff: bool = False) -> list[Path]:
    """Write a file for each pass, ``01-lower.mlir`` and so on, and folders with a file for each kernel's code.

    ``changed_only`` leaves out passes that changed nothing; ``diff`` writes what each changed instead of the
    whole (``01-lower.diff``).  Returns the files.  OSError if one cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []

    def write(path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        files.append(path)

    for number, made in enumerate(one.passes):
        if changed_only and not made.changed:
            continue
        name = f"{number:02}-{made.label.replace('#', '-')}"
        as_diff = diff and number > 0
        write(folder / f"{name}{'.diff' if as_diff else '.mlir'}", made.diff if as_diff else made.text)
    for offset, (stage, suffix) in enumerate(_CODE_FILES.items()):
        for symbol in one.llvm:
            place = folder / f"{len(one.passes) + offset:02}-{stage}"
            write(place / f"{symbol}{suffix}", one.code(symbol, stage))
    return files


_CODE_FILES = {"llvm": ".ll", "llvm-opt": ".ll", "asm": ".s"}
