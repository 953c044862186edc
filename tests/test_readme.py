"""The README is true: its code runs, its commands exist, its test command is the one of the CI."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sardonyx.cli.main import COMMANDS

from .tools import load_tool

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_two_commands_come_first() -> None:
    assert BLOCKS[0] == ("sh", "pip install . && sardonyx demo\n")
    assert BLOCKS[1] == ("sh", 'pip install ".[test]" && pytest\n')


def test_python_blocks_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "readme"}
    blocks = [code for language, code in BLOCKS if language == "python"]
    assert len(blocks) >= 4
    for number, code in enumerate(blocks):
        exec(compile(code, f"README.md, Python block {number + 1}", "exec"), names)
    printed = capsys.readouterr().out
    assert "[[ True False  True]\n [ True False  True]]" in printed
    assert "float[batch, 3]" in printed and "NoSuchOperator" in printed
    assert "core.floor" in printed and ".globl" in printed


def test_commands_exist() -> None:
    named = set(re.findall(r"`sardonyx ([a-z]+)", README))
    assert named == set(COMMANDS)


@pytest.mark.models
def test_commands_with_models_run(tmp_path: Path) -> None:
    """The commands in the console blocks still do what they did, times apart."""
    tool = load_tool("fetch_models")
    missing = [n for n in tool.README_MODELS if not tool.path_of(n).exists()]
    if missing:
        pytest.skip(f"{', '.join(missing)} not fetched; `python tools/fetch_models.py` does it")
    shown = [c for c in load_tool("refresh_readme").commands(README) if c.startswith("sardonyx run")]
    assert len(shown) >= 3
    for command in shown:
        words = shlex.split(command.replace("models/", f"{tool.default_folder()}/"))
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_the_ci_runs_the_readmes_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    awk = re.search(r"command=\$\((awk .*) README\.md\)", script)
    assert awk is not None
    done = subprocess.run(
        ["bash", "-c", f"{awk.group(1)} README.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == BLOCKS[1][1]


def test_the_installed_command_is_the_module() -> None:
    """The entry point that pip makes and `python -m sardonyx` are the same."""
    code = "from importlib.metadata import entry_points as e; print(*[x.value for x in e(name='sardonyx')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if not done.stdout.strip():
        pytest.skip("sardonyx is not installed, its sources are on the path")
    assert done.stdout.split() == ["sardonyx.cli.main:main"]
