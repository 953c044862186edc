"""The commands of docs/debugging.md are run again; what it shows of their output is still printed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def commands() -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines that are shown of what it prints."""
    found: list[tuple[str, list[str]]] = []
    for kind, text in BLOCKS:
        if kind == "console":
            for line in text.splitlines():
                if line.startswith("$ "):
                    found.append((line[2:], []))
                else:
                    found[-1][1].append(line)
    return found


def masked(line: str) -> str:
    """A line without what differs from run to run and from machine to machine."""
    line = re.sub(r"0x[0-9a-f]+|k_[0-9a-f]{10,}|-[0-9a-f]{8}(?=\.mlir)|-?[\d.]+(e-?\d+)?%?", "#", line)
    line = re.sub(r"# (us|ms|s)\b", "# s", line)
    line = re.sub(r"# (bytes|KB|MB|GB)/s", "# B/s", line)
    return " ".join(line.split())


def depends_on_the_machine(line: str) -> bool:
    return line.startswith(("  asm", "  llvm", "\t"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model of the page."""
    folder = tmp_path_factory.mktemp("page")
    kind, code = BLOCKS[0]
    assert kind == "python"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(("command", "shown"), commands(), ids=[c.split(" -")[0] for c, _ in commands()])
def test_prints_what_the_page_shows(command: str, shown: list[str], folder: Path) -> None:
    program = shlex.split(command)
    tool = program[0]
    if tool == "sardonyx":
        program[:1] = [sys.executable, "-m", "sardonyx"]
    else:
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
        if tool == "perf" and subprocess.run(
            ["perf", "record", "-q", "-e", "cpu-clock", "-o", folder / "probe", "true"],
            capture_output=True, check=False,
        ).returncode:  # fmt: skip
            pytest.skip("perf may not record here")
        program = [sys.executable if word == "python" else word for word in program]
    if program[:2] == ["perf", "report"] and not (folder / "perf.data").exists():  # by another process
        (record,) = [one for one, _ in commands() if one.startswith("perf record")]
        test_prints_what_the_page_shows(record, [], folder)
    path = os.pathsep.join([str(ROOT / "compiler"), str(ROOT / "runtime")])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "400"}
    done = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if "ptrace" in done.stderr:
        pytest.skip("gdb may not trace processes here")
    assert done.returncode == 0, done.stderr
    printed = [masked(line) for line in done.stdout.splitlines()]
    for line in shown:
        if line != "..." and not depends_on_the_machine(line):
            start = masked(line.removesuffix("..."))
            whole = line.removesuffix("...") == line
            assert any(one == start if whole else one.startswith(start) for one in printed), line


def test_code_of_the_page_prints_what_it_shows(folder: Path) -> None:
    (imports, *_), (_, code) = BLOCKS[0], BLOCKS[-2]
    assert imports == "python" and BLOCKS[-1][0] == "text"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "compiler"), str(ROOT / "runtime")]),
    }
    done = subprocess.run(
        [sys.executable, "-c", "import onnx\n" + code],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == BLOCKS[-1][1]
