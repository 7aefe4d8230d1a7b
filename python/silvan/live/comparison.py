"""Two moments of a subnet compared: changes, in the order of the tree growth that they explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from silvan.live.moments import Moment
from silvan.live.twin.paths import Router

KINDS = (
    "cable gone",
    "cable slower",
    "switch gone",
    "host gone",
    "routes moved",
    "job started",
    "host sends more",
    "LID moved",
    "cable new",
    "cable faster",
    "switch new",
    "host new",
    "host sends less",
)

_MORE = 1.5
_LESS = 0.5
_IDLE = 0.01
_GROWN = 0.05
_SAME_RATE = 0.01

Key = tuple[str, str]


@dataclass
class Change:
    """A change between two moments, with the growth of lost bandwidth that it explains."""

    kind: str
    what: str
    explains_gbps: float = 0.0
    roots: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Give the change as plain values, for JSON."""
        return {
            "kind": self.kind,
            "what": self.what,
            "explains_gbps": round(self.explains_gbps, 6),
            "roots": self.roots,
        }


def compare_moments(
    old: Moment, new: Moment, jobs: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """Compare two moments of a subnet: changes, trees, growth without cause, missing data."""
    return _Comparison(old, new, jobs or {}).result()


class _Side:
    def __init__(self, moment: Moment) -> None:
        self.moment = moment
        subnet = moment.subnet
        self.nodes = {str(node["name"]): node for node in subnet.nodes}
        self.names = list(self.nodes)
        self.row_names = list(subnet.rows)
        self.cables: dict[Key, float] = {}
        for row, (_, _, peer, gbps) in enumerate(subnet.ports):
            if row < peer < len(subnet.ports):
                one, other = sorted((self.row_names[row], self.row_names[int(peer)]))
                self.cables[one, other] = float(gbps)
        self.router = Router(subnet) if subnet.routes else None

    def sent(self, host: str) -> float | None:
        row = self.moment.subnet.rows.get(f"{host}:1")
        if row is None:
            return None
        load = float(self.moment.loads[0][row])
        return None if np.isnan(load) else load * float(self.moment.subnet.ports[row, 3])

    def path(self, source: str, target: str) -> list[str]:
        rows = self.moment.subnet.node_rows
        hosts = self.moment.subnet.hosts
        if self.router is None or max(rows.get(source, hosts), rows.get(target, hosts)) >= hosts:
            return []
        ends = np.array([rows[source]], np.int32), np.array([rows[target]], np.int32)
        paths, _ = self.router.paths(*ends)
        return [self.row_names[row] for row in paths.steps]

    def lost(self, tree: Mapping[str, Any]) -> float:
        subnet = self.moment.subnet
        return sum(
            (one["wait"] or 0.0) * float(subnet.ports[subnet.rows[one["port"]], 3])
            for one in tree["branches"]
            if one["port"] in subnet.rows
        )


class _Comparison:
    def __init__(self, old: Moment, new: Moment, jobs: Mapping[str, Sequence[str]]) -> None:
        self._old, self._new = _Side(old), _Side(new)
        self._jobs = jobs
        self._changes: dict[Key, Change] = {}
        self._unexplained = 0.0

    def result(self) -> dict[str, Any]:
        self._nodes()
        self._cables()
        self._routes()
        self._traffic()
        trees = self._trees()
        order = {kind: place for place, kind in enumerate(KINDS)}
        changes = sorted(
            self._changes.values(),
            key=lambda one: (-one.explains_gbps, order[one.kind], one.what),
        )
        not_compared = []
        if self._old.router is None or self._new.router is None:
            not_compared.append("forwarding tables: one moment has none")
        for name, side in (("old", self._old), ("new", self._new)):
            unknown = int(np.count_nonzero(~np.isfinite(side.moment.loads[0])))
            if unknown:
                not_compared.append(f"loads of {unknown} ports of the {name} moment")
        return {
            "old_ns": self._old.moment.at_ns,
            "new_ns": self._new.moment.at_ns,
            "changes": [one.to_dict() for one in changes],
            "trees": trees,
            "unexplained_gbps": round(self._unexplained, 6),
            "not_compared": not_compared,
        }

    def _add(self, kind: str, name: str, what: str | None = None) -> None:
        self._changes.setdefault((kind, name), Change(kind, what or name))

    def _nodes(self) -> None:
        for side, other, state in (
            (self._old, self._new, "gone"),
            (self._new, self._old, "new"),
        ):
            for name, node in side.nodes.items():
                if name not in other.nodes:
                    self._add(f"{'host' if node['is_host'] else 'switch'} {state}", name)
        for name, node in self._new.nodes.items():
            before = self._old.nodes.get(name)
            if before is not None and before["lid"] != node["lid"]:
                self._add("LID moved", name, f"{name}: from {before['lid']} to {node['lid']}")

    def _cables(self) -> None:
        old, new = self._old.cables, self._new.cables
        for ends, gbps in old.items():
            text = _cable(ends)
            if ends not in new:
                # The loss of a node's cable is no separate change.
                if all(_node(end) in self._new.nodes for end in ends):
                    self._add("cable gone", text)
            elif new[ends] < gbps * (1 - _SAME_RATE):
                rates = f"from {gbps:g} to {new[ends]:g} Gbit/s"
                self._add("cable slower", text, f"{text}: {rates}")
            elif new[ends] > gbps * (1 + _SAME_RATE):
                rates = f"from {gbps:g} to {new[ends]:g} Gbit/s"
                self._add("cable faster", text, f"{text}: {rates}")
        for ends in new:
            if ends not in old and all(_node(end) in self._old.nodes for end in ends):
                self._add("cable new", _cable(ends))

    def _routes(self) -> None:
        if self._old.router is None or self._new.router is None:
            return
        sides = (self._old, self._new)
        tables = []
        for side in sides:
            subnet = side.moment.subnet
            hosts = side.names[: subnet.hosts]
            rows = np.frombuffer(subnet.routes, np.uint8).reshape(-1, subnet.hosts)
            tables.append((hosts, dict(zip(side.names[subnet.hosts :], rows, strict=True))))
        (old_hosts, old_tables), (new_hosts, new_tables) = tables
        places = {host: place for place, host in enumerate(old_hosts)}
        both = [(places[host], place) for place, host in enumerate(new_hosts) if host in places]
        if not both:
            return
        before, now = (np.array(one) for one in zip(*both, strict=True))
        for switch, row in new_tables.items():
            if switch not in old_tables:
                continue
            moved = int(np.count_nonzero(old_tables[switch][before] != row[now]))
            if moved:
                what = f"{switch}: to {moved} of {len(both)} hosts"
                self._add("routes moved", switch, what)

    def _traffic(self) -> None:
        for host, node in self._new.nodes.items():
            if not node["is_host"] or host not in self._old.nodes:
                continue
            before, now = self._old.sent(host), self._new.sent(host)
            if before is None or now is None:
                continue
            least = _IDLE * self._rate(host)
            if now > max(before * _MORE, before + least):
                self._add(*self._more(host, before, now, least))
            elif before > least and now < before * _LESS:
                what = f"{host}: from {before:.3g} to {now:.3g} Gbit/s"
                self._add("host sends less", host, what)

    def _rate(self, host: str) -> float:
        row = self._new.moment.subnet.rows.get(f"{host}:1")
        return 0.0 if row is None else float(self._new.moment.subnet.ports[row, 3])

    def _more(self, host: str, before: float, now: float, least: float) -> tuple[str, str, str]:
        jobs = self._jobs.get(host)
        if jobs and before <= least:
            label = ", ".join(jobs)
            members = sorted(one for one, own in self._jobs.items() if list(own) == list(jobs))
            return "job started", label, f"job {label} on {', '.join(members)}"
        return "host sends more", host, f"{host}: from {before:.3g} to {now:.3g} Gbit/s"

    def _trees(self) -> list[dict[str, Any]]:
        old = {tree["root"]: tree for tree in self._old.moment.report["trees"]}
        new = {tree["root"]: tree for tree in self._new.moment.report["trees"]}
        found = []
        for root in [*new, *(root for root in old if root not in new)]:
            before = self._old.lost(old[root]) if root in old else 0.0
            now = self._new.lost(new[root]) if root in new else 0.0
            state = "as before"
            if root not in old:
                state = "new"
            elif root not in new:
                state = "gone"
            elif now > before * (1 + _GROWN):
                state = "grown"
            elif now < before * (1 - _GROWN):
                state = "smaller"
            found.append(
                {
                    "root": root,
                    "state": state,
                    "lost_gbps_before": round(before, 6),
                    "lost_gbps": round(now, 6),
                    "victims_before": len(old[root]["victims"]) if root in old else 0,
                    "victims": len(new[root]["victims"]) if root in new else 0,
                }
            )
            if state in ("new", "grown"):
                self._explain(new[root], now - before)
        return found

    def _explain(self, tree: Mapping[str, Any], growth: float) -> None:
        ends = tuple(sorted((str(tree["root"]), str(tree["peer"]))))
        slower = ("cable slower", _cable(ends))
        shares: dict[Key, float] = {}
        for one in tree["contributors"]:
            reasons = [slower] if slower in self._changes else []
            target = one.get("to") or _node(str(tree["peer"]))
            if target not in self._new.nodes or not self._new.nodes[target]["is_host"]:
                target = self._behind(one["host"], str(tree["root"]))
            reasons += self._moved(one["host"], target, str(tree["root"]))
            reasons += self._started(one["host"])
            for key in reasons:
                shares[key] = shares.get(key, 0.0) + one["gbps"] / len(reasons)
        total = sum(shares.values())
        if total <= 0:
            self._unexplained += growth
            return
        for key, share in shares.items():
            change = self._changes[key]
            change.explains_gbps += growth * share / total
            change.roots.append(tree["root"])

    def _behind(self, source: str, root: str) -> str:
        hosts = [name for name, node in self._new.nodes.items() if node["is_host"]]
        behind = [host for host in hosts if root in self._new.path(source, host)]
        moved = (host for host in behind if root not in self._old.path(source, host))
        return next(moved, behind[0] if behind else source)

    def _moved(self, source: str, target: str, root: str) -> list[Key]:
        before, now = self._old.path(source, target), self._new.path(source, target)
        if not before or root in before or root not in now:
            return []
        gone = [
            ("cable gone", _cable(ends))
            for ends in self._old.cables
            if ends not in self._new.cables and (ends[0] in before or ends[1] in before)
        ]
        gone += [("switch gone", _node(port)) for port in before]
        found = [key for key in dict.fromkeys(gone) if key in self._changes]
        if found:
            return found
        turns = [_node(port) for port in now if port not in before]
        keys = [("routes moved", switch) for switch in dict.fromkeys(turns)]
        return [key for key in keys if key in self._changes][:1]

    def _started(self, host: str) -> list[Key]:
        jobs = self._jobs.get(host)
        keys = [("job started", ", ".join(jobs))] if jobs else []
        keys.append(("host sends more", host))
        return [key for key in keys if key in self._changes][:1]


def _node(port: str) -> str:
    return port.rpartition(":")[0]


def _cable(ends: Sequence[str]) -> str:
    return f"{ends[0]} to {ends[1]}"
