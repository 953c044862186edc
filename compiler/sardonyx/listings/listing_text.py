"""Listings as text: from the nodes down to the assembly, or from the assembly up to the nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sardonyx.listings.listing import KernelListing

__all__ = ["downward", "upward"]

_MOST_NODES = 8


def downward(listing: KernelListing) -> str:
    """Each loop line with the LLVM and assembly lines that stem from it, behind the core ops of its nodes."""
    llvm, asm = _by_loop_line(listing.llvm_to_loop), _by_loop_line(listing.asm_to_loop)
    core: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for line, names in zip(listing.core, listing.core_nodes, strict=True):
        core[names].append(line)
    lines = [_title(listing)]
    current: tuple[str, ...] | None = None
    for i, text in enumerate(listing.loop):
        names = listing.loop_nodes[i]
        if names != current:
            lines += ["", f"node {_shown(names)}"]
            lines += [f"  core         {line}" for line in core.pop(names, ())]
            current = names
        lines.append(f"  loop  {i + 1:>5}  {text}")
        lines += [f"  llvm  {at + 1:>5}      {listing.llvm[at].strip()}" for at in llvm[i]]
        lines += [f"  asm   {at + 1:>5}          {_tidy(listing.asm[at])}" for at in asm[i]]
    for names, rest in core.items():  # movement that became part of an index, and the group's end
        lines += [
            "",
            f"node {_shown(names)}, without a line of its own",
            *(f"  core         {r}" for r in rest),
        ]
    return "\n".join(lines) + "\n"


def upward(listing: KernelListing) -> str:
    """The assembly in its order; in front of each stretch, the nodes and the loop line it stems from."""
    lines = [_title(listing)]
    current: int | None = None
    for at, text in enumerate(listing.asm):
        origin = listing.asm_to_loop[at]
        if origin is not None and origin != current:
            lines.append(
                f"# {_shown(listing.loop_nodes[origin])} | {origin + 1}: {listing.loop[origin].strip()}"
            )
        current = origin if origin is not None else current
        lines.append(text)
    return "\n".join(lines) + "\n"


def _title(listing: KernelListing) -> str:
    names = list(listing.nodes[:_MOST_NODES])
    rest = len(listing.nodes) - len(names)
    return f"# {listing.symbol}, of {', '.join(names) or 'no node'}{f' and {rest} others' if rest else ''}"


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names) or "(none)"


def _by_loop_line(origins: Iterable[int | None]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for at, origin in enumerate(origins):
        if origin is not None:
            found[origin].append(at)
    return found


def _tidy(line: str) -> str:
    return line.strip().replace("\t", " ")
