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

The value says if the hosts of a switch share a level, or each host has a separate one.
"""

MAPPED = ("torus-2QoS", "dfsssp", "nue")
"""Engines with service levels that need SL to VL tables of OpenSM."""

ROOTED = ("updn", "ftree")
"""Engines that read a file of roots."""

WITH_COMPUTE_NODES = ("ftree", "sssp", "dfsssp")
"""Engines that read a file of compute nodes."""

_SECONDS = 3600

_numbers = itertools.count()
"""Numbers of the fabrics and files of this process, since several may be routed at once."""

_LOG_OPTIONS = {"file": ("-D", "0x07")}
"""Option that makes OpenSM log that its routing differs from its claim."""

_NO_FILE = "LFTs file name is not given; using default routing algorithm"
"""Line of that log."""


@dataclass(frozen=True, slots=True)
class GuidFiles:
    """Files of GUIDs for the engines that read them, in OpenSM's format: one GUID in each line.

    Attributes
    ----------
    roots : Path, optional
        Node GUIDs of the root switches, for :data:`ROOTED` engines.
    compute_nodes : Path, optional
        Port GUIDs of the compute nodes, for the engines of :data:`WITH_COMPUTE_NODES`.
    """

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
"""No files of GUIDs."""


def route(
    scenario: Scenario, engine: str, options: Sequence[str] = (), *, files: GuidFiles = NO_FILES
) -> str:
    """Let OpenSM route a scenario's fabric, and give its forwarding tables.

    Only OpenSM's routes are checked, and as a scenario that names them as its
    ``fabric.routing-file`` is: ``fabric.allow-credit-loops`` and ``fabric.unreachable`` hold for
    them. The scenario's own routing plays no role.

    Parameters
    ----------
    scenario : Scenario
        Whose fabric to route.
    engine : str
        OpenSM's routing engine, such as ``ftree``. On meshes and tori from a generator torus-2QoS
        needs no configuration of its own.
    options : sequence of str, optional
        Further options for ``opensm``.
    files : GuidFiles, optional
        Files of roots and compute nodes, for an engine that reads them.

    Returns
    -------
    str
        The tables of all switches, in the form of ``dump_lfts``. Of engines that give paths service
        levels (:data:`LEVELED`), a level other than 0 is behind the destination, and below are
        the SL to VL tables that OpenSM has set, if they map these levels to lanes of other numbers.

    Raises
    ------
    EmulationError
        If OpenSM is not installed, does not route the fabric by this engine, or gives routes that
        can deadlock or do not connect all hosts.
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
    """Let OpenSM route a fabric, and give its forwarding tables as :func:`route` does, unchecked.

    Parameters
    ----------
    scenario : Scenario
        Whose fabric to route.
    engine : str
        OpenSM's routing engine.
    options : sequence of str, optional
        Further options for ``opensm``.
    files : GuidFiles, optional
        Files of roots and compute nodes, for an engine that reads them.
    grid : Mapping, optional
        The table ``fabric`` of the generated mesh or torus that the fabric was before something of
        it failed, for torus-2QoS; by default the scenario's own.
    check : callable, optional
        Called again and again while OpenSM works; raises an exception to stop that.

    Raises
    ------
    EmulationError
        If OpenSM is not installed, or does not route the fabric by this engine.
    """
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
                # Looked at first: the log of a process that has ended is complete.
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
    """Tells from OpenSM's log how it has routed a fabric.

    Attributes
    ----------
    engine : str
        The routing engine of the last tables.
    reason : str
        The first error.
    has_no_file : bool
        True if OpenSM has found no file of tables.
    is_up : bool
        True if the subnet is up.
    """

    engine: str = "none"
    reason: str = ""
    has_no_file: bool = False
    is_up: bool = False

    def read(self, line: str) -> None:
        """Take the next line of the log."""
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
    """Give a scenario other forwarding tables, and check that they can be simulated.

    Parameters
    ----------
    scenario : Scenario
        Scenario to change.
    tables : str
        The tables, in the form of ``dump_lfts``.
    folder : Path
        A folder for a file of them, which the scenario does not need afterwards.
    overrides : Mapping, optional
        Further values by dotted key.

    Raises
    ------
    ScenarioError
        The routes can deadlock or do not connect all hosts, and the scenario does not allow that.
    """
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
    """Name a file of the current folder so that OpenSM finds it from its own."""
    name, equals, value = option.rpartition("=")
    if value.startswith("-") or not Path(value).is_file():
        return option
    return f"{name}{equals}{Path(value).absolute()}"


def _options(
    fabric: Mapping[str, Any], engine: str, emulation: Emulation, folder: Path
) -> list[str]:
    """Give the options that an engine needs."""
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
    """Describe a generated mesh or torus to torus-2QoS: sizes, and the neighbours of the origin."""

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
    """Let hosts ask OpenSM for the service levels of their paths."""

    def paths() -> dict[str, int]:
        return dict(emulation.control("status")["paths"])

    before = paths()["answered"]
    questions = emulation.control("query-paths", sources=sources)["questions"]
    complaint = "OpenSM has not said the service levels of all paths"

    def is_over() -> bool:
        check()
        return paths()["unanswered"] == 0

    wait_for(is_over, complaint, _SECONDS)
    # Without a subnet manager no program waits for answers.
    if paths()["answered"] - before != questions:
        raise EmulationError(complaint)
