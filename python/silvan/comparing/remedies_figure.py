"""The figure of changes tried on a twin: what flows of victims and contributors deliver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from silvan.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from silvan.comparing.remedies import Outcome

_MOST = 16


def draw_remedies(
    outcomes: Sequence[Outcome],
    *,
    title: str,
    folder: Path,
    page: style.Page = style.SCREEN,
) -> list[Path]:
    """Draw what the flows of victims and contributors deliver under each change."""
    tried = [one for one in outcomes if one.refused is None][:_MOST]
    with page.figure(7.6, 1.0 + 0.42 * len(tried), title) as figure:
        axes = figure.subplots()
        for offset, colour, role in (
            (-0.2, style.CURVES[0], "victims"),
            (0.2, style.CURVES[1], "contributors"),
        ):
            values = [getattr(one, f"{role}_gbps") for one in tried]
            means = [sum(one) / len(one) for one in values]
            spreads = [(max(one) - min(one)) / 2 for one in values]
            places = [place + offset for place in range(len(tried))]
            axes.barh(places, means, 0.38, xerr=spreads, color=colour, label=role)
        axes.set_yticks(range(len(tried)), [one.name for one in tried])
        axes.invert_yaxis()
        axes.set_xlabel("payload delivered by their flows (Gbit/s)")
        axes.legend(loc="lower right", frameon=False)
        header = ("change", "victims_gbps", "contributors_gbps")
        rows = [
            (
                one.name,
                sum(one.victims_gbps) / len(one.victims_gbps),
                sum(one.contributors_gbps) / len(one.contributors_gbps),
            )
            for one in tried
        ]
        return style.save(figure, folder, "changes", (header, rows), page.formats)
