"""The command that writes a fabric in the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from silvan.cli.options import Assignments
from silvan.cli.printer import put, warn
from silvan.inputs.exports.formats import Format


def export(
    fabric: Annotated[
        Path,
        typer.Argument(
            metavar="FABRIC",
            help="A scenario file (.toml), or the output of ibnetdiscover.",
            show_default=False,
        ),
    ],
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"Format to write: {', '.join(Format)}.",
            show_default=False,
        ),
    ],
    set_: Assignments = None,
) -> None:
    """Print the fabric in the format of another program.

    slurm-tree and slurm-block are topology.conf of Slurm, topograph is a model of NVIDIA's
    topograph. root-guids and cn-guids are files of OpenSM's routing engines, ibsim is a net file,
    ns-3 the topology.txt of HPCC's artifact, and htsim a topology file of csg-htsim.
    """
    from silvan.inputs.toml_text import parse_assignments
    from silvan.planning.changes import read_fabric

    scenario = read_fabric(fabric, parse_assignments(set_ or []))
    warn(scenario.warnings)
    put(scenario.export(format_).rstrip("\n"))
