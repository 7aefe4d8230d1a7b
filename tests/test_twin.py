"""The twin of a subnet: its traffic, its counters, and what it says is missing."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import silvan
from silvan.errors import DiagnosisError
from silvan.execution.simulation import simulate
from silvan.inputs.quantities import Quantity
from silvan.live.moments import Moment, Subnet
from silvan.live.twin.agreement import agreement, counters
from silvan.live.twin.paths import Router
from silvan.live.twin.scenario import Twin, make_twin, read_record, record_path
from silvan.live.twin.traffic import infer_traffic
from tests.conftest import Command
from tests.drawn_subnets import drawn
from tests.simulated_subnet import moment_of, write_subnet
from tests.subnet_dumps import dumped_moment, write_dumps

TWO_JOBS = """\
[fabric]
generator = "k-ary-n-tree"
k = 4
n = 2
[link]
width = "1x"
speed = "SDR"
[traffic]
message = "4 KiB"
[[traffic.incast]]
to = "host-0003"
from = ["host-0000", "host-0004", "host-0008", "host-0012"]
[[traffic.flow]]
from = "host-0006"
to = "host-0015"
load = "1 Gbit/s"
[[traffic.flow]]
from = "host-0009"
to = "host-0007"
load = "0.15 Gbit/s"
[run]
duration = "150 ms"
warm-up = "50 ms"
"""


def diagnosed(folder: Path, scenario: silvan.Scenario) -> Moment:
    return moment_of(folder, scenario, simulate(scenario, scenario.seed))


def roots(moment: Moment) -> set[str]:
    return {tree["root"] for tree in moment.report["trees"]}


def test_flows_of_a_small_subnet_are_decided(tmp_path: Path) -> None:
    """Oracle: by hand. A and B send to C: each port but that of C has one flow."""
    (traffic, *_) = infer_traffic(dumped_moment(tmp_path))
    names = ["a HCA-1", "b HCA-1", "c HCA-1"]
    flows = {
        (names[source], names[destination]): rate
        for source, destination, rate in zip(
            traffic.paths.sources, traffic.paths.destinations, traffic.rates, strict=True
        )
    }
    expected = {("a HCA-1", "c HCA-1"): 4.8, ("b HCA-1", "c HCA-1"): 3.2}
    assert flows == pytest.approx(expected, rel=1e-3)
    assert traffic.decided.all()
    # Two hosts' ports and the receiver's: the third equation is the sum of the others.
    assert (traffic.rank, traffic.equations, traffic.pairs) == (2, 3, 2)


def test_bounds_hold_and_undecided_flows_are_named(tmp_path: Path) -> None:
    """Oracle: the traffic. Hosts 4 and 6 send equally much from one switch, so either may be to."""
    moment = diagnosed(tmp_path, silvan.Scenario.from_toml(TWO_JOBS))
    (traffic, *_) = infer_traffic(moment)
    assert traffic.rank is not None
    assert traffic.rank < traffic.pairs
    names = [node["name"] for node in moment.subnet.nodes]
    decided = {
        (names[source], names[destination]): is_decided
        for source, destination, is_decided in zip(
            traffic.paths.sources, traffic.paths.destinations, traffic.decided, strict=True
        )
    }
    assert decided["host-0000", "host-0003"]
    assert not any(is_decided for (source, _), is_decided in decided.items() if source[-1] in "46")
    assert (traffic.lowest <= traffic.rates).all()
    assert (traffic.rates <= traffic.highest).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 4, 8, 18])
def test_a_twin_counts_as_the_subnet_does(tmp_path: Path, seed: int) -> None:
    """Oracle: the simulation of the drawn scenario, diagnosed from its counters alone."""
    case = drawn(seed, control="off")
    moment = diagnosed(tmp_path, case.scenario)
    twin = make_twin(moment)
    longer = twin.scenario.override(
        {"run.duration": "300 ms", "run.warm-up": "100 ms", "run.seed": 7}
    )
    measured = (moment.loads[0].astype(float), moment.loads[1].astype(float))
    result = simulate(longer, longer.seed)
    fit = agreement(moment.subnet, measured, result)
    assert fit.median <= 0.05
    assert fit.p95 <= 0.20
    # The counters of the twin lead to the verdict that those of the subnet lead to.
    assert roots(moment_of(tmp_path, longer, result)) == roots(moment)


@pytest.mark.parametrize("seed", range(1, 31))
@pytest.mark.nightly
def test_decided_flows_are_right(tmp_path: Path, seed: int) -> None:
    """Oracle: what each flow of the drawn scenario delivered."""
    case = drawn(seed, control="off")
    result = simulate(case.scenario, case.scenario.seed)
    moment = moment_of(tmp_path, case.scenario, result)
    seconds = (case.scenario.duration_ps - case.scenario.warm_up_ps) / 1e12
    if "uniform" in case.scenario.to_dict()["traffic"]:
        # The receivers of a uniform class are not counted one by one.
        return
    delivered = result.tables["classes"]["delivered_bytes"].to_numpy() * 8 / seconds / 1e9
    truth = dict(zip(case.flows, delivered, strict=True))
    names = [node["name"] for node in moment.subnet.nodes]
    (traffic, *_) = infer_traffic(moment)
    for flow in np.flatnonzero(traffic.decided):
        pair = names[traffic.paths.sources[flow]], names[traffic.paths.destinations[flow]]
        assert truth.get(pair, 0.0) == pytest.approx(traffic.rates[flow], rel=0.2), pair


def test_the_written_scenario_runs_and_has_the_tables(tmp_path: Path, command: Command) -> None:
    """Oracle: the forwarding tables of the subnet, and a run of the command."""
    original = silvan.Scenario.from_toml(TWO_JOBS)
    files = write_subnet(tmp_path, original, simulate(original, 1))
    words: list[str | Path] = ["--interval", "100 ms", "--tick", "4 ns"]
    for name, path in files.items():
        words += [f"--{name}", path]
    (tmp_path / "jobs.csv").write_text("host-0000,4711\n")
    written = tmp_path / "two.toml"
    outcome = command("diagnose", *words, "--scenario", written, "--jobs", tmp_path / "jobs.csv")
    assert outcome.status == 1, outcome.stderr
    assert "the counters decide" in outcome.stdout
    assert "settings of congestion control: none, because they were not read" in outcome.stdout
    twin = silvan.Scenario.from_file(written)
    assert twin.egress_ports() == original.egress_ports()
    assert twin.describe()["links"] == 32
    record = read_record(written)
    assert record is not None
    assert record["roots"] == ["leaf-00:4"]
    assert record["hosts"]["host-0000"] == ["4711"]
    assert (
        command("run", written, "--set", "run.warm-up=1 ms", "--set", "run.duration=2 ms").status
        == 0
    )
    report = json.loads(command("diagnose", *words, "--scenario", written, "--json").stdout)
    assert report["twin"]["scenario"] == str(written)
    assert report["twin"]["agreement"]["median"] < 0.05


def test_a_ring_file_has_a_twin(tmp_path: Path, command: Command) -> None:
    from silvan.live.ring import RingFile

    ring = tmp_path / "watched.ring"
    with RingFile(ring, writable=True) as file:
        file.add(dumped_moment(tmp_path, time.time()), 10**18)
    outcome = command("diagnose", "--from", ring, "--scenario", tmp_path / "twin.toml", "--json")
    assert outcome.status == 1, outcome.stderr
    twin = json.loads(outcome.stdout)["last_report"]["twin"]
    assert (twin["flows"], twin["decided_flows"]) == (2, 2)


def control_of(moment: Moment, **changes: object) -> Moment:
    """Give a moment the settings that a live diagnosis reports."""
    control = {
        "switches": [
            {"threshold": 15, "marking_rate": 7, "packet_size": 0, "switches": ["left"]},
        ],
        "adapters": [
            {
                "ccti_timer": 150,
                "ccti_increase": 2,
                "ccti_min": 0,
                "hosts": ["a HCA-1", "b HCA-1", "c HCA-1"],
            }
        ],
        "unknown": [],
        "becn_per_s": {},
        **changes,
    }
    return replace(moment, report={**moment.report, "control": control})


def test_settings_of_congestion_control_are_kept(tmp_path: Path) -> None:
    twin = make_twin(control_of(dumped_moment(tmp_path)))
    control = twin.scenario.to_dict()["control"]
    assert control["scheme"] == "ib-cc"
    assert control["ib-cc"]["switch"]["marking-rate"] == 7
    assert control["ib-cc"]["adapter"]["ccti-timer"] == 150
    assert control["ib-cc"]["adapter"]["ccti-increase"] == 2
    unmarked = [{"threshold": 0, "marking_rate": 0, "packet_size": 0, "switches": ["left"]}]
    twin = make_twin(control_of(dumped_moment(tmp_path), switches=unmarked, adapters=[]))
    assert twin.scenario.to_dict()["control"]["scheme"] == "none"


def test_hosts_that_notifications_throttle_have_more_to_send(tmp_path: Path) -> None:
    """Oracle: by hand. Without waiting, only notifications tell of demand that is held back."""
    moment = dumped_moment(tmp_path)
    values = moment.loads.copy()
    values[1] = 0.0
    calm = replace(moment, values=values.astype("<f4").tobytes())

    def loads(one: Moment) -> dict[str, object]:
        flows = make_twin(one).scenario.to_dict()["traffic"]["flow"]
        return {flow["from"]: flow["load"] for flow in flows}

    assert "saturating" not in loads(control_of(calm)).values()
    throttled = loads(control_of(calm, becn_per_s={"a HCA-1": 900.0}))
    assert throttled["a HCA-1"] == "saturating"
    assert throttled["b HCA-1"] != "saturating"


def test_demand_is_what_a_host_sends_when_nothing_holds_it_back(tmp_path: Path) -> None:
    """Oracle: the traffic. Host 6 has 1 Gbit/s to send, of which a third gets out."""
    calm_folder, busy_folder = tmp_path / "calm", tmp_path / "busy"
    for folder in (calm_folder, busy_folder):
        folder.mkdir()
    busy = diagnosed(busy_folder, silvan.Scenario.from_toml(TWO_JOBS))
    incast = TWO_JOBS[TWO_JOBS.index("[[traffic.incast") : TWO_JOBS.index("[[traffic.flow")]
    calm = diagnosed(calm_folder, silvan.Scenario.from_toml(TWO_JOBS.replace(incast, "")))

    def of_host_6(history: list[Moment]) -> list[str]:
        flows = make_twin(busy, history=history).scenario.to_dict()["traffic"]["flow"]
        return [flow["load"] for flow in flows if flow["from"] == "host-0006"]

    assert "saturating" in of_host_6([])
    loads = [Quantity(load).bits_per_s for load in of_host_6([calm])]
    assert sum(loads) == pytest.approx(1e9, rel=0.02)


def without_counters(moment: Moment, ports: list[str]) -> Moment:
    values = moment.loads.copy()
    for port in ports:
        values[:, moment.subnet.rows[port]] = np.nan
    return replace(moment, values=values.astype("<f4").tobytes())


def test_a_port_without_counters_is_listed(tmp_path: Path) -> None:
    """Oracle: the traffic. The port of b is not known, that of c is: the difference is b's."""
    moment = without_counters(dumped_moment(tmp_path), ["b HCA-1:1"])
    twin = make_twin(moment)
    assert "loads of 1 ports: no flow is bound to them" in twin.missing
    flows = {flow["from"]: flow["gbps"] for flow in twin.record["flows"]}
    assert flows == pytest.approx({"a HCA-1": 4.8, "b HCA-1": 3.2}, rel=0.01)


def refusal(moment: Moment) -> str:
    with pytest.raises(DiagnosisError) as caught:
        make_twin(moment)
    assert caught.value.hint
    return caught.value.message


def test_useless_inputs_are_refused(tmp_path: Path) -> None:
    moment = dumped_moment(tmp_path)
    subnet = moment.subnet
    assert "forwarding tables are not known" in refusal(
        replace(moment, subnet=Subnet(subnet.text, b""))
    )
    assert "no port has a known load" in refusal(without_counters(moment, list(subnet.rows)))
    # Tables of another day lead nowhere.
    wrong = bytes(len(subnet.routes))
    assert "no flow between hosts explains the counters" in refusal(
        replace(moment, subnet=Subnet(subnet.text, wrong))
    )


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twin.toml"
    assert read_record(path) is None
    make_twin(dumped_moment(tmp_path)).write(path)
    record = record_path(path)
    whole = record.read_text()
    for damaged in (whole[:100], "[]", '{"version": 9}', '{"version": 1, "hosts": {}}'):
        record.write_text(damaged)
        with pytest.raises(DiagnosisError, match="twin"):
            read_record(path)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, command: Command) -> None:
    files = write_dumps(tmp_path)
    words = [word for name, path in files.items() for word in (f"--{name}", path)]
    target = tmp_path / "none" / "twin.toml"
    outcome = command(
        "diagnose", *words, "--interval", "2 s", "--tick", "4 ns", "--scenario", target
    )
    assert outcome.status == 2
    assert "cannot be written" in outcome.stderr


def test_paths_follow_the_tables(tmp_path: Path) -> None:
    """Oracle: the deliveries of a run, in which each flow counts at each port of its path."""
    scenario = silvan.Scenario.from_toml(TWO_JOBS)
    moment = diagnosed(tmp_path, scenario)
    hosts = {node["name"]: row for row, node in enumerate(moment.subnet.nodes)}
    source, target = hosts["host-0009"], hosts["host-0007"]
    ends = np.array([source], np.int32), np.array([target], np.int32)
    paths, lost = Router(moment.subnet).paths(*ends)
    assert lost == 0
    loads, _ = counters(simulate(scenario, 1), moment.subnet)
    assert paths.hops.tolist() == [4]
    assert (loads[paths.steps] >= 0.07).all()


def scaled(children: list[int], parents: list[int]) -> Moment:
    """Make a fat tree whose hosts send in a permutation of different rates, as a moment."""
    scenario = silvan.Scenario(
        fabric={"generator": "xgft", "children": children, "parents": parents},
        link={"width": "4x", "speed": "HDR"},
    )
    from silvan.inputs.fabric_lists import FabricLists

    lists = FabricLists.of(scenario)
    names = [name for name in lists.nodes if not lists.is_switch(name)]
    names += [name for name in lists.nodes if lists.is_switch(name)]
    places = {name: place for place, name in enumerate(names)}
    ends = sorted((places[name], port) for cable in lists.cables for name, port in cable.ends)
    rows = {end: row for row, end in enumerate(ends)}
    peers = {}
    for cable in lists.cables:
        one, other = ((places[name], port) for name, port in cable.ends)
        peers[one], peers[other] = other, one
    ports = [(node, port, rows[peers[node, port]], 200.0) for node, port in ends]
    nodes = [
        {
            "name": name,
            "is_host": not lists.is_switch(name),
            "lid": lists.nodes[name]["lid"],
        }
        for name in names
    ]
    tables = scenario.egress_ports()
    routes = b"".join(tables[node["name"]] for node in nodes if not node["is_host"])
    subnet = Subnet(json.dumps({"nodes": nodes, "ports": ports}), routes)
    hosts = subnet.hosts
    random = np.random.default_rng(5)
    targets = np.roll(np.arange(hosts), 37).astype(np.int32)
    paths, _ = Router(subnet).paths(np.arange(hosts, dtype=np.int32), targets)
    loads = paths.loads(random.uniform(1, 60, hosts)) / 200
    values = np.stack((loads, np.zeros_like(loads), np.full_like(loads, np.nan)))
    report = {"trees": [], "interval_s": 1.0, "losses": [], "health": []}
    return Moment(subnet, report, values.astype("<f4").tobytes(), 0)


def test_thousands_of_ports_take_seconds() -> None:
    """Oracle: the permutation of the hosts. 648 hosts, 2,592 ports."""
    moment = scaled([18, 36], [1, 18])
    assert len(moment.subnet.ports) == 2592
    began = time.process_time()
    (traffic, *_) = infer_traffic(moment)
    assert time.process_time() - began < 30
    assert traffic.pairs > 400_000
    assert traffic.unexplained < 0.001
    # By hand: each leaf and each spine receives what it sends, which makes 54 sums the same.
    assert traffic.rank == 2592 - 54
    found = dict(zip(traffic.paths.sources, traffic.paths.destinations, strict=True))
    assert found == {host: (host - 37) % 648 for host in range(648)}


def test_a_twin_is_the_same_each_time(tmp_path: Path) -> None:
    def text() -> str:
        twin: Twin = make_twin(dumped_moment(tmp_path))
        return twin.scenario.to_toml()

    assert text() == text()
