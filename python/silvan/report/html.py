"""The HTML report of a reproduction."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from silvan import _silvan
from silvan.cache import build_id
from silvan.folders import write_text
from silvan.reproduce.experiment import ShapeRow, TargetRow
from silvan.reproduce.plan import ReproductionPlan
from silvan.reproduce.reproduction import Outcome, all_costs
from silvan.wording import significant


def write_report(plan: ReproductionPlan, outcomes: Sequence[Outcome], path: Path) -> Path:
    """Write the report of a reproduction.

    Figures are inside the file as data, and its content security policy forbids everything that
    is not, so it can be sent around and opened anywhere.

    Parameters
    ----------
    plan : ReproductionPlan
        What was run.
    outcomes : sequence of Outcome
        What became of each experiment.
    path : Path
        The file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputError
        A figure cannot be read, or the file cannot be written.
    """
    environment = Environment(
        loader=PackageLoader("silvan", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(image=_image, number=significant, thousands=_thousands)
    costs = all_costs(outcomes)
    rows = [row for outcome in outcomes for row in outcome.rows]
    text = environment.get_template("report.html.j2").render(
        plan=plan,
        outcomes=outcomes,
        costs=costs,
        version=_silvan.version(),
        build=build_id(),
        is_shape=lambda row: isinstance(row, ShapeRow),
        checks=_Tally(row for row in rows if not row.target.calibrate),
        calibrated=_Tally(row for row in rows if row.target.calibrate),
        wall_s=sum(one.wall_s for one in costs),
        events=sum(one.events for one in costs),
        packet_hops=sum(one.packet_hops for one in costs),
    )
    write_text(path, text)
    return path


class _Tally:
    """How many of some rows are within the tolerance, in each window."""

    def __init__(self, rows: Iterator[TargetRow | ShapeRow]) -> None:
        listed = list(rows)
        self.count = len(listed)
        self.whole = sum(row.within_tolerance for row in listed)
        self.steady = sum(row.within_tolerance_steady for row in listed)


def _image(path: Path) -> str:
    """Write an SVG as a data URL; as an image of its own, its ids cannot clash with another's."""
    return f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _thousands(value: float) -> str:
    return f"{value:,.0f}"
