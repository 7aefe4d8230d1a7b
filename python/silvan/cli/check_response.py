"""The command that checks a response function before it is simulated."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import AsJson
from silvan.cli.printer import note, put_json, put_table

if TYPE_CHECKING:
    from silvan.response import Finding, Response

_FUNCTIONS = ("aimd", "fimd", "lipd")


def check_response(
    function: Annotated[
        str,
        typer.Argument(
            help="aimd, fimd, lipd, or a Python file with functions increase(rate) and "
            "decrease(rate) and, if it is not 1/256, MIN_RATE.",
            show_default=False,
        ),
    ],
    factor: Annotated[
        float, typer.Option(help="What a mark divides the rate by, for aimd and fimd.")
    ] = 2.0,
    tables: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write lookup tables for 256 rates to this file, a section [control.ecn].",
            show_default=False,
        ),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Check whether a response function is fair and avoids congestion, without simulating it.

    The conditions are those of santos2003, section V. The exit status is 1 if the function leaves
    its range, answers a mark too weakly, or treats flows unequally.
    """
    response = _load(function, factor)
    findings = response.check()
    if as_json:
        put_json([finding.to_dict() for finding in findings])
    else:
        _print(function, findings)
    if tables is not None:
        from silvan.folders import write_text
        from silvan.toml_text import literal

        lines = [f"{key} = {literal(value)}" for key, value in response.tables().items()]
        write_text(tables, "\n".join(["[control.ecn]", *lines, ""]))
        note(f"wrote {tables}")
    if not all(finding.holds for finding in findings if finding.is_required):
        raise typer.Exit(1)


def _load(function: str, factor: float) -> Response:
    from silvan.errors import SilvanError
    from silvan.response import MIN_RATE, Response

    if function == "lipd":
        return Response.lipd()
    if function in _FUNCTIONS:
        return Response.aimd(factor) if function == "aimd" else Response.fimd(factor)
    path = Path(function)
    if not path.is_file():
        raise SilvanError(
            f"{function}: no such response function or file",
            f"give {', '.join(_FUNCTIONS)}, or a Python file",
        )
    names = runpy.run_path(str(path))
    missing = [name for name in ("increase", "decrease") if not callable(names.get(name))]
    if missing:
        raise SilvanError(
            f"{function}: no function {missing[0]!r}", "define increase(rate) and decrease(rate)"
        )
    return Response(names["increase"], names["decrease"], names.get("MIN_RATE", MIN_RATE))


def _print(function: str, findings: list[Finding]) -> None:
    from rich.table import Table

    table = Table(
        title=f"{function}: the design conditions of santos2003",
        caption="Worst case over 256 rates. Rates are fractions of the link's, times are packet "
        "times. The first three are required; the others tell whether rates recover as fast as "
        "these allow.",
    )
    for heading in ("condition", "what it says"):
        table.add_column(heading)
    for heading in ("at rate", "value", "bound", "holds"):
        table.add_column(heading, justify="right", no_wrap=True)
    for finding in findings:
        table.add_row(
            finding.condition,
            finding.meaning,
            f"{finding.rate:.4g}",
            f"{finding.value:.6g}",
            f"{finding.bound:.6g}",
            "[green]yes[/]" if finding.holds else "[yellow]no[/]",
        )
    put_table(table)
