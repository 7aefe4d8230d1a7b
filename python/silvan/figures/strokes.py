"""Many curves and dots as few strokes: quick to draw, and short in an SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Places = npt.NDArray[np.float64]

# Length of a dot in data units: lines of no length are not drawn.
_NO_LENGTH = 1e-3


def curves(ends: Places) -> Path:
    """Join curves that leave and arrive upright to one path.

    Ends have the shape (curves, 2, 2). Equal heights get an arc, above if it leads to the right.
    """
    (x0, y0), (x1, y1) = ends.reshape(-1, 2, 2).transpose(1, 2, 0)
    is_level = y0 == y1
    bend = np.where(is_level, 0.35 * (x1 - x0), 0.45 * (y1 - y0))
    turn = np.where(is_level, bend, -bend)
    corners = np.stack((x0, y0, x0, y0 + bend, x1, y1 + turn, x1, y1), axis=-1)
    codes = (Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4)
    return _path(corners, codes)


def dots(places: Places) -> Path:
    """Join dots to one path of shape (dots, 2): short lines with round ends."""
    x, y = places.reshape(-1, 2).T
    # Oblique, because renderers round the ends of horizontal and vertical lines to whole pixels.
    ends = np.stack((x, y, x + _NO_LENGTH, y + _NO_LENGTH), axis=-1)
    return _path(ends, (Path.MOVETO, Path.LINETO))


def strokes(
    axes: Axes,
    paths: Sequence[Path],
    colours: Sequence[str],
    widths: Sequence[float] | Places,
    *,
    zorder: float,
    alpha: float | None = None,
) -> PathCollection:
    """Draw paths with round ends; widths are in points, higher ``zorder`` is above."""
    drawn = PathCollection(
        list(paths),
        facecolors="none",
        edgecolors=list(colours),
        linewidths=list(widths),
        capstyle="round",
        alpha=alpha,
        zorder=zorder,
        # Else the ends of a dot would share a pixel.
        snap=False,
    )
    axes.add_collection(drawn, autolim=False)
    return drawn


def symbol(
    axes: Axes, path: Path, colour: str, width: float, *, zorder: float, alpha: float | None = None
) -> None:
    """Draw a path that is in many panels of one size, once in an SVG; panels must stay in place."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = 72 * axes.get_position().size * figure.get_size_inches()
    scale = points / np.array(axes.viewLim.size)
    # Rounded, because panels of one size may differ in their last bit.
    scaled = path.transformed(Affine2D().scale(*np.round(scale, 9)))
    drawn = Line2D(
        [0],
        [0],
        linestyle="none",
        marker=MarkerStyle(scaled, capstyle="round"),
        markersize=2 * float(np.abs(scaled.vertices).max()),
        markerfacecolor="none",
        markeredgecolor=colour,
        markeredgewidth=width,
        zorder=zorder,
        alpha=alpha,
        snap=False,
    )
    axes.add_artist(drawn)


def _path(corners: Places, codes: Sequence[np.uint8]) -> Path:
    path = Path(corners.reshape(-1, 2), np.tile(codes, len(corners)))
    # Dots would be removed as parts of a line.
    path.should_simplify = False
    return path
