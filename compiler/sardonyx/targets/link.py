"""Links an object to a library: with what the host has, or with the linkers of the ``ziglang`` wheel."""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sardonyx.errors import CompileError
from sardonyx.targets.triples import KNOWN, Triple, host_triple

__all__ = ["check_linker", "link_shared"]

_DRIVERS = ("cc", "gcc", "clang")
_LINKERS = ("ld", "ld.lld", "ld.bfd", "ld.gold")
_HINT = "pip install sardonyx[cross]"

# The version of the C library that a library asks for; other systems' first ones are new enough for all.
_OLDEST = {"x86_64-linux-gnu": ".2.5"}

_ELF = ("-z", "noexecstack", "-z", "relro", "-z", "now", "--gc-sections")


@dataclass(frozen=True)
class _Linker:
    """A command that makes a library of a system, and how it takes options of the linker proper."""

    command: tuple[str, ...]
    driver: bool = True

    def options(self, options: Sequence[str]) -> list[str]:
        return [f"-Wl,{','.join(options)}"] if self.driver else list(options)


def link_shared(
    objects: Sequence[Path],
    output: Path,
    exports: Iterable[str],
    folder: Path,
    system: Triple | None = None,
) -> None:
    """Make a library whose only visible symbols are the exports, for a system (None: the host's).

    ``folder`` is for scratch files.  CompileError if there is no linker, or if it fails.
    """
    system = system or host_triple()
    linker = check_linker(system)
    command = [*linker.command, *_form(linker, system, list(exports), folder, output.name), "-o", str(output)]
    command += [str(path) for path in objects]
    if system.short.endswith("linux-gnu") and linker.driver:
        command += ["-Wl,--as-needed", "-lm"]  # CPUs without FMA or SSE4.1 want fma or floor of it
    # Zig keeps what it makes of a C library in the user's cache, and other things where it is called.
    environment = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        raise CompileError(f"cannot run the linker {command[0]!r}: {error}") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()[-5:]
        raise CompileError(f"the linker {command[0]!r} failed: {' / '.join(lines)}")
    if system.system == "windows":
        _forget_time(output)


def _forget_time(library: Path) -> None:
    """Clear the time of linking in the head of a library of Windows: equal input is to give equal bytes."""
    with open(library, "r+b") as file:
        file.seek(0x3C)  # where the place of the head stands (PE format, "MS-DOS stub")
        (head,) = struct.unpack("<I", file.read(4))
        file.seek(head + 8)  # behind the signature, the machine and the number of sections
        file.write(bytes(4))


def _form(linker: _Linker, system: Triple, exports: Sequence[str], folder: Path, name: str) -> list[str]:
    """The options that make a library of the system's form."""
    if system.system == "linux":
        script = folder / "exports.map"
        script.write_text(f"{{ global: {' '.join(f'{e};' for e in exports)} local: *; }};\n")
        # No start files and no libraries: what is undefined is in every process's C library, and not to
        # name its version lets the library load where the C library is older than here.
        plain = ["-nostdlib"] if linker.driver else []
        return [*plain, "-shared", *linker.options([*_ELF, f"--version-script={script}"])]
    if system.system == "wasi":
        wanted = [*exports, "malloc", "free"]  # whoever calls from outside has to place inputs inside
        return ["-mexec-model=reactor", "-s", *linker.options([f"--export={name}" for name in wanted])]
    # What the object does not export is local to it already.
    if system.system == "windows":
        return ["-shared", "-s"]
    return ["-dynamiclib", *linker.options(["-install_name", f"@rpath/{name}"])]


def check_linker(system: Triple) -> _Linker:
    """The linker for a system: ``$CC``, a C compiler or a linker of the host, one that crosses, or Zig's.

    CompileError says what is missing.
    """
    if system.short not in KNOWN:
        raise CompileError(
            f"no library can be linked for {system.short or system.llvm}",
            hint=f"write an object (.o) and link it there; libraries are linked for {', '.join(KNOWN)}",
        )
    host = host_triple()
    looked = []
    if (system.machine, system.system) == (host.machine, host.system) == (host.machine, "linux"):
        found = _of_the_host()
        if found is not None:
            return found
        looked = [*_DRIVERS, *_LINKERS]
    elif system.system == "linux":
        name = f"{system.machine}-linux-{system.environment}-gcc"
        if shutil.which(name):
            return _Linker((name,))
        looked = [name]
    if find_spec("ziglang") is not None:
        target = system.short + _OLDEST.get(system.short, "")
        return _Linker((sys.executable, "-m", "ziglang", "cc", "-target", target))
    what = f"a library for {system.short}" if system != host else "exporting a library"
    also = f"looked for {', '.join(looked)}: install one, or " if looked else ""
    raise CompileError(f"{what} needs a linker, and there is none", hint=f"{also}{_HINT}")


def _of_the_host() -> _Linker | None:
    given = shlex.split(os.environ.get("CC", ""))
    if given and shutil.which(given[0]) is None:
        raise CompileError(
            f"the C compiler {given[0]!r} that CC names is not there", hint="unset CC, or install it"
        )
    for driver in [given] if given else [[name] for name in _DRIVERS]:
        if shutil.which(driver[0]):
            return _Linker(tuple(driver))
    for linker in _LINKERS:
        if shutil.which(linker):
            return _Linker((linker,), driver=False)
    return None
