"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from silvan.scenario import Scenario

ScenarioPath = Annotated[
    Path, typer.Argument(metavar="SCENARIO.toml", help="The scenario file.", show_default=False)
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a key of the scenario, such as run.duration='1 ms'. May be repeated.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def load(path: Path, assignments: list[str] | None) -> Scenario:
    """Read a scenario file with its ``--set`` words."""
    from silvan.scenario import Scenario
    from silvan.toml_text import parse_assignments

    return Scenario.from_file(path, overrides=parse_assignments(assignments or []))


def with_trees(scenario: Scenario) -> Scenario:
    """Make a scenario look for congestion trees, if it does not yet."""
    if "trees" in scenario.to_dict()["probe"]:
        return scenario
    return scenario.override({"probe.trees": {}})
