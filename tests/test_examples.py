"""The examples in other languages: built as their page says, and clean under valgrind and the sanitizers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)

SOURCES = {
    "cc": ["-std=c99", "-Ic", "c/main.c"],
    "c++": ["-std=c++17", "-Icpp", "cpp/main.cpp"],
}
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-I."]


def run(command: Sequence[str] | str, folder: Path, **environment: str) -> str:
    """What a command prints; it has to end well."""
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def needs(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")


def is_right(printed: str) -> bool:
    """Whether a program printed what the page shows; where a line ends in dots the rest of it may be anything."""
    (shown,) = re.findall(r"```\n(scores.*?)```", PAGE, re.DOTALL)
    lines, wanted = printed.splitlines(), shown.splitlines()
    return len(lines) == len(wanted) and all(
        line.startswith(want[:-3]) if want.endswith("...") else line == want
        for line, want in zip(lines, wanted, strict=True)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, and their model compiled for a CPU that valgrind knows."""
    place = Path(shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("examples") / "here"))
    run([sys.executable, "make_model.py", "classifier.onnx"], place)
    compile = [sys.executable, "-m", "sardonyx", "compile", "classifier.onnx", "--name", "classifier", "-q"]
    plain = ["--cpu", "x86-64-v3"] if os.uname().machine == "x86_64" else []
    for suffix in ("so", "o"):
        run([*compile, "-o", f"libclassifier.{suffix}", *plain], place)
    return place


def test_the_page(tmp_path: Path) -> None:
    """Its commands, one after the other; those for Rust if there is Rust."""
    place = Path(shutil.copytree(EXAMPLES, tmp_path / "here"))
    commands = [
        line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
    ]
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (bin / "sardonyx").write_text(f'#!/bin/sh\nexec {sys.executable} -m sardonyx "$@"\n')
    for script in bin.iterdir():
        script.chmod(0o755)
    programs = 0
    for command in commands:
        if shutil.which(command.split()[0]) is None:
            continue
        printed = run(command, place, PATH=f"{bin}:{os.environ['PATH']}")
        if "./classify" in command:
            assert is_right(printed), (command, printed)
            programs += 1
    assert programs >= 1


@pytest.mark.parametrize("compiler", SOURCES)
def test_without_a_warning(compiler: str, folder: Path) -> None:
    needs(compiler)
    run([compiler, *SOURCES[compiler], *STRICT, "-O2", "-fsyntax-only"], folder)


@pytest.mark.parametrize("compiler", SOURCES)
def test_under_valgrind(compiler: str, folder: Path) -> None:
    needs(compiler, "valgrind")
    program = f"valgrind-{compiler}"
    link = ["./libclassifier.so", "-Wl,-rpath,$ORIGIN", "-g", "-o", program]
    run([compiler, *SOURCES[compiler], "-I.", *link], folder)
    check = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=all", "--error-exitcode=9"]
    assert is_right(run([*check, "--errors-for-leak-kinds=all", f"./{program}"], folder))


@pytest.mark.parametrize("compiler", SOURCES)
def test_with_sanitizers(compiler: str, folder: Path) -> None:
    """Of addresses, leaks and undefined behaviour, the model linked statically."""
    needs(compiler)
    program = f"sanitized-{compiler}"
    options = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    command = [compiler, *SOURCES[compiler], "-I.", *options, "libclassifier.o", "-o", program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode and "libasan" in done.stderr + done.stdout:
        pytest.skip("needs the sanitizers' libraries")
    assert done.returncode == 0, done.stderr
    assert is_right(run([f"./{program}"], folder, ASAN_OPTIONS="detect_leaks=1"))
