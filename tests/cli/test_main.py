"""The command line as a whole: help, versions, exit codes, start."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import sardonyx as package
from sardonyx.cli.main import COMMANDS

from .conftest import Sardonyx, Save


def test_help_lists_every_command_and_exit_code(sardonyx: Sardonyx) -> None:
    result = sardonyx("--help")
    assert result.code == 0
    for name, (_, summary) in COMMANDS.items():
        assert f"\n  {name} " in result.out
        assert summary in " ".join(result.out.split())
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "70"):
        assert f"\n    {code}" in result.out


def test_no_command_shows_the_help(sardonyx: Sardonyx) -> None:
    result = sardonyx()
    assert result.code == 2
    assert "Commands:" in result.out + result.err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(sardonyx: Sardonyx, name: str) -> None:
    result = sardonyx(name, "--help")
    assert result.code == 0
    assert "Examples:" in result.out
    assert f"  sardonyx {name}" in result.out
    assert "\x1b" not in result.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_a_function_with_a_docstring(name: str) -> None:
    command = import_module(COMMANDS[name][0]).command
    assert command.__doc__ and not command.__doc__.startswith(" ")


def test_version(sardonyx: Sardonyx) -> None:
    assert sardonyx("--version").out == f"sardonyx {package.__version__}\n"


def test_unknown_command(sardonyx: Sardonyx) -> None:
    result = sardonyx("compyle")
    assert result.code == 2
    assert "compyle" in result.err


def test_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sardonyx", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("sardonyx ")


def test_help_loads_nothing_heavy() -> None:
    """What makes `sardonyx --help` quick."""
    code = """
import sys
from sardonyx.cli.main import main
try:
    main(["--help"])
except SystemExit:
    pass
print(sorted({"numpy", "onnx", "llvmlite", "ml_dtypes", "rich"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["run", "dump", "info"])
class TestModelArgument:
    def test_missing_file(self, sardonyx: Sardonyx, command: str, tmp_path: Path) -> None:
        result = sardonyx(command, tmp_path / "nothing.onnx")
        assert result.code == 2
        assert "there is no file" in result.err and "nothing.onnx" in result.err

    def test_folder(self, sardonyx: Sardonyx, command: str, floor_ge: Path) -> None:
        result = sardonyx(command, floor_ge.parent)
        assert result.code == 2
        assert "is a folder" in result.err and "floor_ge.onnx" in result.err

    def test_not_a_model(self, sardonyx: Sardonyx, command: str, tmp_path: Path) -> None:
        path = tmp_path / "picture.onnx"
        path.write_bytes(b"\x89PNG not a model")
        result = sardonyx(command, path)
        assert result.code == 3
        assert result.err.startswith("sardonyx: compile error: ")
        assert "picture.onnx" in result.err and "Traceback" not in result.err

    def test_unsupported_operator(self, sardonyx: Sardonyx, command: str, save: Save) -> None:
        path = save("y2 = ImageDecoder (x)", inputs={"x": np.zeros((2,), np.uint8)})
        arguments = ["--stage", "core"] if command == "dump" else []
        result = sardonyx(command, path, *arguments)
        assert result.code == 3
        assert "ImageDecoder" in result.err and "not supported" in result.err
        assert "Traceback" not in result.err


def test_a_mistake_of_ours_is_told_apart(
    sardonyx: Sardonyx, floor_ge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> str:
        raise KeyError("oops")

    monkeypatch.setattr("sardonyx.cli.dump.stage_text", broken)
    result = sardonyx("dump", floor_ge)
    assert result.code == 70
    assert "Traceback" in result.err and "internal error" in result.err
