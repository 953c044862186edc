"""What a command prints and returns when something goes wrong."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import typer

from sardonyx.errors import CompileError, RuntimeFault
from sardonyx.pass_manager import PassFailure

__all__ = ["ExitCode", "guarded"]


class ExitCode(IntEnum):
    """The exit codes of all commands; `sardonyx --help` lists them."""

    EQUAL = 0
    DIFFERS = 1
    USAGE = 2
    COMPILE_ERROR = 3
    RUNTIME_FAULT = 4
    INTERNAL = 70


def guarded(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with its errors printed as one block and turned into exit codes."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except PassFailure as error:
            _fail("internal error", str(error), ExitCode.INTERNAL)
        except CompileError as error:
            _fail("compile error", str(error), ExitCode.COMPILE_ERROR)
        except RuntimeFault as error:
            _fail("the run failed", str(error), ExitCode.RUNTIME_FAULT)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except Exception:
            traceback.print_exc()
            _fail("internal error", "this is a mistake of Sardonyx, not of the model", ExitCode.INTERNAL)

    return run


def _fail(kind: str, message: str, code: ExitCode) -> None:
    sys.stdout.flush()
    typer.echo(f"sardonyx: {kind}: {message}", err=True)
    raise typer.Exit(code) from None
