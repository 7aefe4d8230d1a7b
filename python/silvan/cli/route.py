"""The command that routes a fabric with OpenSM."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from silvan.cli.options import (
    Assignments,
    CnGuidFile,
    RootGuidFile,
    ScenarioPath,
    guid_files,
    load,
)
from silvan.cli.printer import note
from silvan.cli.termination import terminated_as_interrupted


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
    root_guid_file: RootGuidFile = None,
    cn_guid_file: CnGuidFile = None,
    set_: Assignments = None,
) -> None:
    """Route a fabric with OpenSM and store its forwarding tables."""
    from silvan.folders import write_text
    from silvan.live.opensm_routing import route as by_opensm

    files = guid_files(root_guid_file, cn_guid_file)
    # The scenario's own routing may fail: OpenSM's counts.
    loaded = load(scenario, set_, overrides={"fabric.routing": "none"})
    with terminated_as_interrupted():
        tables = by_opensm(loaded, engine, options or [], files=files)
    write_text(out, tables)
    note(f"written to {out}")
