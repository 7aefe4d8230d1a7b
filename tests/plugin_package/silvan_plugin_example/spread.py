"""A routing: shortest paths, the destinations in turn on equal ones."""

from collections import deque
from dataclasses import dataclass

from silvan.plugins import Fabric, Routing


@dataclass(frozen=True)
class Keys:
    block: int = 1


def spread(keys: Keys, fabric: Fabric) -> dict[str, dict[str, int]]:
    """Send blocks of destinations over equal shortest paths in turn."""
    tables: dict[str, dict[str, int]] = {switch: {} for switch in fabric.switches}
    for number, host in enumerate(fabric.hosts):
        distance = {host: 0}
        queue = deque([host])
        while queue:
            near = queue.popleft()
            for switch, ports in fabric.ports.items():
                if switch not in distance and near in (far for far, _ in ports.values()):
                    distance[switch] = distance[near] + 1
                    queue.append(switch)
        for switch, ports in fabric.ports.items():
            closer = distance[switch] - 1
            best = [port for port, (far, _) in ports.items() if distance.get(far) == closer]
            tables[switch][host] = sorted(best)[number // keys.block % len(best)]
    return tables


SPREAD = Routing(spread, Keys)
