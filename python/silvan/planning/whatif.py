"""A fabric under each routing engine of OpenSM, as it is and changed, in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from threading import Event
from typing import Any

from silvan.errors import EmulationError, ScenarioError, SilvanError, SimulationError
from silvan.execution.processes import cores
from silvan.execution.simulation import simulate
from silvan.inputs.fabric_lists import FabricLists, stated, with_fabric
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlInput, TomlValue
from silvan.interruptible import interruptible
from silvan.live.emulation import Emulation
from silvan.live.live_programs import INSTALL, has_opensm
from silvan.live.opensm_routing import (
    NO_FILES,
    GuidFiles,
    free_sockname,
    opensm_tables,
    with_tables,
)
from silvan.planning.paths import Paths
from silvan.scratch import scratch_folder

ENGINES = ("minhop", "updn", "dnup", "ftree", "dor", "lash", "sssp", "dfsssp", "nue")

_GRIDS = ("mesh", "torus")

ALL_ENGINES = (*ENGINES, "torus-2QoS")
"""Also torus-2QoS, whose file silvan writes for generated meshes and tori."""

PERMUTATIONS = 1000

ANY_ROUTES: Mapping[str, TomlValue] = {
    "fabric.allow-credit-loops": True,
    "fabric.unreachable": "drop",
}
"""Allows routes that can deadlock or do not connect all hosts."""

_PATIENCE_S = 1.0

AS_IS = "as is"


@dataclass(frozen=True, slots=True)
class Variant:
    """A fabric to route, with the load to simulate."""

    name: str
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class WhatIfRow:
    """A fabric under one routing engine; ``refused`` and ``not_simulated`` are reasons."""

    fabric: str
    engine: str
    refused: str | None = None
    hosts: int | None = None
    unconnected_pairs: int | None = None
    looping_pairs: int | None = None
    deadlock_free: bool | None = None
    service_levels: int | None = None
    most_cables: int | None = None
    most_paths: float | None = None
    mean_paths: float | None = None
    balance: float | None = None
    bisection: float | None = None
    lowest_bisection: float | None = None
    hotspots_gbps: float | None = None
    other_receivers_gbps: float | None = None
    cc_hotspots_gbps: float | None = None
    cc_other_receivers_gbps: float | None = None
    not_simulated: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the row as plain values, for JSON."""
        return asdict(self)


def with_hotspots(scenario: Scenario, hosts: Sequence[str] | int) -> Scenario:
    """Replace the load by hotspots: 80 % of the hosts send to them, the others at random."""
    hotspots: TomlInput = hosts if isinstance(hosts, int) else list(hosts)
    tables = stated(scenario)
    for key in ("sweep", "programs"):
        tables.pop(key, None)
    tables["traffic"] = {"nodes": {"v": 0.2, "c": 0.8, "hotspots": hotspots}}
    return Scenario(**tables)


def variants(
    scenario: Scenario, failures: Sequence[str] = (), *, new_leaf: str | None = None
) -> list[Variant]:
    """List the fabric as it is, and once for each failure or copy of a leaf."""
    lists = FabricLists.of(scenario)
    found = [Variant(AS_IS, scenario)]
    for what in failures:
        found.append(_variant(scenario, lists.without(what), f"without {what}", "--fail"))
    if new_leaf is not None:
        grown = lists.with_leaf(new_leaf or None)
        found.append(_variant(scenario, grown, "with a new leaf", "--add-leaf"))
    return found


def _variant(scenario: Scenario, lists: FabricLists, name: str, option: str) -> Variant:
    try:
        return Variant(name, with_fabric(scenario, lists))
    except ScenarioError as error:
        # Lines of the error belong to a text that the user has not written.
        raise ScenarioError(f"{name}: {error.message}", option, hint=error.hint) from None


def engines_for(scenario: Scenario) -> tuple[str, ...]:
    """List the routing engines that may fit a fabric."""
    if scenario.to_dict()["fabric"].get("generator") in _GRIDS:
        return ALL_ENGINES
    return ENGINES


def what_if(
    fabrics: Sequence[Variant],
    engines: Sequence[str] = ENGINES,
    *,
    own: Scenario | None = None,
    files: GuidFiles = NO_FILES,
    congestion_control: bool = False,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
) -> list[WhatIfRow]:
    """Route fabrics by several engines of OpenSM, and judge the routes."""
    if not has_opensm():
        raise EmulationError("opensm is not installed", INSTALL)
    grid = fabrics[0].scenario.to_dict()["fabric"]
    stop = _Stop()

    def judge(job: tuple[Variant, str | None]) -> WhatIfRow:
        fabric, engine = job
        name = str(own.to_dict()["fabric"]["routing"]) if own and engine is None else str(engine)
        row = WhatIfRow(fabric.name, name)
        try:
            if own is not None and engine is None:
                tables = _own_tables(own)
            else:
                tables = opensm_tables(
                    fabric.scenario, name, files=files, grid=grid, check=stop.check
                )
        except SilvanError as error:
            return replace(row, refused=error.message)
        return _judged(
            row, fabric.scenario, tables, permutations, seed, stop, cc=congestion_control
        )

    jobs: list[tuple[Variant, str | None]] = [(fabrics[0], None)] if own is not None else []
    jobs += [(fabric, engine) for fabric in fabrics for engine in engines]
    executor = ThreadPoolExecutor(cores())
    futures = [executor.submit(judge, job) for job in jobs]
    try:
        return interruptible(lambda: _results(futures, stop))
    finally:
        stop.set()
        for future in futures:
            future.cancel()
        executor.shutdown(wait=False)
        wait(futures, _PATIENCE_S)


class _Stopped(Exception):
    """No result is wanted any more."""


class _Stop:
    def __init__(self) -> None:
        self._event = Event()

    def set(self) -> None:
        self._event.set()

    def check(self, _progress: object = None) -> None:
        if self._event.is_set():
            raise _Stopped


def _results(futures: Sequence[Future[WhatIfRow]], stop: _Stop) -> list[WhatIfRow]:
    done, running = wait(futures, return_when=FIRST_EXCEPTION)
    stop.set()
    for future in running:
        future.cancel()
    wait(running)
    for future in done:
        if not future.cancelled():
            # Raises the error of the failed job.
            future.result()
    return [future.result() for future in futures]


def _own_tables(scenario: Scenario) -> str:
    with Emulation(scenario, sockname=free_sockname(), paused=True) as emulation:
        return str(emulation.control("tables", levels="hosts")["tables"])


def _judged(
    row: WhatIfRow,
    scenario: Scenario,
    tables: str,
    permutations: int,
    seed: int,
    stop: _Stop,
    *,
    cc: bool,
) -> WhatIfRow:
    paths = Paths(FabricLists.of(scenario), tables)
    balance, bisection = paths.balance(), paths.bisection(permutations, seed)
    row = replace(
        row,
        hosts=len(paths.hosts),
        unconnected_pairs=paths.unconnected_pairs,
        looping_pairs=paths.looping_pairs,
        service_levels=paths.service_levels,
        most_cables=paths.most_cables,
        most_paths=balance.max_paths,
        mean_paths=balance.mean_paths,
        balance=balance.ratio,
        bisection=bisection.mean,
        lowest_bisection=bisection.lowest,
    )
    if paths.looping_pairs:
        return replace(row, not_simulated="routes with loops")
    try:
        with scratch_folder("what-if") as folder:
            routed = with_tables(scenario, tables, folder, ANY_ROUTES)
    except ScenarioError as error:
        return replace(row, not_simulated=error.message)
    row = replace(row, deadlock_free=not routed.describe()["has_credit_loop"])
    try:
        off = _rates(routed, {"control.scheme": "none"}, stop)
        row = replace(row, hotspots_gbps=off[0], other_receivers_gbps=off[1])
        if cc:
            on = _rates(routed, {"control.scheme": "ib-cc"}, stop)
            row = replace(row, cc_hotspots_gbps=on[0], cc_other_receivers_gbps=on[1])
    except SimulationError as error:
        return replace(row, not_simulated=error.message)
    return row


def _rates(
    scenario: Scenario, control: Mapping[str, object], stop: _Stop
) -> tuple[float | None, float | None]:
    changed = scenario.override(control)
    rates = simulate(changed, changed.seed, progress=stop.check).measures
    return rates.get("hotspots_gbps"), rates.get("other_receivers_gbps")
