"""A fabric with something failed or added, as a scenario that lists its nodes and cables."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from silvan.errors import ScenarioError, shown
from silvan.inputs.quantities import Quantity, whole_number
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlInput, TomlValue

_GUIDS = 0x0253_5600_0000_0100

End = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable: both ends, and its keys of a scenario."""

    ends: tuple[End, End]
    values: dict[str, TomlValue]


@dataclass(frozen=True, slots=True)
class FabricLists:
    """Nodes and cables of a fabric: LID, GUID and ports of switches by name."""

    nodes: dict[str, dict[str, Any]]
    cables: tuple[Cable, ...]

    @classmethod
    def of(cls, scenario: Scenario) -> FabricLists:
        """List the nodes and cables of a scenario's fabric."""
        graph = json.loads(scenario._native.graph())
        cables = [
            Cable(((one[0], one[1]), (other[0], other[1])), values)
            for one, other, values in graph["cable"]
        ]
        return cls({node.pop("name"): node for node in graph["node"]}, tuple(cables))

    def is_switch(self, name: str) -> bool:
        """Tell whether a node is a switch."""
        return "ports" in self.nodes[name]

    def table(self) -> dict[str, TomlInput]:
        """Give the lists of the table ``fabric`` of a scenario."""
        switches: list[TomlInput] = []
        hosts: list[TomlInput] = []
        for name, values in self.nodes.items():
            (switches if "ports" in values else hosts).append({"name": name, **values})

        def end(place: End) -> str:
            name, port = place
            return f"{name}:{port}" if self.is_switch(name) else name

        cables = [
            {"from": end(cable.ends[0]), "to": end(cable.ends[1]), **cable.values}
            for cable in self.cables
        ]
        return {"switch": switches, "host": hosts, "cable": cables}

    def without(self, what: str) -> FabricLists:
        """Remove a switch or the cable at a port (``leaf-00:19``), and hosts without a cable."""
        if what in self.nodes:
            if not self.is_switch(what):
                raise ScenarioError(
                    f"{shown(what)} is a host", "--fail", hint="name a switch, or a port of one"
                )
            cables = [one for one in self.cables if what not in dict(one.ends)]
            lists = FabricLists(
                {name: node for name, node in self.nodes.items() if name != what}, tuple(cables)
            )
            return lists._without_loose_hosts(what)
        name, _, port = what.rpartition(":")
        place = (name, whole_number(port))
        cables = [one for one in self.cables if place not in one.ends]
        if len(cables) == len(self.cables):
            raise ScenarioError(
                f"the fabric has no switch or cable {shown(what) or repr(what)}",
                "--fail",
                hint="give a switch such as spine-00, or a port with a cable such as leaf-00:19",
            )
        return FabricLists(self.nodes, tuple(cables))._without_loose_hosts(what)

    def _without_loose_hosts(self, failed: str) -> FabricLists:
        cabled = {name for cable in self.cables for name, _ in cable.ends}
        nodes = {
            name: node
            for name, node in self.nodes.items()
            if self.is_switch(name) or name in cabled
        }
        lists = FabricLists(nodes, self.cables)
        if all(map(lists.is_switch, nodes)):
            raise ScenarioError(
                f"without {shown(failed)} the fabric has no host",
                "--fail",
                hint="fail a switch or cable that leaves hosts connected",
            )
        return lists

    def with_leaf(self, like: str | None = None) -> FabricLists:
        """Add a leaf with hosts and cables as another leaf has them, by default the last."""
        leaves = [name for name in self.nodes if self.is_switch(name) and self._hosts(name)]
        model = like or (leaves[-1] if leaves else "")
        if model not in leaves:
            raise ScenarioError(
                f"{shown(model)} is no switch with hosts" if like else "no switch has hosts",
                "--add-leaf",
                hint=f"name a leaf such as {leaves[-1]}" if leaves else None,
            )
        used = {place for cable in self.cables for place in cable.ends}
        nodes = {name: dict(node) for name, node in self.nodes.items()}
        leaf = _unused("new-leaf", nodes)
        nodes[leaf] = {"ports": nodes[model]["ports"], "guid": _free_guid(nodes)}
        cables = list(self.cables)
        for cable in self.cables:
            for place, other in (cable.ends, cable.ends[::-1]):
                if place[0] != model:
                    continue
                far = self._free_port(other, used, nodes)
                used.add(far)
                cables.append(Cable(((leaf, place[1]), far), cable.values))
        return FabricLists(nodes, tuple(cables))

    def _hosts(self, switch: str) -> int:
        return sum(
            not self.is_switch(other)
            for cable in self.cables
            for (name, _), (other, _) in (cable.ends, cable.ends[::-1])
            if name == switch
        )

    def _free_port(self, other: End, used: set[End], nodes: dict[str, dict[str, Any]]) -> End:
        name = other[0]
        if not self.is_switch(name):
            host = _unused("new-host", nodes)
            nodes[host] = {"guid": _free_guid(nodes)}
            return host, 1
        for port in range(1, int(nodes[name]["ports"]) + 1):
            if (name, port) not in used:
                return name, port
        raise ScenarioError(
            f"{shown(name)} has no free port for a new leaf: all {nodes[name]['ports']} are cabled",
            "--add-leaf",
            hint="a larger spine is needed; name a leaf of another part of the fabric to copy",
        )


def _unused(stem: str, nodes: Mapping[str, object]) -> str:
    number = 0
    while f"{stem}-{number:04}" in nodes:
        number += 1
    return f"{stem}-{number:04}"


def _free_guid(nodes: Mapping[str, Mapping[str, Any]]) -> str:
    stated = (node.get(key) for node in nodes.values() for key in ("guid", "port-guid"))
    taken = {int(str(guid), 16) >> 8 for guid in stated if guid is not None}
    number = next(one for one in itertools.count(_GUIDS >> 8) if one not in taken)
    return f"0x{number << 8:016x}"


def with_fabric(scenario: Scenario, lists: FabricLists) -> Scenario:
    """Replace the fabric of a scenario, without routes."""
    tables = stated(scenario)
    tables.pop("sweep", None)
    tables["fabric"] = {**lists.table(), "routing": "none"}
    # The lists have the cables as faults of the whole run leave them.
    tables["fault"] = [one for one in tables.get("fault", ()) if not _is_built_in(one)]
    return Scenario(**tables)


def _is_built_in(fault: Mapping[str, Any]) -> bool:
    starts = Quantity(fault.get("at", "0 s")).ps == 0
    return fault["do"] in ("cut", "degrade") and starts and "for" not in fault


def stated(scenario: Scenario) -> dict[str, Any]:
    """Give the tables of a scenario without its defaults, which may depend on other values."""
    return tomllib.loads(scenario.to_toml())


def read_fabric(path: Path, overrides: Mapping[str, TomlValue]) -> Scenario:
    """Read a fabric from a scenario (``.toml``) or the output of ibnetdiscover."""
    if path.suffix == ".toml":
        return Scenario.from_file(path, overrides=overrides)
    if not path.is_file():
        reason = "it is no regular file" if path.exists() else "there is no such file"
        raise ScenarioError(
            f"cannot read the fabric: {reason}",
            str(path),
            hint="name a scenario file (.toml), or the output of ibnetdiscover",
        )
    whole = {"name": path.stem, "fabric.file": str(path.absolute())}
    return Scenario().override({**whole, **overrides})
