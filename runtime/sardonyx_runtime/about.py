"""What a library says of itself, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["amount", "facts"]


def facts(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Pairs of a name and a value, from the description of a library or from its manifest."""
    signature = description["signature"]
    made = f"Sardonyx {description['sardonyx']}"
    if "llvm" in description:
        made += f", LLVM {description['llvm']}"
    rows = [
        ("made by", made),
        ("interface", f"version {description['abi']}, symbols {description.get('name', 'sdx_model')}_..."),
        ("model", f"SHA-256 {description['model']}" if "model" in description else ""),
        ("opsets", ", ".join(f"{d} {v}" for d, v in description.get("opsets", {}).items())),
        ("nodes", str(description.get("nodes", ""))),
        *_target(description),
        *((f"input {a['name']}", _argument(a)) for a in signature["inputs"]),
        *((f"output {a['name']}", _argument(a)) for a in signature["outputs"]),
        ("threads", str(description.get("threads", ""))),
        ("kernels", str(description.get("kernels", ""))),
        ("code", amount(description["code"]) if "code" in description else ""),
        ("weights", amount(description["weights"]) + _place(description.get("weights_file"))),
        *_arena(description.get("arena", ())),
        *((f"file {name}", _file(state)) for name, state in description.get("files", {}).items()),
    ]
    return [(name, value) for name, value in rows if value]


def _target(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The system, and the CPU; of a library with several levels each of them."""
    levels = description.get("levels") or [description]
    named = [" ".join(filter(None, (description["triple"], level.get("cpu")))) for level in levels]
    rows = []
    for target, level in zip(named, levels, strict=True):
        rows += [("target", target), ("features", " ".join(level.get("features", [])))]
    return rows


def _place(file: str | None) -> str:
    return f" in {file}" if file else ""


def _argument(argument: Mapping[str, Any]) -> str:
    extents = ", ".join(map(str, argument["shape"]))
    return f"{argument['dtype']}[{extents}]{' (optional)' if 'default' in argument else ''}"


def _arena(chunks: Sequence[int | str]) -> list[tuple[str, str]]:
    """The memory of a run; chunks of control flow grow as they have to."""
    names = [f"arena {i}" for i in range(len(chunks))] if len(chunks) > 1 else ["arena"]
    return [
        (name, "grows" if size == 0 else amount(size) if isinstance(size, int) else f"{size} bytes")
        for name, size in zip(names, chunks, strict=False)
    ]


def _file(state: Mapping[str, Any]) -> str:
    return f"{amount(state['bytes'])}, SHA-256 {state['sha256']}"


def amount(size: int) -> str:
    """A number of bytes for people: 1.5 KB, 23.1 MB (powers of 1000)."""
    value = float(size)
    for unit in ("bytes", "KB", "MB"):
        if value < 1000:
            return f"{size} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
