"""Every file in CSV that the page of a real subnet offers has its values, unrounded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from silvan.live.moments import Moment
from silvan.viewer.diagnosis import subnet_tables, write_diagnosis
from silvan.viewer.managed import moment_report
from tests.subnet_dumps import TOPOLOGY, dumped_moment
from tests.viewer.conftest import opener
from tests.viewer.csv_files import FLOAT32, SMALL_VIEW, CsvFile, assert_equal, csv_of_rankings

pytestmark = pytest.mark.needs("chromium")

HOST = "=a(), 1"
PORTS = (f"{HOST}:1", "b HCA-1:1", "c HCA-1:1", "left:1", "left:2", "left:3")
NAN = float("nan")
# Values that two pairs of sweeps have for each port: nothing for the second, the end for the third.
LOAD = [(0.6, NAN, NAN, 0.1, 0.2, 1.0), (0.123, NAN, 0.3, 0.3, 0.7, 0.9)]
WAIT = [(0.4, NAN, NAN, 0.0, 0.25, 0.0), (0.211, NAN, 0.1, 0.0, 0.125, 0.0)]
LENGTHS_S = (2, 3)
GBPS = 8
SENT = {HOST: 4.8, "b HCA-1": 1 / 3}
LOW = {
    "port": "left:3",
    "peer": "c HCA-1:1",
    "victims": [[f"{HOST}:1", 0.4123456789], ["b HCA-1:1", None]],
    "low_for_s": 12.345678901,
    "victims_lost_bytes": 123456789.125,
}


def _moments(folder: Path) -> list[Moment]:
    """Make a diagnosis with a tree, and what a congestion manager shows later."""
    one = dumped_moment(folder, 0, TOPOLOGY.replace("a HCA-1", HOST))
    (tree,) = one.report["trees"]
    hosts = [
        {"host": host, "gbps": gbps, "reason": f"=reason, {host}", "jobs": ["=job", "b, c"]}
        for host, gbps in SENT.items()
    ]
    health = [{"severity": "error", "what": '=1, "x"', "advice": "a\nb"}]
    tree = tree | {"contributors": hosts[:1], "victims": hosts[1:]}
    report = one.report | {"trees": [tree], "health": health}
    managed = moment_report(
        {"ports": 6, "unknown_ports": 1, "interval_s": LENGTHS_S[1], "act": True, "low": [LOW]}
    )
    return [
        Moment(one.subnet, said, _values(LOAD[at], WAIT[at]), round(end * 1e9))
        for at, (said, end) in enumerate(((report, 2), (managed, 5)))
    ]


def _values(load: tuple[float, ...], wait: tuple[float, ...]) -> bytes:
    return np.array([load, wait, [NAN] * len(load)], "<f4").tobytes()


@pytest.fixture(scope="module")
def diagnosed(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[dict[str, CsvFile]]]:
    """Download the files of the first moment, of a port that is not known, and of the second."""
    folder = tmp_path_factory.mktemp("diagnosis")
    path = write_diagnosis(_moments(folder), folder / "page.html", "Subnet")
    with opener(browser) as opened:
        page = opened(path, "t=2&select=port:b HCA-1:1", **SMALL_VIEW)
        first = csv_of_rankings(page)
        page.evaluate(f"location.hash = 't=5&select=port:{HOST}:1'")
        page.get_by_role("button", name=f"Download port {HOST}:1 at 5 s").wait_for()
        yield [first, csv_of_rankings(page)]


def test_every_file_of_a_diagnosis_has_a_test(diagnosed: list[dict[str, CsvFile]]) -> None:
    both = {
        *(f"{name}, 0 s to 5 s" for name in ("Ports", "Trees", "Victims", "Culprits")),
        *("Congestion over time", "Mean receive rate, with headers", "Subnet"),
        *("Transmit rate, with headers", "Waiting for credits"),
    }
    first = {"Contributors at left:3", "Victims of left:3", "Health", "port b HCA-1:1 at 2 s"}
    last = {"Ports with a low Marking_Rate", f"port {HOST}:1 at 5 s"}
    assert [set(files) for files in diagnosed] == [both | first, both | last]


def test_rankings_of_a_diagnosis(diagnosed: list[dict[str, CsvFile]]) -> None:
    shown = diagnosed[0]["Ports, 0 s to 5 s"]
    load, wait = (
        np.array([_mean([one[row] for one in values]) for row in range(6)])
        for values in (LOAD, WAIT)
    )
    order = [PORTS.index(name) for name in shown.texts("port")]
    assert sorted(order) == list(range(6))
    assert_equal(shown.numbers("waiting, share"), wait[order], FLOAT32)
    assert_equal(shown.numbers("utilisation, share"), load[order], FLOAT32)
    assert_equal(shown.numbers("lost, Gbit/s"), GBPS * wait[order], FLOAT32)

    lost = GBPS * (0.4 + 0.599999998)
    (tree,) = diagnosed[0]["Trees, 0 s to 5 s"].by("tree").values()
    assert (tree["root"], tree["to"]) == ("left:3", "c HCA-1")
    assert (tree["from, s"], tree["until, s"], tree["peak ports"]) == ("2", "5", "1")
    assert_equal([float(tree["peak lost, Gbit/s"])], [lost])
    for title, heading, host in (
        ("Culprits", "towards roots, mean, Gbit/s", HOST),
        ("Victims", "sends past roots, mean, Gbit/s", "b HCA-1"),
    ):
        ranked = diagnosed[0][f"{title}, 0 s to 5 s"]
        assert ranked.texts("host") == [host]
        assert_equal(ranked.numbers(heading), [SENT[host] * 2 / 5])


def _mean(values: list[float]) -> float:
    """Average over time what is known."""
    known = [(value, s) for value, s in zip(values, LENGTHS_S, strict=True) if not np.isnan(value)]
    lengths = sum(s for _, s in known)
    return sum(value * s for value, s in known) / lengths if known else NAN


def test_rates_of_links_are_not_rounded(tmp_path: Path) -> None:
    """Oracle: FDR has four lanes of 14.0625 Gbit/s, of which 64 bits of 66 are data."""
    moment = dumped_moment(tmp_path, 0, TOPOLOGY.replace("4xSDR", "4xFDR"))
    rates = subnet_tables(moment.subnet)["ports"]["rate_gbps"].to_pylist()
    assert rates == pytest.approx([4 * 14.0625 * 64 / 66] * 6, rel=1e-10)


def test_charts_of_a_diagnosis(diagnosed: list[dict[str, CsvFile]]) -> None:
    for files, row in zip(diagnosed, (1, 0), strict=True):
        name = PORTS[row]
        rate, wait = files["Transmit rate, with headers"], files["Waiting for credits"]
        assert rate.header == ["s", f"{name} (Gbit/s)"]
        assert wait.header == ["s", f"{name} (% of time)"]
        assert_equal(rate.numbers(rate.header[1]), [GBPS * one[row] for one in LOAD], FLOAT32)
        assert_equal(wait.numbers(wait.header[1]), [100 * one[row] for one in WAIT], FLOAT32)
        course = files["Congestion over time"]
        assert_equal(course.numbers("s"), [2, 5])
        assert_equal(course.numbers("trees (trees)"), [1, 1])
        assert_equal(
            course.numbers("Gbit/s lost in trees (Gbit/s)"),
            [GBPS * (0.4 + 0.599999998), GBPS * 0.4123456789],
        )
        # The ports of the switch are those to its three hosts.
        received = [GBPS * np.array(one[3:], np.float32).astype(float).sum() / 3 for one in LOAD]
        assert_equal(
            files["Mean receive rate, with headers"].numbers("all hosts (Gbit/s)"), received
        )


def test_what_a_diagnosis_says(diagnosed: list[dict[str, CsvFile]]) -> None:
    first, last = diagnosed
    for title, host in (("Contributors at left:3", HOST), ("Victims of left:3", "b HCA-1")):
        shown = first[title]
        assert shown.header == ["host", "sends, Gbit/s", "reason", "jobs"]
        assert shown.rows == [[host, repr(SENT[host]), f"=reason, {host}", "=job, b, c"]]
    assert first["Health"].header == ["severity", "finding", "what to do"]
    assert first["Health"].rows == [["error", '=1, "x"', "a\nb"]]
    low = last["Ports with a low Marking_Rate"]
    assert low.header == [
        *("port", "to", "low for, s"),
        *("victims wait, share", "victims lost, bytes"),
    ]
    waits = f"{HOST}:1 0.4123456789, b HCA-1:1 not known"
    assert low.rows == [["left:3", "c HCA-1:1", "12.345678901", waits, "123456789.125"]]

    facts = first["Subnet"].by("name")
    assert facts["observed"] == {"name": "observed", "value": "5", "unit": "s"}
    assert facts["fastest link"] == {"name": "fastest link", "value": "8", "unit": "Gbit/s"}
    facts = first["port b HCA-1:1 at 2 s"].by("name")
    assert facts["waits"]["value"] == "not known"
    assert_equal([float(facts["lost by waiting"]["value"])], [GBPS * 0.599999998])
    facts = last[f"port {HOST}:1 at 5 s"].by("name")
    for name, value, unit in (
        ("transmits with headers", GBPS * LOAD[1][0], "Gbit/s"),
        ("waits", WAIT[1][0], "share"),
    ):
        assert_equal([float(facts[name]["value"])], [value], FLOAT32)
        assert facts[name]["unit"] == unit
