"""Topology files of htsim (csg-htsim): fat trees of two or three regular tiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise

from silvan.errors import SilvanError, shown
from silvan.inputs.exports.cabling import Cable, Cabling
from silvan.inputs.exports.hierarchy import Group, ranks, tree

_HINT = "ns-3's format takes any cabling"


def htsim(fabric: Cabling) -> str:
    """Write the tiers, from the switches with hosts to the top."""
    fabric.require_cabled("htsim")
    rank = ranks(fabric)
    height = max(rank.values()) + 1
    if height not in (2, 3):
        raise _irregular(f"it has {height} levels of switches, and htsim has 2 or 3")
    tiers = [[name for name in fabric.switches if rank[name] == level] for level in range(height)]
    tiers.reverse()
    for name in [one for tier in tiers[1:] for one in tier]:
        if fabric.hosts_at[name]:
            raise _irregular(f"switch {shown(name)} above the first level has hosts")
    top = tree(fabric)
    pods = [top] if height == 2 else top.children
    _require_pods(fabric, pods, tiers[-1])
    down = [_alike("hosts at a switch", (len(fabric.hosts_at[name]) for name in tiers[0]))]
    up = []
    for below, above in pairwise(tiers):
        held = set(above)
        up.append(_alike("cables up", (_to(fabric, name, held).total() for name in below)))
        held = set(below)
        down.append(_alike("cables down", (_to(fabric, name, held).total() for name in above)))
    pod_hosts = _alike("hosts of a pod", (_hosts(fabric, pod) for pod in pods))
    lines = [f"Nodes {len(fabric.hosts)}", f"Tiers {height}", f"Podsize {pod_hosts}"]
    speeds = [_cables(fabric, tiers, tier) for tier in range(height)]
    for tier in range(height):
        gbps, latency_ns = speeds[tier]
        lines += ["", f"Tier {tier}", f"Downlink_speed_Gbps {gbps}", f"Radix_Down {down[tier]}"]
        if tier:
            lines.append(f"Bundle {_bundle(fabric, tiers, tier)}")
        if tier + 1 < height:
            needed, offered = down[tier] * gbps, up[tier] * speeds[tier + 1][0]
            # htsim divides the ports of the first tier, too, and ignores the remainder.
            ratio = down[0] // up[0] if tier == 0 else needed // offered
            if ratio < 1 or needed != offered * ratio:
                raise _irregular(
                    f"switches of tier {tier} have {needed} Gbit/s below and {offered} Gbit/s"
                    " above, no whole ratio of ports and rates"
                )
            lines += [f"Radix_Up {up[tier]}", f"Oversubscribed {ratio}"]
        lines.append(f"Downlink_Latency_ns {latency_ns}")
    return "\n".join([*_numbers(fabric, pods), *lines]) + "\n"


def _irregular(reason: str) -> SilvanError:
    return SilvanError(f"htsim cannot have this fabric: {reason}", _HINT)


def _alike(what: str, values: Iterable[Hashable]) -> int:
    found = set(values)
    if len(found) != 1:
        low, high = min(found, key=str), max(found, key=str)
        raise _irregular(f"numbers of {what} differ, such as {low} and {high}")
    (value,) = found
    assert isinstance(value, int)
    return value


def _to(fabric: Cabling, name: str, held: set[str]) -> Counter[str]:
    ends = (cable.other(name) for cable in fabric.neighbours[name])
    return Counter(end for end in ends if end in held)


def _bundle(fabric: Cabling, tiers: Sequence[Sequence[str]], tier: int) -> int:
    below = set(tiers[tier - 1])
    counts = (count for name in tiers[tier] for count in _to(fabric, name, below).values())
    return _alike("parallel cables", counts)


def _cables(fabric: Cabling, tiers: Sequence[Sequence[str]], tier: int) -> tuple[int, int]:
    lower = set(tiers[tier - 1]) if tier else set(fabric.hosts)
    upper = set(tiers[tier])

    def is_below(cable: Cable) -> bool:
        one, other = cable.ends
        return (one in lower and other in upper) or (one in upper and other in lower)

    found = {fabric.rate_and_latency(cable) for cable in fabric.cables if is_below(cable)}
    if len(found) != 1:
        raise _irregular(f"cables below tier {tier} differ in rate or latency")
    ((bits, ps),) = found
    if bits % 10**9 or ps % 1000 or not ps:
        raise _irregular(
            f"cables below tier {tier} have {bits / 1e9:g} Gbit/s and {ps / 1e3:g} ns, and htsim"
            " has whole Gbit/s and ns above 0"
        )
    return bits // 10**9, ps // 1000


def _hosts(fabric: Cabling, group: Group) -> int:
    held = sum(len(fabric.hosts_at[name]) for name in group.switches)
    return held + sum(_hosts(fabric, child) for child in group.children)


def _require_pods(fabric: Cabling, pods: Sequence[Group], cores: Sequence[str]) -> None:
    for pod in pods:
        leaves = {name for child in pod.children for name in child.switches}
        for name in pod.switches:
            if len(_to(fabric, name, leaves)) != len(leaves):
                raise _irregular(f"switch {shown(name)} is not cabled to all leaves below it")
    if len(pods) == 1:
        return
    # Cores at one switch of a pod are at one switch of each other pod.
    planes = set()
    for pod in pods:
        planes.add(
            frozenset(
                frozenset(core for core in _to(fabric, name, set(cores))) for name in pod.switches
            )
        )
    (first, *others) = planes
    if others or sum(map(len, first)) != len(cores):
        raise _irregular("switches of different pods do not share the same top switches")


def _numbers(fabric: Cabling, pods: Sequence[Group]) -> list[str]:
    """Comment if htsim numbers hosts in another order, leaf by leaf."""
    leaves = [name for pod in pods for child in pod.children for name in child.switches]
    hosts = [host for leaf in leaves for host in fabric.hosts_at[leaf]]
    if hosts == list(fabric.hosts):
        return []
    return [f"# host {number}: {shown(host)}" for number, host in enumerate(hosts)]
