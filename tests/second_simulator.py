"""A second simulator of the data plane and of InfiniBand congestion control.

It is written from docs/model.md alone, imports nothing of silvan and shares no code with it. It is
slow and plain: one heap of events, one object per packet. Times are integer picoseconds, sizes
bytes, rates bit/s.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

PS_PER_S = 10**12
BLOCK_BYTES = 64
LIMIT_UNIT_BYTES = 4096
"""Unit of the Limit of High Priority."""
EQUAL_WEIGHT = 255
"""Weight of each lane without tables, in blocks."""
TIMER_PS = 1_024_000
"""Unit of CCTI_Timer."""

# Phases: the order of events at one instant. Within a phase the number of the port or host decides.
HEAD, ARBITRATION, DELIVERY, NOTIFICATION, HOST = range(5)


@dataclass(frozen=True)
class Cable:
    """A cable between two ports. A host has the switch number None; its port number is its own."""

    a: tuple[int | None, int]
    b: tuple[int | None, int]
    rate: int
    propagation: int


@dataclass(frozen=True)
class Flow:
    """Bytes from one host to another, in messages, from a start on."""

    source: int
    destination: int
    size: int
    message: int
    start: int
    sl: int


@dataclass(frozen=True)
class Control:
    """Parameters of InfiniBand congestion control."""

    threshold: int
    """Bytes on the wire that wait for a Port VL."""
    hysteresis: int
    """Bytes by which the threshold is lower in the congestion state."""
    packet_size: int
    marking_rate: int
    victim_mask: str
    increase: int
    minimum: int
    limit: int
    timer: int
    table: list[tuple[int, int]]
    """Shift and multiplier by index."""
    by_service_level: bool
    phases: dict[tuple[int, int], int]
    """First expiry of the timer by host and service level."""
    feedback_delay: int | None
    """Time that a notification takes past the fabric; None if it is a packet."""
    feedback_sl: int | None = None
    """Service level of such packets; None for that of the data."""
    feedback_bytes: int = 42
    feedback_priority: bool = True


@dataclass(frozen=True)
class Model:
    """All that decides a run."""

    hosts: int
    switches: list[int]
    """Number of ports of each switch."""
    cables: list[Cable]
    tables: list[list[int]]
    """Output port by switch and destination."""
    flows: list[Flow]
    duration: int
    mtu: int
    header: int
    switch_latency: int
    switch_credit_delay: int
    switch_buffer: int
    host_buffer: int
    host_credit_delay: int
    injection_rate: int | None
    sink_rate: int | None
    queueing: str
    arbitration: str
    host_arbitration: str
    lanes: int
    lane_of_sl: list[int]
    high: list[tuple[int, int]]
    low: list[tuple[int, int]]
    limit_high: int
    share_buffer: bool = False
    control: Control | None = None
    charge: int = 64


def serialisation(size: int, rate: int) -> int:
    """Time of bytes at a rate, rounded up."""
    return -(-size * 8 * PS_PER_S // rate)


def blocks(size: int) -> int:
    """Credits that a packet needs."""
    return -(-size // BLOCK_BYTES)


@dataclass(eq=False)
class Packet:
    """A packet of a flow."""

    flow: int
    source: int
    destination: int
    sl: int
    vl: int
    payload: int
    wire: int
    last: bool
    born: int = 0
    fecn: bool = False
    eligible: int = 0
    kind: str = "data"
    sl_of_flow: int = 0


@dataclass(frozen=True, order=True)
class Hop:
    """A packet that leaves a port."""

    time: int
    node: str
    port: int
    kind: str
    flow: int
    """Number of the flow; of a CNP the service level of its flow."""
    born: int
    wire: int
    vl: int
    last: bool
    fecn: bool
    delivered: int


class LaneTable:
    """One of the two weighted tables of an output (IBA 7.6.9)."""

    def __init__(self, entries: list[tuple[int, int]]) -> None:
        self.entries = [entry for entry in entries if entry[1] > 0]
        self.at = 0
        self.left = self.entries[0][1] if self.entries else 0

    def choose(self, ready: set[int]) -> int | None:
        """Return the index of the entry to serve, without changing the table."""
        if not self.entries:
            return None
        count = len(self.entries)
        if self.left > 0 and self.entries[self.at][0] in ready:
            return self.at
        for step in range(1, count + 1):
            index = (self.at + step) % count
            if self.entries[index][0] in ready:
                return index
        return None

    def serve(self, index: int, size: int) -> None:
        """Take the weight of a packet that leaves by an entry."""
        if index != self.at or self.left <= 0:
            self.at, self.left = index, self.entries[index][1]
        self.left -= blocks(size)


class LaneArbiter:
    """Chooses the lane of an output by two tables and the Limit of High Priority."""

    def __init__(self, model: Model) -> None:
        self.high = LaneTable(model.high)
        self.low = LaneTable(model.low)
        if not model.high and not model.low:
            self.low = LaneTable([(vl, EQUAL_WEIGHT) for vl in range(model.lanes)])
        self.limit = model.limit_high
        self.sent_high = 0

    def choose(self, ready: set[int]) -> tuple[LaneTable, int] | None:
        """Choose a table and its entry."""
        high, low = self.high.choose(ready), self.low.choose(ready)
        if high is not None and (low is None or self.allows_high()):
            return self.high, high
        if low is not None:
            return self.low, low
        return None

    def allows_high(self) -> bool:
        """Say whether the high table may go before a waiting packet of the low one."""
        if self.limit == 255:
            return True
        if self.limit == 0:
            return self.sent_high == 0
        return self.sent_high < self.limit * LIMIT_UNIT_BYTES

    def serve(self, choice: tuple[LaneTable, int], size: int) -> None:
        """Account for a packet that leaves."""
        table, index = choice
        table.serve(index, size)
        if table is self.high:
            self.sent_high += blocks(size) * BLOCK_BYTES
        else:
            self.sent_high = 0


@dataclass(eq=False)
class Output:
    """An output port of a switch or host, with the credits of the buffer behind its cable."""

    number: int
    name: str
    port: int
    switch: int | None
    rate: int
    propagation: int
    peer: tuple[int | None, int]
    credits: list[int]
    lanes: LaneArbiter
    busy_until: int = -1
    returning: list[tuple[int, int, int]] = field(default_factory=list)
    last_input: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    """Bytes that wait, by lane."""
    unmarked: list[int] = field(default_factory=list)
    congested: list[bool] = field(default_factory=list)
    """Eligible packets since the last mark, by lane."""
    sent_packets: int = 0
    marked_packets: int = 0

    def collect_credits(self, now: int) -> None:
        """Take in the credits that can be used by now."""
        while self.returning and self.returning[0][0] <= now:
            _, vl, count = heapq.heappop(self.returning)
            self.credits[vl] += count

    def has_credits(self, packet: Packet) -> bool:
        """Say whether the buffer behind the cable has room for a packet."""
        return self.credits[packet.vl] >= blocks(packet.wire)


@dataclass(eq=False)
class Entry:
    """Packets of a host for one flow."""

    index: int
    flow: Flow
    left: int
    left_in_message: int
    end_ps: int | None = None
    delivered: int = 0
    marked: int = 0


@dataclass(eq=False)
class Throttle:
    """Congestion control's state of a queue pair, or of a service level of a host."""

    ccti: int
    release: int = 0


class Simulator:
    """A run."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.now = 0
        self.events: list[tuple[int, int, int, int, Callable[[], None]]] = []
        self.pushed = 0
        self.wakes: set[tuple[int, int, int]] = set()
        self.hops: list[Hop] = []
        self.outputs: dict[tuple[int | None, int], Output] = {}
        for cable in model.cables:
            self.add_output(cable.a, cable.b, cable)
            self.add_output(cable.b, cable.a, cable)
        # A FIFO for each input port and lane, and with VOQs for each output.
        self.queues: dict[tuple[int, int, int], dict[int, deque[Packet]]] = {}
        self.entries: list[list[Entry]] = [[] for _ in range(model.hosts)]
        for index, flow in enumerate(model.flows):
            self.entries[flow.source].append(
                Entry(index, flow, flow.size, min(flow.size, flow.message))
            )
        self.flows = {entry.index: entry for entries in self.entries for entry in entries}
        self.last_entry = [-1] * model.hosts
        self.chosen: list[dict[int, int]] = [{} for _ in range(model.hosts)]
        """By lane the entry whose packet was chosen and waits for credits."""
        self.next_injection = [0] * model.hosts
        self.sink_free = [0] * model.hosts
        self.cnp_turn = [True] * model.hosts
        self.cnps: list[deque[Packet]] = [deque() for _ in range(model.hosts)]
        self.throttles: dict[tuple[int, ...], Throttle] = {}

    def add_output(
        self, here: tuple[int | None, int], there: tuple[int | None, int], cable: Cable
    ) -> None:
        """Make the output of one end of a cable."""
        model = self.model
        size = model.host_buffer if there[0] is None else model.switch_buffer
        if model.share_buffer and there[0] is not None:
            size //= model.lanes
        switch, port = here
        self.outputs[here] = Output(
            number=len(self.outputs),
            name=f"h{port}" if switch is None else f"s{switch}",
            port=1 if switch is None else port,
            switch=switch,
            rate=cable.rate,
            propagation=cable.propagation,
            peer=there,
            credits=[size // BLOCK_BYTES] * model.lanes,
            lanes=LaneArbiter(model),
            last_input=[0] * model.lanes,
            waiting=[0] * model.lanes,
            unmarked=[0] * model.lanes,
            congested=[False] * model.lanes,
        )

    # Events.

    def at(self, time: int, phase: int, number: int, action: Callable[[], None]) -> None:
        """Schedule an event."""
        self.pushed += 1
        heapq.heappush(self.events, (time, phase, number, self.pushed, action))

    def wake(self, time: int, phase: int, number: int, action: Callable[[], None]) -> None:
        """Schedule an event that looks for something to do, unless there is one."""
        key = time, phase, number
        if key not in self.wakes:
            self.wakes.add(key)

            def look() -> None:
                self.wakes.discard(key)
                action()

            self.at(time, phase, number, look)

    def wake_host(self, host: int, time: int) -> None:
        """Let a host look for a packet to start."""
        self.wake(time, HOST, host, lambda: self.inject(host))

    def run(self) -> None:
        """Process all events up to the end of the run."""
        for host in range(self.model.hosts):
            for time in {entry.flow.start for entry in self.entries[host]}:
                self.wake_host(host, time)
        control = self.model.control
        if control is not None and control.timer > 0:
            for (host, sl), phase in control.phases.items():
                self.start_timer(host, sl, phase)
        while self.events and self.events[0][0] < self.model.duration:
            self.now, _, _, _, action = heapq.heappop(self.events)
            action()

    # Switches.

    def queue_of(self, switch: int, port: int, vl: int, output: int) -> deque[Packet]:
        """Return the FIFO that a packet joins."""
        queues = self.queues.setdefault((switch, port, vl), {})
        return queues.setdefault(output if self.model.queueing == "voq" else 0, deque())

    def output_of(self, switch: int, packet: Packet) -> int:
        """Look up the forwarding table."""
        return self.model.tables[switch][packet.destination]

    def head(self, switch: int, port: int, packet: Packet) -> None:
        """Let a packet that is eligible join its queue. An idle output chooses at once."""
        output = self.outputs[switch, self.output_of(switch, packet)]
        packet.eligible = self.now
        queue = self.queue_of(switch, port, packet.vl, output.port)
        queue.append(packet)
        output.waiting[packet.vl] += packet.wire
        output.collect_credits(self.now)
        output.congested[packet.vl] = self.is_congested(
            output, packet.vl, output.waiting[packet.vl], output.credits[packet.vl]
        )
        if self.model.queueing == "fifo" and queue[0] is not packet:
            return
        if output.busy_until < self.now:
            self.arbitrate(output)
        else:
            self.arbitrate_at(output, output.busy_until)

    def candidates(self, switch: int, out_port: int, vl: int) -> list[tuple[int, Packet]]:
        """Return the inputs whose next packet of a lane is for an output."""
        found = []
        for port in range(1, self.model.switches[switch] + 1):
            queue = self.queue_of(switch, port, vl, out_port)
            if queue and self.output_of(switch, queue[0]) == out_port:
                found.append((port, queue[0]))
        return found

    def arbitrate_at(self, output: Output, time: int) -> None:
        """Schedule an arbitration."""
        self.wake(time, ARBITRATION, output.number, lambda: self.arbitrate(output))

    def ready(self, output: Output) -> dict[int, tuple[int, Packet]]:
        """Return input and packet of each lane whose next packet has credits."""
        assert output.switch is not None
        chosen: dict[int, tuple[int, Packet]] = {}
        for vl in range(self.model.lanes):
            found = self.candidates(output.switch, output.port, vl)
            if not found:
                continue
            if self.model.arbitration == "round-robin":
                ports = self.model.switches[output.switch]
                last = output.last_input[vl]
                best = min(found, key=lambda one: (one[0] - last - 1) % (ports + 1))
            else:
                best = min(found, key=lambda one: (one[1].eligible, one[0]))
            if output.has_credits(best[1]):
                chosen[vl] = best
        return chosen

    def arbitrate(self, output: Output) -> None:
        """Start the next packet of a free output: the lane first, then the input."""
        if output.busy_until > self.now:
            return
        assert output.switch is not None
        output.collect_credits(self.now)
        chosen = self.ready(output)
        choice = output.lanes.choose(set(chosen))
        if choice is None:
            for time, _, _ in output.returning:
                self.arbitrate_at(output, time)
            return
        table, index = choice
        port, packet = chosen[table.entries[index][0]]
        output.lanes.serve(choice, packet.wire)
        self.start_at_switch(output, port, packet)

    def start_at_switch(self, output: Output, port: int, packet: Packet) -> None:
        """Take a packet from its queue and start it."""
        assert output.switch is not None
        queue = self.queue_of(output.switch, port, packet.vl, output.port)
        assert queue.popleft() is packet
        output.last_input[packet.vl] = port
        output.waiting[packet.vl] -= packet.wire
        upstream = self.outputs[self.outputs[output.switch, port].peer]
        self.mark(output, packet)
        tail = self.start(output, packet)
        self.post_credits(
            upstream, packet, tail + upstream.propagation + self.model.switch_credit_delay
        )
        if any(output.waiting):
            self.arbitrate_at(output, output.busy_until)
        if self.model.queueing == "fifo" and queue:
            behind = self.outputs[output.switch, self.output_of(output.switch, queue[0])]
            self.arbitrate_at(behind, max(self.now, behind.busy_until))

    def start(self, output: Output, packet: Packet) -> int:
        """Put a packet on a link; return when its tail has left."""
        time = serialisation(packet.wire, output.rate)
        tail = output.busy_until = self.now + time
        output.credits[packet.vl] -= blocks(packet.wire)
        output.sent_packets += 1
        switch, port = output.peer
        delivered = -1
        if switch is None:
            delivered = self.arrive(port, tail + output.propagation, packet, output)
        else:
            following = self.outputs[switch, self.output_of(switch, packet)]
            wait = max(0, time - serialisation(packet.wire, following.rate))
            eligible = self.now + output.propagation + self.model.switch_latency + wait
            number = self.outputs[switch, port].number
            self.at(eligible, HEAD, number, lambda: self.head(switch, port, packet))
        self.hops.append(
            Hop(
                self.now,
                output.name,
                output.port,
                packet.kind,
                packet.sl_of_flow if packet.kind == "cnp" else packet.flow,
                packet.born if packet.kind == "data" else self.now,
                packet.wire,
                packet.vl,
                packet.last,
                packet.fecn,
                delivered,
            )
        )
        return tail

    def post_credits(self, output: Output, packet: Packet, time: int) -> None:
        """Return the credits of a packet to the output that feeds its buffer."""
        heapq.heappush(output.returning, (time, packet.vl, blocks(packet.wire)))
        if output.switch is None:
            self.wake_host(output_host(output), time)
        elif any(output.waiting):
            self.arbitrate_at(output, time)

    # Hosts.

    def inject(self, host: int) -> None:
        """Start the next packet of a host, if its link, its rate, credits and control permit."""
        output = self.outputs[None, host]
        if output.busy_until > self.now:
            self.wake_host(host, output.busy_until)
            return
        output.collect_credits(self.now)
        control = self.model.control
        first = control is not None and (control.feedback_priority or self.cnp_turn[host])
        if first and self.send_cnp(host, output):
            return
        if self.next_injection[host] > self.now:
            self.wake_host(host, self.next_injection[host])
        elif self.send_data(host, output):
            return
        if not first:
            self.send_cnp(host, output)

    def send_data(self, host: int, output: Output) -> bool:
        """Start the packet of the next flow that may send."""
        entries = self.entries[host]
        count = len(entries)
        releases = []
        # A packet that was chosen before is first, and holds its lane until it has credits.
        chosen = dict(sorted(self.chosen[host].items()))
        self.chosen[host] = {}
        turns = [(self.last_entry[host] + step) % count for step in range(1, count + 1)]
        order = [*chosen.values(), *(index for index in turns if index not in chosen.values())]
        for place, index in enumerate(order):
            entry = entries[index]
            if entry.left == 0 or entry.flow.start > self.now:
                continue
            packet = self.next_packet(entry)
            release = self.release(entry.flow)
            if release > self.now:
                releases.append(release)
                continue
            if packet.vl in self.chosen[host]:
                continue
            if not output.has_credits(packet):
                if self.model.host_arbitration == "head-of-line":
                    self.chosen[host][packet.vl] = index
                continue
            # Entries that were not tried keep their lanes.
            self.chosen[host] |= dict(list(chosen.items())[place + 1 :])
            self.last_entry[host] = index
            self.cnp_turn[host] = True
            self.send(host, output, entry, packet)
            return True
        if releases:
            self.wake_host(host, min(releases))
        return False

    def send_cnp(self, host: int, output: Output) -> bool:
        """Start the first CNP of a host, if there are credits."""
        if not self.cnps[host] or not output.has_credits(self.cnps[host][0]):
            return False
        packet = self.cnps[host].popleft()
        packet.born = self.now
        rate = self.model.injection_rate
        if rate is not None:
            cost = serialisation(self.model.charge, rate)
            self.next_injection[host] = max(self.now, self.next_injection[host]) + cost
        self.cnp_turn[host] = False
        self.wake_host(host, self.start(output, packet))
        return True

    def next_packet(self, entry: Entry) -> Packet:
        """Make the next packet of a flow."""
        model, flow = self.model, entry.flow
        payload = min(model.mtu, entry.left_in_message)
        return Packet(
            flow=entry.index,
            source=flow.source,
            destination=flow.destination,
            sl=flow.sl,
            vl=model.lane_of_sl[flow.sl],
            payload=payload,
            wire=payload + model.header,
            last=payload == entry.left_in_message,
        )

    def send(self, host: int, output: Output, entry: Entry, packet: Packet) -> None:
        """Start a packet at its host."""
        packet.born = self.now
        entry.left -= packet.payload
        entry.left_in_message -= packet.payload
        if entry.left_in_message == 0:
            entry.left_in_message = min(entry.left, entry.flow.message)
        rate = self.model.injection_rate
        if rate is not None:
            self.next_injection[host] = self.now + serialisation(packet.payload, rate)
        end = self.start(output, packet)
        self.hold_back(entry.flow, self.now, end)
        self.wake_host(host, end)

    def arrive(self, host: int, arrival: int, packet: Packet, output: Output) -> int:
        """Let the sink consume a packet that arrives; return when it is consumed."""
        rate = self.model.sink_rate
        begin = max(arrival, self.sink_free[host])
        size = packet.payload if packet.kind == "data" else self.model.charge
        done = begin + (0 if rate is None else serialisation(size, rate))
        self.sink_free[host] = done
        self.post_credits(output, packet, done + output.propagation + self.model.host_credit_delay)
        self.at(done, DELIVERY, host, lambda: self.deliver(packet))
        return done

    def deliver(self, packet: Packet) -> None:
        """Count a packet that the sink has consumed, and answer its mark."""
        entry = self.flows[packet.flow]
        if packet.kind == "cnp":
            self.becn(entry.flow)
            return
        entry.delivered += packet.payload
        entry.marked += packet.fecn
        if entry.delivered == entry.flow.size:
            entry.end_ps = self.now
        if packet.fecn:
            self.notify(packet)

    # Congestion control.

    def is_congested(self, output: Output, vl: int, waits: int, left: int) -> bool:
        """Return the state of a Port VL for which so much waits, and which has credits left."""
        control = self.model.control
        if control is None or control.threshold <= 0:
            return False
        masked = control.victim_mask == "all" or (
            control.victim_mask == "hosts" and output.peer[0] is None
        )
        root = left >= blocks(self.model.mtu + self.model.header)
        threshold = control.threshold - control.hysteresis * output.congested[vl]
        return waits >= threshold and (masked or root)

    def mark(self, output: Output, packet: Packet) -> None:
        """Mark a packet that leaves in the congestion state."""
        control, vl = self.model.control, packet.vl
        if control is None:
            return
        left = output.credits[vl] - blocks(packet.wire)
        eligible = self.is_congested(output, vl, output.waiting[vl] + packet.wire, left)
        output.congested[vl] = eligible
        output.congested[vl] = self.is_congested(output, vl, output.waiting[vl], left)
        if not eligible:
            return
        if packet.wire < control.packet_size * BLOCK_BYTES:
            return
        if output.unmarked[packet.vl] >= control.marking_rate:
            output.unmarked[packet.vl] = 0
            packet.fecn = True
            output.marked_packets += 1
        else:
            output.unmarked[packet.vl] += 1

    def throttle(self, flow: Flow) -> Throttle:
        """Return the state of a flow's queue pair, or of its service level."""
        control = self.model.control
        assert control is not None
        key: tuple[int, ...] = (flow.source, flow.sl)
        if not control.by_service_level:
            key += (flow.destination,)
        return self.throttles.setdefault(key, Throttle(control.minimum))

    def release(self, flow: Flow) -> int:
        """Return when congestion control lets a flow send."""
        if self.model.control is None:
            return 0
        state = self.throttle(flow)
        return state.release

    def delay(self, state: Throttle, time: int) -> int:
        """Return the delay after the last packet, by the Congestion Control Table."""
        control = self.model.control
        assert control is not None
        shift, multiplier = control.table[state.ccti]
        return time * multiplier >> shift

    def hold_back(self, flow: Flow, start: int, end: int) -> None:
        """Note the packet that the flow's next one has to keep a distance from."""
        if self.model.control is not None:
            state = self.throttle(flow)
            state.release = end + self.delay(state, end - start)

    def notify(self, packet: Packet) -> None:
        """Answer a mark with a CNP, past the fabric or as a packet."""
        control = self.model.control
        if control is None:
            return
        flow = self.flows[packet.flow].flow
        if control.feedback_delay is None:
            sl = flow.sl if control.feedback_sl is None else control.feedback_sl
            self.cnps[flow.destination].append(
                Packet(
                    flow=packet.flow,
                    source=flow.destination,
                    destination=flow.source,
                    sl=sl,
                    vl=self.model.lane_of_sl[sl],
                    payload=0,
                    wire=control.feedback_bytes,
                    last=False,
                    kind="cnp",
                    sl_of_flow=flow.sl,
                )
            )
            self.wake_host(flow.destination, self.now)
            return
        rate = self.model.injection_rate
        if rate is not None:
            cost = serialisation(self.model.charge, rate)
            self.next_injection[flow.destination] = (
                max(self.now, self.next_injection[flow.destination]) + cost
            )
        self.at(
            self.now + control.feedback_delay,
            NOTIFICATION,
            flow.source,
            lambda: self.becn_past_the_fabric(flow),
        )

    def becn_past_the_fabric(self, flow: Flow) -> None:
        """Take a notification's time at the sink, and act on it."""
        rate = self.model.sink_rate
        if rate is not None:
            cost = serialisation(self.model.charge, rate)
            self.sink_free[flow.source] = max(self.now, self.sink_free[flow.source]) + cost
        self.becn(flow)

    def becn(self, flow: Flow) -> None:
        """Raise the index of a flow."""
        control = self.model.control
        assert control is not None
        state = self.throttle(flow)
        state.ccti = min(control.limit, state.ccti + control.increase)

    def expire(self, host: int, sl: int) -> None:
        """Lower all indices of a host and service level by one."""
        control = self.model.control
        assert control is not None
        for key, state in self.throttles.items():
            if key[0] == host and key[1] == sl and state.ccti > control.minimum:
                state.ccti -= 1
        self.start_timer(host, sl, self.now + control.timer * TIMER_PS)

    def start_timer(self, host: int, sl: int, time: int) -> None:
        """Schedule the next expiry of a timer."""
        self.at(time, NOTIFICATION, host, lambda: self.expire(host, sl))


def output_host(output: Output) -> int:
    """Return the host of its output."""
    return int(output.name[1:])
