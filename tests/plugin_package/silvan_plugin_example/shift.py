"""Traffic: every host sends to the host at a distance from it."""

from dataclasses import dataclass

from silvan.plugins import Fabric, Quantity, Size, Traffic


@dataclass(frozen=True)
class Keys:
    distance: int
    load: float = 0.5
    message: Size = Quantity("4 KiB")


def shift(keys: Keys, fabric: Fabric) -> dict[str, list[dict[str, object]]]:
    """Send from every host to the one at a distance in the order of hosts."""
    hosts = fabric.hosts
    flows: list[dict[str, object]] = [
        {
            "from": host,
            "to": hosts[(number + keys.distance) % len(hosts)],
            "load": keys.load,
            "message": keys.message,
        }
        for number, host in enumerate(hosts)
    ]
    return {"flow": flows}


SHIFT = Traffic(shift, Keys)
