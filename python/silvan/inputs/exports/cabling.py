"""The nodes and cables of a scenario's fabric, for writers of other formats."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from silvan.errors import SilvanError, shown

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable between two nodes; ``kind`` has its keys of a scenario."""

    ends: tuple[str, str]
    ports: tuple[int, int]
    kind: dict[str, str]

    def other(self, name: str) -> str:
        """Return the node at the other end."""
        one, other = self.ends
        return other if name == one else one


@dataclass(frozen=True)
class Cabling:
    """Switches, hosts and cables of a fabric, in the order of the scenario."""

    switches: dict[str, dict[str, Any]]
    hosts: dict[str, dict[str, Any]]
    cables: list[Cable]
    table: dict[str, Any]
    _rates: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, scenario: Scenario) -> Cabling:
        """Take the fabric of a scenario."""
        graph = json.loads(scenario._native.graph())
        nodes = {node.pop("name"): node for node in graph["node"]}
        cables = [
            Cable((one, other), (port, far_port), kind)
            for (one, port), (other, far_port), kind in graph["cable"]
        ]
        return cls(
            {name: node for name, node in nodes.items() if "ports" in node},
            {name: node for name, node in nodes.items() if "ports" not in node},
            cables,
            scenario.to_dict()["fabric"],
        )

    @cached_property
    def neighbours(self) -> dict[str, list[Cable]]:
        """Cables by switch, those to hosts left out."""
        found: dict[str, list[Cable]] = {name: [] for name in self.switches}
        for cable in self.cables:
            if all(end in self.switches for end in cable.ends):
                for end in cable.ends:
                    found[end].append(cable)
        return found

    @cached_property
    def hosts_at(self) -> dict[str, list[str]]:
        """Hosts by switch, in the order of the hosts."""
        switch_of = self.switch_of
        found: dict[str, list[str]] = {name: [] for name in self.switches}
        for host in self.hosts:
            if host in switch_of:
                found[switch_of[host]].append(host)
        return found

    @cached_property
    def switch_of(self) -> dict[str, str]:
        """The switch of each host that is cabled to one."""
        found = {}
        for cable in self.cables:
            for end in cable.ends:
                if end in self.hosts and cable.other(end) in self.switches:
                    found[end] = cable.other(end)
        return found

    def rate_and_latency(self, cable: Cable) -> tuple[int, int]:
        """Return the data rate of a cable in bit/s, and its latency in picoseconds."""
        from silvan.inputs.scenario import Scenario

        key = json.dumps(cable.kind, sort_keys=True)
        if key not in self._rates:
            # Only the compiled reader knows the rate of a width and speed.
            pair = Scenario(fabric={"generator": "single-switch", "hosts": 2}, link=cable.kind)
            buffers = pair.describe()["input_buffers"][0]
            self._rates[key] = (buffers["rate_bits_per_s"], buffers["propagation_ps"])
        return self._rates[key]

    def require_cabled(self, what: str) -> None:
        """Check that each host has a cable to a switch."""
        alone = [host for host in self.hosts if host not in self.switch_of]
        if alone:
            raise SilvanError(
                f"host {shown(alone[0])} has no cable to a switch, but {what} places each host at a"
                " switch",
                "cable the host to a switch, or leave it out of the fabric",
            )
