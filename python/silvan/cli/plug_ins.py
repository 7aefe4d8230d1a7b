"""The command that lists plug-ins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from silvan.cli.options import AsJson
from silvan.cli.printer import fail, put, put_json, put_table

if TYPE_CHECKING:
    from rich.table import Table


def plug_ins(*, as_json: AsJson = False) -> None:
    """List the plug-ins of installed packages.

    A scenario names a plug-in where the name of a built-in one would stand. Prints the keys of each
    plug-in with their defaults. A plug-in that cannot be used is an error, and the exit status is
    then 2.
    """
    from silvan.plugins.installed import every

    rows = list(every())
    usable = [row for row in rows if "error" not in row]
    if as_json:
        put_json(rows)
    elif not rows:
        put("no plug-ins are installed")
    elif usable:
        put_table(_table(usable))
    broken = [row for row in rows if "error" in row]
    for row in broken:
        fail(row["error"], row["hint"])
    if broken:
        raise typer.Exit(2)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    from rich.table import Table

    from silvan.inputs.toml_text import literal

    table = Table()
    for column in ("kind", "name", "package"):
        table.add_column(column, no_wrap=True)
    table.add_column("keys")
    table.add_column("summary")
    for row in rows:
        keys = (
            name if default is None else f"{name} = {literal(default)}"
            for name, default in row["keys"].items()
        )
        package = f"{row['package']} {row['version']}"
        table.add_row(row["kind"], row["name"], package, "\n".join(keys), row["summary"])
    return table
