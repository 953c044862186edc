"""``sardonyx cache``."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from sardonyx import cache
from sardonyx.cli.terminal import amount, print_facts

__all__ = ["command"]


class Action(StrEnum):
    SHOW = "show"
    CLEAR = "clear"


def command(
    action: Annotated[Action, typer.Argument(metavar="[show|clear]", help="What to do.")] = Action.SHOW,
) -> None:
    """Show or clear the cache of compiled code.

    It lies in SARDONYX_CACHE_DIR, else in XDG_CACHE_HOME/sardonyx, else in ~/.cache/sardonyx, and holds no
    more than SARDONYX_CACHE_SIZE bytes (2G by default; 0 switches it off).  Nothing is lost by clearing it
    but the time to compile again.

    \b
    Examples:
      sardonyx cache
      sardonyx cache clear
      SARDONYX_CACHE_SIZE=0 sardonyx run model.onnx
    """
    _ACTIONS[action]()


def _show() -> None:
    found = cache.info()
    facts: list[tuple[str, object]] = [
        ("folder", found.folder or "(there is no place for it)"),
        ("entries", found.entries),
        ("size", amount(found.bytes)),
        ("limit", amount(found.limit) if cache.enabled() else "(off)"),
    ]
    for kind, (entries, size) in sorted(found.kinds.items()):
        facts.append((f"  {kind}", f"{amount(size)} in {entries} entries"))
    print_facts(facts)


def _clear() -> None:
    typer.echo(f"{amount(cache.clear())} became free in {cache.folder()}")


_ACTIONS: dict[Action, Callable[[], None]] = {Action.SHOW: _show, Action.CLEAR: _clear}
