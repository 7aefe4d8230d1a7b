"""Every file in CSV that a page of two runs offers has the values of the results, unrounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pytest
from playwright.sync_api import Browser, Page

import silvan
from silvan.results.receive_rates import is_hotspot, receives
from silvan.results.run_labels import differences
from silvan.viewer import write_page
from tests.viewer.conftest import opener, wait_until_idle
from tests.viewer.csv_files import (
    SMALL_VIEW,
    CsvFile,
    assert_equal,
    csv_files,
    csv_of_rankings,
    plain,
)
from tests.viewer.named_runs import (
    END_PS,
    HOST,
    INTERVAL_PS,
    SCENARIO,
    WARM_UP_PS,
    cdf,
    gbps,
    largest_ns,
    port_names,
    rows_within,
    series,
    wait_ns,
)

pytestmark = pytest.mark.needs("chromium")

LABELS = ('first, "1"', "=second")
Files = dict[str, CsvFile]


@pytest.fixture(scope="module")
def results() -> list[silvan.Result]:
    """Run a scenario with a scheme that limits rates, and with one that sets indices."""
    scenario = silvan.Scenario.from_toml(SCENARIO)
    return [
        silvan.run(scenario),
        silvan.run(scenario.override({"control.scheme": "ib-cc"})),
    ]


@pytest.fixture(scope="module")
def page(
    browser: Browser, results: list[silvan.Result], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    """Open the page of both, with a host selected."""
    path = write_page(results, tmp_path_factory.mktemp("page") / "both.html", labels=LABELS)
    with opener(browser) as opened:
        yield opened(path, f"t=0.2&run=0&select=node:{quote(HOST)}", **SMALL_VIEW)


def _all(page: Page) -> Files:
    """Download what each tab of the rankings and both kinds of receive rates offer."""
    found = csv_of_rankings(page)
    page.get_by_label("by traffic class").evaluate("box => box.click()")
    page.get_by_role("button", name="Download Receive rate by class").wait_for()
    found |= csv_files(page)
    page.get_by_label("by traffic class").evaluate("box => box.click()")
    return found


@pytest.fixture(scope="module")
def whole(page: Page) -> Files:
    """Download the files of the first run, of its whole time."""
    return _all(page)


@pytest.fixture(scope="module")
def within(page: Page, whole: Files) -> Files:
    """Download those of the second run, of a window, with a port selected."""
    assert whole
    page.evaluate("location.hash = 't=0.2&run=1&window=0.02-0.3&select=port:t:5'")
    page.get_by_role("button", name="Download port t:5").wait_for()
    wait_until_idle(page)
    return _all(page)


def _of_runs(name: str, unit: str) -> list[str]:
    return [f"{name}, {label} ({unit})" for label in LABELS]


def test_every_file_has_a_test(whole: Files, within: Files) -> None:
    both = {
        *("Differences", "Keys of the scenario that differ", "Congestion over time"),
        *("Mean receive rate, payload", "Receive rate by class, payload"),
        *("Queue", "Transmit rate, with headers", "Waiting for credits"),
        *(
            "Programs",
            "Receive rate of a program's hosts, mean, with headers",
            'Ranks of =job, "x"',
        ),
        *("flows", "sequences", "Run"),
    }
    rankings = ("Ports", "Trees", "Victims", "Culprits")
    assert set(whole) == both | {
        *(f"{name}, 0 ms to 0.4 ms" for name in (*rankings, "Limited flows")),
        *("Rate limit of the most limited flows", "Latency, 0.02 ms to 0.4 ms"),
        f"host {HOST} at 0.2 ms",
    }
    assert set(within) == both | {
        *(f"{name}, 0.02 ms to 0.3 ms" for name in (*rankings, "Limited flows", "Latency")),
        *("CCTI of the most limited flows", "port t:5 at 0.2 ms"),
    }


def test_charts_over_time(results: list[silvan.Result], whole: Files, within: Files) -> None:
    names = results[0].classes["name"].to_pylist()
    assert 'in, "cast"\n' in names
    for files, port in ((whole, f"{HOST}:1"), (within, "t:5")):
        for at, result in enumerate(results):
            row = port_names(result).index(port)
            hotspots = is_hotspot(result)
            others = receives(result) & ~hotspots
            received = series(result, "delivered_bytes", "host_series")
            waited = wait_ns(result)[:, row]
            expected: list[tuple[str, str, str, Any]] = [
                ("Congestion over time", "trees", "trees", result.forest["trees"].to_numpy()),
                (
                    *("Congestion over time", "MB in trees", "MB"),
                    result.forest["queued_bytes"].to_numpy() / 1e6,
                ),
                (
                    *("Mean receive rate, payload", "hotspots", "Gbit/s"),
                    gbps(received[:, hotspots].mean(axis=1)),
                ),
                (
                    *("Mean receive rate, payload", "other receivers", "Gbit/s"),
                    gbps(received[:, others].mean(axis=1)),
                ),
                ("Queue", port, "kB", series(result, "queued_bytes")[:, row] / 1e3),
                (
                    *("Transmit rate, with headers", port, "Gbit/s"),
                    gbps(series(result, "xmit_bytes")[:, row]),
                ),
                ("Waiting for credits", port, "% of time", 100 * waited * 1e3 / INTERVAL_PS),
            ]
            of_classes = gbps(series(result, "delivered_bytes", "class_series"))
            expected += [
                ("Receive rate by class, payload", name, "Gbit/s", of_classes[:, number])
                for number, name in enumerate(names)
            ]
            for title, name, unit, values in expected:
                shown = files[title]
                assert_equal(shown.numbers(_of_runs(name, unit)[at]), values)
                assert_equal(shown.numbers("ms"), [0.02 * sample for sample in range(1, 21)])
                assert len(shown.header) == 1 + sum(one[0] == title for one in expected) * 2


def test_latencies(results: list[silvan.Result], whole: Files, within: Files) -> None:
    host = results[0].hosts["name"].to_pylist().index(HOST)
    for title, files, name in (
        ("Latency, 0.02 ms to 0.4 ms", whole, HOST),
        ("Latency, 0.02 ms to 0.3 ms", within, "all hosts"),
    ):
        shares = []
        for result in results:
            if name == HOST:
                largest = result.hosts["latency_max_ns"][host].as_py()
                table = result.tables["host_latencies"].to_pylist()
                shares.append(cdf([row for row in table if row["host"] == host], largest))
            else:
                table = result.tables["latency_series"].to_pylist()
                shares.append(cdf(rows_within(table, 20e6, 300e6), largest_ns(result)))
        shown = files[title]
        every = sorted(set().union(*shares))
        assert_equal(shown.numbers("µs"), every)
        for at, column in enumerate(_of_runs(name, "% of packets")):
            assert_equal(shown.numbers(column), [shares[at].get(x) for x in every])


def test_rankings_of_ports(results: list[silvan.Result], whole: Files, within: Files) -> None:
    for result, shown, samples in (
        (results[0], whole["Ports, 0 ms to 0.4 ms"], slice(0, 20)),
        (results[1], within["Ports, 0.02 ms to 0.3 ms"], slice(1, 15)),
    ):
        length_ps = INTERVAL_PS * len(range(20)[samples])
        sent = series(result, "xmit_bytes")[samples].sum(axis=0)
        waited = wait_ns(result)[samples].sum(axis=0)
        expected = {
            "waiting, share": waited * 1e3 / length_ps,
            "utilisation, share, at most one packet above 1": (
                sent * 8e3 / length_ps / result.ports["link_gbps"].to_numpy()
            ),
            "longest queue, bytes": series(result, "queued_bytes")[samples].max(axis=0),
            "marked packets": series(result, "fecn_marked")[samples].sum(axis=0),
        }
        ports = port_names(result)
        assert shown.header == ["port", *expected]
        order = [ports.index(name) for name in shown.texts("port")]
        assert sorted(order) == list(range(len(ports)))
        for name, values in expected.items():
            assert_equal(shown.numbers(name), values[order])
        waiting = shown.numbers("waiting, share")
        assert waiting == sorted(waiting, key=lambda share: -(share or 0))
        # To a nanosecond of the whole, the picoseconds of the result.
        exact = series(result, "xmit_wait_ps")[samples].sum(axis=0) / length_ps
        np.testing.assert_allclose(np.array(waiting, float), exact[order], atol=1e3 / length_ps)


def test_rankings_of_trees(results: list[silvan.Result], whole: Files, within: Files) -> None:
    peaks = {
        "peak bytes": "queued_bytes",
        "peak ports": "ports",
        "contributors": "contributors",
        "victims": "victims",
    }
    for result, shown, first_ps, last_ps in (
        (results[0], whole["Trees, 0 ms to 0.4 ms"], 0, END_PS),
        (results[1], within["Trees, 0.02 ms to 0.3 ms"], 20e6, 300e6),
    ):
        rows = shown.by("tree")
        lives = [
            life
            for life in result.tree_lifetimes.to_pylist()
            if life["death_ps"] >= first_ps and life["birth_ps"] <= last_ps
        ]
        assert set(rows) == {f"T{life['tree']}" for life in lives} != set()
        standing = rows_within(result.trees.to_pylist(), first_ps, last_ps)
        for life in lives:
            row = rows[f"T{life['tree']}"]
            assert row["root"] == port_names(result)[life["root_row"]]
            assert row["to"] == life["destination"]
            assert float(row["from, ms"]) == life["birth_ps"] / 1e9
            assert float(row["until, ms"]) == life["death_ps"] / 1e9
            own = [one for one in standing if one["tree"] == life["tree"]]
            for name, column in peaks.items():
                assert row[name] == plain(max(one[column] for one in own))


def test_rankings_of_hosts(results: list[silvan.Result], whole: Files, within: Files) -> None:
    for result, files, span, first_ps, last_ps in (
        (results[0], whole, "0 ms to 0.4 ms", 0, END_PS),
        (results[1], within, "0.02 ms to 0.3 ms", 20e6, 300e6),
    ):
        hosts = result.hosts.to_pylist()
        samples = (last_ps - first_ps) / INTERVAL_PS
        for title, heading, column in (
            ("Victims", "held up, mean bytes", "victim_bytes"),
            ("Culprits", "towards roots, mean bytes", "contributing_bytes"),
        ):
            sums: dict[str, float] = {}
            for row in rows_within(result.tree_hosts.to_pylist(), first_ps, last_ps):
                if row[column]:
                    name = hosts[row["host"]]["name"]
                    sums[name] = sums.get(name, 0) + row[column]
            shown = files[f"{title}, {span}"]
            assert shown.header == ["host", "role", heading]
            assert set(shown.texts("host")) == set(sums)
            assert_equal(
                shown.numbers(heading), [sums[name] / samples for name in shown.texts("host")]
            )
            roles = {host["name"]: host["role"] for host in hosts}
            assert shown.texts("role") == [roles[name] for name in shown.texts("host")]
    assert whole["Culprits, 0 ms to 0.4 ms"].rows
    assert whole["Victims, 0 ms to 0.4 ms"].rows


def test_limits(results: list[silvan.Result], whole: Files, within: Files) -> None:
    hosts = results[0].hosts["name"].to_pylist()
    for result, files, what, unit, span, samples in (
        (results[0], whole, "Rate limit", "% of link", "0 ms to 0.4 ms", slice(0, 20)),
        (results[1], within, "CCTI", "CCTI", "0.02 ms to 0.3 ms", slice(1, 15)),
    ):
        is_rate = unit != "CCTI"
        free = 100.0 if is_rate else 0.0
        courses: dict[tuple[str, str], npt.NDArray[Any]] = {}
        for row in result.tables["flow_limits"].to_pylist():
            flow = hosts[row["source"]], hosts[row["destination"]]
            course = courses.setdefault(flow, np.full(20, free))
            # Pages have rates as 32-bit floats.
            value = np.float32(100 * row["rate"]) if is_rate else row["ccti"]
            course[int(row["time_ps"] // INTERVAL_PS) - 1] = value
        if is_rate:
            courses = {flow: course for flow, course in courses.items() if flow[1] == HOST}
        courses = {
            flow: course for flow, course in courses.items() if (course[samples] != free).any()
        }
        mean = "mean Rate limit, % of link" if is_rate else "mean CCTI"
        listed = files[f"Limited flows, {span}"]
        assert listed.header == ["from", "to", "SL", mean, f"strictest, {unit}"]
        rows = listed.by("from", "to")
        assert set(rows) == {":".join(flow) for flow in courses} != set()
        chart = files[f"{what} of the most limited flows"]
        assert len(chart.header) == 1 + min(6, len(courses))
        for (source, destination), course in courses.items():
            row = rows[f"{source}:{destination}"]
            strictest = course[samples].min() if is_rate else course[samples].max()
            assert row["SL"] == "0"
            assert_equal([float(row[mean])], [course[samples].mean()])
            assert float(row[f"strictest, {unit}"]) == strictest
            heading = f"{source} > {destination} ({unit})"
            if heading in chart.header:
                assert_equal(chart.numbers(heading), course, rel=0)


def test_jobs(results: list[silvan.Result], whole: Files, within: Files) -> None:
    for result, files in ((results[0], whole), (results[1], within)):
        jobs, ranks = result.programs.to_pylist(), result.ranks.to_pylist()
        hosts = result.hosts["name"].to_pylist()
        listed = files["Programs"]
        assert listed.header == ["program", "ranks", "start, ms", "end, ms", "slowdown"]
        assert listed.texts("program") == ['=job, "x"', "endless"]
        assert_equal(listed.numbers("ranks"), [3, 2])
        for heading, column, unit in (
            ("start, ms", "start_ps", 1e9),
            ("end, ms", "end_ps", 1e9),
            ("slowdown", "slowdown", 1),
        ):
            values = [None if job[column] is None else job[column] / unit for job in jobs]
            assert_equal(listed.numbers(heading), values, rel=0)
        assert listed.texts("slowdown")[1] == listed.texts("end, ms")[1] == ""

        own = [rank for rank in ranks if rank["program"] == 0]
        length_ps = jobs[0]["end_ps"] - jobs[0]["start_ps"]
        table = files['Ranks of =job, "x"']
        assert table.texts("rank") == ["0", "1", "2"]
        assert table.texts("host") == [hosts[rank["host"]] for rank in own]
        assert_equal(table.numbers("end, ms"), [rank["end_ps"] / 1e9 for rank in own], rel=0)
        for heading, column in (("computes", "compute_ps"), ("waits", "waiting_ps")):
            shares = [rank[column] / length_ps for rank in own]
            assert_equal(table.numbers(f"{heading}, share"), shares)
        assert_equal(table.numbers("sent, bytes"), [rank["sent_bytes"] for rank in own], rel=0)

        peers = [peer.rpartition(":")[0] for peer in result.ports["peer"].to_pylist()]
        sent = series(result, "xmit_bytes")
        chart = files["Receive rate of a program's hosts, mean, with headers"]
        for job in jobs:
            names = {hosts[rank["host"]] for rank in ranks if rank["program"] == job["program"]}
            links = [row for row, peer in enumerate(peers) if peer in names]
            rates = gbps(sent[:, links].sum(axis=1)) / len(names)
            assert_equal(chart.numbers(f"{job['name']} (Gbit/s)"), rates)


def test_tables_of_the_result(results: list[silvan.Result], whole: Files, within: Files) -> None:
    for result, files in ((results[0], whole), (results[1], within)):
        for name in ("flows", "sequences"):
            table = result.tables[name]
            expected = {
                f"{column.removesuffix('_ps').replace('_', ' ')}, ms"
                if column.endswith("_ps")
                else column.replace("_", " "): column
                for column in table.column_names
            }
            shown = files[name]
            assert shown.header == list(expected)
            for heading, column in expected.items():
                values = table[column].to_pylist()
                if heading.endswith(", ms"):
                    times = [None if ps is None else ps / 1e9 for ps in values]
                    assert_equal(shown.numbers(heading), times, rel=0)
                elif isinstance(values[0], float) or None in values:
                    assert_equal(shown.numbers(heading), values, rel=0)
                else:
                    assert shown.texts(heading) == [plain(value) for value in values]
    assert "" in whole["flows"].texts("end, ms")


def test_facts(results: list[silvan.Result], whole: Files, within: Files) -> None:
    for result, files in ((results[0], whole), (results[1], within)):
        rates = result.measures
        facts = files["Run"].by("name")
        for name, value, unit in (
            ("hosts", 6, ""),
            ("simulated time", 0.4, "ms"),
            ("lowest link rate", 16, "Gbit/s"),
            ("highest link rate", 100, "Gbit/s"),
            ("hotspots, payload", rates["hotspots_gbps"], "Gbit/s"),
            ("other receivers, payload", rates["other_receivers_gbps"], "Gbit/s"),
            ("total delivered, payload", rates["total_gbps"], "Gbit/s"),
        ):
            assert float(facts[name]["value"]) == value
            assert facts[name]["unit"] == unit
        assert facts["scenario"]["value"] == result.scenario.name
        assert facts["seed"]["value"] == str(result.seed)

    for result, files, title, port in (
        (results[0], whole, f"host {HOST} at 0.2 ms", f"{HOST}:1"),
        (results[1], within, "port t:5 at 0.2 ms", "t:5"),
    ):
        row = port_names(result).index(port)
        sample = 9
        facts = files[title].by("name")
        for name, value, unit in (
            ("transmits with headers", gbps(series(result, "xmit_bytes"))[sample, row], "Gbit/s"),
            ("waits", wait_ns(result)[sample, row] * 1e3 / INTERVAL_PS, "share"),
            ("queue", series(result, "queued_bytes")[sample, row], "bytes"),
            ("marked", series(result, "fecn_marked")[sample, row], "packets"),
        ):
            assert_equal([float(facts[name]["value"])], [value])
            assert facts[name]["unit"] == unit


def test_differences(results: list[silvan.Result], whole: Files) -> None:
    expected: dict[str, list[float | None]] = {}
    for result in results:
        rates = result.measures
        shares = cdf(
            rows_within(result.tables["latency_series"].to_pylist(), WARM_UP_PS, END_PS),
            largest_ns(result),
        )
        for name, value in {
            "hotspots, Gbit/s": rates["hotspots_gbps"],
            "other receivers, Gbit/s": rates["other_receivers_gbps"],
            "total delivered, Gbit/s": rates["total_gbps"],
            "trees, mean": result.forest["trees"].to_numpy().mean(),
            "MB in trees, mean": result.forest["queued_bytes"].to_numpy().mean() / 1e6,
            "latency, median, µs": min(x for x, share in shares.items() if share >= 50),
            "latency, 99th percentile, µs": min(x for x, share in shares.items() if share >= 99),
        }.items():
            expected.setdefault(name, []).append(float(value))
    shown = whole["Differences"]
    assert shown.header == ["measure", *LABELS, "change, %"]
    assert shown.texts("measure") == list(expected)
    for row, (first, second) in zip(shown.rows, expected.values(), strict=True):
        assert first
        assert second
        assert_equal([float(cell) for cell in row[1:3]], [first, second])
        change = 100 * (second - first) / first
        assert float(row[3]) == pytest.approx(change, rel=1e-9)

    keys = whole["Keys of the scenario that differ"]
    assert keys.header == ["key", *LABELS]
    changes = differences([one.scenario.to_dict() for one in results])
    for label, values in zip(LABELS, changes, strict=True):
        assert keys.texts("key") == list(values)
        assert keys.texts(label) == [value or "not in effect" for value in values.values()]


def test_a_file_is_saved_as_utf_8(page: Page, within: Files) -> None:
    with page.expect_download() as download:
        page.get_by_role("button", name="Download flows as CSV").evaluate("one => one.click()")
    assert download.value.suggested_filename == "flows.csv"
    text = Path(download.value.path()).read_bytes().decode("utf-8")
    assert text.startswith("class,name,from,to,bytes,")
    assert text.count("\r\n") == 1 + len(within["flows"].rows)


def test_landmarks_of_a_page_of_jobs_have_names_of_their_own(page: Page, whole: Files) -> None:
    """A section has no landmark of the name of the table in it."""
    for name in ("Programs", "flows"):
        assert name in whole
        assert page.get_by_role("region", name=name, exact=True).count() == 1
