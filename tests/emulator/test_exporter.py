"""The exporter on a live fabric, next to perfquery and Prometheus."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.emulator.conftest import LINE, REAL_TOOLS, Fabric, Serve
from tests.emulator.test_dcms_metrics import metrics
from tests.gate import PATIENCE_S

pytestmark = pytest.mark.slow

INCAST = (
    LINE
    + """\
[link]
width = "1x"
speed = "SDR"
[packet]
mtu = "4 KiB"
[traffic]
message = "4 KiB"
[[traffic.flow]]
from = "a"
to = "c"
[[traffic.flow]]
from = "d"
to = "c"
[control]
scheme = "ib-cc"
[control.ib-cc]
switch = { marking-rate = 31, marking = "random" }
adapter = { ccti-increase = 0 }
"""
)
"""A and d send to c, whose link of 2 Gbit/s they share."""


def exporting_process(
    fabric: Fabric, *options: str
) -> tuple[subprocess.Popen[str], tuple[str, int]]:
    """Start the exporter on a fabric, and give its address."""
    words = [sys.executable, "-m", "silvan", "exporter", "--listen", "127.0.0.1:0"]
    process = fabric.popen(*words, "--interval", "200 ms", *options)
    assert process.stderr is not None
    said = process.stderr.readline()
    found = re.search(r"http://([\d.]+):(\d+)/metrics", said)
    if not found:
        process.kill()
        raise AssertionError(said)
    return process, (found[1], int(found[2]))


@contextmanager
def exporting(fabric: Fabric, *options: str) -> Iterator[tuple[str, int]]:
    """Run the exporter on a fabric, and give its address."""
    process, place = exporting_process(fabric, *options)
    with process:
        try:
            yield place
            process.send_signal(signal.SIGTERM)
            _, rest = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, rest
        finally:
            process.kill()


def page(place: tuple[str, int]) -> str:
    url = f"http://{place[0]}:{place[1]}/metrics"
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        text: str = answer.read().decode()
    return text


def sample(values: dict[str, float], name: str, *labels: str) -> float:
    """Give the only sample of a metric that has these labels."""
    (found,) = (
        value
        for key, value in values.items()
        if key.partition("{")[0] == name and all(label in key for label in labels)
    )
    return found


def test_the_incast_is_in_the_metrics(serve: Serve) -> None:
    """Oracle: the traffic, and the simulated clock."""
    fabric = serve(INCAST, time_scale=0.2)
    with exporting(fabric) as place:
        fabric.wait(lambda: metrics(place).get("silvan_exporter_sweeps_total", 0) >= 5)
        elapsed = fabric.emulation.control("status")["simulated_s"]
        values = metrics(place)
        assert sample(values, "silvan_exporter_up") == 1
        assert sample(values, "silvan_diagnosis_trees", 'cause="incast"') == 1
        root = ('node="right"', 'port="1"', 'cause="incast"')
        assert sample(values, "silvan_diagnosis_tree_contributors", *root) == 2
        assert sample(values, "silvan_diagnosis_tree_victims", *root) == 0
        tree = "infiniband_switch_port_congestion_tree_seconds_total"
        time_as_root = sample(values, tree, 'switch="right"', 'port="1"', 'role="root"')
        assert 0 < time_as_root <= elapsed
        # A and d have 250 MB/s each, and half of the link to c: they wait half of the time.
        lost = "infiniband_hca_port_transmit_lost_bytes_total"
        waited = "infiniband_hca_port_transmit_wait_seconds_total"
        for host in ('hca="a"', 'hca="d"'):
            assert sample(values, "infiniband_hca_port_rate_bytes_per_second", host) == 250e6
            assert sample(values, lost, host) == pytest.approx(sample(values, waited, host) * 250e6)
            assert sample(values, waited, host) == pytest.approx(time_as_root / 2, rel=0.3)
        assert sample(values, waited, 'hca="c"') == 0


@REAL_TOOLS
def test_counters_are_those_that_perfquery_prints(serve: Serve) -> None:
    """Oracle: perfquery, before and after."""
    fabric = serve(INCAST, time_scale=0.2)
    names = {
        "PortXmitData": ("port_transmit_data_bytes_total", 4),
        "PortRcvData": ("port_receive_data_bytes_total", 4),
        "PortXmitPkts": ("port_transmit_packets_total", 1),
        "PortUnicastRcvPkts": ("port_unicast_receive_packets_total", 1),
    }
    lid = str(fabric.lids()["right"])
    with exporting(fabric) as place:
        fabric.wait(lambda: metrics(place).get("silvan_exporter_sweeps_total", 0) >= 1)
        before = fabric.values("perfquery", "-x", lid, "1")
        swept = metrics(place)["silvan_exporter_sweeps_total"]
        fabric.wait(lambda: metrics(place)["silvan_exporter_sweeps_total"] > swept + 1)
        values = metrics(place)
        after = fabric.values("perfquery", "-x", lid, "1")
    for name, (metric, scale) in names.items():
        served = sample(values, f"infiniband_switch_{metric}", 'switch="right"', 'port="1"')
        assert int(before[name]) * scale <= served <= int(after[name]) * scale, name
    assert int(after["PortXmitData"]) > int(before["PortXmitData"])


@pytest.mark.needs("prometheus")
def test_prometheus_takes_the_page(serve: Serve) -> None:
    """Oracle: promtool, which also knows naming conventions."""
    fabric = serve(INCAST, time_scale=0.2)
    with exporting(fabric) as place:
        fabric.wait(lambda: metrics(place).get("silvan_exporter_sweeps_total", 0) >= 2)
        text = page(place)
    # A client that names no format reads the one that promtool reads.
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stderr


def test_a_paused_fabric_is_reported_and_its_ports_are_not_served(serve: Serve) -> None:
    fabric = serve(INCAST, time_scale=0.2)
    with exporting(fabric) as place:
        fabric.wait(lambda: metrics(place)["silvan_exporter_up"] == 1)
        fabric.emulation.control("pause")
        fabric.wait(lambda: metrics(place)["silvan_exporter_up"] == 0)
        assert "infiniband_" not in page(place)
        assert metrics(place)["silvan_exporter_sweep_failures_total"] >= 1
        fabric.emulation.control("resume")
        fabric.wait(lambda: metrics(place)["silvan_exporter_up"] == 1)
