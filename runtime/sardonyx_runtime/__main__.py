"""``python -m sardonyx_runtime``: shows a library, or runs it, without the compiler."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sardonyx_runtime.about import facts
from sardonyx_runtime.artifact import load, read_description
from sardonyx_runtime.errors import RuntimeFault
from sardonyx_runtime.feeds import Array
from sardonyx_runtime.signature import Argument
from sardonyx_runtime.version import __version__

__all__ = ["main"]

_EXAMPLES = """\
examples:
  python -m sardonyx_runtime model.so
  python -m sardonyx_runtime info model.so
  python -m sardonyx_runtime run model.so x=x.npy -o results

exit codes: 0 done, 2 the command line is wrong, 4 the library cannot be loaded or the run failed
"""
_FAILED = 4  # as in `sardonyx`


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] not in ("info", "run") and not given[0].startswith("-"):
        given.insert(0, "info")
    parser = _parser()
    options = parser.parse_args(given)
    try:
        if options.command == "run":
            _run(options)
        else:
            _info(options.library)
    except RuntimeFault as fault:
        print(f"sardonyx_runtime: {fault}", file=sys.stderr)
        return _FAILED
    except (argparse.ArgumentTypeError, OSError) as error:
        parser.error(str(error))
    return 0


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        f"python -m {__package__}",
        description="Shows and runs the libraries that `sardonyx compile` writes.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    parser.add_argument("--version", action="version", version=f"sardonyx_runtime {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="info|run")
    info = commands.add_parser("info", help="what a library is: signature, target, sizes")
    info.add_argument("library", metavar="LIBRARY")
    run = commands.add_parser("run", help="run it once")
    run.add_argument("library", metavar="LIBRARY")
    run.add_argument("inputs", nargs="*", metavar="NAME=FILE.npy", help="an array for each input")
    run.add_argument("--threads", type=int, metavar="N", help="threads of the run (default: all cores)")
    run.add_argument("-o", "--output", type=Path, metavar="DIR", help="write each output to DIR/NAME.npy")
    return parser


def _info(library: str) -> None:
    rows = facts(read_description(library))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name.ljust(width)}  {value}")


def _run(options: argparse.Namespace) -> None:
    if options.threads is not None and options.threads < 1:
        raise argparse.ArgumentTypeError(f"--threads has to be 1 or more, not {options.threads}")
    with load(options.library, threads=options.threads) as model:
        feeds = dict(_fed(text, model.inputs) for text in options.inputs)
        results = model.run(feeds)
        if options.output is not None:
            options.output.mkdir(parents=True, exist_ok=True)
        for argument, result in zip(model.outputs, results, strict=True):
            print(f"{argument.name}: {result.dtype}{list(result.shape)}")
            if options.output is None:
                print(np.array2string(result, threshold=100))
            else:
                name = argument.name.replace("/", "_")
                np.save(options.output / f"{name}.npy", result, allow_pickle=result.dtype == object)


def _fed(text: str, inputs: Sequence[Argument]) -> tuple[str, Array]:
    """The name and the array of a ``NAME=FILE.npy``."""
    name, equals, path = text.rpartition("=")
    known = {argument.name: argument for argument in inputs}
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE.npy")
    if name not in known:
        raise argparse.ArgumentTypeError(f"there is no input {name!r}; the inputs are {', '.join(known)}")
    try:
        array: Array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise argparse.ArgumentTypeError(f"{path!r} cannot be read as a .npy file: {error}") from None
    dtype = known[name].dtype.numpy
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)  # .npy keeps no names of bfloat16 and smaller types
    return name, array


if __name__ == "__main__":
    sys.exit(main())
