"""The command line: what goes to stdout, what to stderr, and the exit status."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import silvan
from silvan.cli.options import view_keys
from silvan.errors import OutputError
from silvan.folders import Origin, claimed_results, exclusive
from tests.conftest import DDR_TOML, INCAST, Command, Outcome, ddr_scenario

if TYPE_CHECKING:
    pass


def test_version(command: Command) -> None:
    assert command("--version") == Outcome(0, f"silvan {silvan.__version__}\n", "")


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_names_every_command(command: Command, words: list[str]) -> None:
    outcome = command(*words)
    assert (outcome.status, outcome.stderr) == (0, "")
    listed = re.findall(r"^  ([a-z]+)  ", outcome.stdout, re.MULTILINE)
    assert listed == [
        *("example", "validate", "show", "export", "schema", "run", "sweep", "plot", "view"),
        *("compare", "reproduce"),
        *("saturate", "whatif", "tune", "fit"),
        *("emulate", "mpirun", "route", "ctl"),
        *("diagnose", "exporter", "dcms"),
    ]
    panels = re.findall(r"^([A-Z][a-z ]+):$", outcome.stdout, re.MULTILINE)
    assert panels == [
        "Options",
        "Simulate",
        "Compare and reproduce",
        "Plan",
        "Live fabric",
        "Real subnet",
    ]
    # Every command is described by a whole phrase.
    assert "..." not in outcome.stdout.replace("[ARGS]...", "")


def test_help_imports_nothing_heavy(command: Command) -> None:
    program = (
        "import sys; from silvan.cli import main; main(['--help']);"
        "heavy = {'numpy', 'pyarrow', 'matplotlib', 'multiprocessing', 'rich', 'distributed'};"
        "sys.exit(sorted(heavy & set(sys.modules)) or 0)"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_validate_describes_the_fabric(command: Command, incast_file: Path) -> None:
    outcome = command("validate", incast_file)
    assert (outcome.status, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith(f"{incast_file}: valid\n")
    facts = json.loads(command("validate", incast_file, "--json").stdout)
    assert facts["name"] == "incast"
    assert facts["hosts"] == 4
    assert facts["hash"] == silvan.Scenario.from_toml(INCAST).hash


def test_show_prints_the_effective_scenario(command: Command, incast_file: Path) -> None:
    expected = silvan.Scenario.from_toml(INCAST, overrides={"run.seed": 9})
    shown = command("show", incast_file, "--set", "run.seed=9")
    text, _, facts = shown.stdout.partition("# What it builds:\n")
    assert (shown.status, shown.stderr) == (0, "")
    # Everything but what belongs to a scheme that is not in force.
    lines = expected.to_toml().splitlines()
    assert set(text.splitlines()) <= set(lines)
    assert not any("[control." in line for line in text.splitlines())
    assert "#   routing: d-mod-k (the default of single-switch)\n" in facts
    assert "#   input buffer per virtual lane in switches, 16 Gbit/s, 10 ns: 65536 B" in facts
    as_json = command("show", incast_file, "--set", "run.seed=9", "--json")
    assert json.loads(as_json.stdout) == expected.to_dict()
    printed = tomllib.loads(text.replace("# ", ""))
    assert {**expected.to_dict(), "control": {"scheme": "none"}} == printed


def test_show_prints_the_settings_of_the_scheme_in_force(
    command: Command, incast_file: Path
) -> None:
    """Settings of a scheme are right for the fabric only where the scheme is in force."""
    words = ["control.scheme=nscc+reps", "control.swift.beta=0.5"]
    text = command("show", incast_file, *(word for one in words for word in ("--set", one))).stdout
    tables = re.findall(r"\[control\.([\w-]+)", text)
    # A written value stays visible with every scheme.
    assert sorted(tables) == ["feedback", "nscc", "reps", "swift"]
    assert "published settings of nscc+reps here" in text
    assert silvan.Scenario.from_toml(text) == silvan.Scenario.from_toml(
        INCAST, overrides={"control.scheme": "nscc+reps", "control.swift.beta": 0.5}
    )


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["run", "FILE", "--sed", "3"], "did you mean --seed? See silvan run --help"),
        (["run", "FILE", "--schem=hpcc"], "did you mean --scheme? See silvan run --help"),
        (
            ["run", "FILE", "--durations", "5 ms"],
            "did you mean --set run.duration=VALUE? See silvan run --help",
        ),
        (
            ["sweep", "FILE", "--mtu", "1 KiB"],
            "did you mean --set packet.mtu=VALUE? See silvan sweep --help",
        ),
        (
            ["whatif", "FILE", "--durations", "5 ms"],
            "did you mean --duration? See silvan whatif --help",
        ),
        (
            ["ctl", "start", "--socknme", "x"],
            "did you mean --sockname? See silvan ctl start --help",
        ),
        (["dcms", "--exmple"], "did you mean --example? See silvan dcms --help"),
        # Nothing is similar, or the command sets no keys.
        (["run", "FILE", "--xyzzy"], "see silvan run --help"),
        (["plot", "--duration", "x"], "see silvan plot --help"),
    ],
)
def test_a_misspelt_option_gets_a_suggestion(
    command: Command, incast_file: Path, words: list[str], advice: str
) -> None:
    given = [str(incast_file) if word == "FILE" else word for word in words]
    outcome = command(*given)
    option = next(word for word in given if word.startswith("--")).partition("=")[0]
    assert outcome.status == 2
    assert outcome.stderr == f"error: No such option: {option}\nhint: {advice}\n"


def test_every_option_is_suggested_for_one_letter_less() -> None:
    """Over all commands: the option without its last letter gets a suggestion."""
    import typer

    from silvan.cli.app import app
    from silvan.cli.misspelt import suggestion

    commands = [typer.main.get_command(app)]
    while commands:
        one = commands.pop()
        commands += getattr(one, "commands", {}).values()
        names = {name for of in one.params for name in of.opts if name.startswith("--")}
        for name in names:
            if name[:-1] not in names and len(name) > 4:
                assert suggestion(name[:-1], one), (one.name, name)


def test_export_prints_the_fabric_for_ibsim(command: Command, incast_file: Path) -> None:
    """Every cable is at both of its ends: four hosts at one switch."""
    outcome = command("export", incast_file, "--format", "ibsim")
    assert (outcome.status, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    hosts = [line for line in lines if line.startswith("Hca\t1 ")]
    ports = [line for line in lines if line.startswith("[")]
    assert (len(hosts), len(ports)) == (4, 8)


def test_schema_is_the_schema(command: Command) -> None:
    assert json.loads(command("schema").stdout) == silvan.schema()


def test_run_prints_a_table(command: Command, incast_file: Path) -> None:
    outcome = command("run", incast_file)
    assert (outcome.status, outcome.stderr) == (0, "")
    assert "hotspots," in outcome.stdout
    assert "Gbit/s" in outcome.stdout


def test_a_table_of_runs_has_the_measures_that_are_chosen(
    command: Command, incast_file: Path
) -> None:
    words = ("--seeds", "2", "--set", "run.duration=100 us")
    outcome = command("run", incast_file, *words, "--measures", "latency_p999_us,fct_mean_us")
    assert outcome.status == 0, outcome.stderr
    assert "hotspots," not in outcome.stdout
    # A run without flows has no completion times.
    assert all(" - " in line for line in outcome.stdout.splitlines() if line.startswith("│"))
    unknown = command("run", incast_file, "--measures", "fct_p98_us")
    assert unknown.status == 2
    assert "--measures: a run has no measure fct_p98_us" in unknown.stderr
    assert "fct_p99_us" in unknown.stderr


def test_run_prints_json_that_agrees_with_the_api(command: Command, incast_file: Path) -> None:
    outcome = command("run", incast_file, "--json", "--set", "run.duration=100 us")
    assert (outcome.status, outcome.stderr) == (0, "")
    report = json.loads(outcome.stdout)
    scenario = silvan.Scenario.from_toml(INCAST, overrides={"run.duration": "100 us"})
    result = silvan.run(scenario)
    (one,) = report["runs"]
    assert report["hash"] == scenario.hash
    assert one["seed"] == 3
    assert one["classes"] == result.classes.to_pylist()
    delivered = sum(result.hosts["delivered_bytes"].to_pylist())
    assert one["measures"]["total_gbps"] == pytest.approx(delivered * 8 / 100e-6 / 1e9)


def test_run_keeps_every_seed(command: Command, incast_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("run", incast_file, "--seeds", "3", "--seed", "5", "--out", out, "--json")
    outcome = command(*words)
    assert outcome.status == 0
    report = json.loads(outcome.stdout)
    assert [one["seed"] for one in report["runs"]] == [5, 6, 7]
    assert sorted(path.name for path in out.iterdir()) == ["seed-5", "seed-6", "seed-7"]
    for one in report["runs"]:
        result = silvan.Result.read(one["folder"])
        assert result.seed == one["seed"]
        assert result.classes.to_pylist() == one["classes"]


def test_run_refuses_what_sweep_is_for(command: Command, incast_file: Path, tmp_path: Path) -> None:
    sweep = '\n[sweep]\nseeds = 2\n[sweep.vary]\n"host.sink-rate" = ["4 Gbit/s", "8 Gbit/s"]\n'
    incast_file.write_text(INCAST + sweep)
    refused = command("run", incast_file, "--out", tmp_path / "out")
    assert refused.status == 2
    error, hint = refused.stderr.splitlines()
    assert error.startswith("error: incast: the scenario varies host.sink-rate;")
    assert "silvan sweep" in hint
    assert not (tmp_path / "out").exists()
    base = command("run", incast_file, "--set", "sweep.vary={}", "--json")
    assert base.status == 0, base.stderr
    # The number of seeds of the sweep counts for a run, too.
    assert [one["seed"] for one in json.loads(base.stdout)["runs"]] == [3, 4]


def test_a_credit_loop_ends_the_run_and_is_named(command: Command, tmp_path: Path) -> None:
    # Every host of a ring of five sends two switches on, the short way round, so every cable of
    # that way waits for the next one's buffer.
    path = tmp_path / "ring.toml"
    path.write_text(
        "[fabric]\n"
        'generator = "ring"\nswitches = 5\nhosts-per-switch = 1\n'
        'routing = "min-hop"\nallow-credit-loops = true\n'
        '[link]\nwidth = "4x"\nspeed = "DDR"\n'
        '[switch]\nbuffer = "4 KiB"\n[packet]\nmtu = "2 KiB"\n'
        '[[traffic.permutation]]\npattern = "shift"\nshift = 2\n'
    )
    outcome = command("run", path, "--out", tmp_path / "out")
    assert (outcome.status, outcome.stdout) == (1, "")
    warning, error, hint = outcome.stderr.splitlines()
    assert warning.startswith("warning: switch.buffer: 4 KiB let a cable of 16 Gbit/s")
    assert error.startswith("error: deadlock at ")
    for switch in range(5):
        assert f"switch-0{switch}:" in error
    assert hint.startswith("hint: ")
    assert list((tmp_path / "out").iterdir()) == []


STAR = {"generator": "single-switch", "hosts": 4, "routing": "min-hop"}
TWO_RATES = {
    **{"generator": "leaf-spine", "leaf-hosts": [2, 2], "spine-cables": [1, 1]},
    **{"routing": "min-hop", "path-choice": "adaptive", "spine-links": [{"speed": "QDR"}]},
}


@pytest.mark.parametrize(
    ("tables", "line"),
    [
        (
            {"fabric": STAR},
            "1 switch; links 4x DDR, 16 Gbit/s; MTU 2 KiB; routing min-hop; scheme none",
        ),
        (
            {
                "fabric": STAR,
                "link": {"rate": "100 Gbit/s", "flow-control": "pfc"},
                "control": {"scheme": "dcqcn"},
            },
            "1 switch; links 100 Gbit/s, PFC; MTU 2 KiB; routing min-hop; scheme dcqcn",
        ),
        (
            {"fabric": TWO_RATES, "packet": {"mtu": "4 KiB"}},
            "4 switches; links 16 and 32 Gbit/s; MTU 4 KiB; "
            "routing min-hop (adaptive); scheme none",
        ),
    ],
    ids=["credits", "pfc", "two rates"],
)
def test_a_run_says_what_its_numbers_rest_on(
    command: Command, tmp_path: Path, tables: dict[str, Any], line: str
) -> None:
    """Oracle: the values that the scenario states, in words."""
    traffic = {"incast": [{"to": "host-0000"}]}
    scenario = ddr_scenario(**tables, traffic=traffic, run={"duration": "20 us"})
    (tmp_path / "one.toml").write_text(scenario.to_toml())
    first = command("run", tmp_path / "one.toml").stdout.splitlines()[0]
    assert first == f"4 hosts; {line}; 1 thread"


README_INCAST = f"""\
[fabric]
generator = "single-switch"
hosts = 8
{DDR_TOML}
[[traffic.incast]]
to = "host-0000"

[run]
duration = "1 ms"
"""


@pytest.mark.slow
def test_the_target_of_an_incast_is_a_hotspot(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "incast.toml"
    path.write_text(README_INCAST)
    (run,) = json.loads(command("run", path, "--json").stdout)["runs"]
    # 2048 of every 2074 bytes on a link of 16 Gbit/s, but for the first packet's way.
    rate = run["measures"]["hotspots_gbps"]
    assert rate == pytest.approx(16 * 2048 / 2074, rel=2e-3)
    assert run["measures"]["total_gbps"] == rate
    assert "other_receivers_gbps" not in run["measures"]
    shown = command("run", path).stdout
    assert "hotspots" in shown
    assert "total" in shown
    assert f"{rate:.3f}" in shown
    assert "receivers," not in shown


@pytest.mark.slow
def test_the_mean_of_other_receivers_leaves_out_hosts_without_traffic(
    command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "flows.toml"
    flow = '[[traffic.flow]]\nfrom = "host-0001"\nto = "host-0002"\nload = "4 Gbit/s"\n'
    path.write_text(
        README_INCAST.replace("[run]", f"from = ['host-0003', 'host-0004']\n{flow}\n[run]")
    )
    (run,) = json.loads(command("run", path, "--json").stdout)["runs"]
    rates = run["measures"]
    # A message of 4096 bytes may still be on its way.
    assert rates["other_receivers_gbps"] == pytest.approx(4, abs=4096 * 8e-6)
    assert rates["total_gbps"] == pytest.approx(
        rates["hotspots_gbps"] + rates["other_receivers_gbps"]
    )
    assert "receivers," in command("run", path).stdout


@pytest.mark.slow
def test_latencies_are_exact_and_percentiles_state_their_resolution(
    command: Command, tmp_path: Path
) -> None:
    for message, expected in (("2016 B", 1371.0), ("2018 B", 1372.0)):
        path = tmp_path / "alone.toml"
        path.write_text(
            '[fabric]\ngenerator = "single-switch"\nhosts = 2\n'
            '[link]\nwidth = "4x"\nspeed = "DDR"\nlength = "20 m"\n'
            '[switch]\nlatency = "150 ns"\n[packet]\nmtu = "2 KiB"\n'
            f'[traffic]\nmessage = "{message}"\n[[traffic.flow]]\n'
            'from = "host-0000"\nto = "host-0001"\nload = "4 Gbit/s"\n'
            '[run]\nduration = "1 ms"\n'
        )
        outcome = command("run", path, "--json", "--out", tmp_path / message.replace(" ", ""))
        report = json.loads(outcome.stdout)
        assert report["latency_percentile_resolution"] == 1 / 128
        (row,) = report["runs"][0]["classes"]
        # Two cables of 100 ns, 150 ns, and message and header at 16 Gbit/s, all in ns.
        for name in ("latency_mean_ns", "latency_min_ns", "latency_max_ns"):
            assert row[name] == expected, name
        for name in ("latency_p50_ns", "latency_p99_ns", "latency_p999_ns"):
            assert row[name] == expected, name
            result = silvan.Result.read(report["runs"][0]["folder"])
            metadata = result.classes.schema.field(name).metadata
            assert float(metadata[b"relative_resolution"]) == 1 / 128
    shown = command("run", path).stdout
    assert "percentiles: ±0.8%" in shown
    # Mean, minimum, percentiles and maximum, in µs.
    assert shown.count("1.372") == 6


OTHER = INCAST.replace("hosts = 4", "hosts = 5")


def _other_file(tmp_path: Path, name: str = "other") -> Path:
    path = tmp_path / "other.toml"
    path.write_text(OTHER.replace('name = "incast"', f'name = "{name}"'))
    return path


def _snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
def test_results_of_another_scenario_are_never_mixed(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert command("run", incast_file, "--seeds", "2", "--out", out).status == 0
    before = _snapshot(out)
    for name in ("other", "incast"):
        other = _other_file(tmp_path, name)
        # Also seeds that are not there yet.
        for seed in ("3", "9"):
            refused = command("run", other, "--seed", seed, "--out", out)
            assert refused.status == 2
            assert f"{out / 'seed-3'}: the result there is of another scenario" in refused.stderr
            assert "--overwrite" in refused.stderr
            assert _snapshot(out) == before
    assert command("run", other, "--seed", "9", "--out", out, "--overwrite").status == 0
    assert [path.name for path in out.iterdir()] == ["seed-9"]
    assert silvan.Result.read(out / "seed-9").hosts.num_rows == 5


@pytest.mark.slow
def test_results_of_the_same_scenario_are_replaced_and_added_to(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for seed in ("3", "3", "4"):
        assert command("run", incast_file, "--seed", seed, "--out", out).status == 0
    assert sorted(path.name for path in out.iterdir()) == ["seed-3", "seed-4"]


@pytest.mark.slow
def test_results_of_another_version_are_never_mixed(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert command("run", incast_file, "--out", out).status == 0
    manifest = out / "seed-3" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": "', '"version": "9.'))
    refused = command("run", incast_file, "--out", out)
    assert refused.status == 2
    assert "of silvan 9." in refused.stderr
    assert command("run", incast_file, "--out", out, "--overwrite").status == 0


@pytest.mark.slow
def test_results_that_cannot_be_read_are_never_mixed(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert command("run", incast_file, "--seeds", "2", "--out", out).status == 0
    (out / "seed-4" / "manifest.json").write_text("[]")
    before = _snapshot(out)
    for path in (incast_file, _other_file(tmp_path, "other")):
        refused = command("run", path, "--seed", "9", "--out", out)
        assert refused.status == 2
        assert f"{out / 'seed-4'}: the result there is damaged" in refused.stderr or (
            f"{out / 'seed-3'}: the result there is of another" in refused.stderr
        )
        assert _snapshot(out) == before
    assert command("run", incast_file, "--seed", "9", "--out", out, "--overwrite").status == 0
    assert sorted(path.name for path in out.iterdir()) == ["seed-3", "seed-9"]


def test_a_result_that_something_else_removes_is_missed(tmp_path: Path) -> None:
    result = silvan.run(silvan.Scenario.from_toml(INCAST))
    origin = Origin(result.scenario.name, result.scenario.hash, silvan.__version__)
    planned = {tmp_path / name: origin for name in ("seed-1", "seed-2")}

    def loses_one() -> None:
        with claimed_results(tmp_path, planned, overwrite=False):
            for folder in planned:
                result.write(folder)
            shutil.rmtree(tmp_path / "seed-1")

    with pytest.raises(OutputError, match=r"seed-1: .* and is gone \(1 of 2\)"):
        loses_one()


def test_two_commands_never_write_into_one_folder(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with exclusive(out, "command"):
        refused = command("run", incast_file, "--out", out)
        assert refused.status == 2
        assert f"{out}: another command is going on in this folder" in refused.stderr
        assert [path.name for path in out.iterdir()] == [".lock"]
    assert command("run", incast_file, "--out", out).status == 0
    assert [path.name for path in out.iterdir()] == ["seed-3"]


@pytest.mark.slow
def test_figures_of_different_runs_are_never_mixed(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    other = _other_file(tmp_path, "other")
    for file, out in ((incast_file, "one"), (other, "two")):
        assert command("run", file, "--trees", "--out", tmp_path / out).status == 0
    one, two = (tmp_path / name / "seed-3" for name in ("one", "two"))
    plots = tmp_path / "plots"
    assert command("plot", one, "--out", plots).status == 0
    before = _snapshot(plots)
    refused = command("plot", two, "--out", plots)
    assert refused.status == 2
    assert "--overwrite" in refused.stderr
    assert _snapshot(plots) == before
    assert command("plot", two, "trees", "--out", plots, "--overwrite").status == 0
    # No figure of the first run stays.
    assert not list(plots.glob("plot-receive-rates.*"))
    # Nor does a run write among figures of another scenario.
    assert command("run", incast_file, "--out", plots).status == 2
    assert (plots / "plot-trees.png").exists()
    assert command("run", incast_file, "--out", plots, "--overwrite").status == 0
    assert [path.name for path in plots.iterdir()] == ["seed-3"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("compare", "--schemes", "none"), ("sweep", "--seeds", "2")])
def test_no_command_mixes_results(
    command: Command, incast_file: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    options = (*words[1:], "--out", out)
    first = command(words[0], incast_file, *options)
    assert first.status == 0, first.stderr
    other = _other_file(tmp_path, "incast")
    refused = command(words[0], other, *options)
    assert refused.status == 2, refused.stderr
    assert "--overwrite" in refused.stderr
    assert command(words[0], incast_file, *options).status == 0
    done = command(words[0], other, *options, "--overwrite")
    assert done.status == 0, done.stderr
    assert command(words[0], other, *options).status == 0
    if words[0] == "sweep":
        assert command("run", incast_file, "--out", out).status == 2


@pytest.mark.parametrize(
    ("stated", "interval", "trees"),
    [
        ({}, "10 us", "10 us"),
        ({"probe.interval": "500 us"}, "500 us", "10 us"),
        # 30 us does not divide a warm-up of 1 ms, the next smaller time that does is 25 us.
        ({"run.duration": "3 ms", "run.warm-up": "1 ms"}, "25 us", "30 us"),
    ],
    ids=["default", "stated", "warm-up"],
)
def test_a_page_has_curves_also_where_no_interval_is_stated(
    stated: dict[str, str], interval: str, trees: str
) -> None:
    """Oracle: a hundredth of the run, or less."""
    fabric = {"generator": "single-switch", "hosts": 4}
    scenario = ddr_scenario(fabric=fabric, run={"duration": "1 ms"}).override(stated)
    probe = scenario.override(view_keys(scenario)).probe
    assert (str(probe.interval), str(probe.trees.interval)) == (interval, trees)


def test_the_options_of_a_run_are_applied_at_once(
    command: Command, incast_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: the overrides that reach the scenario, which reads the whole text for each call."""
    calls = []
    override = silvan.Scenario.override

    def counted(scenario: silvan.Scenario, keys: Any) -> silvan.Scenario:
        calls.append(sorted(keys))
        return override(scenario, keys)

    monkeypatch.setattr(silvan.Scenario, "override", counted)
    capture = ("--pcap", "host-0001", incast_file.with_name("x.pcap"))
    options = ("--trees", "--record", "view", "--trace", "host-0001,host-0000", *capture)
    assert command("run", incast_file, *options, "--json").status == 0
    (keys,) = calls
    assert {"probe.trees", "probe.ports", "probe.packets"} <= set(keys)
    calls.clear()
    assert command("run", incast_file, "--json").status == 0
    assert calls == []


@pytest.mark.parametrize(
    ("stated", "latency", "reads"),
    [
        ({}, "host-coarse", 0.1),
        ({"probe.latency": "host", "probe.trees": {"interval": "10 us"}}, "host", None),
    ],
    ids=["default", "stated"],
)
def test_recording_for_a_page_keeps_what_the_scenario_states(
    stated: dict[str, object], latency: str, reads: float | None
) -> None:
    """Oracle: cheap settings by default; the scenario's own where it has some."""
    scenario = ddr_scenario(fabric={"generator": "single-switch", "hosts": 4}).override(stated)
    probe = scenario.override(view_keys(scenario)).to_dict()["probe"]
    assert probe["latency"] == latency
    assert probe["trees"].get("reads-per-hop") == reads
