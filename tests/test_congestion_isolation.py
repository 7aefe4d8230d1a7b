"""Congestion isolation, against what shared and separate buffers derive, and a twin in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import silvan
from silvan.comparing.baselines import fitting
from silvan.errors import ScenarioError
from tests.separate_buffers import (
    BEHIND_ONE_SPINE,
    LEFT_BY_HOTSPOT,
    check_parting_behind_one_spine,
    check_what_the_hotspot_leaves,
)
from tests.test_vl_mapping import LEAVES, TORUS, TREE, crossing

# The two lanes have the buffer of one together; half of a lane's is the set point.
SCHEME = {"control.scheme": "congestion-isolation", "switch.buffer": "32 KiB"}
# Time that the twin holds a flow, delay of its messages, and its set point.
HOLD_PS, DELAY_PS, SET_POINT = 100e6, 1e6, 16 * 1024


@pytest.mark.parametrize(("source", "load", "expected"), LEFT_BY_HOTSPOT)
def test_a_victim_has_what_the_hotspot_leaves(source: int, load: float, expected: float) -> None:
    check_what_the_hotspot_leaves(crossing(2, **SCHEME), source, load, expected)


@pytest.mark.parametrize(("hot", "victim"), BEHIND_ONE_SPINE)
def test_flows_part_wherever_the_hotspot_is(hot: int, victim: int) -> None:
    check_parting_behind_one_spine(crossing(2, LEAVES, **SCHEME), hot, victim)


def test_a_flow_returns_when_the_hotspot_has_ended() -> None:
    """Oracle: what is offered arrives, and the second lane of all ports is idle."""
    scenario = crossing(2, **SCHEME).override(
        {
            "traffic.flow": [
                {"name": "stays", "from": "host-0000", "to": "host-0004", "load": 0.9},
                {"from": "host-0005", "to": "host-0004", "end": "500 us"},
                {"from": "host-0007", "to": "host-0004", "end": "500 us"},
            ],
            "run.warm-up": "5 ms",
            "run.duration": "8 ms",
        }
    )
    result = silvan.run(scenario)
    (stays,) = (row for row in result.classes.to_pylist() if row["name"] == "stays")
    assert stays["delivered_bytes"] == pytest.approx(0.9 * 3e3 * 12_500 * 2048 / 2074, rel=0.01)


def test_compared_with_the_memory_of_one_lane() -> None:
    """Oracle: the buffer of the scenario, which the lanes share."""
    one_lane = crossing(0, **{"control.scheme": "none"})
    settings = {one.name: one for one in fitting(one_lane).every}["congestion-isolation"].overrides
    scenario = one_lane.override(settings)
    assert scenario.switch.buffer == one_lane.switch.buffer
    assert (scenario.vl.data_vls, scenario.vl.share_buffer) == (2, True)
    for other in ({"switch.queueing": "fifo"}, {"switch.output-buffer": {"size": "8 KiB"}}):
        names = {one.name for one in fitting(one_lane.override(other)).every}
        assert "dftree" in names
        assert "congestion-isolation" not in names


@pytest.mark.parametrize(
    ("lanes", "fabric", "keys", "message"),
    [
        (1, TREE, {}, "one data lane"),
        (2, TORUS, {}, "from deadlock"),
        (2, TREE, {"switch.queueing": "fifo"}, "single queues"),
        (2, TREE, {"switch.output-buffer": {"size": "8 KiB"}}, "output buffers"),
    ],
)
def test_fabrics_without_a_lane_for_congesting_flows_are_refused(
    lanes: int, fabric: Any, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        crossing(lanes, fabric, **SCHEME, **keys)
    assert caught.value.key == "control.congestion-isolation.set-point"
    assert caught.value.hint


def twin(to_hosts: list[bool], hosts: int) -> silvan.Callbacks:
    """Write the scheme again. A row of the table is a port, with lanes 2p and 2p + 1."""
    import numba

    ports = len(to_hosts)
    to_host, upstream, queued, credit, joined = 0, 1, 2, 4, 8
    behind_from, behind_until = 6, 7
    left = joined + 2 * ports
    entries = left + 2 * ports
    isolated, by_message, since, until, message_at, from_input, before = range(7)
    # The last row has the packet whose lane was chosen last.
    state = np.zeros((ports + 1, entries + 7 * hosts * hosts))
    state[:ports, to_host] = to_hosts
    state[:ports, upstream] = -1

    @numba.njit
    def extend(row, at, start, end):  # type: ignore[no-untyped-def]
        if row[at + 1] < start or start < row[at]:
            row[at] = start
        row[at + 1] = max(row[at + 1], end)

    @numba.njit
    def notify(row, at, arrives):  # type: ignore[no-untyped-def]
        extend(row, behind_from, arrives, arrives + HOLD_PS)
        row[at + by_message] = 1
        extend(row, at + since, arrives, arrives + HOLD_PS)

    def select_next_vl(  # type: ignore[no-untyped-def]
        state, now, input_port, output_port, next_input_port, next_output_port, source,
        destination, sl, vl,
    ):  # fmt: skip
        if next_input_port >= 0:
            state[next_input_port, upstream] = output_port
        row = state[output_port]
        at = entries + 7 * (source * hosts + destination)
        state[ports, 0] = input_port
        state[ports, 1] = at
        if row[at + until] == 0:
            return 0
        if input_port < 0:
            counts = row[at + since] <= now and now < row[at + until]
            lane = 1 if counts or row[at + isolated] > 0 else 0
            row[at + isolated] = 1 if counts else 0
            if now >= row[at + until]:
                row[at : at + 7] = 0
            return lane
        repeats = False
        if row[at + isolated] > 0 and row[queued + 1] >= SET_POINT:
            behind = row[behind_from] <= now and now < row[behind_until]
            is_root = (row[to_host] > 0 or row[credit + 1] > 0) and not behind
            if is_root or row[at + by_message] > 0:
                extend(row, at + since, now, now + HOLD_PS)
                if not is_root:
                    extend(row, behind_from, now, now + HOLD_PS)
                repeats = now >= row[at + message_at]
        counts = row[at + since] <= now and now < row[at + until]
        other = 0 if row[at + isolated] > 0 else ports
        settled = row[left + other + int(row[at + from_input])] >= row[at + before]
        if counts != (row[at + isolated] > 0) and settled:
            row[at + isolated] = 1 if counts else 0
            row[at + from_input] = input_port
            other = 0 if counts else ports
            row[at + before] = row[joined + other + input_port]
            settled = row[left + other + input_port] >= row[at + before]
        lane = 1 if row[at + isolated] > 0 else 0
        if now >= row[at + until] and lane == 0 and settled:
            row[at : at + 7] = 0
        if repeats:
            row[at + message_at] = now + HOLD_PS / 2
            to = state[int(state[input_port, upstream])]
            notify(to, at, now + DELAY_PS)
        return lane

    def on_queued(state, now, port_vl, queued_bytes, has_credit, wire_bytes, marked, input_port):  # type: ignore[no-untyped-def]
        row, lane = state[port_vl // 2], port_vl % 2
        row[queued + lane] = queued_bytes
        row[credit + lane] = 1 if has_credit else 0
        row[joined + lane * ports + input_port] += 1
        if lane == 1 or queued_bytes < SET_POINT or not (row[to_host] > 0 or has_credit):
            return
        if row[behind_from] <= now and now < row[behind_until]:
            return
        at = int(state[ports, 1])
        known = row[at + since] <= now and now < row[at + until]
        extend(row, at + since, now, now + HOLD_PS)
        if not known:
            row[at + message_at] = now + HOLD_PS / 2
            notify(state[int(state[input_port, upstream])], at, now + DELAY_PS)

    def on_departure(state, now, port_vl, queued_bytes, has_credit, wire_bytes, marked, input_port):  # type: ignore[no-untyped-def]
        row, lane = state[port_vl // 2], port_vl % 2
        row[queued + lane] = queued_bytes - wire_bytes
        row[credit + lane] = 1 if has_credit else 0
        row[left + lane * ports + input_port] += 1
        return False

    def holds_head(state, now, port_vl, input_port, source, destination, sl):  # type: ignore[no-untyped-def]
        row, lane = state[port_vl // 2], port_vl % 2
        at = entries + 7 * (source * hosts + destination)
        if row[at + until] == 0 or row[at + isolated] != lane or row[at + from_input] != input_port:
            return False
        return row[left + (1 - lane) * ports + input_port] < row[at + before]

    def host_vl(state, now, output_port, source, destination, sl, vl):  # type: ignore[no-untyped-def]
        row = state[output_port]
        at = entries + 7 * (source * hosts + destination)
        counts = row[at + since] <= now and now < row[at + until]
        return 1 if counts or row[at + isolated] > 0 else 0

    return silvan.Callbacks(
        state,
        select_next_vl=select_next_vl,
        on_queued=on_queued,
        on_departure=on_departure,
        holds_head=holds_head,
        host_vl=host_vl,
    )


@pytest.mark.slow
def test_the_twin_in_python_moves_the_same_packets() -> None:
    """Oracle: the scheme in Python. Loads below a link let flows return and come again."""
    scenario = crossing(2, **SCHEME).override(
        {
            "traffic.flow": [
                {"name": "hot", "from": "host-0000", "to": "host-0004"},
                {"name": "local-1", "from": "host-0005", "to": "host-0004", "load": 0.5},
                {"name": "local-2", "from": "host-0007", "to": "host-0004", "end": "1500 us"},
                {"name": "victim", "from": "host-0000", "to": "host-0006"},
                {"name": "back", "from": "host-0006", "to": "host-0001", "load": 0.7},
            ]
        }
    )
    built_in = silvan.run(scenario)
    to_hosts = [
        row["peer"].startswith("host-") and not row["node"].startswith("host-")
        for row in built_in.ports.to_pylist()
    ]
    none = {"control.scheme": "none"}
    mine = silvan.run(scenario.override(none), control=twin(to_hosts, 8))
    assert mine.classes.equals(built_in.classes)
    for column in ("xmit_bytes", "xmit_wait_ps"):
        assert mine.ports[column].to_pylist() == built_in.ports[column].to_pylist()
