"""Tables and the progress bar.  On a terminal they are drawn; to a file or pipe they are plain text."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from sardonyx_runtime.about import amount

__all__ = [
    "amount",
    "milliseconds",
    "print_facts",
    "print_or_save",
    "print_table",
    "progress",
    "save_text",
    "write_text",
]

_PATIENCE = 1.0  # seconds before a progress bar shows


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()
) -> None:
    """A table; the columns with the numbers ``right`` are aligned to the right."""
    cells = [[str(c) for c in row] for row in rows]
    if not sys.stdout.isatty():
        _print_plain([list(columns), *cells], right)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number in right else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    Console(highlight=False).print(table)


def _print_plain(rows: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        line = "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        typer.echo(line.rstrip())


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Lines of a name and a value; the values stand below each other."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        typer.echo(f"{name.ljust(width)}  {value}".rstrip())


def write_text(text: str) -> None:
    """A long text as it is."""
    sys.stdout.write(text)
    sys.stdout.flush()


def save_text(text: str, path: Path, option: str = "--output") -> None:
    """Write a file that an option names; a usage error if it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot write {str(path)!r}: {error.strerror}", param_hint=option) from None


def print_or_save(text: str, output: Path | None) -> None:
    """A long text to the file that ``--output`` names, or as it is."""
    if output is None:
        write_text(text)
    else:
        save_text(text, output)


@contextmanager
def progress(what: str) -> Iterator[Callable[[str, float], None]]:
    """A bar on the terminal's error stream around something that may take longer than a second.

    Gives a function that may be told what is being done and which part of it all is done, from 0 to 1.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda now, done: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(what, total=None)
    timer = threading.Timer(_PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda now, done: bar.update(task, description=f"{what}: {now}", completed=done, total=1)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def milliseconds(seconds: float) -> str:
    """A time for people, with three figures that count."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
