"""A run on several threads gives the results of one, to the bit."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import silvan
from silvan.errors import ScenarioError
from silvan.execution import workers
from silvan.execution.run_threads import threads_of_last
from silvan.execution.workers import Job, run_jobs
from silvan.inputs.toml_text import TomlValue
from silvan.reproduce import execution
from silvan.reproduce.execution import carry_out
from silvan.reproduce.plan import PlannedRun, ReproductionPlan
from silvan.sweeping import local
from silvan.sweeping.local import run_here
from silvan.sweeping.outcome import Succeeded
from silvan.sweeping.work import Task
from tests.conftest import DDR_KEYS, Command, ddr_scenario

TREE = silvan.Scenario.from_toml(
    """
[fabric]
generator = "k-ary-n-tree"
k = 3
n = 3
[traffic.nodes]
v = 0.3
c = 0.5
b = 0.2
p = 60
hotspots = 2
hotspot-lifetime = "130 us"
[[traffic.flow]]
from = "host-0000"
to = "host-0020"
bytes = "300 KiB"
[probe]
interval = "50 us"
ports = true
classes = true
latency = "host"
[probe.trees]
interval = "50 us"
[run]
duration = "400 us"
""",
    overrides=DDR_KEYS,
)
CONTROL: dict[str, TomlValue] = {
    "control.scheme": "ib-cc",
    "control.ib-cc.switch.marking-rate": 2,
    "control.ib-cc.switch.marking": "random",
    "control.feedback.delay": "1 us",
}
IN_BAND: dict[str, TomlValue] = {**CONTROL, "control.feedback.path": "in-band"}
del IN_BAND["control.feedback.delay"]


LANES: dict[str, TomlValue] = {"vl.data-vls": 2, "vl.sl-to-vl": [0, 1] * 8, "traffic.nodes.sl": 1}
ADAPTIVE: dict[str, TomlValue] = {"fabric.path-choice": "adaptive"}
RCCC: dict[str, TomlValue] = {"control.scheme": "rccc", "control.feedback.delay": "1 us"}
BY_OUTPUT: dict[str, TomlValue] = {
    "control.scheme": "vl-mapping",
    "control.vl-mapping.mapping": "obqa",
    "vl.data-vls": 3,
}
FIFO: dict[str, TomlValue] = {**CONTROL, "switch.queueing": "fifo", "vl.data-vls": 2}
READS: dict[str, TomlValue] = {"switch.read-limit": 1, "switch.bypass-limit": 2}
BUFFERS: dict[str, TomlValue] = {"switch.output-buffer.size": "8 KiB"}
ECN: dict[str, TomlValue] = {"control.scheme": "ecn", "switch.buffer": "16 KiB"}
LATE_CREDITS: dict[str, TomlValue] = {
    **CONTROL,
    "control.ib-cc.switch.credit-mask": "all",
    "control.ib-cc.switch.credit-return-delay": 3.0,
}
SRP: dict[str, TomlValue] = {
    "control.scheme": "srp",
    "vl.data-vls": 2,
    "vl.high": [[0, 255]],
    "vl.low": [[1, 255]],
}
LHRP: dict[str, TomlValue] = {**SRP, "control.srp.protocol": "lhrp"}
RECN: dict[str, TomlValue] = {"control.scheme": "recn", "vl.data-vls": 2}
DFTREE: dict[str, TomlValue] = {"control.scheme": "dftree", "vl.data-vls": 2}
DCQCN: dict[str, TomlValue] = {"control.scheme": "dcqcn", "control.feedback.delay": "1 us"}
SPRAYED: dict[str, TomlValue] = {**CONTROL, "fabric.path-choice": "spray-random"}
FLOWS: dict[str, TomlValue] = {
    **CONTROL,
    "traffic.flows": [
        {"sizes": "web-search", "load": 0.4},
        {"sizes": {"fixed": "20 KiB"}, "outstanding": 3, "pause": "2 us"},
    ],
}
SEQUENCES: dict[str, TomlValue] = {
    "traffic.sequence": [
        {"from": "host-0002", "to": ["host-0001", "host-0019", "host-0025"], "iterations": 40},
        {"from": "host-0026", "to": ["host-0003"], "pause": "1 us"},
    ]
}
PROGRAM: dict[str, TomlValue] = {
    **CONTROL,
    "traffic.program": [{"name": "job", "kind": "allreduce", "bytes": "2 KiB", "iterations": 2}],
    "probe.messages": True,
    "run.duration": "8 ms",
}


@pytest.mark.parametrize(
    "changes",
    [
        *({}, CONTROL, IN_BAND, LANES, ADAPTIVE, SPRAYED, DCQCN, PROGRAM, FLOWS, SEQUENCES),
        *(RCCC, SRP, LHRP, RECN, BY_OUTPUT, DFTREE, FIFO, READS, BUFFERS, ECN, LATE_CREDITS),
    ],
    ids=[
        *("none", "ib-cc", "in-band", "lanes", "adaptive", "sprayed", "dcqcn", "program"),
        *("flows", "sequences"),
        *("rccc", "srp", "lhrp", "recn", "vl-mapping", "dftree", "fifo", "reads"),
        *("output-buffers", "ecn", "late-credits"),
    ],
)
def test_every_number_of_threads_gives_the_same_tables(changes: dict[str, TomlValue]) -> None:
    scenario = TREE.override(changes)
    one = silvan.run(scenario)
    assert one.summary["threads"] == 1
    assert one.summary["packet_hops"] > 1000
    for threads in (2, 3, 7):
        several = silvan.run(scenario, threads=threads)
        assert several.summary["threads"] == threads
        # With fewer, as on a busy machine, nothing has been measured.
        imbalance = several.summary["imbalance"]
        assert imbalance is None or 1 <= imbalance <= threads
        assert several.tables == one.tables
        assert several.summary["packet_hops"] == one.summary["packet_hops"]


# Behind a busy sink, ACKs and messages of no bytes take no time.
BUSY_SINKS = silvan.Scenario.from_toml(
    """
[fabric]
generator = "xgft"
children = [2, 3]
parents = [1, 2]
[host]
sink-rate = "9.7 Gbit/s"
[probe]
messages = true
[run]
duration = "150 us"
""",
    overrides=DDR_KEYS,
)
SHIFTS: dict[str, TomlValue] = {
    "traffic.permutation": [
        {"pattern": "shift", "shift": 1, "load": 0.5},
        {"pattern": "shift", "shift": 5},
    ],
    "probe.messages": False,
    "control.feedback.path": "in-band",
}


@pytest.mark.parametrize(
    "changes",
    [
        {**SHIFTS, "control.scheme": "timely"},
        {**SHIFTS, "control.scheme": "reps", "fabric.path-choice": "ecmp"},
        {
            "traffic.messaging.overhead": "0 ns",
            "traffic.program": [
                {"kind": "barrier"},
                {"kind": "scatter", "ranks-per-host": 4, "bytes": "64 B"},
            ],
        },
    ],
    ids=["timely", "reps", "barriers"],
)
@pytest.mark.parametrize("seed", range(1, 5))
def test_what_takes_no_time_in_a_busy_sink_has_an_order(
    changes: dict[str, TomlValue], seed: int
) -> None:
    scenario = BUSY_SINKS.override(changes)
    one = silvan.run(scenario, seed=seed)
    traced = scenario.override({"probe.packets": {"ports": ["host-0000"]}})
    in_order_of_time = silvan.run(traced, seed=seed)
    for name, table in one.tables.items():
        assert in_order_of_time.tables[name] == table, name
    for threads in (2, 3):
        assert silvan.run(scenario, seed=seed, threads=threads).tables == one.tables


def test_the_number_of_threads_is_no_part_of_the_hash() -> None:
    scenario = TREE.override({"run.threads": 2})
    assert scenario.hash == TREE.hash
    assert silvan.run(scenario).summary["threads"] == 2
    assert silvan.run(scenario, threads=1).summary["threads"] == 1
    assert silvan.run(scenario, threads="auto").summary["threads"] >= 1


@pytest.mark.parametrize(
    "changes",
    [
        {"fabric.path-choice": "adaptive", "host.in-order": True},
        {**RECN, "control.recn.message-delay": "100 ns"},
        {"fabric.path-choice": "adaptive", "host.in-order": True, **FLOWS},
        {
            "traffic.loopback": True,
            "traffic.sequence": [{"from": "host-0002", "to": ["host-0001", "host-0002"]}],
        },
        {**SRP, "control.feedback.delay": "0 ns"},
        {"control.scheme": "rccc", "control.feedback.delay": "100 ns"},
    ],
    ids=[
        *("in-order", "early-messages", "in-order-flows", "comes-back"),
        *("immediate-nacks", "late-grants"),
    ],
)
def test_what_cannot_be_divided_uses_one_thread(changes: dict[str, TomlValue]) -> None:
    scenario = TREE.override({**changes, "run.duration": "100 us", "name": "whole"})
    said = "whole: 1 of 2 threads used: the page on the engine"
    with pytest.warns(silvan.ScenarioWarning, match=said) as caught:
        result = silvan.run(scenario, threads=2)
    assert result.summary["threads"] == 1
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(silvan.ScenarioWarning, match=said):
        silvan.run(scenario.override({"run.threads": 2}))
    # No number is too small where silvan chooses it. Warnings are errors here.
    silvan.run(scenario, threads="auto")
    silvan.run(scenario.override({"run.threads": 2}), threads=1)


def test_a_part_needs_a_switch() -> None:
    """Oracle: the fabric has four switches."""
    four = ddr_scenario(
        fabric={"generator": "k-ary-n-tree", "k": 2, "n": 2},
        traffic={"uniform": [{"load": 0.5}]},
        run={"duration": "50 us"},
    )
    with pytest.warns(silvan.ScenarioWarning, match="at most a part for each switch"):
        assert 2 <= silvan.run(four, threads=5).summary["threads"] <= 4


@pytest.mark.parametrize("threads", [0, -1, 1.5, 65536, "all"])
def test_no_number_of_threads_is_an_error(threads: object) -> None:
    with pytest.raises(ScenarioError, match="is not a number of threads") as caught:
        silvan.run(TREE, threads=threads)  # type: ignore[arg-type]
    assert caught.value.hint == 'threads are a whole number from 1 to 65535, or "auto"'


LARGE = ddr_scenario(
    fabric={"generator": "fat-tree-648"},
    traffic={"uniform": [{"load": 0.5}]},
    run={"duration": "10 us", "threads": 3},
)


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that any machine has two cores."""
    for module in (local, workers, execution):
        monkeypatch.setattr(module, "cores", lambda: 2)


def of_sweep(scenario: silvan.Scenario, points: int, processes: int | None) -> list[int]:
    """Run a sweep, and give the threads of its points."""
    tasks = [Task(scenario.to_toml(), seed, tables=True) for seed in range(points)]
    used = {
        outcome.index: outcome.finished.result.summary["threads"]
        for outcome in run_here(tasks, processes)
        if isinstance(outcome, Succeeded) and outcome.finished.result is not None
    }
    return [used[index] for index in range(points)]


@pytest.mark.usefixtures("two_cores")
def test_the_last_run_of_a_sweep_uses_cores_that_are_left() -> None:
    """Oracle: three runs on two cores leave the third one alone; two or four leave none."""
    assert of_sweep(LARGE, 3, None) == [1, 1, 2]
    assert of_sweep(LARGE, 2, None) == [1, 1]
    assert of_sweep(LARGE, 1, None) == [2]
    # Two threads are slower than one for so few hosts.
    assert of_sweep(TREE.override({"run.duration": "50 us"}), 1, None) == [1]
    # An indivisible fabric gives no warning: the scenario has not requested threads.
    whole = LARGE.override({"fabric.path-choice": "adaptive", "host.in-order": True})
    assert of_sweep(whole, 1, None) == [1]


@pytest.mark.usefixtures("two_cores")
def test_one_process_at_a_time_uses_the_threads_of_the_scenario() -> None:
    assert of_sweep(LARGE, 2, 1) == [3, 3]


@pytest.mark.usefixtures("two_cores")
def test_the_last_seed_uses_cores_that_are_left() -> None:
    def used(threads: int | None, count: int = 3) -> list[int]:
        jobs = [Job(LARGE, seed, threads=threads) for seed in range(count)]
        results = dict(run_jobs(jobs))
        return [results[index].summary["threads"] for index in range(count)]

    assert used(None) == [1, 1, 2]
    assert used(0) == [1, 1, 2]
    # The caller's number is a limit.
    assert used(1) == [1, 1, 1]
    assert used(2, 4) == [1, 1, 1, 1]
    assert used(None, 1) == [3]


@pytest.mark.usefixtures("two_cores")
def test_the_last_run_of_a_reproduction_uses_cores_that_are_left(tmp_path: Path) -> None:
    runs = [PlannedRun(f"run {seed}", LARGE, seed, 1.0) for seed in range(3)]
    plan = ReproductionPlan("gran2012", quick=True, runs=runs, needs={})
    assert len(list(carry_out(plan, tmp_path, tmp_path))) == 3
    results = [silvan.Result.read(folder) for folder in plan.folders(tmp_path)]
    assert [result.summary["threads"] for result in results] == [1, 1, 2]


@pytest.mark.parametrize("processors", range(1, 18))
def test_runs_never_want_more_threads_than_there_are_processors(processors: int) -> None:
    for total in range(1, 3 * processors):
        threads = [threads_of_last(left, total, processors) for left in range(total, 0, -1)]
        # Rounds of as many runs as processors, and the rest.
        full, rest = divmod(total, processors)
        assert threads[: full * processors] == [1] * full * processors
        # Divided evenly, and none is left that all could use.
        assert processors - rest < sum(threads[full * processors :]) <= processors or not rest


def test_no_threads_are_refused_with_what_to_write() -> None:
    with pytest.raises(ScenarioError, match="expected a number of threads, 1 to 65535") as caught:
        TREE.override({"run.threads": 0})
    assert caught.value.hint == 'write 1, or "auto" to choose by fabric and idle processors'


def test_run_says_how_many_threads_it_used(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "in-order.toml"
    keys = {"fabric.path-choice": "adaptive", "host.in-order": True, "run.duration": "50 us"}
    file.write_text(TREE.override(keys).to_toml())
    outcome = command("run", str(file), "--threads", "2", "--json")
    (run,) = json.loads(outcome.stdout)["runs"]
    assert run["summary"]["threads"] == 1
    assert "1 of 2 threads used: the page on the engine" in outcome.stderr
    of_file = command("run", str(file), "--set", "run.threads=2")
    assert "1 of 2 threads used: the page on the engine" in of_file.stderr
    many = command("run", str(file), "--threads", "5000")
    assert re.search(r"of 5000 threads \d+ run at a time", many.stderr)
    of_seeds = command("run", str(file), "--threads", "2", "--seeds", "2")
    assert "1 of 2 threads used: several seeds run at once" in of_seeds.stderr
    refused = command("run", str(file), "--threads", "none")
    assert refused.status == 2
    assert "'none' is not a number of threads" in refused.stderr


@pytest.mark.slow
def test_the_live_fabric_says_that_it_runs_on_one_thread(process: Command, tmp_path: Path) -> None:
    file = tmp_path / "live.toml"
    file.write_text(TREE.to_toml())
    words = ("emulate", str(file), "--no-opensm", "--set")
    said = "of 3 threads used"
    three = process(*words, "run.threads=3", "--", "true")
    assert three.status == 0
    assert "1 of 3 threads used: the live fabric runs on one\n" in three.stderr
    assert said not in process(*words, "run.threads=1", "--", "true").stderr
