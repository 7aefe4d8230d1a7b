"""Priority-based flow control: exact headroom, deadlocks with names, schemes on Ethernet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import silvan
from silvan.comparing.baselines import fitting
from silvan.example_files import example
from tests.conftest import Command
from tests.published import baseline

# Rate: 1 B/ns. A packet takes 2130 ns and a pause frame 84 ns. With two times 10 ns in the cable
# and this response, two packets pass from the start of one to the effect of its pause. The packet
# that starts at that instant still goes.
HEADROOM = 3 * 2130
STALLED = """\
[fabric]
generator = "single-switch"
hosts = 2
[link]
flow-control = "pfc"
rate = "8 Gbit/s"
length = "2 m"
[link.pfc]
xoff = "8520 B"
xon = "8520 B"
response = "2026 ns"
[packet]
mtu = "2 KiB"
[host]
sink-rate = "1 kbit/s"
[[traffic.flow]]
from = "host-0000"
to = "host-0001"
[run]
duration = "100 us"
"""

RING = """\
[fabric]
generator = "ring"
switches = 7
hosts-per-switch = 1
routing = "min-hop"
allow-credit-loops = true
[link]
flow-control = "pfc"
speed = "DDR"
[packet]
mtu = "2 KiB"
[link.pfc]
xoff = "4 kB"
xon = "4 kB"
[[traffic.permutation]]
pattern = "shift"
shift = 3
"""


def totals(result: silvan.Result) -> tuple[int, int, int]:
    """Return the frames of PFC sent and received at all ports, and the time paused."""
    ports = result.ports
    names = ("pause_sent", "pause_rcv", "xmit_paused_ps")
    sent, received, paused = (int(np.sum(ports.column(name).to_numpy())) for name in names)
    return sent, received, paused


def test_nothing_is_lost_with_the_headroom_of_the_formula(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "stalled.toml"
    path.write_text(STALLED)
    assert command("run", path).status == 0
    assert command("run", path, "--set", f"link.pfc.headroom={HEADROOM} B").status == 0
    # The receiver's buffer fills to the last byte.
    result = silvan.run(silvan.Scenario.from_file(path))
    (host,) = [row for row in result.ports.to_pylist() if row["node"] == "host-0001"]
    assert (host["pause_sent"], host["rcv_bytes"]) == (1, 8520 + HEADROOM)


def test_one_byte_less_ends_the_run(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "stalled.toml"
    path.write_text(STALLED)
    outcome = command("run", path, "--set", f"link.pfc.headroom={HEADROOM - 1} B")
    assert (outcome.status, outcome.stdout) == (1, "")
    error, hint = outcome.stderr.splitlines()
    assert error.startswith("error: packet lost at ")
    assert error.endswith(
        "host-0001:1 holds 1 B more in priority 0 than its buffer of 14909 B has room for"
    )
    assert hint.startswith("hint: link.pfc.headroom is 6389 B; this link needs 6390 B, ")
    scenario = silvan.Scenario.from_file(path)
    with pytest.raises(silvan.SimulationError, match="packet lost at") as caught:
        silvan.run(scenario.override({"link.pfc.headroom": "6389 B"}))
    assert caught.value.hint == hint.removeprefix("hint: ")


def test_a_cycle_of_pauses_ends_the_run_and_is_named(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "ring.toml"
    path.write_text(RING)
    outcome = command("run", path)
    assert (outcome.status, outcome.stdout) == (1, "")
    error, hint = outcome.stderr.splitlines()
    assert error.startswith("error: deadlock at ")
    assert ": cycle of PFC pauses switch-" in error
    for switch in range(7):
        assert f"switch-0{switch}:" in error
    assert hint.startswith("hint: ")


def test_values_without_effect_are_warned_of(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "stalled.toml"
    path.write_text(STALLED)
    outcome = command("run", path, "--set", "switch.buffer=32 KiB")
    assert outcome.status == 0
    assert "switch.buffer has no effect" in outcome.stderr


def test_ports_count_pauses_only_with_pfc() -> None:
    scenario = silvan.Scenario.from_file(example("pfc-incast").path)
    result = silvan.run(scenario)
    sent, received, paused = totals(result)
    # Each frame that a port sends, the port at the other end receives.
    assert sent == received > 0
    assert paused > 0
    longest = max(result.ports.column("xmit_paused_ps").to_pylist())
    assert longest <= scenario.duration_ps
    with_credits = silvan.run(scenario.override({"link.flow-control": "credits"}))
    assert "pause_sent" not in with_credits.ports.column_names


def rates(result: silvan.Result, scenario: silvan.Scenario) -> dict[str, float]:
    """Return the rates of payload of each class after the warm-up, in Gbit/s."""
    measured_ps = scenario.duration_ps - scenario.warm_up_ps
    rows = result.classes.to_pylist()
    return {row["name"]: row["delivered_bytes"] * 8000 / measured_ps for row in rows}


LINK_GBPS = 100 * 2048 / 2130


@pytest.fixture(scope="module")
def incast() -> silvan.Scenario:
    packets = {"packet.mtu": "2 KiB"}
    return silvan.Scenario.from_file(example("pfc-incast").path, overrides=packets)


@pytest.fixture(scope="module")
def without_control(incast: silvan.Scenario) -> tuple[dict[str, float], tuple[int, int, int]]:
    result = silvan.run(incast)
    return rates(result, incast), totals(result)


def test_pauses_stop_the_victim(
    without_control: tuple[dict[str, float], tuple[int, int, int]],
) -> None:
    found, (_, pauses, _) = without_control
    assert found["contributors"] == pytest.approx(LINK_GBPS, rel=0.002)
    # A third of the receiver's link is for the shared cable, half of that for each of its flows.
    assert found["victim"] == pytest.approx(LINK_GBPS / 6, rel=0.005)
    assert pauses > 1000


def test_schemes_that_need_credits_take_no_part(incast: silvan.Scenario) -> None:
    names = {one.name for one in fitting(incast).every}
    assert {"dcqcn", "hpcc", "timely", "swift", "nscc", "ecn+lipd"} <= names
    by_lanes = {"vftree", "flow2sl", "dbbm", "obqa", "dftree"}
    by_hop = {"congestion-isolation", "recn", "fbicm"}
    assert not {"pft", "ib-cc+pft", "srp", *by_lanes, *by_hop} & names
    with_credits = incast.override({"link.flow-control": "credits"})
    assert {"pft", "ib-cc+pft"} <= {one.name for one in fitting(with_credits).every}


# By scheme: the least and the most share of its link that the victim has, and the least of the
# receiver's that the contributors have. Two thirds are what the contributors leave of the cable.
WITH_ROOM = {
    "ecn+lipd": (0.66, 0.67, 0.99),
    "timely+patched": (0.66, 0.67, 0.99),
    "swift": (0.66, 0.67, 0.99),
    "nscc": (0.66, 0.67, 0.99),
    # Holds links at 95 %, of which telemetry takes at most 2 %. Its contributors do not share
    # equally, so the victim has its half of the cable or more.
    "hpcc": (0.93 / 2, 0.95, 0.93),
    # No formula says how soon its flows come back: the victim gains, and has no more than its part.
    "dcqcn": (1 / 6, 2 / 3, 0),
}


@pytest.mark.parametrize("name", WITH_ROOM)
def test_schemes_act_before_pauses_where_buffers_have_room(
    name: str, incast: silvan.Scenario
) -> None:
    scheme = baseline(incast, name)
    times = {"run.warm-up": "5 ms", "run.duration": "10 ms"}
    scenario = incast.override({"link.pfc": {"buffer": "512 kB"}, **times, **scheme.overrides})
    result = silvan.run(scenario)
    found = rates(result, scenario)
    least, most, contributors = WITH_ROOM[name]
    assert totals(result) == (0, 0, 0)
    assert least * LINK_GBPS < found["victim"] < most * LINK_GBPS
    assert contributors * LINK_GBPS < found["contributors"] < LINK_GBPS * 1.001


def test_a_small_buffer_pauses_before_dcqcn_acts(incast: silvan.Scenario) -> None:
    dcqcn = baseline(incast, "dcqcn")
    scenario = incast.override(dcqcn.overrides)
    _, pauses, _ = totals(silvan.run(scenario))
    assert pauses > 1000


def test_headers_are_those_of_roce_unless_they_are_given(incast: silvan.Scenario) -> None:
    def sizes(scenario: silvan.Scenario) -> tuple[int, int]:
        return scenario.packet.header.bytes, scenario.control.feedback.bytes.bytes

    # Preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12; 16 more for a CNP.
    assert sizes(incast) == (82, 98)
    given = {"packet.header": "78 B", "control.feedback.bytes": "90 B"}
    assert sizes(incast.override(given)) == (78, 90)
    assert sizes(incast.override({"link.flow-control": "credits"})) == (26, 42)


@pytest.mark.parametrize(
    ("more", "line", "message", "hint"),
    [
        ('pfc = { xon = "9 kB", xoff = "8 kB" }', 3, "xon: xon of 9000 bytes is above", "8000 B"),
        (
            'pfc = { xoff = "8 kB", headroom = "9 kB", buffer = "16 kB" }',
            3,
            r"buffer: a PFC buffer of 16000 bytes; xoff \(8000\) and headroom \(9000\)",
            "17000 B",
        ),
        ('pfc = { pause-frame = "0 B" }', 3, "pause-frame: pause frame of 0 bytes", "84 B"),
        ('pfc = { response = "2 s" }', 3, "response: PFC response of 2 s is longer", "100 ns"),
        ("[vl]\ndata-vls = 9", 4, "data-vls: 9 data virtual lanes; PFC has 8", "1 fewer"),
        (
            '[control]\nscheme = "pft"',
            4,
            "scheme: pft reads the credits of a host",
            'choose another scheme, e.g. "dcqcn"',
        ),
        (
            '[control]\nscheme = "ib-cc+pft"',
            4,
            r"scheme: ib-cc\+pft reads the credits",
            'choose another scheme, e.g. "dcqcn"',
        ),
        (
            '[control]\nscheme = "ib-cc"\nib-cc = { switch = { credit-mask = "all" } }',
            5,
            "credit-mask: a switch cannot return credits late",
            "credit-return-delay",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_place_and_hint(
    more: str, line: int, message: str, hint: str
) -> None:
    with pytest.raises(silvan.ScenarioError, match=message) as caught:
        silvan.Scenario.from_toml(f'[link]\nflow-control = "pfc"\n{more}\n')
    assert caught.value.line == line
    assert hint in (caught.value.hint or "")


def test_thresholds_of_pfc_need_pfc() -> None:
    with pytest.raises(silvan.ScenarioError, match="links have credits") as caught:
        silvan.Scenario.from_toml('[link.pfc]\nxoff = "8 kB"\n')
    assert "link.flow-control" in (caught.value.hint or "")


def test_a_scenario_with_pfc_is_read_from_its_own_text(incast: silvan.Scenario) -> None:
    limits = {"xoff": "20 kB", "xon": "16 kB", "headroom": "9 kB", "buffer": "40 kB"}
    scenario = incast.override({"link.pfc": limits})
    again = silvan.Scenario.from_toml(scenario.to_toml())
    assert again.to_toml() == scenario.to_toml()
