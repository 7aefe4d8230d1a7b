"""A simulated fabric as the files that the common tools would write of it."""

from __future__ import annotations

from pathlib import Path

import silvan
from silvan.inputs.fabric_lists import FabricLists
from silvan.live.diagnosis import diagnose_files
from silvan.live.moments import Moment
from silvan.live.twin.dumps import counters, measured_s, routes, topology
from silvan.results.result import Result


def write_subnet(folder: Path, scenario: silvan.Scenario, result: Result) -> dict[str, Path]:
    """Write the files of a run, by what they are."""
    lists = FabricLists.of(scenario)
    texts = {
        "topology": topology(lists),
        "routes": routes(scenario, lists),
        "before": counters(result, lists, is_after=False),
        "after": counters(result, lists, is_after=True),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in texts}


def moment_of(folder: Path, scenario: silvan.Scenario, result: Result) -> Moment:
    """Diagnose the counters of a run."""
    files = write_subnet(folder, scenario, result)
    moment, _ = diagnose_files(
        topology=files["topology"],
        routes=files["routes"],
        before=files["before"],
        after=files["after"],
        interval=f"{round(measured_s(scenario) * 1e9)} ns",
        tick="4 ns",
    )
    return moment
