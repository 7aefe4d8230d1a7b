"""The figures of a result show the values of its tables."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import silvan
from silvan.cli.app import run_command as main
from silvan.results.receive_rates import FloatArray, measured_ps
from tests.conftest import INCAST, Command, ddr_scenario
from tests.test_extras import run_python_without

if TYPE_CHECKING:
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D


_SVG = "{http://www.w3.org/2000/svg}"


def across(line: Line2D) -> FloatArray:
    """Give the horizontal places of a curve."""
    return np.asarray(line.get_xdata(), dtype=np.float64)


def up(line: Line2D) -> FloatArray:
    """Give the values of a curve."""
    return np.asarray(line.get_ydata(), dtype=np.float64)


def colours(drawn: Collection) -> np.ma.MaskedArray[tuple[int], np.dtype[np.float64]]:
    """Give the values of a map."""
    values = drawn.get_array()
    assert values is not None
    return np.ma.asarray(values).ravel()


@pytest.fixture(scope="module")
def probed() -> silvan.Result:
    """Run the small scenario with all that a run can sample."""
    overrides = {
        "probe.interval": "10 us",
        "probe.ports": True,
        "probe.latency": "host",
        "probe.trees.interval": "10 us",
        "run.warm-up": "50 us",
    }
    return silvan.run(silvan.Scenario.from_toml(INCAST, overrides=overrides))


def test_receive_rates_are_those_of_the_series(incast: silvan.Result) -> None:
    (line,) = incast.plot.receive_rates().axes[0].get_lines()
    assert line.get_label() == "hotspots (mean)"
    np.testing.assert_allclose(across(line), [0.025, 0.075, 0.125, 0.175])
    mean = up(line).mean()
    assert mean == pytest.approx(incast.measures["hotspots_gbps"])


def test_a_single_sample_is_visible(incast: silvan.Result) -> None:
    """A line through one point has no length."""
    overrides = {"probe.interval": "200 us", "probe.ports": True}
    result = silvan.run(incast.scenario.override(overrides))
    for figure in (result.plot.receive_rates(), result.plot.queues(most=1)):
        (line,) = figure.axes[0].get_lines()
        assert len(across(line)) == 1
        assert line.get_marker() == "o"
    assert incast.plot.receive_rates().axes[0].get_lines()[0].get_marker() == ""


def test_receive_rates_of_hosts(incast: silvan.Result) -> None:
    (idle, hot) = incast.plot.receive_rates(["host-0001", "host-0000"]).axes[0].get_lines()
    assert [line.get_label() for line in (idle, hot)] == ["host-0001", "host-0000"]
    assert not up(idle).any()
    delivered = incast.host_series["delivered_bytes"].to_numpy()[::4]
    np.testing.assert_allclose(up(hot), delivered * 8 / 50_000)
    with pytest.raises(silvan.SilvanError, match="incast has no host 'unknown'"):
        incast.plot.receive_rates(["unknown"])


def test_queues_are_those_of_the_ports(probed: silvan.Result) -> None:
    lines = probed.plot.queues(most=2).axes[0].get_lines()
    # Three hosts send to one: the queue is at the port that faces the receiver.
    assert lines[0].get_label() == "switch-00:1"
    series = probed.tables["port_series"].to_pylist()
    own = [row["queued_bytes"] for row in series if row["ports_row"] == 0]
    np.testing.assert_allclose(up(lines[0]), np.array(own) / 1024)
    (one,) = probed.plot.queues(["switch-00:2"]).axes[0].get_lines()
    assert not up(one).any()
    with pytest.raises(silvan.SilvanError, match="no port 'switch-00:9'"):
        probed.plot.queues(["switch-00:9"])


def test_queues_of_trees_take_the_place_of_those_of_ports(probed: silvan.Result) -> None:
    tables = {name: table for name, table in probed.tables.items() if name != "port_series"}
    result = silvan.Result(probed.scenario, probed.seed, tables, probed.summary)
    in_trees, waiting = result.plot.queues().axes[0].get_lines()
    np.testing.assert_allclose(up(in_trees), probed.forest["queued_bytes"].to_numpy() / 1024)
    assert np.all(up(waiting) >= up(in_trees))


def test_the_map_has_the_utilisation_of_each_port_of_a_switch(probed: silvan.Result) -> None:
    figure = probed.plot.utilisation()
    (drawn,) = figure.axes[0].collections
    shares = colours(drawn).filled(np.nan)
    # The counters of the ports that hosts receive with are a second source.
    ports = {row["peer"]: row["rcv_bytes"] for row in probed.ports.to_pylist()}
    received = [ports[f"switch-00:{port}"] for port in range(1, 5)]
    rates = np.array(received) * 8e3 / measured_ps(probed)
    np.testing.assert_allclose(shares, 100 * rates / probed.scenario.link_gbps, rtol=0.01)
    assert drawn.get_clim() == (0, 100)
    assert shares[0] == pytest.approx(100, rel=0.02)


def test_a_slow_cable_is_fully_used_at_its_own_rate() -> None:
    """Oracle: 4x SDR carries 8 Gbit/s of data (10 Gbit/s with 8b/10b), 4x DDR twice that."""
    scenario = ddr_scenario(
        fabric={
            "switch": [{"name": "s", "ports": 2}],
            "host": [{"name": "a"}, {"name": "b"}],
            "cable": [{"from": "a", "to": "s:1"}, {"from": "b", "to": "s:2", "speed": "SDR"}],
        },
        link={"speed": "DDR"},
        traffic={"flow": [{"from": "a", "to": "b"}]},
        run={"duration": "200 us", "warm-up": "50 us"},
    )
    result = silvan.run(scenario)
    rows = result.ports.to_pylist()
    assert {(row["node"], row["port"]): row["link_gbps"] for row in rows} == {
        ("a", 1): 16,
        ("b", 1): 8,
        ("s", 1): 16,
        ("s", 2): 8,
    }
    (drawn,) = result.plot.utilisation().axes[0].collections
    shares = colours(drawn).filled(np.nan)
    assert shares == pytest.approx([0, 100], abs=2)


def test_ports_without_a_cable_are_white() -> None:
    scenario = ddr_scenario(
        fabric={
            "switch": [{"name": "s", "ports": 4}],
            "host": [{"name": "a"}, {"name": "b"}],
            "cable": [{"from": "a", "to": "s:1"}, {"from": "b", "to": "s:3"}],
        },
        traffic={"flow": [{"from": "a", "to": "b"}]},
        run={"duration": "20 us"},
    )
    (drawn,) = silvan.run(scenario).plot.utilisation().axes[0].collections
    assert np.ma.getmaskarray(colours(drawn)).tolist() == [False, True, False]


def test_the_distribution_of_latencies_agrees_with_the_percentiles(probed: silvan.Result) -> None:
    (line,) = probed.plot.latency_cdf().axes[0].get_lines()
    latencies_us, share = across(line), up(line)
    assert share[-1] == 1
    assert np.all(np.diff(share) > 0)
    # One host receives all packets of the only class, whose percentiles the engine computes.
    (row,) = probed.classes.to_pylist()
    for name, part in (("latency_p50_ns", 0.5), ("latency_p99_ns", 0.99)):
        at = latencies_us[np.searchsorted(share, part)] * 1e3
        assert at == pytest.approx(row[name], rel=1 / 64, abs=2)


def test_a_host_without_packets_has_an_empty_curve(probed: silvan.Result) -> None:
    figure = probed.plot.latency_cdf(["host-0003", "host-0000"])
    idle, hot = figure.axes[0].get_lines()
    assert len(up(idle)) == 0
    assert up(hot)[-1] == 1
    assert probed.plot.latency_cdf(["host-0003"])._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("plot", "key"), [("queues", "probe.ports"), ("latency_cdf", "probe.latency")]
)
def test_a_missing_table_is_an_error_that_names_the_key(
    incast: silvan.Result, plot: str, key: str
) -> None:
    with pytest.raises(silvan.SilvanError, match=r"^incast: the run did not") as caught:
        getattr(incast.plot, plot)()
    assert key in (caught.value.hint or "")


def test_a_notebook_shows_a_figure(probed: silvan.Result, tmp_path: Path) -> None:
    for draw in ("receive_rates", "queues", "utilisation", "latency_cdf"):
        figure = getattr(probed.plot, draw)()
        assert figure._repr_png_().startswith(b"\x89PNG\r\n")
        figure.savefig(tmp_path / "figure.svg")


def test_an_svg_names_curves_and_points_with_their_values(
    probed: silvan.Result, tmp_path: Path
) -> None:
    """Oracle: the tables. Hidden marks have a name each, at the height of their value."""
    probed.write(tmp_path / "run")
    assert main(["plot", str(tmp_path / "run"), "--out", str(tmp_path)]) == 0
    names = {}
    for figure in ("receive-rates", "queues", "utilisation", "latency-cdf", "trees-over-time"):
        root = ET.fromstring((tmp_path / f"plot-{figure}.svg").read_text())
        names[figure] = [one.text or "" for one in root.iter(f"{_SVG}title") if one.text]
    (line,) = probed.plot.receive_rates().axes[0].get_lines()
    points = zip(across(line).tolist(), up(line).tolist(), strict=True)
    assert [name for name in names["receive-rates"] if name.startswith("hotspots")] == [
        "hotspots (mean)",
        *(
            f"hotspots (mean)\nsimulated time (ms): {x:.6g}\nreceive rate (Gbit/s): {y:.6g}"
            for x, y in points
        ),
    ]
    switches = [f"switch-00:{port}" for port in range(1, 5)]
    assert [name.partition("\n")[0] for name in names["utilisation"]] == switches
    ports = probed.ports.to_pylist()
    first = next(one for one in ports if (one["node"], one["port"]) == ("switch-00", 1))
    share = 8e5 * first["xmit_bytes"] / measured_ps(probed) / first["link_gbps"]
    assert names["utilisation"][0] == f"switch-00:1\nutilisation (%): {share:.4g}"
    assert any(name.startswith("switch-00:1\n") for name in names["queues"])
    assert any(name.startswith("host-0000\nlatency (µs): ") for name in names["latency-cdf"])
    assert any("congestion trees: 1" in name for name in names["trees-over-time"])
    circles = [
        (float(one.get("cy", 0)), float((one[0].text or "").rpartition(": ")[2]))
        for one in ET.parse(tmp_path / "plot-receive-rates.svg").iter(f"{_SVG}circle")
    ]
    heights, values = np.array(circles).T
    # Higher values are higher up, on one scale.
    slope, start = np.polyfit(values, heights, 1)
    assert slope < 0
    np.testing.assert_allclose(start + slope * values, heights, atol=0.1)


def test_trees_name_hosts_switches_and_roots(probed: silvan.Result, tmp_path: Path) -> None:
    probed.write(tmp_path / "run")
    assert main(["plot", str(tmp_path / "run"), "trees", "--out", str(tmp_path)]) == 0
    root = ET.fromstring((tmp_path / "plot-trees.svg").read_text())
    names = [one.text for one in root.iter(f"{_SVG}title")]
    for host in probed.hosts["name"].to_pylist():
        # Once as a sender and once as a receiver.
        assert names.count(host) == 2
    written = [one.text for one in root.iter(f"{_SVG}text")]
    assert "switch-00" in written
    assert "T0" in written


def test_without_matplotlib_the_extra_is_named(tmp_path: Path) -> None:
    program = (
        "import silvan\n"
        f"result = silvan.run(silvan.Scenario.from_toml({INCAST!r}))\n"
        "try:\n    result.plot\nexcept silvan.MissingExtraError as error:\n    print(error.hint)"
    )
    done = run_python_without(("matplotlib",), program, cwd=tmp_path)
    assert (done.status, done.stdout) == (0, "pip install 'silvan[figures]'\n"), done.stderr


@pytest.fixture(scope="module")
def flows() -> silvan.Result:
    """Run flows of two classes, of which one has flows that cannot finish."""
    many = {"sizes": {"uniform": {"from": "1 KiB", "to": "60 KiB"}}, "load": 0.3}
    late = {
        "name": "late",
        "from": "host-0000",
        "to": "host-0001",
        "bytes": "1 MiB",
        "start": "250 us",
    }
    return silvan.run(
        ddr_scenario(
            fabric={"generator": "single-switch", "hosts": 4},
            traffic={"flows": [{"name": "many", "end": "200 us", **many}], "flow": [late]},
            run={"warm-up": "20 us", "duration": "300 us"},
        )
    )


def test_completion_times_are_those_of_the_flows(flows: silvan.Result) -> None:
    """Oracle: shares of the flows after the warm-up, counted one by one."""
    axes = flows.plot.fct_cdf().axes[0]
    rows = [row for row in flows.flows.to_pylist() if row["measured"]]
    curves = {str(line.get_label()): line for line in axes.get_lines()}
    assert set(curves) == {"many", "late"}
    many = [row["completion_ps"] / 1e6 for row in rows if row["name"] == "many"]
    for time_us, share in zip(across(curves["many"]), up(curves["many"]), strict=True):
        if share:
            assert share == pytest.approx(sum(one <= time_us for one in many) / len(many))
    assert up(curves["many"])[-1] == 1
    # An unfinished flow has no time, and its curve no point.
    assert up(curves["late"]).size == 0


def test_slowdowns_by_size_are_percentiles_of_neighbouring_sizes(flows: silvan.Result) -> None:
    """Oracle: numpy's percentiles of the flows, sorted by size and cut into groups."""
    rows = sorted(
        (row for row in flows.flows.to_pylist() if row["measured"]), key=lambda row: row["bytes"]
    )
    slowdowns = np.array([row["slowdown"] or np.inf for row in rows])
    sizes = np.array([row["bytes"] for row in rows], dtype=np.float64)
    axes = flows.plot.slowdown_by_size(groups=4).axes[0]
    starts = [place * len(rows) // 4 for place in range(4)]
    groups = [slice(*pair) for pair in zip(starts, [*starts[1:], len(rows)], strict=True)]
    # Only the last group has the unfinished flow.
    for line, share in zip(axes.get_lines(), (50, 99, 99.9), strict=True):
        expected = [np.percentile(slowdowns[group], share) for group in groups[:-1]]
        np.testing.assert_allclose(up(line)[:3], expected)
        np.testing.assert_allclose(across(line)[:3], [sizes[group].mean() for group in groups[:-1]])


def test_flows_must_have_started_after_the_warm_up(incast: silvan.Result) -> None:
    with pytest.raises(silvan.SilvanError, match="no traffic entry has a number of bytes"):
        incast.plot.fct_cdf()


def test_a_figure_has_the_width_of_a_column_and_no_title(incast: silvan.Result) -> None:
    figure = incast.plot.sized("column").receive_rates()
    assert figure.get_size_inches()[0] == 3.5
    assert figure.get_suptitle() == ""
    assert incast.plot.sized("page", title=True).receive_rates().get_suptitle() == "incast"
    with pytest.raises(silvan.SilvanError, match="no width 'wide'"):
        incast.plot.sized("wide")


def test_the_command_writes_pdf_in_a_width(
    incast: silvan.Result, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Oracle: the size of the page in the PDF, in points."""
    folder = incast.write(tmp_path / "run")
    out = tmp_path / "plots"
    words = ["plot", str(folder), "receive-rates", "--width", "column", "--no-title"]
    assert main([*words, "--out", str(out)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [Path(line).suffix for line in printed] == [".png", ".svg", ".pdf"]
    data = (out / "plot-receive-rates.pdf").read_bytes()
    width, height = (
        float(word) for word in data.split(b"/MediaBox [ 0 0 ")[1].split(b" ]")[0].split()
    )
    assert width == pytest.approx(3.5 * 72)
    assert 100 < height < width * 1.2
    # Type 3 fonts are refused by publishers.
    assert b"/Type3" not in data


def test_several_results_are_curves_of_the_same_axes(
    probed: silvan.Result, incast: silvan.Result
) -> None:
    slow = silvan.run(probed.scenario.override({"host.sink-rate": "4 Gbit/s"}))
    together = silvan.plot([probed, slow])
    for name in ("receive_rates", "latency_cdf"):
        apart = [getattr(one.plot, name)().axes[0].get_lines()[0] for one in (probed, slow)]
        first, second = getattr(together, name)().axes[0].get_lines()
        for line, alone in zip((first, second), apart, strict=True):
            np.testing.assert_array_equal(across(line), across(alone))
            np.testing.assert_array_equal(up(line), up(alone))
        assert first.get_color() != second.get_color()
        assert second.get_label() == "host.sink-rate 4 Gbit/s"
    # Two ports of each run: a colour for each run, a stroke for each port.
    ports = ["switch-00:1", "switch-00:2"]
    lines = together.queues(ports).axes[0].get_lines()
    assert len({line.get_color() for line in lines}) == 2
    assert len({line.get_linestyle() for line in lines}) == 2
    assert len(lines) == 4
    maps = together.utilisation()
    titles = [axes.get_title(loc="left") for axes in maps.axes[:2]]
    assert titles == ["host.sink-rate unlimited", "host.sink-rate 4 Gbit/s"]
    with pytest.raises(silvan.SilvanError, match="did not keep latencies by host"):
        silvan.plot([probed, incast]).latency_cdf()
    with pytest.raises(silvan.SilvanError, match="7 results: 1 to 6 fit"):
        silvan.plot([incast] * 7)


def test_no_control_has_its_colour(probed: silvan.Result) -> None:
    controlled = silvan.run(probed.scenario.override({"control.scheme": "ib-cc"}))
    for pair in ([probed, controlled], [controlled, probed]):
        lines = silvan.plot(pair).receive_rates().axes[0].get_lines()
        colours = {str(line.get_label()): line.get_color() for line in lines}
        assert colours == {"no congestion control": "#D55E00", "ib-cc": "#0072B2"}


@pytest.mark.slow
def test_the_command_overlays_runs_and_finds_the_only_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "incast.toml").write_text(INCAST)
    run = ["run", str(tmp_path / "incast.toml"), "--trees"]
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    assert main([*run, "--out", one]) == 0
    assert main([*run, "--out", two, "--set", "control.scheme=ib-cc"]) == 0
    plots = tmp_path / "plots"
    assert main(["plot", one, "receive-rates", "--out", str(plots)]) == 0
    assert main(["plot", one, two, "--out", str(plots), "--overwrite"]) == 0
    names = {path.name for path in plots.glob("*.svg")}
    assert names >= {"plot-receive-rates.svg", "plot-trees-over-time.svg"}
    assert "no congestion control" in (plots / "plot-receive-rates.svg").read_text("utf-8")
    for words, error in (
        ([one, two, "trees", "--animate"], "2 runs: --animate draws the trees of 1"),
        ([one, "trees", "map"], "'map' is not one of receive-rates"),
        (["trees"], "name the folder of a run first"),
    ):
        assert main(["plot", *words, "--out", str(plots)]) == 2
        assert error in capsys.readouterr().err


def test_figures_over_time_end_where_all_flows_have_ended() -> None:
    """Oracle: 64 KiB take 1.4 us at 400 Gbit/s; only one port of the switch has a queue."""
    flow = {"from": ["host-0000", "host-0001"], "to": "host-0002", "bytes": "64 KiB"}
    scenario = silvan.Scenario(
        fabric={"generator": "single-switch", "hosts": 4},
        traffic={"incast": [flow]},
        probe={"interval": "100 ns", "ports": True},
        run={"duration": "100 us"},
    )
    plots = silvan.run(scenario).plot
    (axes,) = plots.queues().axes
    assert axes.get_legend_handles_labels()[1] == ["switch-00:3"]
    assert 0.0013 < axes.get_xlim()[1] < 0.005
    assert axes.get_xlabel() == "simulated time (ms), then zero until 0.1"
    (axes,) = plots.receive_rates().axes
    assert 0.0028 < axes.get_xlim()[1] < 0.005
    lasting = scenario.override({"traffic.incast.0.bytes": "unlimited"})
    (axes,) = silvan.run(lasting).plot.queues().axes
    assert axes.get_xlim()[1] >= 0.1
    assert axes.get_xlabel() == "simulated time (ms)"


def test_a_misspelt_figure_and_a_sweep_are_told_from_runs(command: Command, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "report.html").touch()
    misspelt = command("plot", "run", "recieve-rates", cwd=tmp_path)
    assert misspelt.stderr == (
        "error: recieve-rates: no figure and no folder\nhint: did you mean receive-rates?\n"
    )
    swept = command("plot", "sweep", cwd=tmp_path)
    assert swept.stderr.endswith(
        "hint: it is the folder of a sweep; sweep/report.html has its figures\n"
    )
