"""The arena on links with credits and on links with PFC, and the plan of what it takes."""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

import pytest

import silvan
from silvan.comparing.arena import Arena, ArenaResult, plan_arena, read_arena, run_arena
from silvan.comparing.arena.run import prepared
from silvan.comparing.baselines import fitting
from silvan.execution.cache import build_id
from tests.conftest import Command
from tests.published import baseline
from tests.test_arena import results

pytestmark = pytest.mark.usefixtures("inline_pool")

SENDERS, BYTES, MTU = 4, 200_000, 4096
INCAST = f"""\
[fabric]
generator = "single-switch"
hosts = 6
[link]
speed = "EDR"
length = "5 m"
[switch]
latency = "200 ns"
[packet]
mtu = "4 KiB"
[[traffic.program]]
name = "incast"
kind = "incast"
hosts = {SENDERS + 1}
placement = "random"
bytes = "{BYTES} B"
[probe]
interval = "5 us"
[run]
duration = "5 ms"
"""
ARENA = """\
name = "both"
seeds = [1, 2, 3]
links = ["credits", "pfc"]
[tuning]
trials = 4
seeds = [11]
links = ["credits"]
[[case]]
name = "incast"
file = "incast.toml"
group = "100G"
tune = true
objective = "minimize programs_end_ms"
pfc = { "link.pfc.buffer" = "64 KiB" }
"""
# The schemes of Ethernet, and no control.
ON_BOTH = ["none", "dcqcn", "timely", "hpcc", "swift", "nscc"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arena")
    (folder / "incast.toml").write_text(INCAST)
    (folder / "both.toml").write_text(ARENA)
    return folder / "both.toml"


@pytest.fixture(scope="module")
def arena(file: Path) -> Arena:
    return read_arena(file)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def result(arena: Arena, root: Path) -> ArenaResult:
    return run_arena(arena, root, ["hpcc", "dcqcn", "pft"], workers=1)


def link_time_ms(header: int) -> float:
    """Time that the receiver's link takes for all messages, with the headers of their packets."""
    packets = -(-BYTES // MTU)
    return SENDERS * (BYTES + packets * header) / 12.5e6


def test_a_case_is_run_on_links_of_both_kinds(arena: Arena, result: ArenaResult) -> None:
    of_credits, pfc = arena.cases
    assert (of_credits.name, of_credits.link, of_credits.group) == ("incast", "credits", "100G")
    assert (pfc.name, pfc.link, pfc.group) == ("incast-pfc", "pfc", "100G-pfc")
    # Settings are tuned on the links that the arena names.
    assert (of_credits.is_tuned, pfc.is_tuned) == (True, False)
    assert {one.settings for one in result.entries if one.link == "pfc"} == {"published"}
    # Equal memory; headers of RoCE v2 instead of InfiniBand's.
    assert pfc.scenario.to_dict()["link"]["pfc"]["buffer"] == "64 KiB"
    assert (of_credits.scenario.packet.header.bytes, pfc.scenario.packet.header.bytes) == (26, 82)
    # Each seed draws the same hosts for both.
    placements = [
        [run.scenario.to_dict()["traffic"]["program"] for run in prepared(case, {}, arena.seeds)]
        for case in arena.cases
    ]
    assert placements[0] == placements[1]


def test_an_incast_ends_when_the_link_of_its_receiver_has_carried_it(result: ArenaResult) -> None:
    """Oracle: without control the receiver's link is never idle, also while senders are paused.

    It begins after less than the base round trip. Under any scheme it takes its time.
    """
    for one in result.entries:
        header = 82 if one.link == "pfc" else 26
        assert one.objective >= link_time_ms(header), one
        if one.baseline.name == "none":
            base_ms = one.runs[0].scenario.base_rtt_s * 1e3
            assert one.objective <= link_time_ms(header) + base_ms, one


@pytest.mark.parametrize("name", ON_BOTH)
@pytest.mark.parametrize("link", ["credits", "pfc"])
def test_nothing_is_lost_and_all_that_is_sent_arrives(arena: Arena, name: str, link: str) -> None:
    """Oracle: conservation of bytes at hosts and cables; each pause that is sent is received."""
    (case,) = arena.on_links([link]).cases
    one = baseline(case.scenario, name)
    (placed,) = prepared(case, one.overrides, [2])
    run = silvan.run(placed.scenario)
    sent, received = (
        sum(run.hosts[column].to_pylist()) for column in ("injected_bytes", "delivered_bytes")
    )
    # A program's hosts also tell each other in a few bytes that they begin.
    assert SENDERS * BYTES <= sent == received < 1.001 * SENDERS * BYTES
    assert sum(run.ports["xmit_bytes"].to_pylist()) == sum(run.ports["rcv_bytes"].to_pylist())
    if link == "pfc":
        sent, received = (
            sum(run.ports[column].to_pylist()) for column in ("pause_sent", "pause_rcv")
        )
        assert sent == received
        assert sent > 0 or name != "none"


def test_an_arena_that_was_stopped_goes_on_with_equal_results(
    arena: Arena, root: Path, result: ArenaResult
) -> None:
    files = sorted((root / build_id()).glob("*.json"))
    for path in files[::3]:
        path.unlink()
    again = run_arena(arena, root, ["hpcc", "dcqcn", "pft"], workers=1)
    assert again.made == len(files[::3])

    def without_speed(one: ArenaResult) -> list[dict[str, object]]:
        rows = [entry.to_dict() for entry in one.entries]
        return [{key: row[key] for key in row if key != "packet_hops_per_s"} for row in rows]

    assert without_speed(again) == without_speed(result)


def test_schemes_that_cannot_live_on_pfc_are_named_with_the_reason(
    command: Command, file: Path, arena: Arena, result: ArenaResult, tmp_path: Path
) -> None:
    by_case = {
        case.name: {one.baseline.name for one in result.entries if one.case == case.name}
        for case in arena.cases
    }
    assert by_case["incast"] - by_case["incast-pfc"] == {"pft"}
    assert set(result.absent["incast-pfc"]) == {"pft"}
    assert result.absent["incast"] == {}
    done = command(
        *("compare", file, "--arena", "--links", "pfc", "--quick", "--schemes", "dcqcn,pft"),
        *("--out", tmp_path),
    )
    assert done.status == 0, done.stderr
    folder = results(tmp_path)
    page = (folder / "arena.html").read_text()
    assert "reads the credits of its host" in page
    assert "Links: PFC (Ethernet)." in page
    facts = json.loads((folder / "arena.json").read_text())
    assert [one["link"] for one in facts["cases"]] == ["pfc"]
    assert "credits of its host" in facts["cases"][0]["left_out"]["pft"]
    with (folder / "arena.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert {(row["link"], row["scheme"]) for row in rows} == {("pfc", "none"), ("pfc", "dcqcn")}
    assert {one.name for one in folder.glob("arena-*")} == {"arena-pfc.png", "arena-pfc.svg"}
    words = ("--links", "credits", "--quick", "--schemes", "dcqcn", "--out", tmp_path)
    done = command("compare", file, "--arena", *words)
    assert done.status == 0, done.stderr
    # The drawing has the cases of the page, and each choice of cases has its folder.
    other = tmp_path / "arena-both" / "quick-schemes-dcqcn-links-credits"
    assert {one.name for one in other.glob("arena-*")} == {
        "arena-credits.png",
        "arena-credits.svg",
    }
    assert {one.name for one in folder.glob("arena-*")} == {"arena-pfc.png", "arena-pfc.svg"}


def test_reasons_are_those_of_schemes_that_take_part_with_credits(arena: Arena) -> None:
    of_credits, pfc = (case.scenario for case in arena.cases)
    tree = {"generator": "xgft", "children": [4, 2], "parents": [1, 2], "routing": "d-mod-k"}
    with_all = silvan.Scenario(fabric=tree, switch={"buffer": "64 KiB"})
    assert fitting(with_all).unsuited == {}
    every = {one.name for one in fitting(with_all).every}
    # Each scheme takes part, or there is a reason.
    odd = (("vl.data-vls", 2), ("switch.buffer", "8 KiB"), ("switch.queueing", "fifo"))
    for scenario in (of_credits, pfc, *(with_all.override({key: to}) for key, to in odd)):
        taking_part = {one.name for one in fitting(scenario).every}
        assert taking_part | set(fitting(scenario).unsuited) == every
        assert not taking_part & set(fitting(scenario).unsuited)
    assert {"pft", "vftree", "recn"} <= set(fitting(pfc).unsuited)


def test_lanes_suit_every_fabric_whose_routes_need_none() -> None:
    """Set-aside queues and their like are not for fat trees alone; a torus needs its lanes."""
    switch = {"buffer": "64 KiB"}
    tree = {"generator": "xgft", "children": [4, 2], "parents": [1, 2], "routing": "min-hop"}
    assert set(fitting(silvan.Scenario(fabric=tree, switch=switch)).unsuited) == {"vftree"}
    torus = {"generator": "torus", "sizes": [3, 3], "hosts-per-switch": 1}
    for lanes in (1, 2):
        scenario = silvan.Scenario(fabric=torus, switch=switch, vl={"data-vls": lanes})
        assert {"recn", "flow2sl", "dbbm", "srp"} <= set(fitting(scenario).unsuited)


def test_a_scheme_that_is_named_on_pfc_alone_is_refused(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "incast.toml"
    path.write_text(INCAST)
    done = command("compare", path, "--set", "link.flow-control=pfc", "--schemes", "recn")
    assert done.status == 2
    assert "'recn' takes no part on links with PFC" in " ".join(done.stderr.split())


def test_the_plan_counts_the_runs_and_their_time(
    arena: Arena, file: Path, tmp_path: Path, root: Path, result: ArenaResult
) -> None:
    """
    Oracle: three seeds for each scheme with published and with tuned settings.

    Four trials on one seed, with a run without control, where settings are tuned.
    """
    reduced = read_arena(file, quick=True)
    fresh = plan_arena(arena, reduced, tmp_path / "runs", ["hpcc"], workers=1)
    points = {(one.case, one.scheme): (one.published, one.tuned, one.trials) for one in fresh}
    assert points == {
        ("incast", "none"): (3, 0, 1),
        ("incast", "hpcc"): (3, 3, 4),
        ("incast-pfc", "none"): (3, 0, 0),
        ("incast-pfc", "hpcc"): (3, 0, 0),
    }
    assert all(one.processor_s > 0 and one.hops_per_s > 0 for one in fresh)
    # The times of finished runs are known.
    known = plan_arena(arena, reduced, root, ["hpcc", "dcqcn", "pft"], workers=1)
    assert all(one.is_measured for one in known)
    (one,) = [one for one in known if (one.case, one.scheme) == ("incast-pfc", "hpcc")]
    (entry,) = [one for one in result.entries if (one.case, one.label) == ("incast-pfc", "hpcc")]
    times = [
        json.loads((root / build_id() / f"{run.key}.json").read_text())["processor_s"]
        for run in entry.runs
    ]
    assert one.run_s == pytest.approx(statistics.fmean(times))
    assert one.processor_s == pytest.approx(sum(times))


def test_the_plan_is_printed(command: Command, file: Path, tmp_path: Path) -> None:
    words = ("compare", file, "--arena", "--schemes", "hpcc", "--plan", "--out", tmp_path)
    done = command(*words, "--workers", "1")
    assert done.status == 0, done.stderr
    # 3 + 1 and 3 + 3 + 4 with credits, 3 and 3 with PFC.
    assert "20 runs" in done.stderr
    assert "on 1 core" in done.stderr
    assert "what it takes, by scheme" in done.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('links = ["credits", "pfc"]', 'links = "pfc"'), "links: pfc is no list of kinds"),
        (('links = ["credits", "pfc"]', 'links = ["tin"]'), "is no list of kinds of links"),
        (('"credits", "pfc"', '"pfc", "pfc"'), "links: a kind is listed twice"),
        (('"64 KiB"', '"1 KiB"'), "link.pfc.buffer"),
        (("pfc = {", "pcf = {"), "case.pcf: unknown key"),
    ],
)
def test_wrong_links_are_refused_with_their_place(
    file: Path, tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    (tmp_path / "incast.toml").write_text(INCAST)
    wrong = tmp_path / "both.toml"
    wrong.write_text(file.read_text().replace(*change))
    with pytest.raises(silvan.ScenarioError) as caught:
        read_arena(wrong)
    assert message in str(caught.value)
    assert "both.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arena", "--links", "tin"], "there are no links 'tin'"),
        (["small.toml", "--plan"], "needs --arena"),
        (["small.toml", "--links", "pfc"], "needs --arena"),
    ],
)
def test_wrong_arguments_are_refused(command: Command, words: list[str], message: str) -> None:
    done = command("compare", *words)
    assert done.status == 2
    assert message in " ".join(done.stderr.split())


def test_a_case_on_one_kind_of_links_keeps_its_name(file: Path, tmp_path: Path) -> None:
    (tmp_path / "incast.toml").write_text(INCAST)
    path = tmp_path / "both.toml"
    path.write_text(file.read_text().replace('links = ["credits", "pfc"]', 'links = ["pfc"]'))
    (case,) = read_arena(path).cases
    assert (case.name, case.link) == ("incast", "pfc")
    path.write_text(file.read_text().replace('links = ["credits", "pfc"]\n', ""))
    arena = read_arena(path)
    assert [(one.name, one.link) for one in arena.cases] == [("incast", "credits")]
    with pytest.raises(silvan.SilvanError, match="no case has links with pfc"):
        arena.on_links(["pfc"])
