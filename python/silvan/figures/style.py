"""The one style of all figures: colours, type, grid, and how files are written."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter

from silvan.folders import write_bytes, write_text

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Palette of Okabe and Ito for colour-blind readers. Vermilion always means "no control", blue
# "control".
CC_COLOURS = {"off": "#D55E00", "on": "#0072B2"}
CC_LABELS = {"off": "CC off", "on": "CC on"}
SHADES = ("#56B4E9", "#009E73", "#CC79A7", "#E69F00")
VIOLET = "#7A35D8"
REFERENCE = "#000000"
INK = "#333333"
CURVES = (CC_COLOURS["on"], CC_COLOURS["off"], *SHADES[1:3], VIOLET, REFERENCE)
FAINT = "#8C8C8C"

_SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "svg.fonttype": "none",
    # Publishers refuse type 3 fonts, the default.
    "pdf.fonttype": 42,
    # A fixed salt makes equal data give equal SVG files.
    "svg.hashsalt": "silvan",
}

_NARROW: dict[Any, Any] = {
    "font.size": 7.5,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "lines.linewidth": 1.2,
}

WIDTHS_IN: Mapping[str, float | None] = {"screen": None, "column": 3.5, "page": 7.16}
"""Widths in inches: column and page of IEEE's papers."""

_DPI = 200
# A third of the time of Pillow's default, and hardly larger files.
_PNG = {"compress_level": 3}
# A thousandth of a point is finer than any screen or printer.
_PLACE = re.compile(rb'\b(?:d|x|y)="[^"]*"')
_PART = re.compile(rb"<(use|path)\b([^>]*)/>")
_MOST_NAMED = 300
_NAMED_RADIUS = 4
_DEFINITIONS = re.compile(rb"\s*<defs>.*?</defs>", re.DOTALL)
_TOO_FINE = re.compile(rb"(?<=\.\d\d\d)\d+")


Numbers: TypeAlias = tuple[Sequence[str], Sequence[Sequence[object]]]


class NotebookFigure(Figure):
    """A figure that notebooks show without a window system of matplotlib."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.named_parts: list[tuple[str, ...]] = []
        self.named_points: list[tuple[Axes, float, float, str]] = []
        self.curve_names: dict[Artist, str] = {}

    def _repr_png_(self) -> bytes:
        return _file(self, metadata={"Software": None}, pil_kwargs=_PNG)


@dataclass(frozen=True, slots=True)
class Page:
    """Page of a figure: width (of :data:`WIDTHS_IN`), title, and formats."""

    width: str = "screen"
    has_title: bool = True
    formats: tuple[str, ...] = ("png", "svg")

    @property
    def is_narrow(self) -> bool:
        """True if the figure is as wide as a column."""
        return self.width == "column"

    @property
    def width_in(self) -> float | None:
        """Width in inches; None is the figure's own."""
        return WIDTHS_IN[self.width]

    @contextmanager
    def figure(self, width_in: float, height_in: float, title: str) -> Iterator[Figure]:
        """Make a figure of this width, with its height in proportion but not too low to read."""
        if self.width_in is not None:
            height_in *= math.sqrt(self.width_in / width_in)
            width_in = self.width_in
        own_title = title if self.has_title else ""
        with styled(width_in, height_in, own_title, is_narrow=self.is_narrow) as figure:
            yield figure


SCREEN = Page()


@contextmanager
def styled(
    width_in: float, height_in: float, title: str = "", *, is_narrow: bool = False
) -> Iterator[Figure]:
    """Make a figure in the project's style, which applies inside the block: save it there."""
    with mpl.rc_context(_SETTINGS | (_NARROW if is_narrow else {})):
        figure = NotebookFigure(figsize=(width_in, height_in), layout="constrained")
        FigureCanvasAgg(figure)
        if title:
            size = 8.5 if is_narrow else 11.5
            figure.suptitle(title, x=0.012, ha="left", fontsize=size, fontweight="bold")
        yield figure


def run_colours(is_controlled: Sequence[bool]) -> list[str]:
    """Choose colours of runs: vermilion without control if other runs have control.

    >>> run_colours([False, True]) == [CC_COLOURS["off"], CC_COLOURS["on"]]
    True
    """
    if all(is_controlled) or not any(is_controlled):
        return list(CURVES[: len(is_controlled)])
    place = list(is_controlled).index(False)
    colours = [one for one in CURVES if one != CC_COLOURS["off"]][: len(is_controlled) - 1]
    return [*colours[:place], CC_COLOURS["off"], *colours[place:]]


def name_parts(artist: Artist, names: Sequence[str]) -> None:
    """Name the parts of an artist, in drawing order; a browser shows the name at the pointer."""
    figure = artist.get_figure(root=True)
    assert isinstance(figure, NotebookFigure)
    artist.set_gid(f"named-{len(figure.named_parts)}")
    figure.named_parts.append(tuple(names))


def name_point(axes: Axes, x: float, y: float, name: str) -> None:
    """Name a place in data units; a browser shows the name at the pointer."""
    figure = axes.get_figure(root=True)
    assert isinstance(figure, NotebookFigure)
    figure.named_points.append((axes, x, y, name))


def name_curve(curve: Artist, name: str) -> None:
    """Name a curve or marks without a legend; a browser shows name and values."""
    figure = curve.get_figure(root=True)
    assert isinstance(figure, NotebookFigure)
    figure.curve_names[curve] = name


def label_line(axes: Axes, x: float, y: float, text: str, colour: str, **placing: object) -> None:
    """Write a line's name next to it, in its colour, so that no legend is needed."""
    axes.annotate(
        text,
        (x, y),
        xytext=placing.pop("offset", (0, 5)),  # type: ignore[arg-type]
        textcoords="offset points",
        color=colour,
        fontweight="bold",
        **placing,  # type: ignore[arg-type]
    )


def legend_below(
    axes: Axes,
    handles: Mapping[str, Artist] | None = None,
    *,
    columns: int | None = None,
    note: str = "",
    **spacing: float,
) -> None:
    """Put one legend below all panels of a figure."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    if handles is None:
        artists, names = axes.get_legend_handles_labels()
        handles = dict(zip(names, artists, strict=True))
    below = figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower left",
        ncols=columns or len(handles),
        alignment="left",
        title=note or None,
        title_fontsize=7.5,
        **spacing,
    )
    below.get_title().set_color(FAINT)


def save(
    figure: Figure,
    folder: Path,
    stem: str,
    numbers: Numbers | None = None,
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Write a figure in several formats, and its numbers as CSV, each completely or not at all."""
    engine = figure.get_layout_engine()
    if engine is not None:
        # Once for all files, else it would apply at each.
        figure.set_dpi(_DPI)
        engine.execute(figure)
        figure.set_layout_engine(None)
    paths = []
    with mpl.rc_context(_SETTINGS):
        for name in formats:
            path = folder / f"{stem}.{name}"
            write_bytes(path, _drawn(figure, name))
            paths.append(path)
    if numbers is not None:
        paths.append(save_csv(*numbers, folder / f"{stem}.csv"))
    return paths


def _drawn(figure: Figure, name: str) -> bytes:
    if name == "png":
        return _file(figure, metadata={"Software": None}, pil_kwargs=_PNG)
    if name == "pdf":
        return _file(figure, format="pdf", metadata={"CreationDate": None})
    # Limits and places of axes are final after a drawing.
    figure.draw_without_rendering()
    points = _name_lines(figure) if isinstance(figure, NotebookFigure) else b""
    drawing = _file(figure, format="svg", metadata={"Date": None})
    named = _named(drawing, getattr(figure, "named_parts", []))
    shown, end, rest = named.rpartition(b"</svg>")
    return _PLACE.sub(_shorten, shown) + points + end + rest


def _name_lines(figure: NotebookFigure) -> bytes:
    for axes in figure.axes:
        if not axes.get_visible() or not axes.axison:
            continue
        for curve in curves_of(axes):
            _name_curve(axes, curve, curve_name(curve))
        for bars in axes.containers:
            if isinstance(bars, BarContainer):
                for bar in bars.patches:
                    middle = bar.get_x() + bar.get_width() / 2
                    name_parts(
                        bar, [_named_value(axes, str(bars.get_label()), middle, bar.get_height())]
                    )
    height = 72 * figure.get_size_inches()[1]
    marks = [_hidden_mark(*point, height) for point in figure.named_points]
    return b'<g style="fill-opacity: 0">\n%s</g>\n' % b"".join(marks) if any(marks) else b""


def curves_of(axes: Axes) -> list[Artist]:
    """Return the curves and marks that have names."""
    drawn = [*axes.get_lines(), *axes.collections]
    return [one for one in drawn if one.get_visible() and curve_name(one)]


def curve_name(curve: Artist) -> str:
    """Return the name of a curve, or nothing."""
    figure = curve.get_figure(root=True)
    own = figure.curve_names.get(curve, "") if isinstance(figure, NotebookFigure) else ""
    label = str(curve.get_label())
    return own or ("" if label.startswith("_") else label)


def _name_curve(axes: Axes, curve: Artist, name: str) -> None:
    if isinstance(curve, Line2D):
        places = np.asarray(curve.get_xydata(), np.float64).reshape(-1, 2)
        in_data = curve.get_transform().contains_branch_seperately(axes.transData)
        if not all(in_data):
            which: Literal["x", "y"] = "y" if in_data[1] else "x"
            value = _axis_value(axes, which, places[0][int(which == "y")])
            name_parts(curve, [f"{name}\n{value}"])
            return
        places = places[np.isfinite(places).all(axis=1)]
        if curve.get_linestyle() != "None" and len(places) > 1:
            name_parts(curve, [name])
    elif isinstance(curve, LineCollection):
        places = np.array([np.mean(one, axis=0) for one in curve.get_segments()])
    elif isinstance(curve, PathCollection):
        places = np.asarray(curve.get_offsets(), np.float64)
    else:
        name_parts(curve, [name])
        return
    for x, y in places[:: max(1, -(-len(places) // _MOST_NAMED))]:
        name_point(axes, x, y, _named_value(axes, name, x, y))


def _named_value(axes: Axes, name: str, x: float, y: float) -> str:
    return "\n".join((name, _axis_value(axes, "x", x), _axis_value(axes, "y", y)))


def _axis_value(axes: Axes, which: Literal["x", "y"], value: float) -> str:
    name = _axis_name(axes, which) or (axes.get_title("left") if which == "y" else "")
    axis = axes.xaxis if which == "x" else axes.yaxis
    formatter = axis.get_major_formatter()
    text = f"{value:.6g}"
    if isinstance(formatter, FixedFormatter):
        ticks = zip(axis.get_majorticklocs(), formatter.seq, strict=False)
        text = next((tick.replace("\n", " ") for at, tick in ticks if at == value), text)
        if text and not _axis_name(axes, which):
            return text
    return f"{name}: {text}" if name else text


def _axis_name(axes: Axes, which: Literal["x", "y"]) -> str:
    shared = axes.get_shared_x_axes() if which == "x" else axes.get_shared_y_axes()
    names = (getattr(one, f"get_{which}label")() for one in (axes, *shared.get_siblings(axes)))
    return next((name.replace("\n", " ") for name in names if name), "")


def _hidden_mark(axes: Axes, x: float, y: float, name: str, height: float) -> bytes:
    place = axes.transData.transform((x, y))
    if not axes.bbox.padded(1).contains(*place):
        return b""
    figure = axes.get_figure(root=True)
    assert figure is not None
    across, up = 72 * place / figure.dpi
    title = escape(name).encode()
    ends = f'cx="{across:.1f}" cy="{height - up:.1f}" r="{_NAMED_RADIUS}"'.encode()
    return b"<circle %s><title>%s</title></circle>\n" % (ends, title)


def _file(figure: Figure, **how: Any) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, dpi=_DPI, **how)
    return data.getvalue()


def _named(drawing: bytes, named_parts: Sequence[Sequence[str]]) -> bytes:
    for place, names in enumerate(named_parts):
        before, opening, after = drawing.partition(f'<g id="named-{place}">'.encode())
        rest = iter(names)

        def titled(part: re.Match[bytes], rest: Iterator[str] = rest) -> bytes:
            name = next(rest, None)
            if name is None:
                return part[0]
            title = f"<title>{escape(name)}</title>".encode()
            return b"<%s%s>%s</%s>" % (part[1], part[2], title, part[1])

        # Definitions are drawn once and used many times, so they have no names.
        definitions = _DEFINITIONS.match(after)
        start = definitions.end() if definitions else 0
        drawing = before + opening + after[:start]
        drawing += _PART.sub(titled, after[start:], count=len(names))
    return drawing


def _shorten(place: re.Match[bytes]) -> bytes:
    return _TOO_FINE.sub(b"", place[0])


def save_csv(header: Sequence[str], rows: Sequence[Sequence[object]], path: Path) -> Path:
    """Write the numbers behind a figure as comma-separated values."""
    lines = [",".join(header), *(",".join(map(_cell, row)) for row in rows)]
    write_text(path, "\n".join(lines) + "\n")
    return path


def _cell(value: object) -> str:
    is_missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if is_missing else str(value)
