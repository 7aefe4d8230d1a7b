"""The scenario of a twin: fabric, tables, settings and traffic of a diagnosed subnet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from silvan.errors import DiagnosisError
from silvan.execution.simulation import simulate
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlInput
from silvan.live.moments import Moment, Report, Subnet
from silvan.live.twin.agreement import Agreement, agreement, delivered_gbps
from silvan.live.twin.dumps import SimulatedDiagnosis, Verdict
from silvan.live.twin.paths import Values
from silvan.live.twin.traffic import IDLE, Traffic, infer_traffic
from silvan.results.result import Result

RECORD = ".twin.json"
"""Replaces the scenario's suffix."""

BACKLOGGED = 0.9
"""A host that sends or waits for this part of the time always has packets."""

_PAYLOAD = 4096 / 4122
_MOST_FLOWS = 50_000
_LEAST_RATE = 0.0005
_NEARLY = 0.9
_PACKETS = 4000
_LEAST_DURATION_MS = 2.0
_NO_PEER = 2**32 - 1
_VERSION = 1
_MOST_PACKETS = 3e7
_CORRECTED = 2
_CORRECTIONS = 4
_GOOD = 0.02
_APART = 0.03
_MORE = 0.05
_DEGRADED = 0.99
_RATES = {
    (width, speed): lanes * lane
    for speed, lane in {
        "NDR": 100.0,
        "HDR": 50.0,
        "XDR": 200.0,
        "EDR": 25.0,
        "FDR": 54.5454545454 / 4,
        "QDR": 8.0,
        "DDR": 4.0,
        "SDR": 2.0,
        "FDR10": 10.0,
    }.items()
    for width, lanes in {"4x": 4, "2x": 2, "1x": 1, "8x": 8, "12x": 12}.items()
}


@dataclass(frozen=True)
class Twin:
    """A scenario that behaves as a subnet does, and the record of its inputs and assumptions."""

    scenario: Scenario
    traffic: Traffic
    record: dict[str, Any]

    @property
    def missing(self) -> list[str]:
        """Parts that the twin lacks, and assumptions."""
        missing: list[str] = self.record["missing"]
        return missing

    @property
    def summary(self) -> dict[str, Any]:
        """The record without its lists of hosts, ports and flows."""
        decided = sum(flow["is_decided"] for flow in self.record["flows"])
        keys = ("pairs", "equations", "rank", "unexplained", "is_sparse", "agreement", "missing")
        counts = {"flows": len(self.record["flows"]), "decided_flows": decided}
        return counts | {key: self.record[key] for key in keys}

    def write(self, path: Path) -> None:
        """Write the scenario, and the record next to it."""
        lines = [f"# A twin of a subnet of {len(self.record['hosts'])} hosts. Missing or assumed:"]
        lines += [f"# - {one}" for one in self.missing]
        text = "\n".join(lines) + "\n\n" + self.scenario.to_toml()
        try:
            path.write_text(text, "utf-8")
            record_path(path).write_text(json.dumps(self.record, indent=1) + "\n", "utf-8")
        except OSError as error:
            raise DiagnosisError(
                f"{error.filename or path}: cannot be written: {error.strerror}",
                "name a file in a folder that this user may write to",
            ) from error


def record_path(scenario: Path) -> Path:
    """Name the record of a twin's scenario."""
    return scenario.with_name(scenario.stem + RECORD)


def read_record(scenario: Path) -> dict[str, Any] | None:
    """Read the record next to a scenario; ``None`` if there is none."""
    path = record_path(scenario)
    if not path.is_file():
        return None
    hint = "write the twin again with silvan diagnose --scenario, or remove the record"
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DiagnosisError(f"{path}: the record of the twin cannot be read", hint) from error
    if not isinstance(record, dict) or record.get("version") != _VERSION:
        raise DiagnosisError(f"{path}: no record of a twin of version {_VERSION}", hint)
    wanted: dict[str, type] = dict.fromkeys(
        ("roots", "receivers", "victims", "contributors", "cables", "flows", "missing"), list
    )
    wanted |= {"hosts": dict, "ports": dict}
    for key, kind in wanted.items():
        if not isinstance(record.get(key), kind):
            raise DiagnosisError(f"{path}: the record of the twin has no {key}", hint)
    return record


def make_twin(
    moment: Moment,
    jobs: Mapping[str, Sequence[str]] | None = None,
    *,
    history: Sequence[Moment] = (),
    name: str = "twin",
) -> Twin:
    """Make a scenario that behaves as a subnet does.

    ``history`` are other moments: a host's rate when nothing held it back is its demand.
    """
    found = infer_traffic(moment)
    if not found:
        raise DiagnosisError(
            "no flow between hosts explains the counters: no port is loaded, or loaded ports lie "
            "on no path",
            "diagnose the subnet while it is busy, with forwarding tables of the same day",
        )
    fitted = _Fitting(moment, history, name).best(found)
    record = _record(moment, fitted.traffic, jobs or {}, fitted.missing)
    fit = fitted.fit
    record["agreement"] = fit and {"median": fit.median, "p95": fit.p95, "wait": fit.wait}
    return Twin(fitted.scenario, fitted.traffic, record)


@dataclass(frozen=True)
class _Fitted:
    traffic: Traffic
    demand: Values
    scenario: Scenario
    missing: list[str]
    fit: Agreement | None = None
    delivered: Values | None = None

    @property
    def cost(self) -> float:
        return self.fit.cost if self.fit else 0.0


class _Fitting:
    """Choice and correction of the traffic by short simulations."""

    def __init__(self, moment: Moment, history: Sequence[Moment], name: str) -> None:
        self._moment = moment
        self._free = _free_rates(moment, history)
        self._name = name
        self._fabric = _fabric(moment.subnet)
        self._verdict = Verdict.of_report(moment.report)
        self._diagnosis: SimulatedDiagnosis | None = None
        self._measured = (moment.loads[0].astype(np.float64), moment.loads[1].astype(np.float64))

    def best(self, found: Sequence[Traffic]) -> _Fitted:
        """Choose the traffic whose simulated counters agree best with the subnet's.

        Flows that get more than in the subnet have less demand.
        """
        fitted = [
            self._tried(traffic, _demand(self._moment, traffic, self._free)) for traffic in found
        ]
        fitted.sort(key=lambda one: one.cost)
        best = fitted[0]
        for one in fitted[:_CORRECTED]:
            current = one
            for _ in range(_CORRECTIONS):
                if current.fit is None or current.fit.cost < _GOOD:
                    break
                demand = _corrected(current)
                if demand is None:
                    break
                current = self._tried(one.traffic, demand)
                if current.cost < best.cost:
                    best = current
        return best

    def _tried(self, traffic: Traffic, demand: Values) -> _Fitted:
        scenario, missing = _twin(self._moment, traffic, demand, self._fabric, self._name)
        made = _Fitted(traffic, demand, scenario, missing)
        if _packets(self._moment, scenario) > _MOST_PACKETS:
            return made
        result = simulate(scenario, scenario.seed)
        apart = self._verdict.apart(self._diagnosed(result))
        return replace(
            made,
            fit=agreement(self._moment.subnet, self._measured, result, apart),
            delivered=delivered_gbps(result),
        )

    def _diagnosed(self, result: Result) -> Verdict:
        """Diagnose the counters of a run."""
        if self._diagnosis is None:
            # All candidates have one fabric.
            self._diagnosis = SimulatedDiagnosis(result.scenario)
        return self._diagnosis.verdict(result)


def _corrected(fitted: _Fitted) -> Values | None:
    """Lower the demand of flows that get too much; ``None`` if there are none."""
    if fitted.delivered is None or len(fitted.delivered) != len(fitted.demand):
        return None
    rates = fitted.traffic.rates * _PAYLOAD
    above = np.isinf(fitted.demand) & (fitted.delivered > (1 + _APART) * rates)
    if not above.any():
        return None
    return np.where(above, rates * (1 + _MORE), fitted.demand)


def _packets(moment: Moment, scenario: Scenario) -> float:
    gbps = np.nan_to_num(moment.loads[0].astype(float)) * moment.subnet.ports[:, 3]
    return float(gbps.sum()) * scenario.duration_ps / 1e3 / 8 / 4122


def _twin(
    moment: Moment, traffic: Traffic, demand: Values, fabric: dict[str, Any], name: str
) -> tuple[Scenario, list[str]]:
    subnet, report = moment.subnet, moment.report
    missing = list(traffic.notes)
    tables: dict[str, Any] = {
        "name": name,
        "fabric": fabric,
        "traffic": {"flow": _flows(moment, traffic, demand, missing)},
        "control": _control(report, missing),
    }
    if faults := _slow_hosts(moment):
        tables["fault"] = faults
    described = json.loads(subnet.text)
    lanes = described.get("data_vls")
    if lanes:
        tables["vl"] = {"data-vls": lanes}
    else:
        missing.append("number of data lanes: as many as the routes need")
    missing.append("service levels and SL to VL tables: all flows have service level 0")
    if "links" not in described:
        missing.append("width and speed of links: chosen by their data rates")
    unknown = int(np.count_nonzero(~np.isfinite(moment.loads[0])))
    if unknown:
        missing.append(f"loads of {unknown} ports: no flow is bound to them")
    waits = int(np.count_nonzero(~np.isfinite(moment.loads[1])))
    if waits:
        missing.append(f"waiting times of {waits} ports: demand is what was sent there")
    missing.append("sizes of messages and packets: messages of 8 KiB in packets of 4 KiB")
    duration_ms = _duration_ms(subnet)
    tables["run"] = {
        "duration": f"{duration_ms:g} ms",
        "warm-up": f"{duration_ms / 3:g} ms",
    }
    return Scenario(**tables), missing


def _fabric(subnet: Subnet) -> dict[str, Any]:
    hosts = subnet.hosts
    nodes = subnet.nodes
    described = json.loads(subnet.text)
    links = described.get("links")
    ports = subnet.ports
    switches: list[TomlInput] = []
    adapters: list[TomlInput] = []
    most_ports = np.zeros(len(nodes), int)
    np.maximum.at(most_ports, ports[:, 0].astype(int), ports[:, 1].astype(int))
    for row, node in enumerate(nodes):
        entry: dict[str, Any] = {"name": node["name"], "lid": node["lid"]}
        if "guid" in node:
            entry["guid"] = node["guid"]
        if row < hosts:
            if node.get("ports", 1) not in (0, 1):
                entry["adapter-port"] = node["ports"]
            if node.get("kind") == "router":
                entry["router"] = True
            adapters.append(entry)
        else:
            entry["ports"] = max(int(node.get("ports", 0)), int(most_ports[row]), 1)
            switches.append(entry)

    def end(row: int) -> str:
        owner, number = int(ports[row, 0]), int(ports[row, 1])
        name = str(nodes[owner]["name"])
        return name if owner < hosts else f"{name}:{number}"

    cables: list[TomlInput] = []
    for row, (_, _, peer, gbps) in enumerate(ports):
        if peer >= _NO_PEER or peer < row:
            continue
        width, speed, rate = _link(float(gbps), links[row] if links else None)
        cable = {"from": end(row), "to": end(int(peer)), "width": width, "speed": speed}
        if rate:
            cable["rate"] = rate
        cables.append(cable)
    return {
        "switch": switches,
        "host": adapters,
        "cable": cables,
        "routing": "explicit",
        "linear-tables": _tables(subnet),
        "allow-credit-loops": True,
        "unreachable": "drop",
    }


def _link(gbps: float, stated: Sequence[Any] | None) -> tuple[str, str, str | None]:
    if stated is not None:
        return str(stated[0]), str(stated[1]), None
    for (width, speed), rate in _RATES.items():
        if abs(rate - gbps) <= 1e-3 * gbps:
            return width, speed, None
    return "4x", "NDR", f"{gbps:g} Gbit/s"


def _tables(subnet: Subnet) -> dict[str, str]:
    """Write the forwarding tables by LID.

    Routes to switches carry management only, and are the shortest.
    """
    hosts = subnet.hosts
    nodes = subnet.nodes
    lids = np.array([node["lid"] for node in nodes], int)
    routes = np.frombuffer(subnet.routes, np.uint8).reshape(-1, hosts)
    to_switches = _switch_routes(subnet)
    tables = {}
    for place, (node, row) in enumerate(zip(nodes[hosts:], routes, strict=True)):
        table = np.full(int(lids.max(initial=0)) + 1, 255, np.uint8)
        table[lids[hosts:]] = to_switches[place]
        table[lids[:hosts]] = np.where(row == 0, 255, row)
        tables[str(node["name"])] = table.tobytes().hex()
    return tables


def _switch_routes(subnet: Subnet) -> npt.NDArray[np.uint8]:
    """Port of each switch towards each other switch, 255 if there is none."""
    hosts, count = subnet.hosts, len(subnet.nodes) - subnet.hosts
    ports = subnet.ports
    owners = ports[:, 0].astype(int)
    neighbours: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for owner, peer in zip(owners, ports[:, 2], strict=True):
        if owner >= hosts and peer < len(ports) and owners[int(peer)] >= hosts:
            # From the far switch back to this one.
            neighbours[owner - hosts].append((owners[int(peer)] - hosts, int(peer)))
    routes = np.full((count, count), 255, np.uint8)
    for target in range(count):
        reached = {target}
        edge = [target]
        while edge:
            found = []
            for at in edge:
                for switch, port in neighbours[at]:
                    if switch not in reached:
                        reached.add(switch)
                        routes[switch, target] = int(ports[port, 1])
                        found.append(switch)
            edge = found
        routes[target, target] = 0
    return routes


def _flows(moment: Moment, traffic: Traffic, demand: Values, missing: list[str]) -> list[TomlInput]:
    paths = traffic.paths
    names = [str(node["name"]) for node in moment.subnet.nodes]
    links = moment.subnet.ports[paths.steps[paths.starts[:-1]], 3]
    worth = traffic.rates >= _LEAST_RATE * links
    if np.count_nonzero(worth) > _MOST_FLOWS:
        worth &= traffic.rates >= np.sort(traffic.rates)[-_MOST_FLOWS]
    lost = float(traffic.rates[~worth].sum() / traffic.rates.sum())
    if lost > 0.001:
        missing.append(
            f"flows below {_LEAST_RATE:.2%} of a link, or beyond {_MOST_FLOWS:,}: "
            f"{lost:.1%} of the traffic"
        )
    above = int(np.count_nonzero(np.isinf(demand) & worth))
    if above:
        missing.append(
            f"demand of {above} flows above what got through: taken as more than the link, so that "
            "predicted gains are upper limits"
        )
    return [
        {
            "from": names[paths.sources[flow]],
            "to": names[paths.destinations[flow]],
            "load": "saturating" if np.isinf(demand[flow]) else f"{demand[flow]:.6g} Gbit/s",
        }
        for flow in np.flatnonzero(worth).tolist()
    ]


def _demand(moment: Moment, traffic: Traffic, free: Values) -> Values:
    """Estimate the demand of each flow, in Gbit/s of payload; infinite for more than the link.

    A host that sends or waits all the time always has packets and serves its flows in turn: the
    largest have more demand than they get. A throttled host has more to send through the roots.
    ``free`` are unthrottled rates of other times.
    """
    paths = traffic.paths
    own = paths.steps[paths.starts[:-1]]
    loads, waits = moment.loads[0].astype(float), moment.loads[1].astype(float)
    busy = np.nan_to_num(loads) + np.nan_to_num(waits) >= BACKLOGGED
    largest = np.zeros(moment.subnet.hosts)
    np.maximum.at(largest, paths.sources, traffic.rates)
    saturates = busy[own] & (traffic.rates >= _NEARLY * largest[paths.sources])
    throttled = _throttled(moment.report)
    if throttled:
        rows = moment.subnet.rows
        roots = np.zeros(paths.ports)
        roots[[rows[tree["root"]] for tree in moment.report["trees"] if tree["root"] in rows]] = 1
        is_throttled = np.array([node["name"] in throttled for node in moment.subnet.nodes])
        saturates |= is_throttled[paths.sources] & (paths.most(roots) > 0)
    demand = np.where(saturates, np.inf, traffic.rates * _PAYLOAD)
    sent = np.bincount(paths.sources, traffic.rates, moment.subnet.hosts)
    # Throttled flows have the rest of the host's unthrottled rate.
    held = np.bincount(paths.sources, np.where(saturates, traffic.rates, 0), moment.subnet.hosts)
    rest = free - sent + held
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.where(rest > held, rest / held, np.nan)[paths.sources]
    is_known = saturates & np.isfinite(more)
    demand[is_known] = (traffic.rates * more)[is_known] * _PAYLOAD
    return demand


def _free_rates(moment: Moment, history: Sequence[Moment]) -> Values:
    """Largest unthrottled rate by host; NaN if unknown."""
    rows = moment.subnet.rows
    names = [f"{node['name']}:1" for node in moment.subnet.nodes[: moment.subnet.hosts]]
    free = np.full(len(names), np.nan)
    for one in history:
        loads, waits = one.loads[0].astype(float), one.loads[1].astype(float)
        for host, name in enumerate(names):
            row = one.subnet.rows.get(name)
            if row is None or name not in rows or not np.isfinite(loads[row] + waits[row]):
                continue
            if loads[row] >= IDLE and loads[row] + waits[row] < BACKLOGGED:
                free[host] = np.fmax(free[host], loads[row] * float(one.subnet.ports[row, 3]))
    return free


def _throttled(report: Report) -> set[str]:
    control = report.get("control")
    if not control:
        return set()
    reacts = {
        host for one in control["adapters"] if one["ccti_increase"] > 0 for host in one["hosts"]
    }
    return {host for host in control["becn_per_s"] if host in reacts}


def _control(report: Report, missing: list[str]) -> dict[str, Any]:
    control = report.get("control")
    if not control:
        missing.append("settings of congestion control: none, because they were not read")
        return {"scheme": "none"}
    marking = [one for one in control["switches"] if one["threshold"] > 0]
    if not marking:
        return {"scheme": "none"}
    switches = max(control["switches"], key=lambda one: len(one["switches"]))
    if len(control["switches"]) > 1:
        others = sum(len(one["switches"]) for one in control["switches"]) - len(
            switches["switches"]
        )
        missing.append(f"settings of {others} switches that differ from those of the most")
    settings: dict[str, Any] = {
        "switch": {
            "threshold": switches["threshold"],
            "marking-rate": switches["marking_rate"],
            "packet-size": switches["packet_size"],
        }
    }
    if control["adapters"]:
        adapters = max(control["adapters"], key=lambda one: len(one["hosts"]))
        if len(control["adapters"]) > 1:
            others = sum(len(one["hosts"]) for one in control["adapters"]) - len(adapters["hosts"])
            missing.append(f"settings of {others} adapters that differ from those of the most")
        settings["adapter"] = {
            "ccti-timer": adapters["ccti_timer"],
            "ccti-increase": adapters["ccti_increase"],
            "ccti-min": adapters["ccti_min"],
        }
    if control["unknown"]:
        missing.append(f"settings of congestion control of {len(control['unknown'])} nodes")
    missing.append(
        "Congestion Control Tables, limits and Trigger_Thresholds of adapters: those of the model"
    )
    return {"scheme": "ib-cc", "ib-cc": settings}


def _slow_hosts(moment: Moment) -> list[TomlInput]:
    rows = moment.subnet.rows
    faults: list[TomlInput] = []
    for tree in moment.report["trees"]:
        row = rows.get(tree["root"])
        if tree["cause"] != "slow receiver" or row is None or not tree["load"]:
            continue
        rate = float(tree["load"]) * float(moment.subnet.ports[row, 3]) * _PAYLOAD
        host = str(tree["peer"]).rpartition(":")[0]
        faults.append({"do": "slow", "host": host, "rate": f"{rate:.6g} Gbit/s"})
    return faults


def _duration_ms(subnet: Subnet) -> float:
    rates = subnet.ports[:, 3]
    slowest = float(rates[rates > 0].min())
    return max(_LEAST_DURATION_MS, float(np.ceil(_PACKETS * 4122 * 8 / slowest / 1e6)))


def _roles(moment: Moment, traffic: Traffic) -> list[str]:
    paths = traffic.paths
    rows = moment.subnet.rows
    roots, branches = np.zeros(paths.ports), np.zeros(paths.ports)
    for tree in moment.report["trees"]:
        if tree["root"] in rows:
            roots[rows[tree["root"]]] = 1
        for one in tree["branches"]:
            if one["port"] in rows:
                branches[rows[one["port"]]] = 1
    contributes = paths.most(roots) > 0
    suffers = ~contributes & (paths.most(branches) > 0)
    roles = np.where(contributes, "contributor", np.where(suffers, "victim", "other"))
    return [str(role) for role in roles]


def _record(
    moment: Moment, traffic: Traffic, jobs: Mapping[str, Sequence[str]], missing: list[str]
) -> dict[str, Any]:
    subnet, report = moment.subnet, moment.report
    names = [str(node["name"]) for node in subnet.nodes]
    loads = moment.loads
    described = json.loads(subnet.text)
    ports = {}
    for name, row in subnet.rows.items():
        load, wait = float(loads[0, row]), float(loads[1, row])
        ports[name] = {
            "link_gbps": float(subnet.ports[row, 3]),
            "gbps": None if np.isnan(load) else round(load * float(subnet.ports[row, 3]), 6),
            "wait": None if np.isnan(wait) else round(wait, 6),
        }
    flows = [
        {
            "from": names[source],
            "to": names[destination],
            "gbps": round(float(rate), 6),
            "lowest_gbps": round(float(low), 6),
            "highest_gbps": round(float(high), 6),
            "is_decided": bool(decided),
            "role": role,
        }
        for source, destination, rate, low, high, decided, role in zip(
            traffic.paths.sources,
            traffic.paths.destinations,
            traffic.rates,
            traffic.lowest,
            traffic.highest,
            traffic.decided,
            _roles(moment, traffic),
            strict=True,
        )
    ]
    flows.sort(key=lambda one: -float(one["gbps"]))
    by_row = {row: name for name, row in subnet.rows.items()}
    cables = []
    for row, link in enumerate(described.get("links", ())):
        gbps, peer = float(subnet.ports[row, 3]), int(subnet.ports[row, 2])
        if link[2] and gbps < _DEGRADED * float(link[2]) and row < peer < len(subnet.ports):
            cables.append({"port": by_row[row], "gbps": gbps, "capable_gbps": float(link[2])})
    trees = report["trees"]
    return {
        "version": _VERSION,
        "interval_s": report["interval_s"],
        "at_ns": moment.at_ns,
        "rank": traffic.rank,
        "equations": traffic.equations,
        "pairs": traffic.pairs,
        "unexplained": round(traffic.unexplained, 6),
        "is_sparse": traffic.is_sparse,
        "missing": missing,
        "roots": [tree["root"] for tree in trees],
        "receivers": [
            peer if peer in names[: subnet.hosts] else None
            for peer in (str(tree["peer"]).rpartition(":")[0] for tree in trees)
        ],
        "contributors": sorted({one["host"] for tree in trees for one in tree["contributors"]}),
        "victims": sorted({one["host"] for tree in trees for one in tree["victims"]}),
        "hosts": {name: list(jobs.get(name, ())) for name in names[: subnet.hosts]},
        "cables": cables,
        "flows": flows,
        "ports": ports,
    }
