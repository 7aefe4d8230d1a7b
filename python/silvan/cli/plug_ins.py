"""The command that lists plug-ins."""

from __future__ import annotations

from silvan.cli.options import AsJson
from silvan.cli.printer import put, put_json, put_table


def plug_ins(*, as_json: AsJson = False) -> None:
    """List the plug-ins of installed packages.

    A scenario names a plug-in where the name of a built-in one would stand. Prints the keys of each
    plug-in with their defaults.
    """
    from silvan.plugins.installed import described, every

    rows = [described(one) for one in every()]
    if as_json:
        put_json(rows)
        return
    if not rows:
        put("no plug-ins are installed")
        return
    from rich.table import Table

    from silvan.toml_text import literal

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
    put_table(table)
