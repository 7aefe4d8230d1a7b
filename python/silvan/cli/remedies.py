"""Changes tried on a twin, in a table: the part of ``silvan whatif`` for twins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from silvan.cli.printer import note, put, put_json, put_table, warn
from silvan.cli.termination import terminated_as_interrupted

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.comparing.remedies import Outcome
    from silvan.live.opensm_routing import GuidFiles


@dataclass(frozen=True)
class TwinOptions:
    """Options of ``silvan whatif`` for a twin; see its parameters."""

    path: Path
    record: Mapping[str, Any]
    engines: Sequence[str] | None
    failures: Sequence[str]
    files: GuidFiles
    assignments: list[str]
    duration: str | None
    seeds: int | None
    out: Path | None
    write: Path | None
    as_json: bool


def try_on_twin(options: TwinOptions) -> None:
    """Try changes on a twin, and print them, the best first."""
    from silvan.comparing.remedies import SEEDS, CongestedTwin, changes, try_changes, write_best
    from silvan.inputs.scenario import Scenario
    from silvan.inputs.toml_text import parse_assignments
    from silvan.planning.whatif import ENGINES

    given: dict[str, Any] = dict(parse_assignments(options.assignments))
    if options.duration is not None:
        given["run.duration"] = options.duration
    scenario = Scenario.from_file(options.path, overrides=given)
    if options.out is not None:
        from silvan import __version__
        from silvan.extras import require_extra
        from silvan.folders import Origin, claim_figures

        require_extra("figures", "figures")
        origin = Origin(scenario.name, scenario.hash, __version__)
        claim_figures(options.out, "changes.*", origin, overwrite=True)
    twin = CongestedTwin(scenario, options.record)
    engines = ENGINES if options.engines is None else options.engines
    candidates = changes(twin, engines, options.failures, options.files)
    if options.record["missing"]:
        warn([f"the twin lacks or assumes {len(options.record['missing'])} facts: see its file"])
    with terminated_as_interrupted():
        outcomes = try_changes(twin, candidates, seeds=options.seeds or SEEDS)
    best = next((one for one in outcomes[1:] if one.helps), None)
    if options.as_json:
        put_json(
            {
                "name": scenario.name,
                "seeds": options.seeds or SEEDS,
                "changes": [one.to_dict() for one in outcomes],
                "best": best.name if best else None,
            }
        )
    else:
        put_table(_table(scenario.name, outcomes))
        for one in outcomes:
            if one.refused:
                note(f"{one.name}: {one.refused}")
        put(f"Best: {best.name}" if best else "No change helps more than the seeds differ.")
    if options.write is not None and write_best(outcomes, options.write):
        note(str(options.write))
    if options.out is not None:
        from silvan.comparing.remedies_figure import draw_remedies
        from silvan.figures.style import Page

        page = Page(formats=("png", "svg"))
        for path in draw_remedies(outcomes, title=scenario.name, folder=options.out, page=page):
            note(str(path))


def _table(name: str, outcomes: Sequence[Outcome]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"{name}: changes tried; Gbit/s of payload")
    table.add_column("change", overflow="fold")
    for heading in ("victims", "regain", "contributors", "lose"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in outcomes:
        if one.refused:
            table.add_row(Text(one.name), "-", "refused", "-", "-")
            continue
        victims, contributors = (
            sum(rates) / len(rates) for rates in (one.victims_gbps, one.contributors_gbps)
        )
        table.add_row(
            Text(one.name),
            f"{victims:.3f}",
            f"{one.regained_gbps:+.3f} ± {one.regained_spread:.3f}" if one.kind else "",
            f"{contributors:.3f}",
            f"{one.lost_gbps:+.3f} ± {one.lost_spread:.3f}" if one.kind else "",
        )
    return table
