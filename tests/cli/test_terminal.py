"""What a terminal sees, and what a pipe sees."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import time
from functools import partial
from typing import Any

import pytest
from rich.console import Console

from sardonyx.cli import terminal


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 KB"), (2_500_000, "2.5 MB"), (7 * 10**9, "7.0 GB")],
)
def test_amounts(size: int, text: str) -> None:
    assert terminal.amount(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(2e-6, "2 us"), (0.001234, "1.23 ms"), (0.25, "250 ms"), (3.21, "3.21 s")]
)
def test_times(seconds: float, text: str) -> None:
    assert terminal.milliseconds(seconds) == text


def test_piped_table(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_table(["name", "n"], [["a", 1], ["long one", 100]], right=[1])
    assert capsys.readouterr().out == "name        n\na           1\nlong one  100\n"


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_bar_shows_on_a_terminal_after_a_while(monkeypatch: pytest.MonkeyPatch, patience: float) -> None:
    buffer = io.StringIO()
    monkeypatch.setattr(terminal, "Console", _to(buffer, force_terminal=True))
    monkeypatch.setattr(terminal, "_PATIENCE", patience)
    with terminal.progress("compiling"):
        time.sleep(0.3 if patience == 0 else 0)
    assert ("compiling" in buffer.getvalue()) == (patience == 0)


def test_no_bar_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.StringIO()
    monkeypatch.setattr(terminal, "Console", _to(buffer, force_terminal=False))
    monkeypatch.setattr(terminal, "_PATIENCE", 0.0)
    with terminal.progress("compiling"):
        time.sleep(0.1)
    assert buffer.getvalue() == ""


def _to(buffer: io.StringIO, force_terminal: bool) -> Any:
    def console(stderr: bool = False) -> Console:
        return Console(file=buffer, force_terminal=force_terminal)

    return console


def test_table_on_a_terminal() -> None:
    """A real terminal gets a drawn table."""
    command = [sys.executable, "-m", "sardonyx", "ops"]
    parent, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=child, stderr=child, env=environment) as process:
        os.close(child)
        chunks = []
        for chunk in iter(partial(_read, parent), b""):
            chunks.append(chunk)
        assert process.wait() == 0
    os.close(parent)
    text = b"".join(chunks).decode()
    assert "\x1b[" in text and "─" in text and "Floor" in text


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other end is closed
        return b""
