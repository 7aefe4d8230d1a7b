"""HTML that notebooks show: tables and small figures, as SVG in data URIs."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

MOST_ROWS = 20

WIDTH, _HEIGHT = 360.0, 150.0
_LEFT, _TOP, _BOTTOM = 48.0, 18.0, 24.0
HOTSPOTS, OTHERS = "#D55E00", "#0072B2"
FAINT = "#8C8C8C"


def page(tables: str, figure: str) -> str:
    """Join tables and a figure."""
    return f'<div class="silvan">{tables}{figure}</div>'


def facts_table(rows: Iterable[tuple[str, object]]) -> str:
    """Write a table of names and values."""
    lines = (f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in rows)
    return f"<table><tbody>{''.join(lines)}</tbody></table>"


def table(header: Iterable[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a table with a header."""
    head = "".join(f"<th>{_text(name)}</th>" for name in header)
    lines = ("".join(f"<td>{_text(value)}</td>" for value in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def more(count: int, what: str) -> str:
    """State how many rows a table leaves out."""
    return f"<p>{MOST_ROWS} of {count:,} {what}</p>" if count > MOST_ROWS else ""


def _text(value: object) -> str:
    if value is None:
        return ""
    return escape(number_text(value) if isinstance(value, float) else str(value))


def number_text(value: float) -> str:
    """Write a number with six digits."""
    return f"{value:.6g}"


def list_text(values: Sequence[object]) -> str:
    """List the first values, and count all if there are more."""
    shown = ", ".join(map(str, values[:MOST_ROWS]))
    return shown if len(values) <= MOST_ROWS else f"{shown}, .. ({len(values)})"


def image(body: Iterable[str], width: float, height: float, words: str) -> str:
    """Wrap the parts of a drawing as an image that holds its own data."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}" font-family="sans-serif" font-size="10">'
        f'<rect width="100%" height="100%" fill="#FFFFFF"/>{"".join(body)}</svg>'
    )
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(words)}" src="data:image/svg+xml;base64,{data}"/>'


def chart(
    edges: npt.NDArray[np.float64],
    series: Mapping[str, tuple[npt.NDArray[np.float64], str]],
    across: str,
    up: str,
    *,
    dots: bool = False,
) -> str:
    """Draw values over intervals as steps, or as dots in the middle of each interval."""
    highest = max((float(np.nanmax(values)) for values, _ in series.values()), default=0.0)
    width, floor = WIDTH - _LEFT - 8, _HEIGHT - _BOTTOM
    span, top = float(edges[-1]) or 1.0, highest or 1.0

    def x(value: float) -> float:
        return _LEFT + width * value / span

    def y(value: float) -> float:
        return floor - (floor - _TOP) * value / top

    axes = f"M{_LEFT:g} {_TOP:g}V{floor:g}H{_LEFT + width:g}"
    body = [
        f'<path d="{axes}" fill="none" stroke="{FAINT}"/>',
        f'<text x="{_LEFT - 4:g}" y="{_TOP + 4:g}" text-anchor="end">{highest:.3g}</text>',
        f'<text x="{_LEFT - 4:g}" y="{floor:g}" text-anchor="end">0</text>',
        f'<text x="4" y="10">{escape(up)}</text>',
        f'<text x="{_LEFT + width:g}" y="{_HEIGHT - 8:g}" text-anchor="end">'
        f"{edges[-1]:.4g} {escape(across)}</text>",
    ]
    for number, (name, (values, colour)) in enumerate(series.items()):
        if dots:
            middles = (edges[1:] + edges[:-1]) / 2
            body += [
                f'<circle cx="{x(at):.2f}" cy="{y(value):.2f}" r="2.5" fill="{colour}"/>'
                for at, value in zip(middles, values, strict=True)
                if np.isfinite(value)
            ]
        else:
            corners = (
                f"{x(at):.2f},{y(value):.2f}"
                for start, end, value in zip(edges[:-1], edges[1:], values, strict=True)
                for at in (start, end)
            )
            body.append(
                f'<polyline points="{" ".join(corners)}" fill="none" stroke="{colour}"'
                f' stroke-width="1.5"><title>{escape(name)}</title></polyline>'
            )
        body.append(
            f'<text x="{_LEFT + 60 + 110 * number:g}" y="10" fill="{colour}">{escape(name)}</text>'
        )
    return image(body, WIDTH, _HEIGHT, f"{', '.join(series)} ({up})")
