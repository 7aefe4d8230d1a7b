"""The command that writes a fabric, or results, in the format of another program."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from silvan.cli.options import Assignments
from silvan.cli.printer import put, warn
from silvan.errors import SilvanError
from silvan.inputs.exports.formats import Format
from silvan.results.benchmark_tables import BenchmarkFormat


class Exported(StrEnum):
    """A format of a fabric, or of results."""

    CN_GUIDS = Format.CN_GUIDS.value
    GRAPHML = Format.GRAPHML.value
    HTSIM = Format.HTSIM.value
    IBSIM = Format.IBSIM.value
    NS_3 = Format.NS_3.value
    ROOT_GUIDS = Format.ROOT_GUIDS.value
    SLURM_BLOCK = Format.SLURM_BLOCK.value
    SLURM_TREE = Format.SLURM_TREE.value
    TOPOGRAPH = Format.TOPOGRAPH.value
    NCCL_TESTS = BenchmarkFormat.NCCL_TESTS.value
    OSU = BenchmarkFormat.OSU.value


def export(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A scenario file (.toml), the output of ibnetdiscover, or a folder of results.",
            show_default=False,
        ),
    ],
    format_: Annotated[
        Exported,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"Format to write. Of a fabric: {', '.join(Format)}. Of results: "
            f"{', '.join(BenchmarkFormat)}.",
            show_default=False,
        ),
    ],
    set_: Assignments = None,
) -> None:
    """Print a fabric or a result as other programs read it.

    slurm-tree and slurm-block are topology.conf of Slurm, topograph is a model of NVIDIA's
    topograph. root-guids and cn-guids are files of OpenSM's routing engines, ibsim is a net file,
    ns-3 the topology.txt of HPCC's artifact, and htsim a topology file of csg-htsim.

    nccl-tests and osu are the tables of nccl-tests and of the OSU micro-benchmarks.
    """
    if format_.value in list(BenchmarkFormat):
        put(_programs(source, format_, set_ or []).rstrip("\n"))
        return
    if source.is_dir():
        raise SilvanError(
            f"{source}: {format_} is a format of fabrics, and this is a folder",
            f"name a scenario file, or use {' or '.join(BenchmarkFormat)}",
        )
    from silvan.inputs.fabric_lists import read_fabric
    from silvan.inputs.toml_text import parse_assignments

    scenario = read_fabric(source, parse_assignments(set_ or []))
    warn(scenario.warnings)
    put(scenario.export(format_).rstrip("\n"))


def _programs(folder: Path, format_: str, assignments: list[str]) -> str:
    from silvan.results.result import Result

    if assignments:
        raise SilvanError("--set has no effect on results", "set it in silvan run")
    if folder.is_file():
        raise SilvanError(
            f"{folder}: {format_} is a format of results",
            f"name a folder of silvan run {folder} --out FOLDER",
        )
    return Result.read(folder).export(format_)
