"""The command that routes a fabric with OpenSM."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from silvan.cli.options import Assignments, ScenarioPath, load
from silvan.cli.printer import note


def route(
    scenario: ScenarioPath,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="OpenSM's routing engine: minhop, updn, dnup, ftree, lash, dor, torus-2QoS, ...",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="File to write the forwarding tables to, in the format of dump_lfts.",
        ),
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- OPTION ...]", help="Further options for opensm.", show_default=False
        ),
    ] = None,
    set_: Assignments = None,
) -> None:
    """Route a fabric with OpenSM and store its forwarding tables."""
    from silvan.errors import OutputError
    from silvan.opensm_routing import route as by_opensm

    # Whatever the scenario's own routing is, it need not work: OpenSM's is what counts.
    loaded = load(scenario, set_, overrides={"fabric.routing": "none"})
    tables = by_opensm(loaded, engine, options or [])
    part = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        part.write_text(tables)
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OutputError(f"{out}: {error.strerror}") from error
    note(f"written to {out}")
