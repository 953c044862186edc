"""``sardonyx listing``."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sardonyx.cli.plugins import LoadOption, load_files
from sardonyx.cli.source import ModelArgument, checked
from sardonyx.cli.terminal import print_or_save, progress
from sardonyx.listings.listing import model_listings
from sardonyx.listings.listing_text import downward, upward

__all__ = ["command"]


class Order(StrEnum):
    """From where the listing is read."""

    NODE = "node"
    ASM = "asm"


def command(
    model: ModelArgument,
    node: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Only kernels that compute nodes of such names, as 'Conv_*'."),
    ] = None,
    order: Annotated[
        Order, typer.Option("--from", help="Read from the nodes down, or from the assembly up.")
    ] = Order.NODE,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the lines of every level and their relations as JSON.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")
    ] = None,
    load: LoadOption = None,
) -> None:
    """Show what became of each node, line by line, down to the assembly.

    For every kernel: its core operations, the lines of its loops, and below each line the LLVM IR and the
    machine instructions that stem from it. `--from asm` shows the assembly in its order, with the nodes and
    loop lines it stems from.

    \b
    Examples:
      sardonyx listing model.onnx --node 'Conv_1'
      sardonyx listing model.onnx --from asm -o model.s
      sardonyx listing model.onnx --json | jq '.[0].asm_to_loop'
    """
    load_files(load)
    try:
        with progress("compiling"):
            listings = model_listings(checked(model), node)
    except ValueError as error:
        if node is None:
            raise
        raise typer.BadParameter(str(error), param_hint="--node") from None
    if as_json:
        text = json.dumps([one.to_json() for one in listings]) + "\n"
    else:
        text = "\n".join((upward if order is Order.ASM else downward)(one) for one in listings)
    print_or_save(text, output)
