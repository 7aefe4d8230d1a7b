"""Input buffers fit their cables, and written ones that do not are named with what they cost."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import pytest

import silvan

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

HEADER = 26
SERVER: dict[str, Any] = {
    "fabric": {
        "generator": "rail-optimised",
        "servers": 2,
        "gpus-per-server": 8,
        "spines": 0,
        "server-link": {"rate": "3.6 Tbit/s", "latency": "100 ns"},
        "rail-link": {"speed": "NDR"},
    },
    "packet": {"mtu": "4 KiB"},
    "traffic": {"flow": [{"from": "server-00-gpu-00", "to": "server-00-gpu-01"}]},
}


def pair(link: dict[str, Any], mtu: int = 4096, **tables: Any) -> dict[str, Any]:
    """Two hosts at one switch, of which one sends to the other."""
    return {
        "fabric": {"generator": "single-switch", "hosts": 2},
        "link": link,
        "packet": {"mtu": f"{mtu} B", "header": f"{HEADER} B"},
        "traffic": {"flow": [{"from": "host-0000", "to": "host-0001"}]},
        **tables,
    }


def received_gbps(tables: dict[str, Any], host: int = 1, window_us: int = 500) -> float:
    """Rate that a host receives after 100 us."""
    run = {"warm-up": "100 us", "duration": f"{100 + window_us} us"}
    result = silvan.run(silvan.Scenario(**tables, run=run))
    delivered = result.hosts["delivered_bytes"].to_pylist()[host]
    return float(delivered * 8 / (window_us * 1000))


def loop_ns(gbps: float, ns: float, mtu: int, extra_ns: float) -> tuple[float, float]:
    """Serialisation of a packet and round trip of its credits."""
    serialisation = (mtu + HEADER) * 8 / gbps
    return serialisation, serialisation + 2 * ns + extra_ns


def carried_gbps(buffer: int, gbps: float, ns: float, mtu: int, extra_ns: float) -> float:
    """Closed form of the rate of payload that a link carries into a buffer."""
    serialisation, round_trip = loop_ns(gbps, ns, mtu, extra_ns)
    packets = buffer // 64 // math.ceil((mtu + HEADER) / 64)
    return min(packets * mtu * 8 / round_trip, mtu * 8 / serialisation)


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        pytest.param(SERVER, 3577.29, id="server"),
        pytest.param(pair({"speed": "XDR", "length": "2 m"}), 794.95, id="xdr"),
        pytest.param(pair({"speed": "NDR", "length": "20 m"}), 397.48, id="ndr-20m"),
    ],
)
def test_links_carry_their_rate_by_default(tables: dict[str, Any], expected: float) -> None:
    """Oracle: payload of 4096 B in each 4122 B on the link."""
    assert silvan.Scenario(**tables).warnings == []
    assert received_gbps(tables) == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize(
    ("tables", "key", "gbps", "needed"),
    [
        pytest.param(SERVER, "host.receive-buffer", 318.0, 141_440, id="server"),
        pytest.param(SERVER, "switch.buffer", 1201.3, 187_200, id="server-switch"),
        pytest.param(
            pair({"speed": "XDR", "length": "2 m"}),
            "host.receive-buffer",
            609.8,
            16_640,
            id="xdr",
        ),
        pytest.param(
            pair({"speed": "NDR", "length": "20 m"}),
            "host.receive-buffer",
            257.0,
            20_800,
            id="ndr-20m",
        ),
    ],
)
def test_written_buffers_that_do_not_fit_are_named_once(
    tables: dict[str, Any], key: str, gbps: float, needed: int
) -> None:
    """The rate of the warning is that of the run, and the bytes that it names are enough."""
    section, name = key.split(".")
    small = {"host": "16 KiB", "switch": "64 KiB"}[section]
    written = {**tables, section: {name: small}}
    (warning,) = silvan.Scenario(**written).warnings
    assert warning.startswith(f"{key}: {small} let a cable of")
    assert f"carry {gbps:.1f} Gbit/s of payload: {needed} B carry its rate" in warning
    assert received_gbps(written) == pytest.approx(gbps, rel=2e-3)
    assert silvan.Scenario(**{**tables, section: {name: f"{needed} B"}}).warnings == []
    (again,) = silvan.Scenario(**{**tables, section: {name: f"{needed - 1} B"}}).warnings
    assert f"{needed} B carry its rate" in again


def test_a_lane_is_what_a_written_buffer_keeps_from_the_rate() -> None:
    tables = pair({"speed": "NDR", "length": "20 m"}, vl={"data-vls": 2})
    (warning,) = silvan.Scenario(**{**tables, "host": {"receive-buffer": "16 KiB"}}).warnings
    assert "let one virtual lane of a cable of" in warning


def test_drawn_links_and_buffers_carry_the_closed_form() -> None:
    """Oracle: the lesser of the closed forms at the buffers of switch and host."""
    drawn = random.Random(7)
    for _ in range(24):
        gbps = drawn.choice([50, 100, 200, 400, 800, 1600])
        ns = drawn.randrange(0, 600)
        mtu = drawn.choice([1024, 2048, 4096])
        latency, credit = drawn.randrange(0, 300), drawn.randrange(0, 300)
        packet = math.ceil((mtu + HEADER) / 64) * 64
        buffers = [packet * drawn.randrange(1, 30) + drawn.randrange(0, 64) for _ in range(2)]
        tables = pair(
            {"rate": f"{gbps} Gbit/s", "latency": f"{ns} ns"},
            mtu,
            switch={
                "buffer": f"{buffers[0]} B",
                "latency": f"{latency} ns",
                "credit-delay": f"{credit} ns",
            },
            host={"receive-buffer": f"{buffers[1]} B", "credit-delay": f"{credit} ns"},
        )
        rates = [
            carried_gbps(buffers[0], gbps, ns, mtu, latency + credit),
            carried_gbps(buffers[1], gbps, ns, mtu, credit),
        ]
        found = silvan.Scenario(**tables).describe()["input_buffers"]
        by_place = {one["in_hosts"]: one for one in found}
        for place, rate in zip((False, True), rates, strict=True):
            told = by_place[place]["carried_bits_per_s"] / 1e9
            assert told == pytest.approx(rate, rel=1e-3)
        one_packet = mtu * 8 / 100_000
        measured = received_gbps(tables, window_us=100)
        bound = 2 * max(buffers) * 8 / 100_000 + one_packet
        assert measured == pytest.approx(min(rates), rel=2e-3, abs=min(bound, 0.02 * min(rates)))


def test_each_cable_has_a_buffer_of_its_own() -> None:
    """Oracle: twice the round trip in packets of 4160 B, and four; at least 64 and 16 KiB."""
    facts = silvan.Scenario(**SERVER).describe()["input_buffers"]
    found = {(one["rate_bits_per_s"], one["in_hosts"]): one["bytes"] for one in facts}
    expected = {}
    for rate, ns, extra, in_hosts, least in [
        (3_600_000_000_000, 100, 100, True, 16_384),
        (3_600_000_000_000, 100, 200, False, 65_536),
        (400_000_000_000, 10, 200, False, 65_536),
    ]:
        serialisation, round_trip = loop_ns(rate / 1e9, ns, 4096, extra)
        packets = math.ceil(2 * round_trip / serialisation) + 4
        expected[rate, in_hosts] = max(least, 4160 * packets)
    assert found == expected
    assert sum(one["count"] for one in facts) == 2 * silvan.Scenario(**SERVER).describe()["links"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gbps", "ns", "window_us", "shares"),
    [(400, 10, 200, (0.67, 0.93)), (400, 100, 200, (0.71, 0.93)), (3600, 100, 40, (0.91, 0.99))],
)
def test_uniform_traffic_has_room_to_wait(
    gbps: int, ns: int, window_us: int, shares: tuple[float, float]
) -> None:
    """Oracle: the table of docs/model.md, and no more than the rate of the links."""
    packets = [
        math.ceil(loop_ns(gbps, ns, 4096, extra)[1] / loop_ns(gbps, ns, 4096, 0)[0])
        for extra in (200, 100)
    ]
    one_round_trip: dict[str, Any] = {
        "switch": {"buffer": f"{4160 * packets[0]} B"},
        "host": {"receive-buffer": f"{4160 * packets[1]} B"},
    }
    for written, share in zip((one_round_trip, {}), shares, strict=True):
        scenario = silvan.Scenario(
            fabric={"generator": "leaf-spine", "leaf-hosts": [8] * 4, "spine-cables": [2] * 4},
            link={"rate": f"{gbps} Gbit/s", "latency": f"{ns} ns"},
            packet={"mtu": "4 KiB", "header": f"{HEADER} B"},
            traffic={"uniform": [{"load": "saturating"}]},
            run={"warm-up": f"{window_us // 2} us", "duration": f"{3 * window_us // 2} us"},
            **written,
        )
        delivered = silvan.run(scenario).hosts["delivered_bytes"].to_pylist()
        rate = sum(delivered) / len(delivered) * 8 / (window_us * 1000)
        assert rate / (gbps * 4096 / (4096 + HEADER)) == pytest.approx(share, abs=0.015)


def test_show_prints_buffers_and_routing(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "pair.toml"
    path.write_text(silvan.Scenario(**pair({"speed": "XDR"})).to_toml())
    shown = command("show", str(path))
    assert shown.status == 0
    buffers = "input buffer per virtual lane in hosts, 800 Gbit/s, 10 ns: 49920 B"
    assert f"#   {buffers} (the rate needs 16640 B)" in shown.stdout
    assert "#   routing: d-mod-k (the default of single-switch)" in shown.stdout
    again = tmp_path / "again.toml"
    again.write_text(shown.stdout)
    assert silvan.Scenario.from_file(again) == silvan.Scenario.from_file(path)


def test_validate_warns_and_accepts(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "pair.toml"
    tables = pair({"speed": "XDR"}, host={"receive-buffer": "16 KiB"})
    path.write_text(silvan.Scenario(**tables).to_toml())
    found = command("validate", str(path))
    assert found.status == 0
    assert "warning: host.receive-buffer: 16 KiB let a cable of 800 Gbit/s" in found.stderr
