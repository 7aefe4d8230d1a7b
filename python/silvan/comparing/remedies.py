"""Changes tried on the twin of a congested subnet, the one that helps most first."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from silvan.comparing.tuning.opensm_conf import OpensmSettings
from silvan.errors import DiagnosisError, ScenarioError, SilvanError
from silvan.execution.processes import cores
from silvan.execution.simulation import simulate
from silvan.inputs.fabric_lists import FabricLists, stated, with_fabric
from silvan.inputs.quantities import Quantity
from silvan.inputs.scenario import Scenario
from silvan.live.live_programs import has_opensm
from silvan.live.opensm_routing import NO_FILES, GuidFiles, opensm_tables, with_tables
from silvan.planning.whatif import ANY_ROUTES
from silvan.scratch import scratch_folder

AS_IS = "as it is"

SEEDS = 3

_FAIR = 0.95
_TUNED = (
    {"ccti-increase": 1, "ccti-timer": 150},
    {"ccti-increase": 2, "ccti-timer": 300},
    {"ccti-increase": 4, "ccti-timer": 150},
    {"ccti-increase": 8, "ccti-timer": 600},
)
_SWITCH = {"threshold": 15, "marking-rate": 0, "packet-size": 0}
_MOST_CABLES = 4
_MOST_JOBS = 4
_FALLBACK_ENGINE = "minhop"


@dataclass(frozen=True)
class Change:
    """A change that a twin can try (``make``), and how an operator applies it (``apply``)."""

    kind: str
    name: str
    make: Callable[[], Scenario]
    apply: Callable[[Scenario], str]


@dataclass(frozen=True)
class Outcome:
    """A change and its effect on payload rates; ``refused`` is why none is known."""

    kind: str
    name: str
    victims_gbps: tuple[float, ...] = ()
    contributors_gbps: tuple[float, ...] = ()
    regained_gbps: float = 0.0
    lost_gbps: float = 0.0
    regained_spread: float = 0.0
    lost_spread: float = 0.0
    refused: str | None = None
    apply: str = ""

    @property
    def score(self) -> float:
        """Gain of the victims, less the loss of the contributors."""
        return self.regained_gbps - max(self.lost_gbps, 0.0)

    @property
    def helps(self) -> bool:
        """True if the victims regain more than the difference between seeds."""
        return self.score > 0 and self.regained_gbps > 2 * self.regained_spread

    def to_dict(self) -> dict[str, Any]:
        """Give the outcome as plain values, for JSON."""
        keys = (
            *("kind", "name", "regained_gbps", "regained_spread"),
            *("lost_gbps", "lost_spread", "refused", "apply"),
        )
        return {
            **{key: getattr(self, key) for key in keys},
            "victims_gbps": list(self.victims_gbps),
            "contributors_gbps": list(self.contributors_gbps),
            "helps": self.helps,
        }


@dataclass(frozen=True)
class CongestedTwin:
    """A twin's scenario, and the record of ``silvan diagnose --scenario``."""

    scenario: Scenario
    record: Mapping[str, Any]
    tables: Mapping[str, Any] = field(init=False)
    flows: list[dict[str, Any]] = field(init=False)
    roles: list[str] = field(init=False)

    def __post_init__(self) -> None:
        tables = stated(self.scenario)
        flows = list(tables.get("traffic", {}).get("flow", ()))
        roles = {(one["from"], one["to"]): str(one["role"]) for one in self.record["flows"]}
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "flows", flows)
        found = [roles.get((flow["from"], flow["to"]), "other") for flow in flows]
        object.__setattr__(self, "roles", found)
        if not self.record["roots"]:
            raise DiagnosisError(
                "the twin has no congestion, so there is nothing to change",
                "diagnose the subnet while it is congested",
            )

    def places(self, role: str) -> list[int]:
        """Return the places of the flows with a role."""
        return [place for place, one in enumerate(self.roles) if one == role]

    def with_flows(self, flows: Sequence[Mapping[str, Any]]) -> Scenario:
        """Replace the flows of the twin, in the order of the present flows."""
        tables = {**self.tables, "traffic": {**self.tables["traffic"], "flow": list(flows)}}
        return Scenario(**tables)

    def link_gbps(self, port: str) -> float:
        """Return the data rate of the cable at a port."""
        return float(self.record["ports"][port]["link_gbps"])


def changes(
    twin: CongestedTwin,
    engines: Sequence[str] = (),
    failures: Sequence[str] = (),
    files: GuidFiles = NO_FILES,
) -> list[Change]:
    """List the changes that suit a twin; ``failures`` are switches and ports to take out."""
    found = list(_control_changes(twin))
    if has_opensm():
        found += [_rerouted(twin, engine, files) for engine in engines]
    found += _throttles(twin)
    found += _moves(twin)
    found += _cable_changes(twin, failures)
    return found


def try_changes(
    twin: CongestedTwin,
    candidates: Sequence[Change],
    *,
    seeds: int = SEEDS,
    on_done: Callable[[str], None] | None = None,
) -> list[Outcome]:
    """Simulate a twin as it is and with each change; best first, refused changes last."""
    with ThreadPoolExecutor(cores()) as executor:
        victims, contributors = _rates(twin, twin.scenario, seeds)
        base = Outcome("", AS_IS, victims, contributors)

        def tried(change: Change) -> Outcome:
            try:
                changed = change.make()
                outcome = _outcome(change, base, _rates(twin, changed, seeds))
                outcome = replace(outcome, apply=change.apply(changed))
            except SilvanError as error:
                outcome = Outcome(change.kind, change.name, refused=error.message)
            if on_done is not None:
                on_done(change.name)
            return outcome

        outcomes = list(executor.map(tried, candidates))
    outcomes = _best_tuned(outcomes)
    outcomes.sort(key=lambda one: (one.refused is not None, -one.score, one.name))
    return [base, *outcomes]


def _best_tuned(outcomes: Sequence[Outcome]) -> list[Outcome]:
    tuned = [one for one in outcomes if one.name.startswith(_TUNED_NAME)]
    others = [one for one in outcomes if one not in tuned]
    tuned.sort(key=lambda one: (one.refused is not None, -one.score))
    return [*others, *tuned[:1]]


def _rates(twin: CongestedTwin, scenario: Scenario, seeds: int) -> tuple[tuple[float, ...], ...]:
    by_role: dict[str, list[float]] = {"victim": [], "contributor": []}
    counted_s = (scenario.duration_ps - scenario.warm_up_ps) / 1e12
    for seed in range(1, seeds + 1):
        result = simulate(scenario, seed)
        delivered = result.tables["classes"]["delivered_bytes"].to_numpy() * 8 / counted_s / 1e9
        for role, rates in by_role.items():
            rates.append(float(np.asarray(delivered)[twin.places(role)].sum()))
    return tuple(by_role["victim"]), tuple(by_role["contributor"])


def _outcome(change: Change, base: Outcome, rates: tuple[tuple[float, ...], ...]) -> Outcome:
    victims, contributors = rates
    regained = [now - before for now, before in zip(victims, base.victims_gbps, strict=True)]
    lost = [before - now for now, before in zip(contributors, base.contributors_gbps, strict=True)]
    return Outcome(
        change.kind,
        change.name,
        victims,
        contributors,
        statistics.fmean(regained),
        statistics.fmean(lost),
        statistics.stdev(regained) if len(regained) > 1 else 0.0,
        statistics.stdev(lost) if len(lost) > 1 else 0.0,
    )


_TUNED_NAME = "congestion control tuned"


def _control_changes(twin: CongestedTwin) -> Iterator[Change]:
    is_on = twin.tables.get("control", {}).get("scheme", "none") != "none"

    def with_control(control: Mapping[str, Any]) -> Scenario:
        return Scenario(**{**twin.tables, "control": dict(control)})

    if is_on:
        yield Change(
            "control",
            "congestion control off",
            lambda: with_control({"scheme": "none"}),
            lambda _: "# opensm.conf\ncongestion_control TRUE\ncc_sw_cong_setting_threshold 0x00\n",
        )
    else:
        yield Change(
            "control", "congestion control on", lambda: with_control({"scheme": "ib-cc"}), _opensm
        )
    for settings in _TUNED:
        text = ", ".join(f"{key} {value}" for key, value in settings.items())
        control = {"scheme": "ib-cc", "ib-cc": {"switch": _SWITCH, "adapter": settings}}
        yield Change(
            "control",
            f"{_TUNED_NAME}: {text}",
            lambda control=control: with_control(control),  # type: ignore[misc]
            _opensm,
        )


def _opensm(scenario: Scenario) -> str:
    return f"# opensm.conf\n{OpensmSettings.of(scenario).to_conf()}"


def _rerouted(twin: CongestedTwin, engine: str, files: GuidFiles) -> Change:
    return Change(
        "routing",
        f"routing by {engine}",
        lambda: _by_engine(twin.scenario, engine, files),
        lambda _: f"# opensm.conf\nrouting_engine {engine}\n",
    )


def _by_engine(scenario: Scenario, engine: str, files: GuidFiles = NO_FILES) -> Scenario:
    bare = stated(scenario)
    fabric = {key: bare["fabric"][key] for key in ("switch", "host", "cable")}
    blank = Scenario(**{**bare, "fabric": {**fabric, "routing": "none"}})
    tables = opensm_tables(blank, engine, files=files)
    with scratch_folder("remedies") as folder:
        return with_tables(blank, tables, folder, ANY_ROUTES)


def _throttles(twin: CongestedTwin) -> list[Change]:
    found = []
    for root in twin.record["roots"]:
        places = _through(twin, root)
        if len(places) < 2:
            continue
        share = _FAIR * twin.link_gbps(root) / len(places)
        found.append(_throttle(twin, root, places, share))
    return found


def _throttle(twin: CongestedTwin, root: str, places: Sequence[int], share: float) -> Change:
    def make() -> Scenario:
        flows = [dict(flow) for flow in twin.flows]
        for place in places:
            if _demand(flows[place]) > share:
                flows[place]["load"] = f"{share:.6g} Gbit/s"
        return twin.with_flows(flows)

    def apply(_: Scenario) -> str:
        lines = [
            f"{twin.flows[place]['from']} to {twin.flows[place]['to']}: {share:.3g} Gbit/s"
            for place in places
        ]
        return "# highest rate of each flow\n" + "\n".join(lines) + "\n"

    return Change("throttle", f"flows through {root} throttled to {share:.3g} Gbit/s", make, apply)


def _demand(flow: Mapping[str, Any]) -> float:
    load = str(flow.get("load", "saturating"))
    return float("inf") if load == "saturating" else Quantity(load).bits_per_s / 1e9


def _through(twin: CongestedTwin, root: str) -> list[int]:
    receivers = dict(zip(twin.record["roots"], twin.record["receivers"], strict=True))
    receiver = receivers[root]
    places = twin.places("contributor")
    if receiver is not None:
        return [place for place in places if twin.flows[place]["to"] == receiver]
    direct = {one for one in receivers.values() if one is not None}
    return [place for place in places if twin.flows[place]["to"] not in direct]


def _idle_hosts(twin: CongestedTwin) -> list[str]:
    used = {flow[end] for flow in twin.flows for end in ("from", "to")}
    return [host for host in twin.record["hosts"] if host not in used]


def _moves(twin: CongestedTwin) -> list[Change]:
    idle = _idle_hosts(twin)
    found = []
    for root, receiver in zip(twin.record["roots"], twin.record["receivers"], strict=True):
        if receiver is not None and idle:
            # The last idle host is seldom at the switch of the first.
            found.append(_moved(twin, {receiver: idle[-1]}, f"receiver at {root}"))
    jobs: dict[str, list[str]] = {}
    for host, names in twin.record["hosts"].items():
        for name in names:
            jobs.setdefault(str(name), []).append(host)
    affected = {*twin.record["contributors"], *twin.record["victims"]}
    concerned = {name: hosts for name, hosts in jobs.items() if affected.intersection(hosts)}
    for name, hosts in list(concerned.items())[:_MOST_JOBS]:
        moves = dict(zip(hosts, idle, strict=False))
        if len(moves) < len(hosts):
            reason = f"job {name} has {len(hosts)} hosts, and {len(idle)} are idle"
            found.append(_impossible("move", f"job {name} moved", reason))
        else:
            found.append(_moved(twin, moves, f"job {name}"))
    return found


def _impossible(kind: str, name: str, reason: str) -> Change:
    def make() -> Scenario:
        raise ScenarioError(reason)

    return Change(kind, name, make, lambda _: "")


def _moved(twin: CongestedTwin, moves: Mapping[str, str], what: str) -> Change:
    def make() -> Scenario:
        flows = [
            {**flow, **{end: moves.get(flow[end], flow[end]) for end in ("from", "to")}}
            for flow in twin.flows
        ]
        return twin.with_flows(flows)

    lines = [f"{before} -> {after}" for before, after in moves.items()]
    to = ", ".join(list(moves.values())[:3]) + (" .." if len(moves) > 3 else "")
    return Change(
        "move", f"{what} moved to {to}", make, lambda _: "# hosts\n" + "\n".join(lines) + "\n"
    )


def _cable_changes(twin: CongestedTwin, failures: Sequence[str]) -> list[Change]:
    found = []
    for cable in twin.record["cables"][:_MOST_CABLES]:
        found.append(_repaired(twin, str(cable["port"]), float(cable["capable_gbps"])))
    receivers = dict(zip(twin.record["roots"], twin.record["receivers"], strict=True))
    between = [root for root in twin.record["roots"] if receivers[root] is None]
    for what in [*failures, *(root for root in between[:_MOST_CABLES] if root not in failures)]:
        found.append(_taken_out(twin, what))
    return found


def _repaired(twin: CongestedTwin, port: str, gbps: float) -> Change:
    def make() -> Scenario:
        lists = FabricLists.of(twin.scenario)
        name, _, number = port.rpartition(":")
        place = (name, int(number))
        cables = [
            replace(cable, values={**cable.values, "rate": f"{gbps:g} Gbit/s"})
            if place in cable.ends
            else cable
            for cable in lists.cables
        ]
        if cables == list(lists.cables):
            raise ScenarioError(f"there is no cable at {port}")
        kept = {
            key: value for key, value in twin.tables["fabric"].items() if key not in lists.table()
        }
        fabric = {**kept, **FabricLists(lists.nodes, tuple(cables)).table()}
        return Scenario(**{**twin.tables, "fabric": fabric})

    text = f"# reseat or replace the cable at\n{port}\n"
    return Change("cable", f"cable at {port} repaired: {gbps:g} Gbit/s", make, lambda _: text)


def _taken_out(twin: CongestedTwin, what: str) -> Change:
    def make() -> Scenario:
        lists = FabricLists.of(twin.scenario).without(what)
        bare = with_fabric(twin.scenario, lists)
        if has_opensm():
            return _by_engine(bare, _FALLBACK_ENGINE)
        tables = stated(bare)
        fabric = {key: tables["fabric"][key] for key in ("switch", "host", "cable")}
        return Scenario(**{**tables, "fabric": {**fabric, "routing": "min-hop", **_ANY}})

    command = f"ibportstate <LID of {what.rpartition(':')[0] or what}> <port> disable"
    kind = f"# {command}\n{what}\n"
    return Change("cable", f"without {what}", make, lambda _: kind)


_ANY = {"allow-credit-loops": True, "unreachable": "drop"}


def write_best(outcomes: Sequence[Outcome], path: Path) -> Outcome | None:
    """Write the best change that helps, as it is applied; ``None`` if none helps."""
    best = next((one for one in outcomes[1:] if one.helps), None)
    if best is None:
        return None
    try:
        path.write_text(best.apply, "utf-8")
    except OSError as error:
        raise ScenarioError(
            f"cannot be written: {error.strerror}", str(path), hint="name a file in another folder"
        ) from error
    return best
