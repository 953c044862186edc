"""The sources pass ruff (lint and format) and mypy's strict checks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHECKS = {
    "ruff check": ["ruff", "check", "--no-cache", "."],
    "ruff format": ["ruff", "format", "--no-cache", "--check", "."],
    "mypy": ["mypy"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_sources_pass(check: str) -> None:
    command = [sys.executable, "-m", *CHECKS[check]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    print(f"{done.stdout[-6000:]}{done.stderr[-2000:]}")  # shown if the test fails
    assert done.returncode == 0
