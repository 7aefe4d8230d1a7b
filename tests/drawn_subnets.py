"""Scenarios with known traffic, drawn from a seed as ``make check-diagnose`` draws them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import silvan
from silvan.inputs.fabric_lists import FabricLists

LINK_GBPS = 4.0
"""Rate of a link: 2x SDR."""

KINDS = ("incast", "trees", "permutation", "degraded", "slow receiver", "light")
CONTROLS = ("off", "marking", "on")


@dataclass(frozen=True)
class Drawn:
    """A drawn scenario.

    Attributes
    ----------
    kind, control : str
        One of each list.
    scenario : Scenario
        The scenario.
    flows : dict
        Load in Gbit/s by sender and receiver; that of the link if it saturates.
    """

    kind: str
    control: str
    scenario: silvan.Scenario
    flows: dict[tuple[str, str], float]


def _fabric(draw: random.Random) -> dict[str, Any]:
    match draw.randrange(6):
        case 0:
            leaves, spines, hosts = (
                draw.randint(2, 4),
                draw.randint(1, 3),
                draw.randint(3, 6),
            )
            return {
                "generator": "leaf-spine",
                "leaf-hosts": [hosts] * leaves,
                "spine-cables": [1] * spines,
            }
        case 1:
            return {"generator": "k-ary-n-tree", "k": 4, "n": 2}
        case 2:
            return {"generator": "k-ary-n-tree", "k": 2, "n": 4}
        case 3:
            return {"generator": "xgft", "children": [4, 4], "parents": [1, 2]}
        case 4:
            return {"generator": "xgft", "children": [4, 3, 3], "parents": [1, 2, 2]}
    return {
        "generator": "chain",
        "switches": draw.randint(3, 4),
        "hosts-per-switch": draw.randint(3, 5),
    }


def drawn(seed: int, *, control: str | None = None, kind: str | None = None) -> Drawn:
    """Draw a scenario."""
    draw = random.Random(seed)
    found_kind = draw.choice(KINDS)
    found_control = draw.choice(CONTROLS)
    kind, control = kind or found_kind, control or found_control
    tables: dict[str, Any] = {
        "name": f"drawn-{seed}",
        "fabric": _fabric(draw),
        "link": {"width": "2x", "speed": "SDR"},
        "traffic": {"message": "4 KiB"},
        "run": {"duration": "300 ms", "warm-up": "100 ms"},
    }
    if kind == "slow receiver":
        tables["host"] = {"sink-rate": "1.4 Gbit/s"}
    if control == "marking":
        tables["control"] = {
            "scheme": "ib-cc",
            "ib-cc": {
                "switch": {"marking-rate": 31, "marking": "random"},
                "adapter": {"ccti-increase": 0},
            },
        }
    elif control == "on":
        tables["control"] = {"scheme": "ib-cc"}
    blank = silvan.Scenario(**tables)
    hosts = _names(blank)
    draw.shuffle(hosts)
    flows, uniform = _load(kind, draw, hosts)
    rates = dict.fromkeys(hosts, 0.98 * LINK_GBPS)
    if kind == "degraded":
        port = draw.choice(_switch_ports(blank))
        tables["fault"] = [{"do": "degrade", "port": port, "width": "1x"}]
        # A host that cannot send as much sends all the time.
        rates |= dict.fromkeys(_hosts_at(blank, port), 0.49 * LINK_GBPS)
    traffic: dict[str, Any] = tables["traffic"]
    traffic["flow"] = [
        {
            "from": source,
            "to": target,
            "load": "saturating" if gbps >= rates[source] else f"{gbps:.3f} Gbit/s",
        }
        for (source, target), gbps in flows.items()
    ]
    if uniform:
        senders, gbps = uniform
        traffic["uniform"] = [{"from": senders, "load": f"{gbps:.3f} Gbit/s"}]
        for sender in senders:
            for target in hosts:
                if target != sender:
                    pair = (sender, target)
                    flows[pair] = flows.get(pair, 0.0) + gbps / (len(hosts) - 1)
    return Drawn(kind, control, silvan.Scenario(**tables), flows)


def _names(scenario: silvan.Scenario) -> list[str]:
    lists = FabricLists.of(scenario)
    return [name for name in lists.nodes if not lists.is_switch(name)]


def _switch_ports(scenario: silvan.Scenario) -> list[str]:
    lists = FabricLists.of(scenario)
    ends = [end for cable in lists.cables for end in cable.ends]
    return [f"{name}:{port}" for name, port in ends if lists.is_switch(name)]


def _hosts_at(scenario: silvan.Scenario, port: str) -> list[str]:
    lists = FabricLists.of(scenario)
    ends = [{f"{name}:{number}": name for name, number in cable.ends} for cable in lists.cables]
    return [
        name
        for cable in ends
        if port in cable
        for name in cable.values()
        if not lists.is_switch(name)
    ]


def _load(
    kind: str, draw: random.Random, hosts: list[str]
) -> tuple[dict[tuple[str, str], float], tuple[list[str], float] | None]:
    count = len(hosts)
    flows: dict[tuple[str, str], float] = {}
    rest = list(hosts)
    incasts = {"incast": 1, "trees": draw.randint(2, 3)}.get(kind, 0)
    for _ in range(incasts):
        if not rest:
            break
        target = rest.pop(0)
        for _ in range(draw.randint(2, max(2, min(7, count // 3)))):
            if not rest:
                break
            gbps = LINK_GBPS if draw.random() < 0.6 else draw.uniform(1.0, 4.0)
            flows[rest.pop(0), target] = gbps
    if kind == "permutation":
        gbps = LINK_GBPS if draw.random() < 0.5 else draw.uniform(1.0, 3.5)
        pairs = zip(hosts, hosts[1:] + hosts[:1], strict=True)
        return dict.fromkeys(pairs, gbps), None
    if kind == "degraded":
        pairs = zip(hosts, hosts[1:] + hosts[:1], strict=True)
        return {pair: draw.uniform(1.0, 3.0) for pair in pairs}, None
    if kind == "slow receiver":
        first, second = rest.pop(0), rest.pop(0)
        flows[first, second] = draw.uniform(2.0, 4.0)
        if draw.random() < 0.4:
            flows[rest.pop(0), second] = draw.uniform(0.5, 2.0)
    most = {"slow receiver": 0.3, "light": 0.4}.get(kind, 0.6) * LINK_GBPS
    if draw.random() < 0.25 and len(rest) > 2:
        return flows, (rest, draw.uniform(0.1, 0.6) * most)
    for place, source in enumerate(rest):
        if draw.random() < 0.3 or len(rest) < 2:
            continue
        flows[source, rest[(place + 1) % len(rest)]] = draw.uniform(0.05, 1.0) * most
    return flows, None
