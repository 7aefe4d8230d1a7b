"""A forest in motion: an animated picture, and its instants side by side."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from silvan.figures import style
from silvan.figures.forest import Drawing, Panel, caption, draw_forests, legend
from silvan.folders import write_bytes

_FRAME_MS = 160
_LAST_FRAME_MS = 1600
_SIZE_IN = (11.0, 5.7)
_DPI = 90
_NEARLY_WHITE = 248
_SAMPLED = 3


def draw_steps(
    drawing: Drawing,
    indexes: Sequence[int],
    *,
    title: str,
    folder: Path,
    stem: str,
    page: style.Page = style.SCREEN,
) -> list[Path]:
    """Draw some instants of a run side by side, two in a row."""
    panels = [Panel("", drawing, index) for index in indexes]
    rows = [panels[first : first + 2] for first in range(0, len(panels), 2)]
    return draw_forests(rows, title=title, folder=folder, stem=stem, page=page)


def animate(drawing: Drawing, indexes: Sequence[int], *, title: str, path: Path) -> Path:
    """Write an animated GIF of a run, one frame for each sample."""
    frames = []
    with style.styled(*_SIZE_IN) as figure:
        figure.set_layout_engine(None)
        figure.set_dpi(_DPI)
        axes = figure.add_axes((0.01, 0.09, 0.98, 0.83))
        drawing.fabric(axes)
        legend(figure)
        canvas = figure.canvas
        assert isinstance(canvas, FigureCanvasAgg)
        canvas.draw()  # type: ignore[no-untyped-call]
        empty = canvas.copy_from_bbox(figure.bbox)  # type: ignore[no-untyped-call]
        heading = axes.set_title("", fontsize=11)
        for index in indexes:
            canvas.restore_region(empty)  # type: ignore[no-untyped-call]
            snapshot = drawing.forests.at(index)
            heading.set_text(caption(title, snapshot))
            artists = drawing.forest(axes, snapshot)
            for artist in [*sorted(artists, key=lambda one: one.get_zorder()), heading]:
                axes.draw_artist(artist)
            for artist in artists:
                artist.remove()
            pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
            frame = Image.fromarray(pixels)
            frames.append(frame.convert("RGB"))
    palette = _common_palette(frames)
    first, *others = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    data = io.BytesIO()
    durations = [_FRAME_MS] * len(others) + [_LAST_FRAME_MS]
    first.save(data, format="GIF", save_all=True, append_images=others, duration=durations, loop=0)
    write_bytes(path, data.getvalue())
    return path


def _common_palette(frames: Sequence[Image.Image]) -> Image.Image:
    width, height = (-(-pixels // _SAMPLED) for pixels in frames[0].size)
    samples = [frame.resize((width, height), Image.Resampling.NEAREST) for frame in frames]
    richest = max(samples, key=lambda one: len(one.getcolors(width * height) or ()))
    palette = richest.quantize(128)
    _whiten(palette)
    return palette


def _whiten(image: Image.Image) -> None:
    colours = np.array(image.getpalette(), dtype=np.uint8).reshape(-1, 3)
    colours[(colours >= _NEARLY_WHITE).all(axis=1)] = 255
    image.putpalette(colours.ravel().tolist())
