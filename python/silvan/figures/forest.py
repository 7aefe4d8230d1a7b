"""The fabric with its forest: congestion trees drawn along the cables that they occupy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from silvan.figures import style
from silvan.figures.layout import Layout, lay_out
from silvan.figures.strokes import curves, dots, strokes, symbol
from silvan.results.forest import Forests, Snapshot

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The "muted" colours of Paul Tol for colour-blind readers; neighbours differ.
TREE_COLOURS = (
    "#CC6677",
    "#332288",
    "#DDAA33",
    "#117733",
    "#88CCEE",
    "#882255",
    "#44AA99",
    "#999933",
)
OTHER_TREES = "#555555"
CHANGE_COLOURS = {"before": "#CC79A7", "after": "#009E73", "both": "#A6A6A6"}
_FEW_HOSTS = 64
_NAME_SIZE = 7.5
_CABLE = "#B8B8B8"
_IDLE = "#D9D9D9"
_SWITCH = "#9A9A9A"


@dataclass(frozen=True, slots=True)
class Panel:
    """A sample of the trees of a run, or its changes since an earlier sample."""

    title: str
    drawing: Drawing
    index: int
    since: int | None = None


class Drawing:
    """Draws samples of the trees of one run, each lineage in a separate colour."""

    def __init__(self, forests: Forests) -> None:
        self.forests = forests
        self.layout: Layout = lay_out(forests.result)
        self._ends = np.array(self.layout.lines)
        self._hosts: list[str] = forests.result.hosts["name"].to_pylist()
        self._lineage = forests.lifetimes["lineage"].astype(np.int64)
        largest = sorted(forests.lineages()[: len(TREE_COLOURS)])
        self._colours = dict(zip(largest, TREE_COLOURS, strict=False))

    def colour(self, tree: int) -> str:
        """Colour of a tree: that of its lineage, or of all the smaller ones."""
        return self._colours.get(int(self._lineage[tree]), OTHER_TREES)

    def fabric(self, axes: Axes) -> None:
        """Draw what is always there: cables, switches and idle hosts."""
        layout = self.layout
        axes.set_axis_off()
        axes.set_xlim(-1, layout.width)
        axes.set_ylim(-layout.height / 2, layout.height / 2)
        few = len(layout.senders) <= _FEW_HOSTS
        inner = np.flatnonzero((~layout.is_uplink & ~layout.is_last) | few)
        width, alpha = (0.8, 0.6) if few else (0.35, 0.28)
        for start in np.unique(self._ends[inner, 0], axis=0):
            group = inner[(self._ends[inner, 0] == start).all(axis=1)]
            symbol(axes, curves(self._ends[group]), _CABLE, width, alpha=alpha, zorder=1)
        hosts = np.concatenate((layout.senders, layout.receivers))
        symbol(axes, dots(hosts), _IDLE, 0.13 * self._column(axes), zorder=2)
        switches, size = np.array(layout.switches), self._dot(axes, 0.34)
        squares = axes.scatter(
            switches[:, 0], switches[:, 1], s=size, marker="s", color=_SWITCH, linewidth=0, zorder=6
        )
        style.name_parts(squares, layout.switch_names)
        for places in (layout.senders, layout.receivers):
            for name, (x, y) in zip(self._hosts, places, strict=True):
                style.name_point(axes, x, y, name)
        self._name_switches(axes)

    def forest(self, axes: Axes, snapshot: Snapshot) -> list[Any]:
        """Draw the trees of one instant over the fabric; returns artists to remove."""
        rows = snapshot.port_rows()
        colours = {
            int(row): self.colour(tree)
            for row, tree in zip(rows, snapshot.ports["tree"], strict=True)
        }
        main = snapshot.main_trees()
        return [
            self._branches(axes, snapshot, colours, zorder=4),
            self._hotspots(axes, snapshot, colours),
            self._senders(axes, {host: self.colour(tree) for host, tree in main.items()}),
            self._victims(axes, snapshot),
            *self._numbers(axes, snapshot, colours),
        ]

    def change(self, axes: Axes, before: Snapshot, after: Snapshot) -> None:
        """Draw common parts of two instants, and parts of one of them only."""
        ports = [set(one.port_rows().tolist()) for one in (before, after)]
        hosts = [set(one.main_trees()) for one in (before, after)]

        def colour(which: list[set[int]], one: int) -> str:
            place = {(True, True): "both", (True, False): "before", (False, True): "after"}
            return CHANGE_COLOURS[place[one in which[0], one in which[1]]]

        colours = {row: colour(ports, row) for row in ports[0] | ports[1]}
        for zorder, snapshot in ((4, after), (3.5, before)):
            self._branches(axes, snapshot, colours, zorder=zorder)
            self._hotspots(axes, snapshot, colours)
        self._senders(axes, {host: colour(hosts, host) for host in hosts[0] | hosts[1]})

    def _branches(
        self, axes: Axes, snapshot: Snapshot, colours: Mapping[int, str], *, zorder: float
    ) -> Any:
        layout, rows = self.layout, snapshot.port_rows()
        weight = _behind(rows, snapshot.ports["parent_row"].astype(np.int64), snapshot.depths())
        few = len(layout.senders) <= _FEW_HOSTS
        shown = np.flatnonzero(~layout.is_uplink[rows] | few).tolist()
        trees = snapshot.ports["tree"]
        looks = {
            place: (colours[int(rows[place])], float(weight[place]), int(trees[place]))
            for place in shown
        }

        def order(place: int) -> tuple[bool, float, str, int]:
            colour, behind, tree = looks[place]
            return colour != CHANGE_COLOURS["both"], behind, colour, tree

        alike = [
            (look, rows[list(places)])
            for look, places in groupby(sorted(shown, key=order), key=looks.__getitem__)
        ]
        drawn = strokes(
            axes,
            [curves(self._ends[members]) for _, members in alike],
            [colour for (colour, _, _), _ in alike],
            [self.width(axes, behind) for (_, behind, _), _ in alike],
            alpha=0.9,
            zorder=zorder,
        )
        style.name_parts(
            drawn,
            [
                f"tree {tree}: {len(members)} Port VL{'s' * (len(members) != 1)}, "
                f"each the end of a branch of {behind:.0f}"
                for (_, behind, tree), members in alike
            ],
        )
        return drawn

    def width(self, axes: Axes, behind: float) -> float:
        """Width in points of the line of a Port VL with so many in the branch behind it."""
        thin = min(1.0, self._column(axes) / 20)
        share = math.sqrt(behind / len(self.layout.senders))
        return thin * min(7, 0.55 + 10.7 * share)

    def _hotspots(self, axes: Axes, snapshot: Snapshot, colours: Mapping[int, str]) -> Any:
        rows = snapshot.port_rows()
        roots = self._roots(snapshot)
        ends = np.array([self.layout.lines[row][1] for row in roots]).reshape(-1, 2)
        stars = axes.scatter(
            ends[:, 0],
            ends[:, 1],
            s=self._dot(axes, 0.95),
            marker="*",
            c=[colours[int(row)] for row in roots],
            edgecolor="white",
            linewidth=0.5,
            zorder=8,
        )
        trees = dict(zip(rows.tolist(), snapshot.ports["tree"].tolist(), strict=True))
        names = self.layout.port_names
        style.name_parts(stars, [f"root of tree {trees[row]}: {names[row]}" for row in roots])
        return stars

    def _roots(self, snapshot: Snapshot) -> npt.NDArray[np.int64]:
        rows = snapshot.port_rows()
        roots: npt.NDArray[np.int64] = rows[(snapshot.depths() == 0) & self.layout.is_last[rows]]
        return roots

    def _numbers(self, axes: Axes, snapshot: Snapshot, colours: Mapping[int, str]) -> list[Any]:
        rows, roots = snapshot.port_rows(), self._roots(snapshot)
        trees = dict(zip(rows.tolist(), snapshot.ports["tree"].tolist(), strict=True))
        ends = {int(row): self.layout.lines[row][1] for row in roots}
        names = {row: f"T{trees[row]}" for row in ends}
        below = {"va": "top", "ha": "center", "xytext": (0, -0.55 * self._column(axes))}
        return [
            _write(axes, names[row], place, colours[row], **below)
            for row, place in ends.items()
            if self._has_room(axes, names[row], place, list(ends.values()))
        ]

    def _name_switches(self, axes: Axes) -> None:
        layout = self.layout
        beside = {"va": "center", "ha": "left", "xytext": (0.28 * self._column(axes), 0)}
        for name, place in zip(layout.switch_names, layout.switches, strict=True):
            if self._has_room(axes, name, place, layout.switches):
                _write(axes, name, place, style.FAINT, **beside)

    def _has_room(
        self, axes: Axes, name: str, place: tuple[float, float], others: Sequence[Any]
    ) -> bool:
        ways = [abs(x - place[0]) for x, y in others if y == place[1] and x != place[0]]
        points = min(ways, default=math.inf) * self._unit(axes)
        return points > 0.65 * _NAME_SIZE * len(name) + 0.5 * self._column(axes)

    def _senders(self, axes: Axes, colours: Mapping[int, str]) -> Any:
        alike: dict[str, list[int]] = {}
        for host, colour in colours.items():
            alike.setdefault(colour, []).append(host)
        width = 0.2 * self._column(axes)
        marks = [dots(self.layout.senders[hosts]) for hosts in alike.values()]
        return strokes(axes, marks, list(alike), [width] * len(alike), zorder=5.5)

    def _victims(self, axes: Axes, snapshot: Snapshot) -> Any:
        rings = dots(self.layout.senders[snapshot.victims()])
        widths = [share * self._column(axes) for share in (0.255, 0.145)]
        return strokes(axes, [rings, rings], [style.REFERENCE, _IDLE], widths, zorder=5)

    def _column(self, axes: Axes) -> float:
        return min(28, self._unit(axes))

    def _unit(self, axes: Axes) -> float:
        figure = axes.get_figure(root=True)
        assert figure is not None
        inches = axes.get_position().width * figure.get_size_inches()[0]
        return float(72 * inches / (self.layout.width + 1))

    def _dot(self, axes: Axes, share: float) -> float:
        return (share * self._column(axes)) ** 2


_WIDTH_IN = 13.5


def draw_forests(
    rows: Sequence[Sequence[Panel]],
    *,
    title: str,
    folder: Path,
    stem: str,
    page: style.Page = style.SCREEN,
) -> list[Path]:
    """Draw samples of one or more runs side by side; rows may differ in length."""
    width_in = page.width_in or _WIDTH_IN
    columns = max(len(row) for row in rows)
    changes = any(panel.since is not None for row in rows for panel in row)
    layout = rows[0][0].drawing.layout
    shape = min(0.8, max(0.36, 1.6 * layout.height / (layout.width + 1) / 3.2))
    height_in = len(rows) * (width_in / columns * shape + 0.35) + 1.1
    with style.styled(width_in, height_in) as figure:
        figure.set_layout_engine(None)
        top, bottom = 1 - 0.5 / height_in, 0.65 / height_in
        if page.has_title:
            figure.text(0.012, 1 - 0.32 / height_in, title, fontsize=14, fontweight="bold")
        grid = figure.subplots(
            len(rows),
            columns,
            squeeze=False,
            gridspec_kw={
                "left": 0.065 if columns == 1 else 0.012,
                "right": 0.988,
                "top": top - 0.3 / height_in,
                "bottom": bottom,
                "wspace": 0.03,
                "hspace": 0.35 / (height_in / len(rows)),
            },
        )
        for line, panels in zip(grid, rows, strict=True):
            for axes in line[len(panels) :]:
                axes.set_axis_off()
            for axes, panel in zip(line, panels, strict=False):
                draw_panel(axes, panel)
        if columns == 1:
            for line in grid:
                _name_levels(line[0], layout)
        legend(figure, change=changes, widths=(rows[0][0].drawing, grid[0][0]))
        return style.save(figure, folder, stem, formats=page.formats)


def _write(
    axes: Axes, text: str, place: tuple[float, float], colour: str, **placing: Any
) -> Artist:
    return axes.annotate(
        text,
        place,
        textcoords="offset points",
        fontsize=_NAME_SIZE,
        color=colour,
        zorder=9,
        annotation_clip=False,
        **placing,
    )


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw one sample, with its title and its time."""
    forests = panel.drawing.forests
    snapshot = forests.at(panel.index)
    panel.drawing.fabric(axes)
    if panel.since is None:
        panel.drawing.forest(axes, snapshot)
        axes.set_title(caption(panel.title, snapshot), fontsize=10)
        return
    before = forests.at(panel.since)
    panel.drawing.change(axes, before, snapshot)
    times = f"t = {before.time_ms:.4g} ms and {snapshot.time_ms:.4g} ms"
    axes.set_title(f"{panel.title}  ·  {times}", fontsize=10)


def caption(title: str, snapshot: Snapshot) -> str:
    """Say what is seen: title, time and size."""
    trees, victims = len(snapshot.trees["tree"]), len(snapshot.victims())
    grown = f"{trees} tree{'s' * (trees != 1)}"
    suffering = f"{victims} host{'s' * (victims != 1)} with victims"
    now = f"t = {snapshot.time_ms:.4g} ms, {grown}, {suffering}"
    return f"{title}  ·  {now}" if title else now


def legend(
    figure: Figure, *, change: bool = False, widths: tuple[Drawing, Axes] | None = None
) -> None:
    """Explain the marks at the bottom of a figure, and the widths of one drawing."""
    from matplotlib.lines import Line2D

    def mark(label: str, marker: str, **look: Any) -> Line2D:
        return Line2D([], [], linestyle="none", marker=marker, label=label, **look)

    def line(label: str, colour: str, width: float = 2.4) -> Line2D:
        return Line2D([], [], color=colour, linewidth=width, label=label)

    ring = {"markerfacecolor": "none", "markeredgecolor": style.REFERENCE}
    colour = TREE_COLOURS[0]
    entries = [
        mark("hotspot, facing the root", "*", color=colour, markersize=12),
        line("branch", colour),
        mark("sender that contributes", "o", color=colour, markersize=6),
        mark(
            "host with blocked packets: they wait in a branch but pass no root",
            "o",
            markersize=6,
            **ring,
        ),
        mark("switch", "s", color=_SWITCH, markersize=6),
    ]
    height_in = figure.get_size_inches()[1]
    second: list[Line2D] = []
    if widths is not None:
        drawing, axes = widths
        hosts = len(drawing.layout.senders)
        numbers = dict.fromkeys((1, max(1, hosts // 10), max(1, hosts // 2)))
        second += [
            line(
                f"end of a branch of {behind} Port VL{'s' * (behind != 1)}",
                colour,
                drawing.width(axes, behind),
            )
            for behind in numbers
        ]
    if change:
        words = {
            "both": "at both instants",
            "before": "at the first only",
            "after": "at the second only",
        }
        second += [line(words[when], CHANGE_COLOURS[when]) for when in words]
    figure.legend(
        handles=entries,
        loc="lower center",
        ncols=len(entries),
        fontsize=9,
        bbox_to_anchor=(0.5, 0.24 / height_in if second else 0),
    )
    if second:
        figure.legend(handles=second, loc="lower center", ncols=len(second), fontsize=9)


def _name_levels(axes: Axes, layout: Layout) -> None:
    heights = sorted({y for _, y in layout.switches}, reverse=True)
    names = {float(layout.senders[:, 1].mean()): "senders"}
    middle = len(heights) // 2
    for place, height in enumerate(heights):
        way = ("switches,\nway up", "highest\nswitches", "switches,\nway down")
        names[height] = way[int(np.sign(place - middle)) + 1] if middle else "switches"
    names[float(layout.receivers[:, 1].mean())] = "receivers"
    figure = axes.get_figure(root=True)
    assert figure is not None
    unit = layout.height / (72 * axes.get_position().height * figure.get_size_inches()[1])
    placed = _apart(
        {height: (1 + name.count("\n")) * _LINE * unit for height, name in names.items()}
    )
    for height, name in names.items():
        axes.annotate(
            name,
            (-0.7, placed[height]),
            ha="right",
            va="center",
            fontsize=9,
            color=style.FAINT,
            annotation_clip=False,
        )


_LINE = 12.0


def _apart(sizes: Mapping[float, float]) -> dict[float, float]:
    """Move labels apart until none touches its neighbour: heights by centre.

    >>> _apart({0.0: 2.0, 1.0: 2.0, 5.0: 2.0, -4.0: 2.0})
    {0.0: 0.0, 1.0: 2.0, 5.0: 5.0, -4.0: -4.0}
    """
    ordered = sorted(sizes)
    middle = min(ordered, key=abs)
    placed = {middle: middle}
    for way in (1, -1):
        edge, size = middle, sizes[middle]
        for height in ordered if way == 1 else reversed(ordered):
            if way * (height - middle) > 0:
                least = edge + way * (size + sizes[height]) / 2
                edge = max(least, height) if way == 1 else min(least, height)
                placed[height], size = edge, sizes[height]
    return {height: placed[height] for height in sizes}


def _behind(
    rows: npt.NDArray[np.int64], parents: npt.NDArray[np.int64], depths: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    count = dict.fromkeys(rows.tolist(), 1)
    for place in np.argsort(-depths, kind="stable"):
        row, parent = int(rows[place]), int(parents[place])
        if row != parent:
            count[parent] += count[row]
    return np.array([count[row] for row in rows.tolist()], dtype=np.float64)
