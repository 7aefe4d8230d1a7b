"""Draw a small instance of each generator of the guide into ``docs/images``."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
from matplotlib.axes import Axes

import silvan

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"

Places = dict[str, tuple[float, float]]
Key = Callable[[str], tuple[int, ...]]

SWITCH, HOST, NVLINK = "#2b6ca3", "#d9822b", "#3a8f4d"


def numbers(name: str) -> tuple[int, ...]:
    """Give the numbers in a name."""
    return tuple(int(part) for part in name.split("-") if part.isdigit())


def on_circle(
    index: float, count: int, radius: float, centre: tuple[float, float] = (0, 0)
) -> tuple[float, float]:
    """Give a place on a circle, clockwise from the top."""
    angle = 2 * math.pi * index / count
    return centre[0] + radius * math.sin(angle), centre[1] + radius * math.cos(angle)


def dragonfly(switches: list[str]) -> Places:
    """Put each group on a separate circle."""
    groups = 1 + max(numbers(name)[0] for name in switches)
    size = 1 + max(numbers(name)[1] for name in switches)
    places = {}
    for name in switches:
        group, index = numbers(name)
        places[name] = on_circle(
            group + (index - (size - 1) / 2) * 0.19, groups, 1 - 0.1 * (index % 2)
        )
    return places


def dragonfly_plus(switches: list[str]) -> Places:
    """Put spines inside, and leaves outside of them."""
    groups = 1 + max(numbers(name)[0] for name in switches)
    places = {}
    for name in switches:
        group, index = numbers(name)
        size = 1 + max(numbers(other)[1] for other in switches if name[:-3] == other[:-3])
        radius = 1.0 if "leaf" in name else 0.68
        places[name] = on_circle(group + (index - (size - 1) / 2) * 0.3, groups, radius)
    return places


def grid(switches: list[str]) -> Places:
    """Put switches at their coordinates, rows a little bent to tell their cables apart."""
    places = {}
    for name in switches:
        x, y = numbers(name)
        places[name] = (x + 0.16 * (y - 1.5) ** 2, y + 0.16 * (x - 1.5) ** 2)
    return places


def slim_fly(switches: list[str]) -> Places:
    """Put each column on a circle, the two halves side by side."""
    size = 1 + max(numbers(name)[1] for name in switches)
    places = {}
    for name in switches:
        half, column, row = numbers(name)
        centre = on_circle(column, size, 1.0, (3.4 * half, 0))
        places[name] = on_circle(row, size, 0.36, centre)
    return places


def circle(switches: list[str]) -> Places:
    """Put all on one circle."""
    return {name: on_circle(index, len(switches), 1) for index, name in enumerate(sorted(switches))}


def levels(*stems: str) -> Callable[[list[str]], Places]:
    """Put switches in rows, by what their names start with or contain."""

    def places(switches: list[str]) -> Places:
        found = {}
        for height, stem in enumerate(stems):
            row = sorted(name for name in switches if stem in name)
            for index, name in enumerate(row):
                found[name] = ((index + 0.5) / len(row) * 4, float(height))
        return found

    return places


DIAGRAMS: dict[str, tuple[str, dict[str, object], Callable[[list[str]], Places]]] = {
    "dragonfly": (
        "Dragonfly: 9 groups of 4 switches with 2 hosts each",
        {"switches-per-group": 4, "hosts-per-switch": 2, "global-per-switch": 2},
        dragonfly,
    ),
    "dragonfly-plus": (
        "Dragonfly+: 5 groups of 2 leaves and 2 spines",
        {"leaves-per-group": 2, "spines-per-group": 2, "hosts-per-leaf": 2, "global-per-spine": 2},
        dragonfly_plus,
    ),
    "hyper-x": (
        "HyperX: a grid of 4 by 4 switches",
        {"sizes": [4, 4], "hosts-per-switch": 2},
        grid,
    ),
    "slim-fly": (
        "Slim Fly: two halves of 5 columns of 5 switches",
        {"q": 5, "hosts-per-switch": 1},
        slim_fly,
    ),
    "jellyfish": (
        "Jellyfish: 20 switches with 4 cables each",
        {"switches": 20, "hosts-per-switch": 2, "cables-per-switch": 4},
        circle,
    ),
    "leaf-spine": (
        "Leaf-spine: leaves with 4, 4, 2 and 4 hosts, 2 and 1 cables to the spines",
        {"leaf-hosts": [4, 4, 2, 4], "spine-cables": [2, 1]},
        levels("leaf", "spine"),
    ),
    "rail-optimised": (
        "Rail-optimised: 4 servers of 4 GPUs, 4 rails, 2 spines",
        {"servers": 4, "gpus-per-server": 4, "spines": 2},
        levels("server", "rail", "spine"),
    ),
}


def place_hosts(graph: nx.MultiGraph, places: Places, *, is_tree: bool) -> Places:
    """Put hosts below their switch, or outside of it."""
    found = {}
    xs, ys = zip(*places.values(), strict=True)
    middle = (sum(xs) / len(xs), sum(ys) / len(ys))
    spread = min(
        (
            math.dist(one, other)
            for one in places.values()
            for other in places.values()
            if one != other
        ),
        default=1.0,
    )
    for switch, (x, y) in places.items():
        hosts = sorted(name for name in graph[switch] if graph.nodes[name]["kind"] == "host")
        away = -math.pi / 2 if is_tree else math.atan2(y - middle[1], x - middle[0])
        for index, host in enumerate(hosts):
            if is_tree:
                step = 0.85 * 4 / 4 / max(len(hosts), 1)
                found[host] = (x + step * (index - (len(hosts) - 1) / 2), y - 0.45)
            else:
                angle = away + 0.7 * (index - (len(hosts) - 1) / 2)
                length = 0.5 * spread
                found[host] = (x + length * math.cos(angle), y + length * math.sin(angle))
    return found


def draw(
    axes: Axes, generator: str, keys: dict[str, object], layout: Callable[[list[str]], Places]
) -> None:
    """Draw a topology."""
    scenario = silvan.Scenario(fabric={"generator": generator, **keys, "allow-credit-loops": True})
    graph = scenario.to_networkx()
    switches = [name for name, kind in graph.nodes(data="kind") if kind == "switch"]
    hosts = [name for name, kind in graph.nodes(data="kind") if kind == "host"]
    places = layout(switches)
    places |= place_hosts(graph, places, is_tree=generator in {"leaf-spine", "rail-optimised"})
    for one, other, parallel in graph.edges(keys=True):
        count = graph.number_of_edges(one, other)
        is_host = one in hosts or other in hosts
        is_global = not is_host and one.rsplit("-", 2)[0] != other.rsplit("-", 2)[0]
        is_nvlink = generator == "rail-optimised" and is_host
        axes.annotate(
            "",
            places[one],
            places[other],
            arrowprops={
                "arrowstyle": "-",
                "shrinkA": 0,
                "shrinkB": 0,
                "lw": 1.8 if is_nvlink else 0.8,
                "alpha": 0.9 if is_host or not is_global else 0.55,
                "color": NVLINK
                if is_nvlink
                else HOST
                if is_host
                else "#7a8791"
                if is_global
                else SWITCH,
                "connectionstyle": f"arc3,rad={0.06 * (parallel - (count - 1) / 2)}",
            },
            zorder=1,
        )
    for names, colour, marker, size in ((switches, SWITCH, "s", 34), (hosts, HOST, "o", 12)):
        xs, ys = zip(*(places[name] for name in names), strict=True)
        axes.scatter(xs, ys, s=size, c=colour, marker=marker, zorder=2, linewidths=0)
    axes.set_aspect("auto" if generator in {"leaf-spine", "rail-optimised"} else "equal")
    axes.margins(0.06)
    axes.axis("off")


def main() -> int:
    """Draw all of them."""
    for generator, (title, keys, layout) in DIAGRAMS.items():
        is_wide = generator in {"slim-fly", "leaf-spine", "rail-optimised"}
        figure, axes = plt.subplots(
            figsize=(7.2, 3.8) if is_wide else (4.6, 4.6), layout="constrained"
        )
        draw(axes, generator, keys, layout)
        axes.set_title(title, fontsize=10)
        figure.savefig(IMAGES / f"topology-{generator}.png", dpi=110, metadata={"Software": ""})
        plt.close(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
