"""Changes tried on a twin."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import silvan
from silvan.comparing.remedies import AS_IS, CongestedTwin, Outcome, changes, try_changes
from silvan.errors import DiagnosisError, ScenarioError
from silvan.execution.simulation import simulate
from silvan.live.twin.scenario import make_twin, read_record
from tests.conftest import Command
from tests.simulated_subnet import moment_of

INCAST = """\
[fabric]
generator = "leaf-spine"
leaf-hosts = [4, 4, 4]
spine-cables = [1, 1]
[link]
width = "2x"
speed = "SDR"
[traffic]
message = "4 KiB"
[[traffic.incast]]
to = "host-0000"
from = ["host-0001", "host-0004", "host-0005"]
[[traffic.flow]]
from = "host-0006"
to = "host-0002"
[run]
duration = "60 ms"
warm-up = "20 ms"
"""
"""Three hosts send to one. A fourth shares a cable with two of them, on its way to another."""

JOBS = {"host-0004": ["1"], "host-0005": ["1"], "host-0006": ["2"]}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the twin of the incast."""
    folder = tmp_path_factory.mktemp("twin")
    scenario = silvan.Scenario.from_toml(INCAST)
    moment = moment_of(folder, scenario, simulate(scenario, 1))
    assert [tree["root"] for tree in moment.report["trees"]] == ["leaf-00:1"]
    path = folder / "incast.toml"
    make_twin(moment, JOBS, name="incast").write(path)
    return path


@pytest.fixture(scope="module")
def twin(written: Path) -> CongestedTwin:
    record = read_record(written)
    assert record is not None
    return CongestedTwin(silvan.Scenario.from_file(written), record)


def outcome_of(twin: CongestedTwin, choose: Callable[[str], bool]) -> tuple[Outcome, Outcome]:
    candidates = [one for one in changes(twin) if choose(one.name)]
    base, first, *_ = try_changes(twin, candidates, seeds=2)
    assert base.name == AS_IS
    return base, first


def truth(text: str, flow: str = "flow-1") -> float:
    """Simulate the subnet itself, changed, and return what the victim delivers."""
    scenario = silvan.Scenario.from_toml(text)
    rows = simulate(scenario, 1).tables["classes"].to_pylist()
    (found,) = (row for row in rows if row["name"] == flow)
    return float(found["delivered_bytes"]) * 8 / 0.04 / 1e9


def test_a_throttle_frees_the_victim_as_in_the_subnet(twin: CongestedTwin) -> None:
    """Oracle: the subnet itself, in which the contributors are throttled to the same rate."""
    base, found = outcome_of(twin, lambda name: "throttled" in name)
    rate = found.apply.splitlines()[1].split(": ")[1]
    throttled = INCAST.replace('"host-0005"]', f'"host-0005"]\nload = "{rate}"')
    gain = truth(throttled) - truth(INCAST)
    assert gain > 0.3
    assert found.regained_gbps == pytest.approx(gain, rel=0.25)
    assert found.helps
    # Any three of the four hosts may be the contributors: they count the same.
    assert found.apply.count(" to host-0000: ") == 3
    assert sum(base.victims_gbps) / 2 == pytest.approx(truth(INCAST), rel=0.1)


def test_a_receiver_that_moves_frees_the_victim_as_in_the_subnet(twin: CongestedTwin) -> None:
    """Oracle: the subnet itself, with the other receiver."""
    _, found = outcome_of(twin, lambda name: name.startswith("receiver"))
    before, after = found.apply.splitlines()[1].split(" -> ")
    assert before == "host-0000"
    gain = truth(INCAST.replace(f'to = "{before}"', f'to = "{after}"')) - truth(INCAST)
    assert found.regained_gbps == pytest.approx(gain, rel=0.25, abs=0.05)


def test_a_job_moves_as_a_whole_or_not_at_all(twin: CongestedTwin) -> None:
    """Oracle: the hosts without traffic, and the jobs of the list."""
    jobs = {one.name: one for one in changes(twin) if one.name.startswith("job ")}
    moved = next(one for name, one in jobs.items() if name.startswith("job 1 "))
    pairs = dict(line.split(" -> ") for line in moved.apply(twin.scenario).splitlines()[1:])
    assert list(pairs) == ["host-0004", "host-0005"]
    busy = {"host-0000", "host-0001", "host-0002", "host-0004", "host-0005", "host-0006"}
    assert not busy.intersection(pairs.values())
    hosts = {**twin.record["hosts"], **{f"host-{place:04}": ["9"] for place in range(12)}}
    crowded = CongestedTwin(twin.scenario, {**twin.record, "hosts": hosts})
    (refused,) = (one for one in changes(crowded) if one.name == "job 9 moved")
    with pytest.raises(ScenarioError, match="12 hosts, and 6 are idle"):
        refused.make()


def test_congestion_control_is_written_for_opensm(twin: CongestedTwin) -> None:
    _, found = outcome_of(twin, lambda name: "control" in name)
    assert found.kind == "control"
    assert "congestion_control TRUE" in found.apply
    assert "cc_ca_cong_setting_ccti_increase 0 " in found.apply


def test_a_change_that_is_impossible_is_refused_with_its_reason(twin: CongestedTwin) -> None:
    candidates = changes(twin, failures=["no-such-switch"])
    outcomes = try_changes(twin, [one for one in candidates if one.kind == "cable"], seeds=1)
    (refused,) = (one for one in outcomes if one.refused)
    assert "no-such-switch" in str(refused.refused)


def test_a_degraded_cable_is_repaired(written: Path) -> None:
    """Oracle: the rate of the cable in the repaired twin."""
    record = read_record(written)
    assert record is not None
    record["cables"] = [{"port": "leaf-00:1", "gbps": 4.0, "capable_gbps": 8.0}]
    twin = CongestedTwin(silvan.Scenario.from_file(written), record)
    (repair,) = (one for one in changes(twin) if one.name.startswith("cable at leaf-00:1"))
    changed = repair.make()
    rows = simulate(changed, 1).tables["ports"].to_pylist()
    rates = {f"{row['node']}:{row['port']}": row["link_gbps"] for row in rows}
    assert rates["leaf-00:1"] == 8.0
    assert rates["leaf-00:2"] == 4.0
    assert "leaf-00:1" in repair.apply(changed)


def test_a_twin_without_congestion_is_refused(written: Path) -> None:
    record = read_record(written)
    assert record is not None
    with pytest.raises(DiagnosisError, match="no congestion"):
        CongestedTwin(silvan.Scenario.from_file(written), {**record, "roots": []})


def test_the_command_ranks_changes_and_writes_the_best(
    written: Path, tmp_path: Path, command: Command
) -> None:
    best, folder = tmp_path / "best.txt", tmp_path / "figures"
    outcome = command(
        *("whatif", written, "--engine", "minhop", "--seeds", "1", "--duration", "30 ms"),
        *("--set", "run.warm-up=10 ms", "--out", folder, "--write", best, "--json"),
    )
    assert outcome.status == 0, outcome.stderr
    said = json.loads(outcome.stdout)
    names = [one["name"] for one in said["changes"]]
    assert names[0] == AS_IS
    assert said["best"] == names[1]
    scores = [
        one["regained_gbps"] - max(one["lost_gbps"], 0)
        for one in said["changes"][1:]
        if not one["refused"]
    ]
    assert scores == sorted(scores, reverse=True)
    assert best.read_text() == said["changes"][1]["apply"]
    assert (folder / "changes.png").stat().st_size > 1000
    assert len((folder / "changes.csv").read_text().splitlines()) > len(scores)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--cc"], "not with a twin"),
        (["--hotspot", "host-0001"], "not with a twin"),
        (["--engine", "none-such"], "is none of"),
    ],
)
def test_options_of_fabrics_are_refused_for_twins(
    written: Path, command: Command, words: list[str], expected: str
) -> None:
    outcome = command("whatif", written, *words)
    assert outcome.status == 2
    assert expected in outcome.stderr


def test_options_of_twins_are_refused_for_fabrics(tmp_path: Path, command: Command) -> None:
    (tmp_path / "plain.toml").write_text(INCAST)
    outcome = command("whatif", tmp_path / "plain.toml", "--seeds", "2")
    assert outcome.status == 2
    assert "needs a twin" in outcome.stderr
