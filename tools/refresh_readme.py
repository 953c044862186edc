"""Runs the commands in the README's console blocks and writes what they print below them.

    python tools/fetch_models.py --to models
    python tools/refresh_readme.py

A command is a line that starts with ``$``; every line up to the next is its output.  Run it on a quiet
machine: times are part of the output.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

__all__ = ["commands", "refreshed"]

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
_BLOCK = re.compile(r"(^```console\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)
_MACHINE = re.compile(r"(on one thread of an? )[^:]+?(:)")


def commands(text: str) -> list[str]:
    """All commands of the console blocks."""
    return [line[2:] for match in _BLOCK.finditer(text) for line in match[2].splitlines() if line[:2] == "$ "]


def refreshed(text: str) -> str:
    """The text with the output of every command made anew."""

    def block(match: re.Match[str]) -> str:
        lines = [line for line in match[2].splitlines() if line.startswith("$ ")]
        return match[1] + "".join(f"{line}\n{_output(line[2:])}" for line in lines) + match[3]

    return _BLOCK.sub(block, _MACHINE.sub(rf"\g<1>{_processor()}\g<2>", text))


def _output(command: str) -> str:
    words = shlex.split(command)
    prefix = {"sardonyx": [sys.executable, "-m", "sardonyx"], "python": [sys.executable]}[words[0]]
    done = subprocess.run([*prefix, *words[1:]], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}exit code {done.returncode}")
    return done.stdout


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
