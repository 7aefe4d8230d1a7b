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

# Length of a dot in units of the data: no eye sees it, but a line of no length is not drawn.
_NO_LENGTH = 1e-3


def curves(ends: Places) -> Path:
    """Join curves that leave and arrive upright to one path.

    Parameters
    ----------
    ends : ndarray of float
        Both ends of each, of shape (curves, 2, 2). Between ends of one height stands an arc, above
        if it leads to the right, and below if to the left.

    Returns
    -------
    Path
        The path.
    """
    (x0, y0), (x1, y1) = ends.reshape(-1, 2, 2).transpose(1, 2, 0)
    is_level = y0 == y1
    bend = np.where(is_level, 0.35 * (x1 - x0), 0.45 * (y1 - y0))
    turn = np.where(is_level, bend, -bend)
    corners = np.stack((x0, y0, x0, y0 + bend, x1, y1 + turn, x1, y1), axis=-1)
    codes = (Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4)
    return _path(corners, codes)


def dots(places: Places) -> Path:
    """Join dots to one path: lines of no length, whose round ends are to make the dots.

    Parameters
    ----------
    places : ndarray of float
        Middles of the dots, of shape (dots, 2).

    Returns
    -------
    Path
        The path. A dot is as wide as the line that it is drawn with.
    """
    x, y = places.reshape(-1, 2).T
    # Oblique, because renderers round the ends of horizontal and vertical lines to whole pixels,
    # and a dot whose ends meet is not drawn.
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
    """Draw paths with round ends.

    Parameters
    ----------
    axes : Axes
        Axes to draw in, in units of their data.
    paths : sequence of Path
        Paths to draw. A crossing of a path with itself is not drawn twice.
    colours : sequence of str
        Colour of each.
    widths : sequence of float
        Width of each, in points.
    zorder : float
        Order of drawing: higher is above.
    alpha : float, optional
        Opacity of all; 1 by default.

    Returns
    -------
    PathCollection
        The artist.
    """
    drawn = PathCollection(
        list(paths),
        facecolors="none",
        edgecolors=list(colours),
        linewidths=list(widths),
        capstyle="round",
        alpha=alpha,
        zorder=zorder,
        # Else the ends of a dot would come to lie on the same pixel.
        snap=False,
    )
    axes.add_collection(drawn, autolim=False)
    return drawn


def symbol(
    axes: Axes, path: Path, colour: str, width: float, *, zorder: float, alpha: float | None = None
) -> None:
    """Draw a path that is in many panels of one size: an SVG then holds it only once.

    Parameters
    ----------
    axes : Axes
        Axes to draw in, in units of their data. Neither their place nor their limits may change.
    path : Path
        Path to draw.
    colour : str
        Its colour.
    width : float
        Its width, in points.
    zorder : float
        Order of drawing: higher is above.
    alpha : float, optional
        Opacity; 1 by default.
    """
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
        # A marker's size is twice its reach.
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
    """Join lines of points, each with the same codes."""
    path = Path(corners.reshape(-1, 2), np.tile(codes, len(corners)))
    # Dots would be taken for parts of a line that can go.
    path.should_simplify = False
    return path
