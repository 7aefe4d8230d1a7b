"""The name of a scheme means one set of settings in every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan._silvan import scheme_names, scheme_tables
from silvan.comparing.comparison import compare, with_probes
from silvan.comparing.tuning.settings import search_of
from silvan.comparing.tuning.space import Parameter
from silvan.comparing.tuning.tune import Objective, start_of, tune
from silvan.errors import ScenarioError
from silvan.inputs.toml_text import TomlValue
from silvan.results.measures import row_measures
from silvan.results.receive_rates import delivered
from tests.conftest import Command
from tests.test_guide import ROOT

pytestmark = pytest.mark.usefixtures("inline_pool")

VICTIM = ROOT / "examples" / "victim.toml"
TREE = {"generator": "xgft", "children": [4, 3], "parents": [1, 2], "routing": "d-mod-k"}
TRAFFIC = {"uniform": [{"load": 0.5}], "incast": [{"to": "host-0000"}]}


def fabric(name: str, **sections: Any) -> silvan.Scenario:
    """Set up one of three fabrics whose links have different rates."""
    if name == "tree of EDR":
        base = {"fabric": TREE, "traffic": TRAFFIC, "packet": {"mtu": "4 KiB"}}
        return silvan.Scenario(**{**base, "link": {"speed": "EDR"}, **sections})
    file = silvan.Scenario.from_file(VICTIM)
    speed = name.rpartition(" ")[2]
    keys: dict[str, TomlValue] = {"link.speed": speed, "packet.mtu": "2 KiB", **sections}
    return file.override({"run.warm-up": "0 s", **keys})


def victim(**keys: TomlValue) -> silvan.Scenario:
    """Read the example, on links of 400 Gbit/s."""
    written = {key.replace("__", "."): value for key, value in keys.items()}
    base = {"link.speed": "NDR", "packet.mtu": "4 KiB", "run.warm-up": "0 s"}
    return silvan.Scenario.from_file(VICTIM).override({**base, **written})


def suited(scenario: silvan.Scenario) -> list[str]:
    return [one["name"] for one in scenario.scheme_variants() if not one["unsuited"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain of DDR", "tree of EDR", "chain of NDR"])
def test_run_compare_and_sweep_agree_to_the_last_digit(name: str, tmp_path: Path) -> None:
    """Oracle: the tables of a run of the scenario with ``control.scheme`` set, and nothing else."""
    scenario = with_probes(fabric(name, run={"duration": "150 us"}))
    names = suited(scenario)
    assert len(names) > 15
    ranking = compare(scenario, out=tmp_path / "runs")
    assert [row.baseline.name for row in ranking] == names
    swept = silvan.sweep(scenario, {"control.scheme": names})
    for row, point in zip(ranking, swept.points.to_pylist(), strict=True):
        assert not row.failure
        own = silvan.run(scenario.override({"control.scheme": row.baseline.name}))
        (folder,) = row.folders
        compared = silvan.Result.read(folder)
        assert compared.scenario.hash == own.scenario.single_run(own.seed).hash
        assert compared.tables.keys() == own.tables.keys()
        for table_name, table in own.tables.items():
            assert compared.tables[table_name].equals(table), (row.baseline.name, table_name)
        assert point["control.scheme"] == row.baseline.name
        for measure, value in row_measures(own).items():
            assert point[measure] == value, (row.baseline.name, measure)


def test_the_command_runs_what_python_runs(command: Command, tmp_path: Path) -> None:
    words = ("--set", "run.duration=200 us", "--set", "run.warm-up=0 s", "--json")
    for name in ("hpcc", "timely+patched", "ib-cc+table1"):
        done = command("run", str(VICTIM), "--set", f"control.scheme={name}", *words, cwd=tmp_path)
        assert done.status == 0, done.stderr
        (run,) = json.loads(done.stdout)["runs"]
        keys = {"control.scheme": name, "run.duration": "200 us", "run.warm-up": "0 s"}
        own = silvan.run(silvan.Scenario.from_file(VICTIM).override(keys))
        assert run["summary"]["delivered_bytes"] == own.summary["delivered_bytes"]
        assert run["summary"]["events"] == own.summary["events"]


@pytest.mark.parametrize("name", [name for name in scheme_names() if name != "python"])
def test_the_effective_scenario_states_all_settings(name: str) -> None:
    """Oracle: a scenario that writes every value is its own effective form."""
    lanes = {"data-vls": 12} if name in {"voqnet", "voqsw"} else {}
    scenario = fabric("tree of EDR", control={"scheme": name}, vl=lanes)
    written = silvan.Scenario(**scenario.to_dict())
    assert written.to_dict() == scenario.to_dict()


def test_a_written_value_is_taken_as_written() -> None:
    """Oracle: the bandwidth-delay product by hand; the fabric's rate is ten times DCQCN's."""
    published = victim(control__scheme="dcqcn").control.dcqcn
    assert published.k_min.bytes == 50_000
    assert published.rate_ai.bits_per_s == 400e6
    own = victim(control__scheme="dcqcn", **{"control.dcqcn.k-min": "7 kB"}).control.dcqcn
    assert own.k_min.bytes == 7_000
    assert own.rate_ai == published.rate_ai
    # Keys of a table that stands for a whole are not mixed.
    table: TomlValue = {"shape": "geometric", "first": 1.0, "ratio": 1.05}
    cct = victim(control__scheme="ib-cc", **{"control.ib-cc.adapter.cct": table})
    assert cct.to_dict()["control"]["ib-cc"]["adapter"]["cct"] == table


def test_show_says_where_each_value_comes_from(command: Command) -> None:
    words = ("--set", "control.scheme=dcqcn", "--set", "control.dcqcn.g=0.01")
    done = command("show", str(VICTIM), *words)
    section = done.stdout.split("[control.dcqcn]\n")[1].split("\n\n")[0].splitlines()
    by_key = {line.removeprefix("# ").partition(" = ")[0]: line for line in section}
    assert by_key["g"] == "g = 0.01"
    assert by_key["k-min"].endswith("# published settings of dcqcn here")
    assert by_key["alpha-timer"].endswith("# default of the parameter")
    # The printed text reads back as the same scenario.
    again = silvan.Scenario.from_toml(done.stdout)
    overrides: dict[str, TomlValue] = {"control.scheme": "dcqcn", "control.dcqcn.g": 0.01}
    assert again.hash == silvan.Scenario.from_file(VICTIM).override(overrides).hash


def test_lanes_of_a_scheme_share_the_buffer_of_one() -> None:
    """Oracle: the memory of a port, before and with the lanes."""
    one = fabric("tree of EDR", switch={"buffer": "96 KiB"}, packet={"mtu": "2 KiB"})
    for name, lanes in {"vftree": 8, "dftree": 2, "recn": 8, "srp": 2}.items():
        scenario = one.override({"control.scheme": name})
        assert (scenario.vl.data_vls, scenario.vl.share_buffer) == (lanes, True)
        assert scenario.switch.buffer == "96 KiB"
    # A queue that fills half of the lane's memory is detected.
    recn = one.override({"control.scheme": "recn"}).control.recn
    assert recn.detection.bytes == 96 * 1024 // 8 // 2


@pytest.mark.parametrize(
    ("scheme", "threshold"),
    [
        ("swift", "base-target, 25 us"),
        ("timely+patched", "t-low"),
        ("nscc", "target-delay"),
        ("dcqcn", "k-min, 1 MB"),
    ],
)
def test_a_scheme_that_never_acted_is_named(
    scheme: str, threshold: str, command: Command, tmp_path: Path
) -> None:
    """Oracle: without contributors nothing is congested, and rates are those without control."""
    quiet = silvan.Scenario(
        fabric={"generator": "chain", "switches": 2, "hosts-per-switch": 4, "routing": "min-hop"},
        link={"speed": "NDR"},
        packet={"mtu": "4 KiB"},
        traffic={"flow": [{"from": "host-0002", "to": "host-0007", "load": 0.1}]},
        control={"dcqcn": {"k-min": "1 MB", "k-max": "2 MB"}},
        run={"duration": "100 us"},
    )
    result = silvan.run(quiet.override({"control.scheme": scheme}))
    assert threshold in result.summary["idle_scheme"]
    off = silvan.run(quiet.override({"control.scheme": "none"}))
    assert off.summary["idle_scheme"] is None
    assert result.hosts["delivered_bytes"].equals(off.hosts["delivered_bytes"])
    path = tmp_path / "quiet.toml"
    path.write_text(quiet.to_toml())
    done = command("run", str(path), "--set", f"control.scheme={scheme}", cwd=tmp_path)
    assert f"note: {scheme} never acted: " in done.stderr
    assert threshold in done.stderr
    done = command("compare", str(path), "--schemes", scheme, "--json", cwd=tmp_path)
    assert threshold in json.loads(done.stdout)[1]["idle"]
    varied = f"control.scheme=none,{scheme}"
    done = command("sweep", str(path), "--grid", varied, "--out", "points", cwd=tmp_path)
    assert [line for line in done.stderr.splitlines() if "never acted" in line] == [
        f"note: {scheme} never acted: {result.summary['idle_scheme']}"
    ]
    few = ("--resolution", "0.5", "--set", f"control.scheme={scheme}")
    done = command("saturate", str(path), *few, cwd=tmp_path)
    assert done.stderr.count(f"note: {scheme} never acted: ") == 1


def test_a_scheme_that_changed_nothing_is_named(command: Command, tmp_path: Path) -> None:
    """Oracle: between two switches there is one path, so that `reps` chooses among none."""
    path = tmp_path / "victim.toml"
    path.write_text(victim(run__duration="300 us").to_toml())
    done = command("compare", str(path), "--schemes", "reps,hpcc,swift", cwd=tmp_path)
    assert "note: reps acted without effect: its numbers are those of none" in done.stderr
    assert done.stderr.count("without effect") == 1
    assert "note: swift never acted: " in done.stderr
    page = next(tmp_path.rglob("compare.html")).read_text("utf-8")
    assert "reps acted without effect: its numbers are those of none." in page


@pytest.mark.parametrize("scheme", ["ib-cc", "dcqcn", "hpcc", "pair-backpressure", "dftree"])
def test_a_scheme_that_acted_is_not_named(scheme: str) -> None:
    scenario = victim(control__scheme=scheme, run__duration="300 us")
    assert silvan.run(scenario).summary["idle_scheme"] is None


def test_settings_for_another_rate_are_named() -> None:
    (warning,) = victim(control__scheme="ib-cc+table1").warnings
    assert "16 Gbit/s" in warning
    assert victim(control__scheme="ib-cc+table1", link__speed="DDR").warnings == []
    assert victim(control__scheme="ib-cc").warnings == []


def test_a_table_of_another_scheme_is_named() -> None:
    control: dict[str, TomlValue] = {"scheme": "hpcc", "dcqcn": {"g": 0.1}}
    (warning,) = fabric("tree of EDR", control=control).warnings
    assert "control.dcqcn has no effect" in warning
    # An override that chooses the scheme leaves the tables of the others without effect on purpose.
    assert victim(control__scheme="hpcc", control__dcqcn__g=0.1).warnings == []
    assert victim(control__scheme="none", control__dcqcn__g=0.1).warnings == []


def test_default_settings_help_the_victim_at_400_gbit_per_s() -> None:
    """Oracle: three times the rate without control, while the root of congestion stays busy.

    `studies/ib-cc/defaults.py` has more fabrics, and seeds.
    """

    def rates(scheme: str) -> tuple[float, float]:
        keys: dict[str, TomlValue] = {"run.duration": "20 ms", "probe.interval": "1 ms"}
        result = silvan.run(victim(control__scheme=scheme, **keys))
        times_ps, sums = delivered(result)
        half = len(times_ps) // 2
        seconds = (times_ps[-1] - times_ps[half - 1]) / 1e12
        by_host = sums[half:].sum(axis=0) * 8e-9 / seconds
        return float(by_host[7]), float(by_host[4])

    off, on = rates("none"), rates("ib-cc")
    assert on[0] > 3 * off[0]
    assert on[1] > 0.95 * off[1]


@pytest.mark.parametrize(
    ("scheme", "keys"),
    [("hpcc", {"eta", "additive-increase", "max-stage"}), ("half", {"threshold", "step"})],
)
def test_tune_searches_the_scheme_in_force(scheme: str, keys: set[str], tmp_path: Path) -> None:
    """Oracle: what the scheme declares in its file, and a run of the scenario as it is."""
    scenario = victim(control__scheme=scheme, run__duration="60 us")
    objectives = [Objective.parse("maximize total_gbps")]
    options: dict[str, Any] = {"trials": 2, "seeds": 1, "held_out_seeds": 0}
    found = tune(scenario, objectives, out=tmp_path / scheme, **options)
    assert set(found.settings) == {f"control.{scheme}.{key}" for key in keys}
    own = silvan.run(scenario).measures["total_gbps"]
    assert found.searched["start"].measures["total_gbps"] == own
    assert not any("opensm" in str(path) for path in found.files)
    parameters = [Parameter.parse("control.dcqcn.g", "0.001..0.1 log", "--vary")]
    with pytest.raises(ScenarioError, match=r"control\.dcqcn\.g has no effect"):
        tune(scenario, objectives, out=tmp_path / "other", parameters=parameters, **options)


def test_ranges_have_units() -> None:
    scenario = victim(control__scheme="dcqcn")
    one = Parameter.parse("control.dcqcn.alpha-timer", "10..200 us log", "--vary")
    assert start_of(scenario, [one]) == {one.key: 55.0}
    wrong = Parameter.parse("control.dcqcn.alpha-timer", "10..200 kB", "--vary")
    with pytest.raises(ScenarioError, match="another unit"):
        start_of(scenario, [wrong])


def test_searches_start_from_published_settings() -> None:
    """Oracle: DCQCN's thresholds at ten times its rate."""
    search = search_of(victim(control__scheme="dcqcn"))
    assert search is not None
    scales = {one.key: one.unit for one in search.space.parameters}
    assert scales["control.dcqcn.k-min"] == "x 50000 B"


def test_names_have_their_tables() -> None:
    assert scheme_tables("nscc+reps") == ["nscc", "reps"]
    assert scheme_tables("ib-cc+table1") == ["ib-cc"]
    assert scheme_tables("vftree") == ["vl-mapping"]
    assert scheme_tables("pigeon") == []
