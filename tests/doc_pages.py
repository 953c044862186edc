"""Runs a page of the documentation: every block in its order, and what each prints is what the page shows.

| block | what is done with it |
|---|---|
| `python` whose first line is `# NAME.py` | written to that file |
| `python` | executed, in one namespace for the whole page |
| `console` | each line with `$ sardonyx ...` is run; the lines below it are what it prints |
| `sh` | for other shells than ours; not run |
| another language, below a `python` block | what that block prints |

``...`` in shown output stands for anything, lines included.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from sardonyx import pass_manager
from sardonyx.cli import opt  # registers every pass
from sardonyx.cli.main import main

__all__ = ["Block", "blocks_of", "run_page"]

assert opt.__all__
_OWN = dict(pass_manager.registered_passes())
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# ([\w-]+\.py)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line it begins in."""

    language: str
    text: str
    line: int


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page."""
    return [Block(m[1], m[2], page.count("\n", 0, m.start()) + 1) for m in _BLOCK.finditer(page)]


def run_page(path: Path) -> int:
    """Run a page in the current folder; how many outputs were compared.  AssertionError where one differs."""
    page = path.read_text(encoding="utf-8")
    with _own_passes():
        try:
            return _run(path, blocks_of(page))
        finally:
            for name in _FILE.findall(page):
                sys.modules.pop(name.removesuffix(".py"), None)


def _own_passes() -> Any:
    """Our passes are known inside, and what is registered there is not known behind: for a user each command is a process."""
    return mock.patch.dict(pass_manager._REGISTERED, _OWN, clear=True)


def _run(path: Path, blocks: list[Block]) -> int:
    names: dict[str, object] = {"__name__": "page"}
    compared = 0
    printed = ""  # of the last block, not shown yet
    before = Block("", "", 1)
    for block in blocks:
        where = f"{path.name}, line {block.line}"
        if block.language in ("python", "console"):
            assert not printed, (
                f"{path.name}, line {before.line}: the block prints what is not shown:\n{printed}"
            )
        file = _FILE.match(block.text) if block.language == "python" else None
        if file is not None:
            Path(file[1]).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            printed = _executed(block.text, where, names)
        elif block.language == "console":
            compared += _console(block.text, where)
        elif block.language in ("sh", "js"):
            continue
        elif before.language == "python":
            _compare(block.text, printed, where)
            printed = ""
            compared += 1
        else:
            raise AssertionError(f"{where}: nothing says what prints this block")
        before = block
    assert not printed, f"{path.name}, line {before.line}: the block prints what is not shown:\n{printed}"
    return compared


def _executed(code: str, where: str, names: dict[str, object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, where, "exec"), names)
    return out.getvalue()


def _console(text: str, where: str) -> int:
    """Run the commands of a block and compare what they print."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    assert parts[0] == "", f"{where}: a console block begins with a command"
    for command, shown in zip(parts[1::2], parts[2::2], strict=True):
        words = shlex.split(command)
        assert words[0] == "sardonyx", f"{where}: {command}"
        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error), _own_passes():
            try:
                main(words[1:])
            except SystemExit as ended:
                assert not ended.code, f"{where}: {command}: exit code {ended.code}\n{error.getvalue()}"
        _compare(shown, out.getvalue(), f"{where}: {command}")
    return len(parts) // 2


def _compare(shown: str, printed: str, where: str) -> None:
    equal = doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS)
    assert equal, f"{where}: shown:\n{shown}\nprinted:\n{printed}"
