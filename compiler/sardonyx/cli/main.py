"""The ``sardonyx`` command: finds the module of the command that is called and runs it.

Only that module is imported, so that ``sardonyx --help`` is quick.  A command's module has a function
``command`` whose parameters are the command line's; its docstring is the help text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from sardonyx_runtime.version import __version__

__all__ = ["COMMANDS", "main"]

# By name: the module, and the line that `sardonyx --help` shows.
COMMANDS = {
    "run": ("sardonyx.cli.run", "Compile a model and run it; compare with a reference."),
    "compile": (
        "sardonyx.cli.compile",
        "Compile a model ahead of time: to a library, object, LLVM IR.",
    ),
    "package": ("sardonyx.cli.package", "Compile a model into a wheel that pip installs."),
    "dump": ("sardonyx.cli.dump", "Print a model at a stage of the compilation, nodes to assembly."),
    "listing": ("sardonyx.cli.listing", "Show which machine code each node became, line by line."),
    "explain": ("sardonyx.cli.explain", "Explain what became of a node: kernel, fusion, memory."),
    "explore": ("sardonyx.cli.explore", "Write a page of the graph and all stages, linked by node."),
    "profile": ("sardonyx.cli.profiling", "Show where the time of a run goes, by kernel and by node."),
    "info": ("sardonyx.cli.info", "Show inputs, outputs, operators, and what is made of a model."),
    "opt": ("sardonyx.cli.opt", "Run passes on IR text; replay, bisect and reduce what fails."),
    "ops": ("sardonyx.cli.ops", "List the operators that are supported, with their versions."),
    "cache": ("sardonyx.cli.cache", "Show or clear the cache of compiled code."),
    "demo": ("sardonyx.cli.demo", "Compile, run and check a small model that is made on the spot."),
}

# Options whose value may be left out, by command: the values, the first being meant by the bare option.
_OPTIONAL_VALUES = {"run": {"--compare": ("reference", "onnxruntime"), "--debug": ("gdb", "perf")}}

_HELP = """Sardonyx compiles ONNX models to native code for this machine's CPU.

\b
Examples:
  sardonyx demo
  sardonyx run model.onnx --compare
  sardonyx compile model.onnx -o model.so
  sardonyx dump model.onnx --stage core
  sardonyx COMMAND --help

\b
Exit codes of all commands:
  0   done; with --compare: equal within the tolerance
  1   with --compare: the outputs differ
  2   the command line is wrong
  3   the model cannot be compiled
  4   the run failed
  70  a mistake of Sardonyx itself; a traceback is printed
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (without the program's name); ends the process with its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    called = next((a for a in arguments if not a.startswith("-")), "")
    arguments = _spelled_out(arguments, _OPTIONAL_VALUES.get(called, {}))
    completing = "_SARDONYX_COMPLETE" in os.environ
    app = typer.Typer(help=_HELP, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)
    app.callback()(_options)
    for name, (module, summary) in COMMANDS.items():
        function = _load(module) if completing or name == called else _not_loaded
        app.command(name, short_help=summary)(function)
    app(arguments, prog_name="sardonyx")
    sys.exit(0)


def _spelled_out(arguments: Sequence[str], optional: Mapping[str, Sequence[str]]) -> list[str]:
    """The arguments with the values that were left out."""
    full: list[str] = []
    for number, argument in enumerate(arguments):
        full.append(argument)
        values = optional.get(argument, ())
        if values and not set(values) & set(arguments[number + 1 : number + 2]):
            full.append(values[0])
    return full


def _load(module: str) -> Callable[..., Any]:
    guarded = import_module("sardonyx.cli.failure").guarded
    command: Callable[..., Any] = guarded(import_module(module).command)
    return command


def _not_loaded() -> None:
    """Stands for a command that is not called."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sardonyx {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
