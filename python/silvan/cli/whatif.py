"""The command that judges a fabric under each routing engine, as it is and changed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.options import AsJson, Assignments, CnGuidFile, RootGuidFile, guid_files
from silvan.cli.printer import note, put_json, put_widest, warn
from silvan.cli.termination import terminated_as_interrupted
from silvan.errors import ScenarioError
from silvan.inputs.input_files import SCENARIO_BYTES, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.table import Table

    from silvan.inputs.scenario import Scenario
    from silvan.inputs.toml_text import TomlValue
    from silvan.live.opensm_routing import GuidFiles
    from silvan.planning.whatif import WhatIfRow

DURATION = "4 ms"

DATA_VLS = 8
"""Data virtual lanes if a file states none."""

FabricPath = Annotated[
    Path,
    typer.Argument(
        metavar="FABRIC",
        help="A scenario file (.toml), or the output of ibnetdiscover.",
        show_default=False,
    ),
]


def what_if(
    fabric: Annotated[
        Path,
        typer.Argument(
            metavar="FABRIC",
            help="A scenario file (.toml), the output of ibnetdiscover, or a twin that silvan "
            "diagnose --scenario has written.",
            show_default=False,
        ),
    ],
    engine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENGINE",
            help="OpenSM's routing engine; may be repeated. By default all that need no file, "
            "and torus-2QoS on generated meshes and tori.",
            show_default=False,
        ),
    ] = None,
    root_guid_file: RootGuidFile = None,
    cn_guid_file: CnGuidFile = None,
    fail: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE|CABLE",
            help="Add rows for the fabric without this switch, such as spine-00, or without the "
            "cable at this port, such as leaf-00:19. May be repeated.",
            show_default=False,
        ),
    ] = None,
    add_leaf: Annotated[
        str | None,
        typer.Option(
            metavar="LEAF",
            help="Add rows for the fabric with a copy of this leaf, its hosts and its cables.",
            show_default=False,
        ),
    ] = None,
    hotspot: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Storage hotspot: 80 % of the hosts send to it, the others to random hosts. May "
            "be repeated. By default the scenario's traffic, or one random hotspot.",
            show_default=False,
        ),
    ] = None,
    permutations: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Random permutations that the effective bisection bandwidth is averaged over.",
        ),
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the permutations and the load.")] = 1,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Simulated time of each row.")
    ] = DURATION,
    set_: Assignments = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="For a twin: runs of each change, by default 3.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For a twin: folder for a figure.", show_default=False),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For a twin: file for the best change, in the form that applies it.",
            show_default=False,
        ),
    ] = None,
    *,
    cc: Annotated[
        bool,
        typer.Option(
            "--cc", help="Simulate each row with InfiniBand's congestion control as well."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge a fabric before it is changed.

    OpenSM routes the fabric by each engine. Each row of the table states if the routes connect all
    hosts without loops and deadlocks, how evenly they use the cables, their effective bisection
    bandwidth, and the rates next to a hotspot in a short simulation. If OpenSM refuses, a line
    states the reason.

    For a twin, silvan simulates changes, and ranks them by the rate that victims regain less the
    rate that contributors lose. Changes are congestion control, routing engines, throttled and
    moved flows, moved jobs, cables and switches repaired or taken out.
    """
    record = _record(fabric)
    if record is not None:
        _refuse({"--add-leaf": add_leaf, "--hotspot": hotspot, "--cc": cc}, "not with a twin")
        from silvan.cli.remedies import TwinOptions, try_on_twin

        _require_engines(engine or [])
        try_on_twin(
            TwinOptions(
                path=fabric,
                record=record,
                engines=engine,
                failures=fail or [],
                files=guid_files(root_guid_file, cn_guid_file),
                assignments=set_ or [],
                duration=None if duration == DURATION else duration,
                seeds=seeds,
                out=out,
                write=write,
                as_json=as_json,
            )
        )
        return
    _refuse({"--seeds": seeds, "--out": out, "--write": write}, "needs a twin")
    from silvan.planning.whatif import engines_for, variants
    from silvan.planning.whatif import what_if as judge

    _require_engines(engine or [])
    _require_time(duration)
    files = guid_files(root_guid_file, cn_guid_file)
    base, own = _read(fabric, set_, duration, seed, hotspot or [], files)
    with terminated_as_interrupted():
        rows = judge(
            variants(base, fail or [], new_leaf=add_leaf),
            engine or engines_for(base),
            own=own,
            files=files,
            congestion_control=cc,
            permutations=permutations,
            seed=seed,
        )
    if as_json:
        put_json(
            {
                "name": base.name,
                "permutations": permutations,
                "seed": seed,
                "rows": [row.to_dict() for row in rows],
            }
        )
    else:
        put_widest(*_tables(base.name, rows, permutations, cc=cc))
        for row in rows:
            if row.refused or row.not_simulated:
                reason = row.refused or f"not simulated: {row.not_simulated}"
                note(f"{row.fabric}, {row.engine}: {reason}")
    if all(row.refused for row in rows[own is not None :]):
        raise typer.Exit(1)


def _record(path: Path) -> dict[str, Any] | None:
    if path.suffix != ".toml":
        return None
    from silvan.live.twin.scenario import read_record

    return read_record(path)


def _refuse(options: Mapping[str, object], reason: str) -> None:
    for option, given in options.items():
        if given:
            raise typer.BadParameter(reason, param_hint=option)


def _require_engines(engines: Sequence[str]) -> None:
    from difflib import get_close_matches

    from silvan.planning.whatif import ALL_ENGINES

    for engine in engines:
        if engine not in ALL_ENGINES:
            close = get_close_matches(engine, ALL_ENGINES, n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise typer.BadParameter(
                f"{engine} is none of {', '.join(ALL_ENGINES)}{meant}", param_hint="--engine"
            )


def _require_time(duration: str) -> None:
    from silvan.inputs.quantities import Quantity

    try:
        is_time = Quantity(duration).ps > 0
    except ScenarioError:
        is_time = False
    if not is_time:
        raise typer.BadParameter(
            f"{duration} is no time above 0, such as 4 ms", param_hint="--duration"
        )


def _read(
    path: Path,
    set_: list[str] | None,
    duration: str,
    seed: int,
    hotspots: Sequence[str],
    files: GuidFiles,
) -> tuple[Scenario, Scenario | None]:
    from silvan.inputs.fabric_lists import read_fabric, stated
    from silvan.inputs.toml_text import parse_assignments
    from silvan.planning.whatif import ANY_ROUTES, with_hotspots

    given = {**parse_assignments(set_ or []), "run.duration": duration, "run.seed": seed}
    base = read_fabric(path, {**given, "fabric.routing": "none"})
    warn(base.warnings)
    if "data-vls" not in stated(base).get("vl", {}):
        given["vl.data-vls"] = DATA_VLS
        base = base.override({"vl.data-vls": DATA_VLS})
    if hotspots or not base.has_traffic:
        try:
            base = with_hotspots(base, hotspots or 1)
        except ScenarioError as error:
            raise ScenarioError(error.message, "--hotspot", hint=error.hint) from None
    try:
        own = read_fabric(path, {**given, **ANY_ROUTES})
    except ScenarioError as error:
        if "fabric.routing" not in given and not _states_routing(path):
            return base, None
        alone = "--set fabric.routing=none judges OpenSM's routes alone"
        error.hint = f"{error.hint}; {alone}" if error.hint else alone
        raise
    routing = own.to_dict()["fabric"]["routing"]
    if listed := _listed(files, routing):
        own = read_fabric(path, {**given, **ANY_ROUTES, **listed})
    return base, None if routing == "none" else own


def _listed(files: GuidFiles, routing: object) -> dict[str, TomlValue]:
    """Keys of files that silvan's own routing reads, too."""
    keys: dict[str, TomlValue] = {}
    if files.roots is not None and routing in ("up-down", "fat-tree"):
        keys["fabric.root-guid-file"] = str(files.roots.absolute())
    if files.compute_nodes is not None and routing == "fat-tree":
        keys["fabric.cn-guid-file"] = str(files.compute_nodes.absolute())
    return keys


def _states_routing(path: Path) -> bool:
    if path.suffix != ".toml":
        return False
    text = read_text(path, SCENARIO_BYTES, "scenario", "name a scenario file")
    return "routing" in tomllib.loads(text).get("fabric", {})


def _tables(
    name: str, rows: Sequence[WhatIfRow], permutations: int, *, cc: bool
) -> tuple[Table, list[Table]]:
    routes = {
        "uncon-\nnected": lambda row: str(row.unconnected_pairs),
        "loops": lambda row: str(row.looping_pairs),
        "deadlock-\nfree": lambda row: {True: "yes", False: "no", None: "-"}[row.deadlock_free],
        "SLs": lambda row: str(row.service_levels),
        "max/\nmean": lambda row: f"{row.balance:.2f}",
        "bisec-\ntion": lambda row: f"{row.bisection:.3f}",
    }
    rates = {
        "hotspots": lambda row: _rate(row.hotspots_gbps),
        "other\nreceivers": lambda row: _rate(row.other_receivers_gbps),
    }
    if cc:
        rates |= {
            "hotspots,\nCC": lambda row: _rate(row.cc_hotspots_gbps),
            "other re-\nceivers, CC": lambda row: _rate(row.cc_other_receivers_gbps),
        }
    drawn = f"{permutations:,} permutations"
    whole = _table(f"{name}: {drawn}; rates in Gbit/s", rows, {**routes, **rates})
    parts = [
        _table(f"{name}: routes; {drawn}", rows, routes),
        _table(f"{name}: receive rates in Gbit/s", rows, rates),
    ]
    return whole, parts


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.3f}"


def _table(
    title: str, rows: Sequence[WhatIfRow], columns: Mapping[str, Callable[[WhatIfRow], str]]
) -> Table:
    from rich.table import Table

    table = Table(title=title)
    table.add_column("fabric", overflow="fold")
    table.add_column("engine", no_wrap=True)
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        refused = ("refused", *["-"] * (len(columns) - 1))
        values = refused if row.refused is not None else [text(row) for text in columns.values()]
        table.add_row(row.fabric, row.engine, *values)
    return table
