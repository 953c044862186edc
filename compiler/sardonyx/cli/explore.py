"""``sardonyx explore``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from sardonyx.cli.plugins import LoadOption, load_files
from sardonyx.cli.source import ModelArgument, checked
from sardonyx.cli.terminal import amount, progress, save_text
from sardonyx.explore import ForeignProfile, LayoutMissing, NoSuchNode, check_profile, explore, render
from sardonyx.source import is_ir

__all__ = ["command"]


def command(
    model: ModelArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The page; by default MODEL's name with .html, here."
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Times, as `sardonyx profile --json` writes them."),
    ] = None,
    node: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="List only the kernels of nodes of such names, as 'Conv_*'; the page opens there.",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    load: LoadOption = None,
) -> None:
    """Write a page that shows a model and what compiling makes of it, from the graph to the assembly.

    The page is one HTML file that needs no network: the graph, the stages side by side, what each pass changed,
    the memory plan, the kernels.  A click on a node or on a line shows what belongs to it everywhere.  Drawing
    the graph needs the extra `sardonyx[explore]`.  A model that cannot be compiled gives a page too, as far as
    it came; the exit code is then 3.

    \b
    Examples:
      sardonyx explore model.onnx
      sardonyx explore model.onnx -o page.html --open
      sardonyx explore model.onnx --node 'Conv_1*'
      sardonyx explore model.onnx --profile times.json
    """
    load_files(load)
    if is_ir(checked(model)):
        raise typer.BadParameter(f"{model!r} is IR text; the page is of ONNX models", param_hint="MODEL")
    times = None if profile is None else _profile(profile)
    target = output or Path(Path(model).with_suffix(".html").name)
    try:
        with progress("exploring") as report:
            found = explore(model, node=node, profile=times, report=report)
            page = render(found)
    except LayoutMissing:
        raise typer.BadParameter(
            "drawing the graph needs a library that is not installed: pip install 'sardonyx[explore]'",
            param_hint="explore",
        ) from None
    except ForeignProfile as error:
        raise typer.BadParameter(str(error), param_hint="--profile") from None
    except NoSuchNode as error:
        raise typer.BadParameter(str(error), param_hint="--node") from None
    save_text(page, target)
    typer.echo(f"{target}: {amount(len(page.encode()))}")
    if open_page:
        typer.launch(target.resolve().as_uri())
    if found.error is not None:
        raise found.error


def _profile(path: Path) -> Any:
    try:
        return check_profile(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise typer.BadParameter(
            f"cannot read {str(path)!r}: {error.strerror}", param_hint="--profile"
        ) from None
    except ValueError as error:
        raise typer.BadParameter(f"{str(path)!r}: {error}", param_hint="--profile") from None
