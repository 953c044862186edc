"""``sardonyx explain``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sardonyx.cli.source import ModelArgument, checked
from sardonyx.cli.terminal import print_facts, print_table, progress
from sardonyx.explanations.explainer import explain_nodes
from sardonyx.explanations.explanation import Explanation, sections

__all__ = ["command"]


def command(
    model: ModelArgument,
    node: Annotated[
        str, typer.Option(metavar="NAME", help="The node's name, or a pattern of names, as 'Conv_*'.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a list of JSON objects, one a node.")
    ] = False,
) -> None:
    """Explain what became of a node of the model, and why.

    Its types with the rules that gave them, what each pass did to it, with which neighbours it shares a kernel
    and why not with others, the kernels that compute it: schedule, vectors, memory, estimated cost.

    \b
    Examples:
      sardonyx explain model.onnx --node Conv_1
      sardonyx explain model.onnx --node '*/Softmax'
      sardonyx explain model.onnx --node Conv_1 --json | jq '.[0].kernels[].schedule'
    """
    try:
        with progress("compiling"):
            found = explain_nodes(checked(model), node)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--node") from None
    if as_json:
        typer.echo(json.dumps([one.to_json() for one in found]))
        return
    for number, one in enumerate(found):
        if number:
            typer.echo("\n")
        _print(one)


def _print(one: Explanation) -> None:
    for number, section in enumerate(sections(one)):
        typer.echo(f"\n{section.title}" if number else section.title)
        if section.columns:
            print_table(section.columns, section.rows)
        else:
            print_facts([(row[0], row[1]) for row in section.rows])
