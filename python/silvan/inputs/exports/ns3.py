"""``topology.txt`` of the RDMA simulators on ns-3 that follow HPCC's artifact."""

from __future__ import annotations

from fractions import Fraction

from silvan.inputs.exports.cabling import Cabling


def ns3(fabric: Cabling) -> str:
    """Write counts, switches and cables; hosts have the first numbers, in the fabric's order."""
    numbers = {name: number for number, name in enumerate([*fabric.hosts, *fabric.switches])}
    lines = [
        f"{len(numbers)} {len(fabric.switches)} {len(fabric.cables)}",
        " ".join(str(numbers[name]) for name in fabric.switches),
    ]
    for cable in fabric.cables:
        rate, latency = fabric.rate_and_latency(cable)
        ends = " ".join(str(numbers[end]) for end in cable.ends)
        lines.append(f"{ends} {_decimal(rate, 10**9)}Gbps {_decimal(latency, 10**3)}ns 0")
    return "\n".join(lines) + "\n"


def _decimal(value: int, unit: int) -> str:
    """Write a multiple of a power of ten exactly."""
    whole, part = divmod(Fraction(value, unit), 1)
    digits = f"{int(part * unit):0{len(str(unit)) - 1}}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
