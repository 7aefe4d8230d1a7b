"""A topology: switches in a row, with hosts at each."""

from dataclasses import dataclass

from silvan.plugins import Topology


@dataclass(frozen=True)
class Keys:
    switches: int = 3
    hosts_per_switch: int = 2
    cables: int = 2

    def __post_init__(self) -> None:
        if min(self.switches, self.hosts_per_switch, self.cables) < 1:
            raise ValueError("a row has at least one switch, host and cable")


def row(keys: Keys) -> dict[str, list[dict[str, object]]]:
    """Connect switches in a row by parallel cables."""
    own, trunks = keys.hosts_per_switch, keys.cables
    names = [f"s{number}" for number in range(keys.switches)]
    hosts: list[dict[str, object]] = []
    cables: list[dict[str, object]] = []
    for number, name in enumerate(names):
        for port in range(1, own + 1):
            host = f"h{len(hosts)}"
            hosts.append({"name": host})
            cables.append({"from": host, "to": f"{name}:{port}"})
        for port in range(own + 1, own + trunks + 1) if number else ():
            cables.append({"from": f"{names[number - 1]}:{port + trunks}", "to": f"{name}:{port}"})
    switches: list[dict[str, object]] = [
        {"name": name, "ports": own + 2 * trunks} for name in names
    ]
    return {"switch": switches, "host": hosts, "cable": cables}


ROW = Topology(row, Keys)
