"""``sardonyx ops``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated

import typer

from sardonyx.cli.terminal import print_facts, print_table
from sardonyx.frontend import schemas
from sardonyx.operator_table import OperatorRow, Support, operator_rows, ranges

__all__ = ["Format", "command", "markdown_table"]


class Format(StrEnum):
    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


def command(
    operator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this operator, with its types.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Also the operators that are not supported.")] = False,
    format: Annotated[Format, typer.Option(help="How to print the table.")] = Format.TABLE,
) -> None:
    """List the operators that are supported.

    Supported at a version means: directly, or by ONNX's own function body, all of whose operators are
    supported.  Versions are those of the operator's domain.

    \b
    Examples:
      sardonyx ops
      sardonyx ops --operator Floor
      sardonyx ops --all --format json
    """
    rows = operator_rows(operator)
    if operator is not None and not rows:
        names = sorted({name for _, name in schemas.operators()})
        hint = schemas.did_you_mean(operator, names)
        raise typer.BadParameter(
            f"ONNX defines no operator {operator!r}" + (f"; {hint}" if hint else ""), param_hint="--operator"
        )
    if operator is None and not all:
        rows = [r for r in rows if r.supported]
    if operator is not None and format is Format.TABLE:
        for row in rows:
            _print_one(row)
        return
    _FORMATS[format](rows)


_COLUMNS = ("operator", "domain", "opsets", "by function body", "not supported")


def _cells(row: OperatorRow) -> list[str]:
    newest = schemas.newest_opset(row.domain)
    defined = list(row.versions)

    def text(*kinds: Support) -> str:
        return ranges(row.at(*kinds), defined, newest) or "-"

    return [
        row.name,
        schemas.domain_name(row.domain),
        text(Support.DIRECT, Support.BODY),
        text(Support.BODY),
        text(Support.NONE),
    ]


def _print_rows(rows: Sequence[OperatorRow]) -> None:
    print_table(_COLUMNS, [_cells(r) for r in rows])
    typer.echo(f"\n{count_text(rows)}")


def count_text(rows: Sequence[OperatorRow]) -> str:
    """How many operators of each domain are supported."""
    everything = operator_rows()
    parts = []
    for domain in dict.fromkeys(r.domain for r in rows):
        current = [r for r in everything if r.domain == domain and not r.at(Support.DEPRECATED)]
        have = sum(r.supported for r in current)
        parts.append(f"{have} of {len(current)} operators of {schemas.domain_name(domain)}")
    return ", ".join(parts)


def markdown_table(rows: Sequence[OperatorRow]) -> str:
    """The table in Markdown."""
    lines = [_COLUMNS, ["---"] * len(_COLUMNS), *map(_cells, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _print_markdown(rows: Sequence[OperatorRow]) -> None:
    typer.echo(markdown_table(rows), nl=False)


def _print_json(rows: Sequence[OperatorRow]) -> None:
    data = [
        {
            "operator": r.name,
            "domain": schemas.domain_name(r.domain),
            "versions": {str(v): str(s) for v, s in r.versions.items()},
        }
        for r in rows
    ]
    typer.echo(json.dumps(data, indent=1))


_FORMATS: dict[Format, Callable[[Sequence[OperatorRow]], None]] = {
    Format.TABLE: _print_rows,
    Format.MARKDOWN: _print_markdown,
    Format.JSON: _print_json,
}


def _print_one(row: OperatorRow) -> None:
    typer.echo(f"{row.name} ({schemas.domain_name(row.domain)})")
    for version, support in row.versions.items():
        typer.echo(f"\nsince version {version}: {support}")
        if support is Support.DEPRECATED:
            continue
        schema = schemas.find(row.name, row.domain, version)
        facts = [(f"  input {p.name}", _types(p)) for p in schema.inputs]
        facts += [(f"  output {p.name}", _types(p)) for p in schema.outputs]
        facts += [
            (f"  attribute {a.name}", "required" if a.required else f"default {a.default}")
            for a in schema.attributes.values()
        ]
        if facts:
            print_facts(facts)


def _types(parameter: schemas.Parameter) -> str:
    short = sorted(t.removeprefix("tensor(").removesuffix(")") for t in parameter.types)
    return f"{', '.join(short)}{'' if parameter.option == 'single' else f' ({parameter.option})'}"
