"""Links objects to a shared library with what the host has: its C compiler, or its linker alone."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from sardonyx.errors import CompileError

__all__ = ["link_shared"]

_DRIVERS = ("cc", "gcc", "clang")
_LINKERS = ("ld", "ld.lld", "ld.bfd", "ld.gold")


def link_shared(objects: Sequence[Path], output: Path, exports: Iterable[str], folder: Path) -> None:
    """Make a shared library whose only visible symbols are the exports; ``folder`` is for scratch files.

    CompileError if there is no linker, or if it fails.
    """
    script = folder / "exports.map"
    script.write_text(f"{{ global: {' '.join(f'{e};' for e in exports)} local: *; }};\n")
    options = ["-z", "noexecstack", "-z", "relro", "-z", "now", "--gc-sections", f"--version-script={script}"]
    command = _command(options)
    files = [str(path) for path in objects]
    try:
        done = subprocess.run(
            [*command, "-shared", "-o", str(output), *files], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise CompileError(f"cannot run the linker {command[0]!r}: {error}") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise CompileError(f"the linker {command[0]!r} failed: {' / '.join(lines)}")


def _command(options: Sequence[str]) -> list[str]:
    """A linker and the options in its form: ``$CC``, a C compiler, or a linker."""
    given = shlex.split(os.environ.get("CC", ""))
    if given and shutil.which(given[0]) is None:
        raise CompileError(
            f"the C compiler {given[0]!r} that CC names is not there", hint="unset CC, or install it"
        )
    for driver in [given] if given else [[name] for name in _DRIVERS]:
        if shutil.which(driver[0]):
            # No start files and no libraries: what is undefined is in every process's C library, and not to
            # name its version lets the library load where the C library is older than here.
            return [*driver, "-nostdlib", f"-Wl,{','.join(options)}"]
    for linker in _LINKERS:
        if shutil.which(linker):
            return [linker, *options]
    raise CompileError(
        "exporting a library needs a linker, and there is none",
        hint=f"looked for {', '.join((*_DRIVERS, *_LINKERS))}: install gcc, clang or binutils, or set CC",
    )
