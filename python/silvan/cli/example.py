"""Examples: scenario files to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from silvan.cli.options import AsJson
from silvan.cli.printer import note, put, put_json, put_table


def _names() -> list[str]:
    from silvan.example_files import examples

    return [one.name for one in examples()]


def example(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Example to copy; without a name, all are listed.",
            autocompletion=_names,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder to copy to.", show_default=False)
    ] = Path(),
    *,
    as_json: AsJson = False,
) -> None:
    """Copy an example scenario, or list all examples.

    The files that the scenario names are copied with it. No file is overwritten.
    """
    from silvan.example_files import copy_example, example, examples

    if name is not None:
        one = example(name)
        written = copy_example(one, out)
        if as_json:
            put_json({"files": [str(path) for path in written], "commands": one.commands})
            return
        for path in written:
            put(str(path))
        note(f"next: {one.commands[0]}")
        return
    if as_json:
        put_json(
            [
                {"name": one.name, "description": one.description, "commands": one.commands}
                for one in examples()
            ]
        )
        return
    from rich.table import Table

    table = Table(caption="silvan example NAME copies one.")
    table.add_column("example", no_wrap=True)
    table.add_column("what it shows")
    for one in examples():
        table.add_row(one.name, one.description)
    put_table(table)
