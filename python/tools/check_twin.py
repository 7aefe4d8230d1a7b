"""Print how well twins of drawn fabrics agree with them: ``make check-twin``.

Arguments: the first seed and the number of scenarios; then, in any order, ``off``, ``marking`` or
``on`` for congestion control in all of them, and ``live`` for live fabrics, which the diagnosis
reads by datagrams, or ``history`` for twins that know what hosts sent without the contributors.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.drawn_subnets import CONTROLS, Drawn, drawn  # noqa: E402
from tests.simulated_subnet import moment_of  # noqa: E402

from silvan.comparing.remedies import CongestedTwin, changes, try_changes  # noqa: E402
from silvan.errors import DiagnosisError, SilvanError  # noqa: E402
from silvan.execution.simulation import simulate  # noqa: E402
from silvan.inputs.fabric_lists import stated  # noqa: E402
from silvan.inputs.quantities import Quantity  # noqa: E402
from silvan.inputs.scenario import Scenario  # noqa: E402
from silvan.live.moments import Moment  # noqa: E402
from silvan.live.twin.agreement import counters  # noqa: E402
from silvan.live.twin.paths import Router  # noqa: E402
from silvan.live.twin.scenario import make_twin, read_record  # noqa: E402
from silvan.results.result import Result  # noqa: E402

TIMES = {"run.duration": "300 ms", "run.warm-up": "100 ms"}
TIME_SCALE = "0.1"
INTERVAL = "5 s"
"""Half a simulated second, at a pace that a busy machine keeps."""

LEAST_GAIN_GBPS = 0.2


@dataclass
class Counts:
    """Sums over all cases."""

    cases: int = 0
    refused: int = 0
    same_roots: int = 0
    same_victims: int = 0
    victims: list[int] = field(default_factory=lambda: [0, 0, 0])
    errors: list[float] = field(default_factory=list)
    flows: int = 0
    decided: int = 0
    decided_right: int = 0
    gains: list[tuple[float, float]] = field(default_factory=list)

    def print(self) -> None:
        """Print a line for each number."""
        cases = max(self.cases, 1)
        hit, wrong, missed = self.victims
        near = [abs(one - other) <= 0.25 * other for one, other in self.gains]
        rows = {
            "cases": f"{self.cases}, and {self.refused} without a twin",
            "load, median error": f"{statistics.median(self.errors):.4f}",
            "load, 95th percentile": f"{np.percentile(self.errors, 95):.4f}",
            "same roots": f"{self.same_roots / cases:.3f}",
            "same victims": f"{self.same_victims / cases:.3f}",
            "victims, F1": f"{2 * hit / max(2 * hit + wrong + missed, 1):.3f}",
            "decided flows": f"{self.decided} of {self.flows}; {self.decided_right} within 20 %",
            "gains within 25 %": f"{sum(near)} of {len(near)}",
        }
        for name, value in rows.items():
            print(f"{name:<24}{value}", flush=True)


def verdict(report: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Return the roots and the victims of a report."""
    trees = report["trees"]
    victims = {one["host"] for tree in trees for one in tree["victims"]}
    return {tree["root"] for tree in trees}, victims


def live_report(scenario: Path, twin: Path) -> dict[str, Any]:
    """Diagnose a live fabric, and write its twin."""
    silvan = [sys.executable, "-m", "silvan"]
    emulated = [*silvan, "emulate", str(scenario), "--time-scale", TIME_SCALE]
    words = [*emulated, "--", *silvan, "diagnose", "--json", "--interval", INTERVAL]
    done = subprocess.run(
        [*words, "--scenario", str(twin)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    if done.returncode not in (0, 1):
        errors = (line for line in done.stderr.splitlines() if line.startswith("error: "))
        raise DiagnosisError(next(errors, "the command has failed").removeprefix("error: "))
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def calm_moment(case: Drawn, moment: Moment, folder: Path) -> list[Moment]:
    """Diagnose the case without the flows through its roots."""
    tables = stated(case.scenario)
    roots = [tree["root"] for tree in moment.report["trees"]]
    through = _through(tables, moment, {"roots": roots})
    flows = tables["traffic"]["flow"]
    tables["traffic"]["flow"] = [
        flow for flow, is_through in zip(flows, through, strict=True) if not is_through
    ]
    calm = Scenario(**tables)
    if not calm.has_traffic:
        return []
    return [moment_of(folder, calm, simulate(calm, calm.seed))]


def check(case: Drawn, folder: Path, counts: Counts, *, is_live: bool, has_history: bool) -> str:
    """Make the twin of a case, compare, and return a line."""
    result = simulate(case.scenario, case.scenario.seed)
    moment = moment_of(folder, case.scenario, result)
    path = folder / "twin.toml"
    if is_live:
        original = folder / "drawn.toml"
        original.write_text(case.scenario.to_toml())
        report = live_report(original, path)
    else:
        report = moment.report
        history = calm_moment(case, moment, folder) if has_history else []
        make_twin(moment, history=history).write(path)
    record = read_record(path)
    assert record is not None
    twin = Scenario.from_file(path).override(TIMES)
    own = simulate(twin, 7)
    if is_live:
        again = live_report(path, folder / "again.toml")
    else:
        again = moment_of(folder, twin, own).report
    (roots, victims), (roots_again, victims_again) = verdict(report), verdict(again)
    errors = _errors(moment, record, own)
    counts.cases += 1
    counts.errors += errors
    counts.same_roots += roots == roots_again
    counts.same_victims += victims == victims_again
    differences = (victims & victims_again, victims_again - victims, victims - victims_again)
    for place, hosts in enumerate(differences):
        counts.victims[place] += len(hosts)
    _check_flows(case, result, record, counts)
    gains = _gains(case, moment, record, twin)
    counts.gains += gains
    return (
        f"{case.scenario.name:<12}{case.kind:<14}{case.control:<8}"
        f"median {statistics.median(errors):.4f} p95 {np.percentile(errors, 95):.4f} "
        f"roots {'same' if roots == roots_again else f'{roots} {roots_again}'} "
        f"victims {len(victims & victims_again)}/{len(victims | victims_again)} gains "
        + " ".join(f"{one:.2f}/{other:.2f}" for one, other in gains)
    )


def _errors(moment: Moment, record: Mapping[str, Any], own: Result) -> list[float]:
    loads, _ = counters(own, moment.subnet)
    errors = []
    for name, row in moment.subnet.rows.items():
        link, gbps = moment.subnet.ports[row, 3], record["ports"].get(name, {}).get("gbps")
        if gbps and gbps > 0.002 * link:
            errors.append(abs(loads[row] * link - gbps) / gbps)
    return errors


def _delivered(result: Result) -> list[float]:
    scenario = result.scenario
    seconds = (scenario.duration_ps - scenario.warm_up_ps) / 1e12
    by_name = {row["name"]: row["delivered_bytes"] for row in result.tables["classes"].to_pylist()}
    count = len(stated(scenario)["traffic"].get("flow", ()))
    return [by_name[f"flow-{place}"] * 8 / seconds / 1e9 for place in range(1, count + 1)]


def _check_flows(case: Drawn, result: Result, record: Mapping[str, Any], counts: Counts) -> None:
    traffic = stated(case.scenario)["traffic"]
    counts.flows += len(record["flows"])
    if "uniform" in traffic:
        return
    pairs = [(flow["from"], flow["to"]) for flow in traffic["flow"]]
    truth = dict(zip(pairs, _delivered(result), strict=True))
    for flow in record["flows"]:
        if flow["is_decided"]:
            counts.decided += 1
            real = truth.get((flow["from"], flow["to"]), 0.0)
            counts.decided_right += abs(real - flow["gbps"]) <= 0.2 * flow["gbps"]


def _gains(
    case: Drawn, moment: Moment, record: Mapping[str, Any], scenario: Scenario
) -> list[tuple[float, float]]:
    tables = stated(case.scenario)
    if "uniform" in tables["traffic"] or not record["roots"]:
        return []
    twin = CongestedTwin(scenario, record)
    through = _through(tables, moment, record)
    chosen = [one for one in changes(twin) if one.kind == "throttle"][:1]
    gains = []
    for outcome in try_changes(twin, chosen, seeds=1)[1:]:
        limits = {}
        for line in outcome.apply.splitlines()[1:]:
            pair, _, rate = line.rpartition(": ")
            limits[pair.partition(" to ")[0]] = float(rate.split()[0])
        throttled = stated(case.scenario)
        for place, flow in enumerate(throttled["traffic"]["flow"]):
            limit = limits.get(flow["from"])
            if limit is not None and through[place] and _demand(flow) > limit:
                flow["load"] = f"{limit} Gbit/s"
        before, now = (
            sum(
                rate
                for rate, is_through in zip(_delivered(simulate(one, 1)), through, strict=True)
                if not is_through
            )
            for one in (case.scenario, Scenario(**throttled))
        )
        if now - before >= LEAST_GAIN_GBPS:
            gains.append((outcome.regained_gbps, now - before))
    return gains


def _demand(flow: Mapping[str, Any]) -> float:
    load = str(flow["load"])
    return float("inf") if load == "saturating" else Quantity(load).bits_per_s / 1e9


def _through(tables: Mapping[str, Any], moment: Moment, record: Mapping[str, Any]) -> list[bool]:
    """Return true for drawn flows through a root."""
    rows = moment.subnet.node_rows
    flows = tables["traffic"]["flow"]
    sources = np.array([rows[flow["from"]] for flow in flows], np.int32)
    targets = np.array([rows[flow["to"]] for flow in flows], np.int32)
    paths, _ = Router(moment.subnet).paths(sources, targets)
    roots = np.zeros(paths.ports)
    roots[[moment.subnet.rows[root] for root in record["roots"]]] = 1
    found: list[bool] = (paths.most(roots) > 0).tolist()
    return found


def main(words: Sequence[str]) -> None:
    """Check the drawn cases."""
    first, count = int(words[0]), int(words[1])
    control = next((word for word in words if word in CONTROLS), None)
    counts = Counts()
    for seed in range(first, first + count):
        case = drawn(seed, control=control)
        with tempfile.TemporaryDirectory() as folder:
            try:
                line = check(
                    case,
                    Path(folder),
                    counts,
                    is_live="live" in words,
                    has_history="history" in words,
                )
                print(line, flush=True)
            except SilvanError as error:
                counts.refused += 1
                print(f"{case.scenario.name}: {error}", flush=True)
    counts.print()


if __name__ == "__main__":
    main(sys.argv[1:])
