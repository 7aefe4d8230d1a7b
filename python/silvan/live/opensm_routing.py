"""Forwarding tables by any routing engine of OpenSM, for simulation without it."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from silvan.errors import EmulationError, ScenarioError, shown
from silvan.inputs.scenario import Scenario
from silvan.live.emulation import Emulation
from silvan.live.live_programs import (
    OPENSM_GRACE_S,
    SUBNET_UP,
    LogLines,
    attached,
    opensm_log,
    opensm_words,
    wait_for,
)
from silvan.scratch import scratch_folder

if TYPE_CHECKING:
    from silvan.inputs.toml_text import TomlValue

LEVELED = {"lash": "switches", "torus-2QoS": "switches", "dfsssp": "hosts", "nue": "hosts"}
"""Engines that avoid deadlocks only with a service level for each path.

The value tells if hosts of a switch share a level.
"""

MAPPED = ("torus-2QoS", "dfsssp", "nue")
"""Engines whose service levels need SL to VL tables."""

ROOTED = ("updn", "ftree")

WITH_COMPUTE_NODES = ("ftree", "sssp", "dfsssp")

_SECONDS = 3600

_numbers = itertools.count()

_LOG_OPTIONS = {"file": ("-D", "0x07")}

_NO_FILE = "LFTs file name is not given; using default routing algorithm"


@dataclass(frozen=True, slots=True)
class GuidFiles:
    """Files of GUIDs, one per line: node GUIDs of roots, port GUIDs of compute nodes."""

    roots: Path | None = None
    compute_nodes: Path | None = None

    def options(self, engine: str) -> list[str]:
        """Give OpenSM's options for an engine."""
        options = []
        if self.roots is not None and engine in ROOTED:
            options += ["--root_guid_file", str(self.roots.absolute())]
        if self.compute_nodes is not None and engine in WITH_COMPUTE_NODES:
            options += ["--cn_guid_file", str(self.compute_nodes.absolute())]
        return options


NO_FILES = GuidFiles()


def route(
    scenario: Scenario, engine: str, options: Sequence[str] = (), *, files: GuidFiles = NO_FILES
) -> str:
    """Let OpenSM route a scenario's fabric, and return its forwarding tables (``dump_lfts``).

    Routes are checked as those of ``fabric.routing-file``; the scenario's own routing has no
    effect. Of engines in :data:`LEVELED`, service levels other than 0 follow the destination, and
    SL to VL tables follow if they map these levels to other lanes. Torus-2QoS needs no
    configuration on generated meshes and tori.
    """
    if not engine.strip():
        raise EmulationError("the routing engine is empty", "name one of OpenSM's, such as ftree")
    tables = opensm_tables(scenario, engine, options, files=files)
    with scratch_folder("route") as folder:
        try:
            with_tables(scenario, tables, folder)
        except ScenarioError as error:
            message = error.message.removeprefix("fabric.routing-file: ")
            raise EmulationError(f"OpenSM's routes by {engine}: {message}", error.hint) from error
    return tables


def opensm_tables(
    scenario: Scenario,
    engine: str,
    options: Sequence[str] = (),
    *,
    files: GuidFiles = NO_FILES,
    grid: Mapping[str, Any] | None = None,
    check: Callable[[], None] = lambda: None,
) -> str:
    """Let OpenSM route a fabric as :func:`route` does, unchecked; ``check`` may stop it."""
    bare = scenario.override({"fabric.routing": "none"})
    with (
        scratch_folder("route") as folder,
        Emulation(bare, sockname=free_sockname(), paused=True) as emulation,
        (folder / "said").open("w+", errors="replace") as said,
    ):
        shape = scenario.to_dict()["fabric"] if grid is None else grid
        own = _options(shape, engine, emulation, folder)
        options = [
            *own,
            *files.options(engine),
            *map(_absolute, options),
            *_LOG_OPTIONS.get(engine, ()),
        ]

        lines, routed = LogLines(opensm_log(folder)), _Routed()
        with attached(
            emulation,
            folder,
            opensm_words(folder, "--routing_engine", engine, *options),
            stdout=said.fileno(),
            stderr=subprocess.STDOUT,
            is_waited_for=True,
            grace_s=OPENSM_GRACE_S,
        ) as process:

            def is_over() -> bool:
                check()
                # Checked first: the log of an ended process is complete.
                has_ended = process.poll() is not None
                for line in lines.new():
                    routed.read(line)
                return routed.is_up or has_ended

            wait_for(is_over, "OpenSM has not brought up the fabric", _SECONDS)
            if not routed.is_up:
                said.seek(0)
                last = (said.read().strip().splitlines() or ["it said nothing"])[-1]
                status = process.wait()
                if status < 0:
                    last = f"{signal.Signals(-status).name} has ended it after {shown(last)}"
                raise EmulationError(f"OpenSM has not brought up the fabric: {last}")
            if routed.engine != engine:
                raise EmulationError(
                    f"OpenSM has not routed this fabric by {engine}, but by {routed.engine}"
                    + (f": {routed.reason}" if routed.reason else ""),
                    "the engine may not fit the topology, or its name may be misspelled",
                )
            if routed.has_no_file:
                raise EmulationError(
                    f"OpenSM has no file of forwarding tables for its engine {engine}, and has "
                    "routed by minhop instead",
                    "add -- --lfts_file FILE",
                )
            sources = LEVELED.get(engine)
            if sources is not None:
                _query_paths(emulation, sources, check)
            return str(emulation.control("tables", levels=sources)["tables"])


@dataclass(slots=True)
class _Routed:
    engine: str = "none"
    reason: str = ""
    has_no_file: bool = False
    is_up: bool = False

    def read(self, line: str) -> None:
        if used := re.search(r"(\S+) tables configured on all switches", line):
            self.engine = used[1]
        reason = re.search(r"(?: ERR \w+: | -> \w+: (?=disabling ))(.+)", line)
        if reason and not self.reason:
            self.reason = reason[1].strip()
        self.has_no_file = self.has_no_file or _NO_FILE in line
        self.is_up = self.is_up or SUBNET_UP in line


def free_sockname() -> str:
    """Name sockets as no other fabric of this machine does."""
    return f"silvan-route-{os.getpid()}-{next(_numbers)}"


def with_tables(
    scenario: Scenario,
    tables: str,
    folder: Path,
    overrides: Mapping[str, TomlValue] | None = None,
) -> Scenario:
    """Replace a scenario's forwarding tables, and check that they can be simulated."""
    file = folder / f"{next(_numbers)}.lfts"
    file.write_text(tables)
    routed = scenario.override(
        {
            "fabric.routing": "lfts",
            "fabric.routing-file": str(file),
            "fabric.tables": {},
            "fabric.path-choice": "table",
            **(overrides or {}),
        }
    )
    # A change of a scenario reads its text again, and the file with it.
    return Scenario.from_toml(routed.to_toml())


def _absolute(option: str) -> str:
    name, equals, value = option.rpartition("=")
    if value.startswith("-") or not Path(value).is_file():
        return option
    return f"{name}{equals}{Path(value).absolute()}"


def _options(
    fabric: Mapping[str, Any], engine: str, emulation: Emulation, folder: Path
) -> list[str]:
    options = ["--qos"] if engine in MAPPED else []
    if engine != "torus-2QoS" or fabric.get("generator") not in ("mesh", "torus"):
        return options
    tables = str(emulation.control("tables")["tables"])
    guids = {
        name: guid for guid, name in re.findall(r"^Unicast .* guid (\w+) \((.+)\):$", tables, re.M)
    }
    file = folder / "torus-2QoS.conf"
    file.write_text(_torus(fabric["sizes"], fabric["generator"], guids))
    return [*options, "--torus_config", str(file)]


def _torus(sizes: Sequence[int], kind: str, guids: Mapping[str, str]) -> str:
    def guid(*place: int) -> str:
        name = "-".join(["switch", *map(str, place)])
        if name not in guids:
            raise EmulationError(
                f"torus-2QoS starts at switch-{'-'.join('0' * len(sizes))} and its neighbours, but "
                f"{name} has failed",
                "fail another switch",
            )
        return guids[name]

    radices = [*sizes, *[1] * (3 - len(sizes))]
    lines = [" ".join([kind, *map(str, radices)])]
    origin = [0] * len(sizes)
    for dimension, size in enumerate(sizes):
        steps = {"p": 1} if kind == "mesh" else {"p": 1, "m": size - 1}
        for direction, step in steps.items():
            if size > 1:
                place = [*origin[:dimension], step, *origin[dimension + 1 :]]
                link = f"{'xyz'[dimension]}{direction}_link"
                lines.append(f"{link} {guid(*origin)} {guid(*place)}")
    return "\n".join([*lines, ""])


def _query_paths(emulation: Emulation, sources: str, check: Callable[[], None]) -> None:
    """Let hosts query OpenSM for the service levels of their paths."""

    def paths() -> dict[str, int]:
        return dict(emulation.control("status")["paths"])

    before = paths()["answered"]
    questions = emulation.control("query-paths", sources=sources)["questions"]
    complaint = "OpenSM has not said the service levels of all paths"

    def is_over() -> bool:
        check()
        return paths()["unanswered"] == 0

    wait_for(is_over, complaint, _SECONDS)
    if paths()["answered"] - before != questions:
        raise EmulationError(complaint)
