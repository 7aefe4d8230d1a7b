"""The model as docs/model.md describes it. Oracle: a second simulator, written from that page.

200 drawn scenarios give the second simulator and silvan the same packets at every port, to the
picosecond, with and without InfiniBand congestion control.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import silvan
from tests.second_simulator import (
    TIMER_PS,
    Cable,
    Control,
    Flow,
    Hop,
    LaneArbiter,
    Model,
    Output,
    Packet,
    Simulator,
    Throttle,
    blocks,
)

SEED = 1
SCENARIOS = 200
TIMER = 1
"""CCTI_Timer of the scenarios with a timer, whose phases are measured."""


def draw_fabric(
    rng: random.Random,
) -> tuple[int, list[int], list[tuple[Any, Any]], list[list[int]]]:
    """Draw a small fabric: hosts, ports of each switch, ends of cables, forwarding tables."""
    kind = rng.choice(["single", "chain", "chain", "leaf-spine"])
    if kind == "single":
        hosts = rng.randint(2, 6)
        ends: list[tuple[Any, Any]] = [((None, host), (0, host + 1)) for host in range(hosts)]
        return hosts, [hosts], ends, [[host + 1 for host in range(hosts)]]
    switches, per_switch = rng.randint(2, 3), rng.randint(1, 3)
    hosts = switches * per_switch
    ends = [((None, h), (h // per_switch, h % per_switch + 1)) for h in range(hosts)]
    if kind == "chain":
        previous, following = per_switch + 1, per_switch + 2
        ends += [((i, following), (i + 1, previous)) for i in range(switches - 1)]
        tables = [
            [
                h % per_switch + 1
                if h // per_switch == switch
                else (following if h // per_switch > switch else previous)
                for h in range(hosts)
            ]
            for switch in range(switches)
        ]
        return hosts, [per_switch + 2] * switches, ends, tables
    spines = 2
    ends += [
        ((leaf, per_switch + 1 + spine), (switches + spine, leaf + 1))
        for leaf in range(switches)
        for spine in range(spines)
    ]
    tables = [
        [
            h % per_switch + 1 if h // per_switch == leaf else per_switch + 1 + h % spines
            for h in range(hosts)
        ]
        for leaf in range(switches)
    ] + [[h // per_switch + 1 for h in range(hosts)]] * spines
    return hosts, [per_switch + spines] * switches + [switches] * spines, ends, tables


def draw_flows(
    rng: random.Random, hosts: int, mtu: int, lanes: int, starts: list[int], messages: list[int]
) -> list[Flow]:
    """Draw flows, most of them to two hosts."""
    popular = rng.sample(range(hosts), 2)
    flows = []
    for _ in range(rng.randint(2, 10)):
        source = rng.randrange(hosts)
        destination = rng.choice([rng.choice(popular), rng.randrange(hosts)])
        if source == destination:
            continue
        message = rng.choice(messages)
        size = min(rng.choice([1, 5, 30, 60]) * mtu, 150 * message)
        flows.append(
            Flow(source, destination, size, message, rng.choice(starts), rng.randrange(lanes))
        )
    return flows or [Flow(0, 1, 5 * mtu, mtu, 0, 0)]


def draw_control(rng: random.Random, wire: int, lanes: int) -> Control:
    """Draw parameters of congestion control, with a timer if there are at most two lanes."""
    limit = rng.choice([3, 20, 60])
    shape = rng.randrange(4)
    in_band = rng.random() < 0.4
    threshold = rng.choice([1, 1, wire, wire, 2 * wire + 100, 4 * wire])
    return Control(
        threshold=threshold,
        hysteresis=rng.choice([0, 0, min(wire, threshold) - 1, threshold - 1]),
        packet_size=rng.choice([0, 0, 8, 20]),
        marking_rate=rng.choice([0, 0, 1, 3]),
        victim_mask=rng.choice(["none", "hosts", "all"]),
        increase=rng.choice([1, 1, 2, 7]),
        minimum=rng.choice([0, 0, 1]),
        limit=limit,
        timer=TIMER if lanes <= 2 and rng.random() < 0.7 else 0,
        table=[(0, 0)]
        + [[(0, i), (2, 3 * i), (3, i * i), (1, 5)][shape] for i in range(1, limit + 1)],
        by_service_level=rng.random() < 0.3,
        phases={},
        feedback_delay=None if in_band else rng.choice([2_000_000, 512_000, 123, 0]),
        feedback_sl=rng.choice([None, lanes - 1]),
        feedback_bytes=rng.choice([42, 64, 100]),
        feedback_priority=rng.random() < 0.5,
    )


def draw_tables(
    rng: random.Random, lanes: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
    """Draw VL arbitration: no tables, a low one with all lanes, or both."""
    kind = rng.randrange(3)
    if kind == 0:
        return [], [], 0
    weights = [1, 2, 10, 17, 40, 255]
    low = [(lane, rng.choice(weights)) for lane in range(lanes)]
    low += [(rng.randrange(lanes), rng.choice(weights)) for _ in range(rng.randint(0, 3))]
    high = [(rng.randrange(lanes), rng.choice([0, *weights])) for _ in range(kind * 2 - 2)]
    return high, low, rng.choice([0, 1, 1, 2, 255])


def draw_model(number: int) -> Model:
    """Draw a scenario. Every third one has delays and times that are multiples of each other."""
    rng = random.Random(number)
    hosts, switches, ends, tables = draw_fabric(rng)
    lanes = rng.choice([1, 1, 2, rng.randint(2, 4)])
    simultaneous = number % 3 == 0
    if simultaneous:
        mtu, header = 1000, 24
        rates, lengths = [16_000_000_000], [10_000, 10_000, 256_000, 512_000]
        delays = [0, 256_000, 512_000, 1_024_000]
        starts, messages = [0, 0, 256_000, 2_048_000], [1000, 1000, 2000, 488, 1488]
        injections: list[int | None] = [None]
        sinks: list[int | None] = [None, None, 15_625_000_000]
    else:
        mtu, header = rng.choice([512, 1000, 1024, 2048, 4096]), rng.choice([0, 26, 26, 64])
        rates = rng.choice(
            [[16], [16, 16, 40], [10, 25, 40], [37, 100]],
        )
        rates = [rate * 10**9 for rate in rates]
        lengths = [1, 5_000, 10_000, 12_345, 100_000]
        delays = [0, 33_333, 100_000, 100_000, 150_000]
        starts = [0, 0, 0, rng.randrange(3_000_000)]
        messages = [mtu, 2 * mtu, mtu + 1, 3 * mtu // 2, 100, 64, 1]
        injections = [None, None, 13_500_000_000]
        sinks = [None, None, 13_600_000_000, 7_000_000_000]
    wire = mtu + header
    room = blocks(wire) * 64
    high, low, limit_high = draw_tables(rng, lanes)
    share = rng.random() < 0.2
    return Model(
        hosts=hosts,
        switches=switches,
        cables=[Cable(a, b, rng.choice(rates), rng.choice(lengths)) for a, b in ends],
        tables=tables,
        flows=draw_flows(rng, hosts, mtu, lanes, starts, messages),
        duration=40_000_000,
        mtu=mtu,
        header=header,
        switch_latency=rng.choice(delays),
        switch_credit_delay=rng.choice(delays),
        switch_buffer=room * rng.choice([1, 2, 3, 8, 30]) * (lanes if share else 1),
        host_buffer=room * rng.choice([1, 2, 3, 8]),
        host_credit_delay=rng.choice(delays),
        injection_rate=rng.choice(injections),
        sink_rate=rng.choice(sinks),
        queueing=rng.choice(["voq", "voq", "fifo"]),
        arbitration=rng.choice(["round-robin", "round-robin", "oldest-first"]),
        host_arbitration=rng.choice(["head-of-line", "work-conserving"]),
        lanes=lanes,
        lane_of_sl=[sl % lanes for sl in range(16)],
        high=high,
        low=low,
        limit_high=limit_high,
        share_buffer=share,
        control=draw_control(rng, wire, lanes) if rng.random() < 0.5 else None,
    )


def name_of(end: tuple[int | None, int]) -> str:
    """Name a port as scenarios do."""
    switch, port = end
    return f"h{port}" if switch is None else f"s{switch}:{port}"


def control_of(control: Control) -> dict[str, Any]:
    """Write the parameters of congestion control as keys."""
    feedback: dict[str, Any] = {"delay": f"{control.feedback_delay} ps"}
    if control.feedback_delay is None:
        feedback = {
            "path": "in-band",
            "bytes": f"{control.feedback_bytes} B",
            "priority": control.feedback_priority,
        }
        if control.feedback_sl is not None:
            feedback["sl"] = control.feedback_sl
    return {
        "scheme": "ib-cc",
        "feedback": feedback,
        "ib-cc": {
            "switch": {
                "threshold": 15,
                "threshold-lowest": f"{control.threshold} B",
                "threshold-hysteresis": f"{control.hysteresis} B",
                "packet-size": control.packet_size,
                "marking-rate": control.marking_rate,
                "marking": "counter",
                "victim-mask": control.victim_mask,
            },
            "adapter": {
                "ccti-increase": control.increase,
                "ccti-min": control.minimum,
                "ccti-timer": control.timer,
                "ccti-limit": control.limit,
                "level": "sl" if control.by_service_level else "qp",
                "cct": {"shape": "given", "entries": [list(entry) for entry in control.table]},
            },
        },
    }


def scenario_of(model: Model, *, record: bool) -> silvan.Scenario:
    """Write a model as a scenario."""
    host = {
        "receive-buffer": f"{model.host_buffer} B",
        "credit-delay": f"{model.host_credit_delay} ps",
        "arbitration": model.host_arbitration,
    }
    if model.injection_rate is not None:
        host["injection-rate"] = f"{model.injection_rate} bit/s"
    if model.sink_rate is not None:
        host["sink-rate"] = f"{model.sink_rate} bit/s"
    probe: dict[str, Any] = {"latency": "off"}
    if record:
        ports = [name_of(end) for cable in model.cables for end in (cable.a, cable.b)]
        probe["packets"] = {"ports": ports}
    tables: dict[str, Any] = {
        "fabric": {
            "switch": [{"name": f"s{i}", "ports": n} for i, n in enumerate(model.switches)],
            "host": [{"name": f"h{host}"} for host in range(model.hosts)],
            "cable": [
                {
                    "from": name_of(cable.a),
                    "to": name_of(cable.b),
                    "rate": f"{cable.rate} bit/s",
                    "latency": f"{cable.propagation} ps",
                }
                for cable in model.cables
            ],
            "routing": "explicit",
            "tables": {
                f"s{i}": {f"h{host}": port for host, port in enumerate(table)}
                for i, table in enumerate(model.tables)
            },
        },
        "packet": {"mtu": f"{model.mtu} B", "header": f"{model.header} B"},
        "switch": {
            "latency": f"{model.switch_latency} ps",
            "credit-delay": f"{model.switch_credit_delay} ps",
            "buffer": f"{model.switch_buffer} B",
            "queueing": model.queueing,
            "arbitration": model.arbitration,
        },
        "host": host,
        "vl": {
            "data-vls": model.lanes,
            "sl-to-vl": model.lane_of_sl,
            "share-buffer": model.share_buffer,
            "high": [list(entry) for entry in model.high],
            "low": [list(entry) for entry in model.low],
            "limit-high": model.limit_high,
        },
        "traffic": {
            "flow": [
                {
                    "from": f"h{flow.source}",
                    "to": f"h{flow.destination}",
                    "bytes": f"{flow.size} B",
                    "message": f"{flow.message} B",
                    "start": f"{flow.start} ps",
                    "sl": flow.sl,
                }
                for flow in model.flows
            ]
        },
        "probe": probe,
        "run": {"duration": f"{model.duration} ps", "seed": SEED},
    }
    if model.control is not None:
        tables["control"] = control_of(model.control)
    return silvan.Scenario(**tables)


def ccti_at(time: int, host: int, sl: int) -> int:
    """Run two flows that get marks at once, and sample the index of one at a time."""
    name = "host-{:04d}".format
    flow = {"to": name((host + 1) % 10), "bytes": "4 KiB", "message": "256 B", "sl": sl}
    scenario = silvan.Scenario(
        fabric={"generator": "single-switch", "hosts": 10},
        link={"rate": "1000 Gbit/s", "latency": "1 ns"},
        packet={"mtu": "256 B"},
        vl={"data-vls": 1},
        switch={"latency": "1 ns", "credit-delay": "1 ns", "buffer": "64 KiB"},
        traffic={"flow": [{"from": name(source % 10), **flow} for source in (host, host + 2)]},
        control={
            "scheme": "ib-cc",
            "feedback": {"delay": "1 ns"},
            "ib-cc": {
                "switch": {
                    "threshold": 15,
                    "threshold-lowest": "1 B",
                    "packet-size": 0,
                    "marking-rate": 0,
                    "victim-mask": "all",
                },
                "adapter": {
                    "ccti-increase": 100,
                    "ccti-limit": 100,
                    "ccti-timer": TIMER,
                    "cct": {"shape": "given", "entries": [[0, 0], *[[3, 1]] * 100]},
                },
            },
        },
        probe={"flow-limits": True, "interval": f"{time} ps"},
        run={"duration": f"{2 * time} ps", "seed": SEED},
    )
    (index,) = (
        row["ccti"]
        for row in silvan.run(scenario).tables["flow_limits"].to_pylist()
        if row["time_ps"] == time and row["source"] == host
    )
    return int(index)


@cache
def timer_phase(host: int, sl: int) -> int:
    """Measure the random phase of a CCTI_Timer: the page leaves it to the seed."""
    before = 400_000
    after = before + TIMER * TIMER_PS
    index = ccti_at(before, host, sl)
    while after - before > 1:
        middle = (before + after) // 2
        if ccti_at(middle, host, sl) == index:
            before = middle
        else:
            after = middle
    return after % (TIMER * TIMER_PS)


@cache
def model_of(number: int) -> Model:
    """Draw a scenario, with the phases of its timers."""
    model = draw_model(number)
    control = model.control
    if control is None or control.timer == 0:
        return model
    pairs = {(flow.source, flow.sl) for flow in model.flows}
    phases = {(host, sl): timer_phase(host, sl) for host, sl in sorted(pairs)}
    return dataclasses.replace(model, control=dataclasses.replace(control, phases=phases))


def hops_of(result: silvan.Result) -> list[Hop]:
    """Return the packets that left each port."""
    ports = result.ports.to_pylist()
    return sorted(
        Hop(
            time=row["time_ps"],
            node=ports[row["ports_row"]]["node"],
            port=ports[row["ports_row"]]["port"],
            kind=row["kind"],
            flow=row["class"],
            born=row["born_ps"],
            wire=row["wire_bytes"],
            vl=row["vl"],
            last=row["last"],
            fecn=row["fecn"],
            delivered=-1 if row["delivered_ps"] is None else row["delivered_ps"],
        )
        for row in result.packet_hops.to_pylist()
    )


def flows_of(result: silvan.Result) -> list[tuple[int | None, int, int]]:
    """Return end, payload and marks of each flow."""
    return [
        (row["end_ps"], row["delivered_bytes"], row["marked_packets"])
        for row in result.flows.to_pylist()
    ]


def ports_of(result: silvan.Result) -> dict[tuple[str, int], tuple[int, int]]:
    """Return packets and marks of each port."""
    return {
        (row["node"], row["port"]): (row["xmit_pkts"], row["fecn_marked"])
        for row in result.ports.to_pylist()
    }


def simulate(model: Model, kind: type[Simulator] = Simulator) -> Simulator:
    """Run the second simulator."""
    simulator = kind(model)
    simulator.run()
    return simulator


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SCENARIOS))
def test_second_simulator_has_every_packet_at_the_same_picosecond(number: int) -> None:
    model = model_of(number)
    second = simulate(model)
    recorded = silvan.run(scenario_of(model, record=True))
    theirs, hops = sorted(second.hops), hops_of(recorded)
    first = next((pair for pair in zip(hops, theirs, strict=False) if pair[0] != pair[1]), None)
    assert first is None, f"silvan has {first[0]}, the second simulator {first[1]}"
    assert len(hops) == len(theirs) > 0
    # Runs that record nothing use other forms of the engine.
    for result in (recorded, silvan.run(scenario_of(model, record=False))):
        assert flows_of(result) == [
            (entry.end_ps, entry.delivered, entry.marked)
            for _, entry in sorted(second.flows.items())
        ]
        assert ports_of(result) == {
            (output.name, output.port): (output.sent_packets, output.marked_packets)
            for output in second.outputs.values()
        }


@pytest.mark.parametrize("arbitration", ["head-of-line", "work-conserving"])
def test_large_packets_get_their_turn_unless_hosts_pass_them_over(arbitration: str) -> None:
    # The switch has room for one packet of MTU size. One flow has these, the other small ones.
    mtu, small = 4096, 64
    cables = [Cable((None, host), (0, host + 1), 16 * 10**9, 10_000) for host in range(2)]
    model = Model(
        hosts=2,
        switches=[2],
        cables=cables,
        tables=[[1, 2]],
        flows=[Flow(0, 1, 10**7, message, 0, 0) for message in (mtu, small)],
        duration=200_000_000,
        mtu=mtu,
        header=26,
        switch_latency=100_000,
        switch_credit_delay=100_000,
        switch_buffer=blocks(mtu + 26) * 64,
        host_buffer=65_536,
        host_credit_delay=100_000,
        injection_rate=None,
        sink_rate=None,
        queueing="voq",
        arbitration="round-robin",
        host_arbitration=arbitration,
        lanes=1,
        lane_of_sl=[0] * 16,
        high=[],
        low=[],
        limit_high=0,
    )
    result = silvan.run(scenario_of(model, record=False))
    large, little = (row["delivered_bytes"] for row in result.flows.to_pylist())
    assert flows_of(result) == [
        (entry.end_ps, entry.delivered, entry.marked)
        for _, entry in sorted(simulate(model).flows.items())
    ]
    if arbitration == "head-of-line":
        assert abs(large // mtu - little // small) <= 1
        assert large // mtu > 50
    else:
        # The first packet alone, which found all credits.
        assert large == mtu
        assert little // small > 1000


class LowestInput(Simulator):
    """Serves the lowest input instead of the next one."""

    def start_at_switch(self, output: Output, port: int, packet: Packet) -> None:
        super().start_at_switch(output, port, packet)
        output.last_input[packet.vl] = 0


class MarksByWhatStays(Simulator):
    """Leaves the packet that starts out of what waits."""

    def mark(self, output: Output, packet: Packet) -> None:
        output.waiting[packet.vl] -= packet.wire
        super().mark(output, packet)
        output.waiting[packet.vl] += packet.wire


class DelayFromStart(Simulator):
    """Counts the injection rate delay from the start of a packet."""

    def hold_back(self, flow: Flow, start: int, end: int) -> None:
        super().hold_back(flow, start, end)
        if self.model.control is not None:
            self.throttle(flow).release -= end - start


class NoCharge(Simulator):
    """Lets CNPs cost the adapters nothing."""

    def __init__(self, model: Model) -> None:
        super().__init__(dataclasses.replace(model, charge=0))


class RoundedUp(Simulator):
    """Rounds the injection rate delay up."""

    def delay(self, state: Throttle, time: int) -> int:
        assert self.model.control is not None
        shift, multiplier = self.model.control.table[state.ccti]
        return -(-time * multiplier >> shift)


class BytesOfHigh(Simulator):
    """Counts bytes, not blocks, against the Limit of High Priority."""

    def add_output(self, here: Any, there: Any, cable: Cable) -> None:
        super().add_output(here, there, cable)
        self.outputs[here].lanes = ExactLimit(self.model)


class ExactLimit(LaneArbiter):
    """A Limit of High Priority in bytes."""

    def serve(self, choice: Any, size: int) -> None:
        before = self.sent_high
        super().serve(choice, size)
        if self.sent_high:
            self.sent_high = before + size


class FirstHeadOfAnInstant(Simulator):
    """Starts the first head of an instant at an output that becomes free at this instant."""

    def head(self, switch: int, port: int, packet: Packet) -> None:
        output = self.outputs[switch, self.output_of(switch, packet)]
        if output.busy_until == self.now:
            output.busy_until -= 1
        super().head(switch, port, packet)


WRONG_RULES = [
    LowestInput,
    MarksByWhatStays,
    DelayFromStart,
    NoCharge,
    RoundedUp,
    BytesOfHigh,
    FirstHeadOfAnInstant,
]
WRONG_VALUES: dict[str, Callable[[Model], dict[str, Any]]] = {
    "switch credits a picosecond late": lambda m: {
        "switch_credit_delay": m.switch_credit_delay + 1
    },
    "host credits a picosecond late": lambda m: {"host_credit_delay": m.host_credit_delay + 1},
    "heads a picosecond late": lambda m: {"switch_latency": m.switch_latency + 1},
    "a block less in switches": lambda m: {"switch_buffer": m.switch_buffer - 64},
    "other order of inputs": lambda m: {
        "arbitration": "oldest-first" if m.arbitration == "round-robin" else "round-robin"
    },
    "other hosts": lambda m: {
        "host_arbitration": "work-conserving"
        if m.host_arbitration == "head-of-line"
        else "head-of-line"
    },
    "other queues": lambda m: {"queueing": "fifo" if m.queueing == "voq" else "voq"},
    "no tables of lanes": lambda _: {"high": [], "low": []},
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", WRONG_RULES, ids=lambda rule: rule.__name__)
def test_wrong_rule_gives_other_packets(rule: type[Simulator]) -> None:
    models = (model_of(number) for number in range(SCENARIOS))
    assert any(
        sorted(simulate(model).hops) != sorted(simulate(model, rule).hops) for model in models
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG_VALUES)
def test_wrong_value_gives_other_packets(name: str) -> None:
    models = (model_of(number) for number in range(SCENARIOS))
    assert any(
        sorted(simulate(model).hops)
        != sorted(simulate(dataclasses.replace(model, **WRONG_VALUES[name](model))).hops)
        for model in models
    )
