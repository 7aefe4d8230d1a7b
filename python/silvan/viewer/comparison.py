"""The report of a comparison of congestion-control schemes."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from silvan import _silvan
from silvan.cache import build_id
from silvan.compare import RankingRow, quantities
from silvan.result import Result
from silvan.scenario import Scenario
from silvan.viewer.report import Report, ReportRun, Section, Table


def comparison_report(
    scenario: Scenario, ranking: Sequence[RankingRow], figures: Sequence[Path]
) -> Report:
    """Make the report of a comparison.

    Parameters
    ----------
    scenario : Scenario
        What was simulated with each scheme.
    ranking : sequence of RankingRow
        How the schemes did.
    figures : sequence of Path
        Drawings in SVG.

    Returns
    -------
    Report
        A table of the schemes, and the runs behind it.
    """
    runs: list[ReportRun] = []
    cases: dict[str, list[int]] = {}
    for row in ranking:
        places = cases[row.baseline.name] = []
        for folder in row.folders:
            places.append(len(runs))
            runs.append(_run(row.baseline.name, folder))
    shown = quantities(ranking)
    columns = [one.title.replace("\n", " ") for one in shown]
    rows = [
        [row.baseline.name, *(_cell(row.numbers[one.name], one.digits) for one in shown)]
        for row in ranking
    ]
    schemes = ",".join(row.baseline.name for row in ranking[1:])
    words = ["silvan", "compare", f"{scenario.name}.toml", "--schemes", schemes]
    words += ["--seeds", str(ranking[0].seeds)]
    return Report(
        title=f"{scenario.name}: congestion-control schemes",
        made_by=f"silvan {_silvan.version()}, build {build_id()}",
        sections=[
            Section(
                "schemes",
                "Schemes side by side",
                shlex.join(words),
                notes=[
                    "Rates: second half of the run. Congestion is cleared when the trees hold at "
                    "most a tenth of the largest number of Port VLs (virtual lanes of ports) "
                    "without control; victims are recovered at nine tenths of their best rate "
                    "under any scheme.",
                    *(f"{row.baseline.name}: {row.failure}" for row in ranking if row.failure),
                ],
                tables=[Table("Schemes", ["scheme", *columns], rows, list(cases.values()))],
                figures=figures,
                cases=cases,
            )
        ],
        runs=runs,
    )


def _run(scheme: str, folder: Path) -> ReportRun:
    result = Result.read(folder)
    return ReportRun(
        label=f"{scheme}, seed {result.seed}",
        seed=result.seed,
        hash=result.scenario.hash,
        scenario=result.scenario.to_toml(),
        name=result.scenario.name,
        facts={"version": result.version},
        folder=folder,
    )


def _cell(value: float, digits: int) -> str | float | None:
    if math.isnan(value):
        return None
    return "never" if math.isinf(value) else round(value, digits)
