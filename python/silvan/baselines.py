"""The schemes that are compared with each other: their settings on a fabric, and what they cost.

Schemes with published settings take part by default. Any other registered scheme takes part if it
is named, with the settings of the scenario.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from silvan._silvan import schemes
from silvan.errors import ScenarioError, SilvanError, shown
from silvan.left_out import (
    DCMS_SWEEPS,
    count_lanes,
    left_out_by_fabric,
    left_out_by_links,
    suits_lanes,
    suits_sweeps,
)

if TYPE_CHECKING:
    from silvan.scenario import Scenario
    from silvan.toml_text import TomlValue

# Packets of a flow that are on their way in this time bound its window: a few round trips of a
# three-stage fabric with its acknowledgements.
_WINDOW_S = 4e-6
# The paper's thresholds of DCQCN are for links of this rate.
_DCQCN_GBPS = 40.0
# Zhu et al. 2016 give TIMELY's parameters for this round trip and this rate.
_TIMELY_RTT_NS = 20_000
_TIMELY_GBPS = 10.0
# A signal in a cable.
_S_PER_METRE = 5e-9
# How long a Marking_Rate stays low at most.
_DCMS_LOW_SWEEPS = 12
# mizero2017, section 4: T_C and T_W in ticks of 22 ns and T_D in words, for sweeps every 1.25 s and
# a link of 32 Gbit/s.
_DCMS_INTERVAL_S = 1.25
_DCMS_GBPS = 32.0
_DCMS_THRESHOLDS = (8_000_000, 27_400_000, 30_000_000)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a scheme needs in addition to the data path.

    Bytes are what the registers and counters of its description add up to, not what the simulator
    uses.

    Attributes
    ----------
    switch_bytes : int
        State of a switch for each port and virtual lane.
    host_bytes : int
        State of a host, whatever its flows.
    flow_bytes : int
        State of a host for each flow that is held back, or with a window for each flow; for
        congestion isolation, state of each switch that a congesting flow passes.
    messages : str
        What travels: ``none``, ``notifications``, ``acknowledgements``, ``pulls``,
        ``reservations`` and their grants, ``refusals``, ``isolation messages`` or ``queue
        messages`` between switches, or those with ``sweeps``.

    What is not reported, of a scheme without published settings, is None.
    """

    switch_bytes: int | None
    host_bytes: int | None
    flow_bytes: int | None
    messages: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """A scheme with its settings.

    Attributes
    ----------
    name : str
        Its name in commands, tables and figures: that of the scheme, or with what is added to it.
    summary : str
        Which settings these are.
    overrides : Mapping
        What a scenario's keys become.
    cost : Cost
        What it needs.
    """

    name: str
    summary: str
    overrides: Mapping[str, TomlValue]
    cost: Cost


# Threshold, Packet_Size, Marking_Rate and its counter, queue length; a table of 128 entries of two
# bytes and the timer; an index for each flow.
_IB = Cost(8, 258, 1, "notifications")
# Two counters of an output; the tables of 256 rates; rate, acknowledged packets, window, packets
# in progress.
_ECN = Cost(4, 1024, 7, "acknowledgements")
# Four counters, and registers for thresholds, windows, m, n and k.
_PFT = Cost(0, 40, 0, "none")
_IB_PFT = Cost(8, 258 + 40, 1, "notifications")
# Kmin, Kmax, slope and queue length; both rates, alpha, two timers, three counters, and the
# receiver's time of the last notification.
_DCQCN = Cost(14, 0, 30, "notifications")
# Rate, round trip, smoothed difference, segments, acknowledged bytes, next start.
_TIMELY = Cost(0, 0, 21, "acknowledgements")
# Sent bytes and queue length; both windows, load, stage, round, packets in progress, next start,
# and eight bytes for each of five hops.
_HPCC = Cost(12, 0, 64, "acknowledgements")
# Two windows, times of their last decreases, round trip, packets in progress, next start.
_SWIFT = Cost(0, 0, 28, "acknowledgements")
# Kmin, Kmax, slope and queue length; window, packets in progress, shortest round trip, smoothed
# delay, three sums with their times, and quick adapt's three with its time.
_NSCC = Cost(14, 0, 53, "acknowledgements")
# Threshold and queue length of a port to a host; the end of a flow's time in the slow lane.
_DFTREE = Cost(8, 0, 4, "notifications")
# Queue length of a lane; at each output that it passes, what identifies a congesting flow (five
# bytes), its lane, the end of the hold and of the pause of messages, and its packets on both lanes.
_ISOLATION = Cost(4, 0, 18, "isolation messages")
# Queue length of a lane, and for the line of its set-aside queue: the path and how long it is (four
# and one bytes), or the destination (two); branches, and the place in lane 0 that holds its first
# packet (two and four).
_RECN = Cost(4 + 11, 0, 0, "queue messages")
_FBICM = Cost(4 + 8, 0, 0, "queue messages")
# Threshold and queue length of a port to a host; what a pair has in flight, its window and step,
# the beginning of its round trip, and the time when the window fell.
_PAIRS = Cost(8, 0, 20, "acknowledgements")
# Eight entropies of two bytes, which of them are valid, the next place, and how many there are;
# Kmin, Kmax, slope and queue length at a port.
_REPS = Cost(14, 0, 19, "acknowledgements")
_NSCC_REPS = Cost(14, 0, 53 + 19, "acknowledgements")
# The same as RCCC's, and the part of the rate, the smoothed part of marks, three counts and the
# end of the interval, the time of the next pull by that rate; Kmin, Kmax, slope and queue length
# at a port.
_RCCC_MARKS = Cost(14, 12 + 22, 16, "pulls")
# The time of the next pull and the spare time; what a flow may send, and at its receiver what it is
# owed, what it was not asked for, what waits behind, and its place in the queue.
_RCCC = Cost(0, 12, 16, "pulls")

# Bytes that wait for a port; the end of the schedule of a host; what a flow has reserved and not
# sent, when it may be sent, whether that is known, and of SMSRP what has been asked for.
_SRP = Cost(4, 8, 13, "reservations")
_SMSRP = Cost(4, 8, 17, "reservations")
# The same and the end of its schedule at a port to a host; what has been discarded of a flow.
_LHRP = Cost(12, 0, 4, "refusals")

# Mappings that need more lanes than most ports have.
_MAPPINGS = ("voqnet", "voqsw")

# Largest delay that an entry of a Congestion Control Table can have, in packet times.
_MOST_DELAY = 16_383
# Entries of the table behind the first one.
_CCT_STEPS = 127

_TABLE_1: Mapping[str, TomlValue] = {
    "control.scheme": "ib-cc",
    "control.feedback.carrier": "cnp",
    "control.ib-cc.switch.threshold": 15,
    "control.ib-cc.switch.packet-size": 0,
    "control.ib-cc.switch.marking-rate": 0,
    "control.ib-cc.adapter.ccti-increase": 1,
    "control.ib-cc.adapter.ccti-limit": 127,
    "control.ib-cc.adapter.ccti-min": 0,
    "control.ib-cc.adapter.ccti-timer": 150,
}


def baselines(scenario: Scenario) -> list[Baseline]:
    """Set up every scheme for the links and the duration of a scenario.

    What a scenario says about a scheme beyond its own published settings, such as a calibrated
    Congestion Control Table, stays. A scheme in a Python file that the scenario names stands last.
    Those that its links or its fabric do not suit are left out.

    Parameters
    ----------
    scenario : Scenario
        The fabric and the traffic.

    Returns
    -------
    list of Baseline
        No control first.

    Raises
    ------
    ScenarioError
        No cable has the rate of ``[link]``, for which settings are computed; or the scheme in a
        Python file has the name of another one.

    Examples
    --------
    >>> import silvan
    >>> [one.name for one in baselines(silvan.Scenario())][:3]
    ['none', 'ib-cc', 'ib-cc+dcms']
    """
    return list(fitting(scenario).every)


@dataclass(frozen=True, slots=True)
class Fitting:
    """Which schemes a scenario suits.

    Attributes
    ----------
    every : tuple of Baseline
        The schemes with their settings, no control first.
    left_out : Mapping of str to str
        Why the other schemes with published settings take no part, by their names.
    """

    every: tuple[Baseline, ...]
    left_out: Mapping[str, str]


def fitting(scenario: Scenario, added: Mapping[str, TomlValue] | None = None) -> Fitting:
    """Set up every scheme as :func:`baselines` does, and find out why the others take no part.

    Parameters
    ----------
    scenario : Scenario
        The fabric and the traffic.
    added : Mapping, optional
        Keys of a scheme in a Python file that takes part in the place of the scenario's own. The
        scenarios of the other schemes do not have them.

    Raises
    ------
    ScenarioError
        No cable has the rate of ``[link]``, for which settings are computed.
    """
    gbps = scenario.link_gbps
    _require_rate(gbps, scenario.describe()["cable_rates_bits_per_s"])
    keys = scenario.to_dict()
    mtu = scenario.packet.mtu.bytes
    window = max(2, math.ceil(_WINDOW_S * gbps * 1e9 / 8 / mtu))
    pft = throttling()
    has_lanes = suits_lanes(scenario)
    # Nothing travels for schemes without notifications, whatever the scenario has.
    cnp: dict[str, TomlValue] = {"control.feedback.carrier": "cnp"}
    every = [
        Baseline("none", "no control", {"control.scheme": "none", **cnp}, Cost(0, 0, 0, "none")),
        Baseline("ib-cc", "Table I of gran2012", _TABLE_1, _IB),
        *_by_sweeps(scenario),
        *_as_sold(scenario),
        *(
            Baseline(
                f"ecn+{response}",
                f"two counters per output, a window of {window} packets",
                {
                    "control.scheme": "ecn",
                    "control.ecn.response": response,
                    "control.ecn.marking": "proposed-counters",
                    "control.ecn.window": window,
                    "control.feedback.carrier": "ack-per-packet",
                },
                _ECN,
            )
            for response in ("lipd", "fimd")
        ),
        Baseline(
            "pft", "the best found for pft2021", {"control.scheme": "pft", **pft, **cnp}, _PFT
        ),
        Baseline(
            "ib-cc-pft",
            "both, as they are above",
            {**_TABLE_1, **pft, "control.scheme": "ib-cc-pft"},
            _IB_PFT,
        ),
        Baseline("dcqcn", "thresholds in proportion to the link", _dcqcn(gbps, mtu), _DCQCN),
        *_by_round_trip(scenario),
        *_by_receiver(scenario),
        *(_by_reservation(scenario) if has_lanes else []),
        *_by_paths(scenario),
        *(_by_lanes(scenario) if has_lanes else []),
    ]
    of_links = left_out_by_links(scenario)
    every = [one for one in every if one.name not in of_links]
    found = {one.name for one in every}
    missing = left_out_by_fabric(scenario, has_lanes=has_lanes)
    of_fabric = {name: why for name, why in missing.items() if name not in found}
    absent = of_fabric | dict(of_links)
    if added:
        name = Path(str(added["control.python.file"])).name
        carrier = str(added.get("control.feedback.carrier", keys["control"]["feedback"]["carrier"]))
        _require_own_name(name, {*found, *absent})
        every.append(Baseline(name, "the added scheme, in Python", added, _not_reported(carrier)))
    elif scenario.has_python_scheme:
        name = keys["control"]["python"]["name"]
        _require_own_name(name, {*found, *absent})
        carrier = keys["control"]["feedback"]["carrier"]
        every.append(Baseline(name, "the scenario's scheme, in Python", {}, _not_reported(carrier)))
    return Fitting(tuple(every), absent)


def _require_own_name(name: str, names: Collection[str]) -> None:
    """Refuse a scheme in a Python file that would pass for another one."""
    if name in {*names, *(registered for registered, _ in schemes())}:
        raise ScenarioError(
            f"the scheme in the Python file has the name {shown(name)}, which another scheme has",
            hint="give the file another name",
            key="control.python.name",
        )


def left_out(scenario: Scenario) -> Mapping[str, str]:
    """Tell which schemes with published settings a scenario leaves out, and why.

    Parameters
    ----------
    scenario : Scenario
        The fabric.

    Returns
    -------
    Mapping of str to str
        A reason for each name.
    """
    return fitting(scenario).left_out


def chosen(scenario: Scenario, fits: Fitting, names: Sequence[str]) -> list[Baseline]:
    """Find baselines by their names; a registered scheme without published settings is one, too.

    Raises
    ------
    SilvanError
        There is no scheme of some name, or links or fabric leave it out.
    """
    known = {one.name: one for one in fits.every}
    # A Python file takes part by the name of the file.
    others = {name: summary for name, summary in schemes() if name not in {"python", *known}}
    of_links = left_out_by_links(scenario)
    for name in names:
        if name in of_links:
            raise SilvanError(
                f"scheme {name!r} takes no part on links with PFC: {of_links[name]}",
                'leave it out, or set link.flow-control to "credits"',
            )
        # One that is registered takes part as the scenario has it.
        if name in fits.left_out and name not in others:
            raise SilvanError(
                f"scheme {name!r} takes no part: {fits.left_out[name]}", "leave it out"
            )
    if any(name not in {*known, *others} for name in names):
        from silvan.plugins.installed import installed
        from silvan.plugins.kinds import SCHEME

        found = installed(SCHEME).items()
        others |= {name: one.title for name, one in found if name not in known}
    missing = [name for name in names if name not in {*known, *others}]
    if missing:
        hint = f"known: {', '.join([*known, *others])}"
        if missing[0] in _MAPPINGS:
            key = f"control.vl-mapping.mapping={missing[0]}"
            hint = f"--schemes vl-mapping --set {key} --set vl.data-vls=N, with a lane for each"
        raise SilvanError(f"no scheme {missing[0]!r} to compare", hint)
    for name in names:
        if name in others:
            overrides: dict[str, TomlValue] = {"control.scheme": name}
            control = scenario.override(overrides).to_dict()["control"]
            cost = _not_reported(control["feedback"]["carrier"])
            known[name] = Baseline(name, others[name], overrides, cost)
    return [known[name] for name in names]


def _not_reported(carrier: str) -> Cost:
    kinds = "acknowledgements" if carrier == "ack-per-packet" else "notifications"
    return Cost(None, None, None, kinds)


def throttling() -> dict[str, TomlValue]:
    """Give the settings of proactive flow throttling with the best control factor that we found."""
    return {
        "control.pft.threshold": "average",
        "control.pft.interval": "fixed",
        "control.pft.enter": 0x100,
        "control.pft.escape": 0x80,
        "control.pft.m": 0,
        "control.pft.n": 6,
        "control.pft.k": 0,
        "control.pft.credit": "16 B",
    }


def _by_sweeps(scenario: Scenario) -> list[Baseline]:
    """Set up InfiniBand's congestion control with the DCMS, if a run has room for its sweeps."""
    if not suits_sweeps(scenario):
        return []
    return [
        Baseline(
            "ib-cc+dcms",
            f"Marking_Rate 128, lowered where ports wait; {DCMS_SWEEPS} sweeps",
            {**_TABLE_1, "control.ib-cc.switch.marking-rate": 128, "control.dcms": _dcms(scenario)},
            Cost(_IB.switch_bytes, _IB.host_bytes, _IB.flow_bytes, "notifications, sweeps"),
        )
    ]


def _dcms(scenario: Scenario) -> dict[str, TomlValue]:
    """Scale the DCMS of mizero2017 to a run that is much shorter than the paper's."""
    interval_s = scenario.duration_ps / 1e12 / DCMS_SWEEPS
    shorter = interval_s / _DCMS_INTERVAL_S
    congestion, reduction, change = _DCMS_THRESHOLDS
    interval_ns = round(interval_s * 1e9)
    return {
        "interval": f"{interval_ns} ns",
        "congestion-threshold": max(1, round(congestion * shorter)),
        "rate-reduction-threshold": max(1, round(reduction * shorter)),
        "utilization-change-threshold": max(
            1, round(change * shorter * scenario.link_gbps / _DCMS_GBPS)
        ),
        "low-duration": f"{interval_ns * _DCMS_LOW_SWEEPS} ns",
        "rescan": 1,
    }


def _as_sold(scenario: Scenario) -> list[Baseline]:
    """Set up InfiniBand's congestion control as the vendor's manager does without an options file.

    Its manual (MLNX_OFED, "Congestion Control Manager") has the numbers, and says that table and
    timer follow from the number of hosts, but not how. Here the last entry leaves a flow its share
    of an incast of all hosts, and the timer is that of Table I of gran2012.
    """
    hosts: int = scenario.describe()["hosts"]
    slope = min(hosts - 1, _MOST_DELAY) / _CCT_STEPS
    defaults: dict[str, TomlValue] = {
        **_TABLE_1,
        # 0x200 bytes in units of 64, and a mean of 0xa packets between two that are marked.
        "control.ib-cc.switch.packet-size": 8,
        "control.ib-cc.switch.marking-rate": 10,
        "control.ib-cc.adapter.trigger-threshold": 2,
        "control.ib-cc.adapter.ccti-limit": _CCT_STEPS,
        "control.ib-cc.adapter.cct": {"shape": "linear", "slope": slope},
    }
    summary = f"defaults of the vendor's manager, table for {hosts} hosts"
    found = [Baseline("ib-cc+vendor", summary, defaults, _IB)]
    adaptive: dict[str, TomlValue] = {**defaults, "fabric.path-choice": "adaptive"}
    if _has_choice(scenario, "adaptive"):
        summary = f"{summary}, adaptive routing"
        found.append(Baseline("ib-cc+vendor+adaptive", summary, adaptive, _IB))
    return found


def _has_choice(scenario: Scenario, choice: str) -> bool:
    """Whether switches can choose among the paths of a fabric, which its own tables leave."""
    if scenario.fabric.path_choice != "table" or scenario.describe()["switches"] == 1:
        return False
    try:
        scenario.override({"fabric.path-choice": choice}).describe()
    except SilvanError:
        return False
    return True


def base_rtt_s(scenario: Scenario) -> float:
    """Compute the longest round trip of a scenario's fabric without queues, in seconds.

    A packet of MTU size takes its time on the host's link and in the sink, and passes cables and
    switches; its acknowledgement takes the delay of feedback, and in band the path, too.

    Parameters
    ----------
    scenario : Scenario
        The fabric.

    Examples
    --------
    Two cables of 10 ns, a switch of 100 ns, two times 166 ns for 2074 bytes at 100 Gbit/s, and 2 us
    for the acknowledgement:

    >>> import silvan
    >>> edr = silvan.Scenario(
    ...     fabric={"generator": "single-switch", "hosts": 4},
    ...     link={"speed": "EDR"},
    ...     switch={"latency": "100 ns"},
    ... )
    >>> round(base_rtt_s(edr) * 1e9, 2)
    2451.84
    """
    cables: int = scenario.describe()["max_hops"]
    link = scenario.link
    cable_s: float = (
        link.latency.seconds if "latency" in link else link.length.metres * _S_PER_METRE
    )
    switch_s: float = scenario.switch.latency.seconds
    path_s = cables * cable_s + (cables - 1) * switch_s
    wire_bytes: int = scenario.packet.mtu.bytes + scenario.packet.header.bytes
    feedback = scenario.control.feedback
    back_s: float = feedback.delay.seconds
    if feedback.path == "in-band":
        back_s += path_s
    return path_s + 2 * wire_bytes * 8 / (scenario.link_gbps * 1e9) + back_s


def _require_rate(gbps: float, cable_rates_bits_per_s: Sequence[int]) -> None:
    """Refuse to compute settings for cables that do not exist."""
    rates = [rate / 1e9 for rate in cable_rates_bits_per_s]
    if rates and gbps not in rates:
        listed = ", ".join(f"{rate:g}" for rate in rates)
        raise ScenarioError(
            f"settings of schemes are computed for cables of {gbps:g} Gbit/s: no cable has that",
            hint=f"set the rate of those that limit flows: {listed} Gbit/s",
            key="link.speed",
        )


def _by_round_trip(scenario: Scenario) -> list[Baseline]:
    """Set up the schemes whose parameters follow from the base round trip."""
    acknowledged: dict[str, TomlValue] = {"control.feedback.carrier": "ack-per-packet"}
    base_ns = math.ceil(base_rtt_s(scenario.override(acknowledged)) * 1e9)
    longer = base_ns / _TIMELY_RTT_NS
    delta = max(1, round(10 * scenario.link_gbps / _TIMELY_GBPS))
    switches = scenario.describe()["max_hops"] - 1
    telemetry = 2 + 8 * switches
    timely: dict[str, TomlValue] = {
        "control.timely.t-low": f"{round(50_000 * longer)} ns",
        "control.timely.t-high": f"{round(500_000 * longer)} ns",
        "control.timely.min-rtt": f"{base_ns} ns",
        "control.timely.delta": f"{delta} Mbit/s",
        "control.timely.min-rate": f"{delta} Mbit/s",
    }
    base_rtt = f"{base_ns} ns"
    mtu: int = scenario.packet.mtu.bytes
    # A packet more, as windows hold whole ones.
    product = math.ceil(base_ns * scenario.link_gbps / 8) + mtu
    return [
        Baseline(
            name,
            f"{which}, times in proportion to the base round trip, steps to the link",
            {
                "control.scheme": "timely",
                "control.timely.patched": patched,
                "control.timely.beta": beta,
                **timely,
                **acknowledged,
            },
            _TIMELY,
        )
        for name, which, patched, beta in (
            ("timely", "as published", False, 0.8),
            ("timely+patched", "patched by Zhu et al.", True, 0.008),
        )
    ] + [
        Baseline(
            "hpcc",
            f"the base round trip is the fabric's, {telemetry} bytes of telemetry in each packet",
            {
                "control.scheme": "hpcc",
                "control.hpcc.base-rtt": base_rtt,
                "packet.header": f"{scenario.packet.header.bytes + telemetry} B",
                "control.feedback.bytes": f"{scenario.control.feedback.bytes.bytes + telemetry} B",
                **acknowledged,
            },
            _HPCC,
        ),
        Baseline(
            "swift",
            "the published base target, for the receiver, too",
            {"control.scheme": "swift", **acknowledged},
            _SWIFT,
        ),
        Baseline(
            "nscc",
            "the base round trip is the fabric's, as in the reference without trimming",
            {"control.scheme": "nscc", "control.nscc.base-rtt": base_rtt, **acknowledged},
            _NSCC,
        ),
        Baseline(
            "pair-backpressure",
            "a window and a threshold of what a link carries in the base round trip",
            {
                "control.scheme": "pair-backpressure",
                "control.pair-backpressure.window": f"{product} B",
                "control.pair-backpressure.threshold": f"{product} B",
                **acknowledged,
            },
            _PAIRS,
        ),
    ]


def _by_receiver(scenario: Scenario) -> list[Baseline]:
    """Set up the schemes whose receivers give credit: no packet is acknowledged, each is pulled."""
    acknowledged: dict[str, TomlValue] = {"control.feedback.carrier": "ack-per-packet"}
    base_ns = math.ceil(base_rtt_s(scenario.override(acknowledged)) * 1e9)
    variants = (
        ("rccc", "flows in turn", "round-robin", False),
        ("rccc+shortest", "the shortest backlog first, as in Homa", "shortest-first", False),
        ("rccc+marks", "pulls slow down by marks", "round-robin", True),
    )
    return [
        Baseline(
            name,
            f"the base round trip is the fabric's, {which}",
            {
                "control.scheme": "rccc",
                "control.rccc.base-rtt": f"{base_ns} ns",
                "control.rccc.order": order,
                "control.rccc.marks": marks,
                # Receivers see the marks; nothing needs to be sent for them.
                "control.feedback.carrier": "none" if marks else "cnp",
            },
            _RCCC_MARKS if marks else _RCCC,
        )
        for name, which, order, marks in variants
    ]


def _by_reservation(scenario: Scenario) -> list[Baseline]:
    """Set up speculative packets: two lanes that share the buffer of one.

    Packets with a reservation go first, but for one speculative packet in 32 KiB. The timeout is
    the base round trip and what a link takes for half of the buffer.
    """
    buffer: int = scenario.switch.buffer.bytes // 2
    half_s = buffer // 2 * 8 / (scenario.link_gbps * 1e9)
    timeout_ns = math.ceil((base_rtt_s(scenario) + half_s) * 1e9)
    keys: dict[str, TomlValue] = {
        "control.scheme": "srp",
        "control.srp.timeout": f"{timeout_ns} ns",
        "control.feedback.carrier": "cnp",
        "vl.data-vls": 2,
        "vl.high": [[0, 255]],
        "vl.low": [[1, 255]],
        "vl.limit-high": 8,
        "switch.buffer": f"{buffer} B",
    }
    found = (
        ("srp", "srp", "each block of a flow reserves time at its destination", _SRP),
        ("srp+smsrp", "smsrp", "what is discarded reserves time at its destination", _SMSRP),
        ("srp+lhrp", "lhrp", "the last switch discards and reserves", _LHRP),
    )
    return [
        Baseline(name, summary, {**keys, "control.srp.protocol": protocol}, cost)
        for name, protocol, summary, cost in found
    ]


def _by_paths(scenario: Scenario) -> list[Baseline]:
    """Set up load balancing by the hosts, where the fabric has several shortest paths."""
    # Acknowledgements out of band take no path, others that of a hash.
    keys: dict[str, TomlValue] = {
        "control.feedback.carrier": "ack-per-packet",
        "fabric.path-choice": "ecmp",
    }
    if not _has_choice(scenario, "ecmp"):
        return []
    base_s = math.ceil(base_rtt_s(scenario.override(keys)) * 1e9) / 1e9
    product = max(1, round(base_s * scenario.link_gbps * 1e9 / 8))
    return [
        Baseline(
            "reps",
            "paths alone; marks from one to four bandwidth-delay products",
            {
                "control.scheme": "reps",
                "control.reps.k-min": f"{product} B",
                "control.reps.k-max": f"{4 * product} B",
                **keys,
            },
            _REPS,
        ),
        Baseline(
            "nscc+reps",
            "nscc as it is above, paths by its marks",
            {
                "control.scheme": "nscc-reps",
                "control.nscc.base-rtt": f"{round(base_s * 1e9)} ns",
                **keys,
            },
            _NSCC_REPS,
        ),
    ]


def _by_lanes(scenario: Scenario) -> list[Baseline]:
    """Set up lanes for groups of destinations or outputs, or for hotspots."""
    buffer: int = scenario.switch.buffer.bytes
    lanes = count_lanes(scenario)
    shared: dict[str, TomlValue] = {
        "control.feedback.carrier": "cnp",
        "vl.data-vls": lanes,
        "switch.buffer": f"{buffer // lanes} B",
    }
    two: dict[str, TomlValue] = {**shared, "vl.data-vls": 2, "switch.buffer": f"{buffer // 2} B"}
    threshold = f"{max(1, buffer // 4)} B"
    switch = scenario.to_dict()["switch"]
    # A scheme that acts at each hop needs virtual output queues as the only ones.
    waits_once = switch["queueing"] == "voq" and "output-buffer" not in switch
    knows_output = scenario.fabric.path_choice == "table"
    found = [
        Baseline(
            name,
            f"{lanes} lanes by {what}, which share the buffer of one",
            {"control.scheme": "vl-mapping", "control.vl-mapping.mapping": name, **shared},
            Cost(0, 0, 0, "none"),
        )
        for name, what, suits in (
            ("vftree", "destination", scenario.fabric.routing == "d-mod-k"),
            ("flow2sl", "groups of hosts side by side", True),
            ("dbbm", "the destination's number", True),
            ("obqa", "output", knows_output),
        )
        if suits
    ]
    found.append(
        Baseline(
            "dftree",
            "a lane for flows to hotspots, which shares the buffer with that of all others",
            {
                "control.scheme": "dftree",
                "control.dftree.threshold": threshold,
                "control.feedback.coalesce": "50 us",
                **two,
            },
            _DFTREE,
        )
    )
    if waits_once:
        found.append(
            Baseline(
                "congestion-isolation",
                "a lane for congesting flows at each hop; both share the buffer of one",
                {
                    "control.scheme": "congestion-isolation",
                    "control.congestion-isolation.set-point": threshold,
                    **two,
                },
                _ISOLATION,
            )
        )
    if waits_once and knows_output:
        found += [
            Baseline(
                name,
                f"{lanes - 1} set-aside queues by {what}; all share one lane's buffer",
                {
                    "control.scheme": "recn",
                    "control.recn.variant": name,
                    "control.recn.detection": f"{max(1, buffer // lanes // 2)} B",
                    "control.recn.propagation": f"{max(1, buffer // lanes // 4)} B",
                    **shared,
                },
                cost,
            )
            for name, what, cost in (("recn", "root", _RECN), ("fbicm", "destination", _FBICM))
        ]
    return found


def _dcqcn(gbps: float, mtu: int) -> dict[str, TomlValue]:
    faster = gbps / _DCQCN_GBPS
    k_min = max(round(5_000 * faster), 2 * mtu)
    return {
        "control.scheme": "dcqcn",
        "control.dcqcn.k-min": f"{k_min} B",
        "control.dcqcn.k-max": f"{max(round(200_000 * faster), 10 * k_min)} B",
        "control.dcqcn.rate-ai": f"{max(1, round(40 * faster))} Mbit/s",
        "control.dcqcn.rate-hai": f"{max(10, round(400 * faster))} Mbit/s",
        "control.feedback.carrier": "cnp",
        "control.feedback.coalesce": "50 us",
    }
