"""Columns and measures of drawn runs, recomputed from single packets and messages.

The recomputation reads the tables ``packet_hops``, ``program_messages`` and ``program_marks``, the
names of hosts and cables, and what the scenario states. It shares no code with silvan.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.results.measures import MEASURES
from tests.conftest import Command

WARM_PS, END_PS, STEP_PS = 60_000_000, 300_000_000, 20_000_000
HEADER, TELEMETRY = 26, 42

FABRICS: list[dict[str, Any]] = [
    {"generator": "single-switch", "hosts": 6},
    {"generator": "k-ary-n-tree", "k": 2, "n": 3},
    {"generator": "chain", "switches": 3, "hosts-per-switch": 2, "routing": "min-hop"},
]
TRAFFIC: list[dict[str, Any]] = [
    {
        "incast": [{"name": "in", "to": "host-0000", "from": ["host-0001", "host-0003"]}],
        "flow": [{"name": "one", "from": "host-0002", "to": "host-0004", "bytes": "48 KiB"}],
    },
    {"nodes": {"v": 0.3, "c": 0.4, "b": 0.3, "p": 40, "hotspots": 1}},
    {
        "uniform": [{"name": "all", "load": 0.4}],
        "sequence": [
            {
                "name": "turn",
                "from": "host-0002",
                "to": ["host-0000", "host-0003"],
                "iterations": 3,
                "message": "10 KiB",
            }
        ],
    },
    {
        "flows": [
            {"name": "many", "sizes": {"uniform": {"from": "1 KiB", "to": "30 KiB"}}, "load": 0.5}
        ]
    },
    {
        "flow": [
            {
                "name": "a",
                "from": "host-0001",
                "to": "host-0005",
                "bytes": "40 KiB",
                "start": "70 us",
            },
            {
                "name": "b",
                "from": "host-0002",
                "to": "host-0005",
                "bytes": "9 KiB",
                "start": "80 us",
            },
        ]
    },
    {
        "program": [
            {
                "name": "ring",
                "kind": "allreduce",
                "bytes": "24 KiB",
                "iterations": 6,
                "compute": "12 us",
            }
        ],
        "uniform": [{"name": "noise", "load": 0.2}],
    },
]
SCHEMES = ["none", "ib-cc", "dcqcn", "ecn", "hpcc", "pft"]


def drawn(number: int) -> silvan.Scenario:
    """Draw a scenario that records every packet on every link."""
    rng = random.Random(number)
    # Each traffic comes up, the first ones twice.
    traffic = TRAFFIC[number % len(TRAFFIC)]
    scheme = rng.choice(SCHEMES)
    # PFT reads the credits of a host.
    links = ["credits"] if scheme == "pft" else ["credits", "pfc"]
    plain = silvan.Scenario(
        name=f"drawn-{number}",
        fabric=rng.choice(FABRICS),
        link={"speed": rng.choice(["DDR", "EDR"]), "flow-control": rng.choice(links)},
        switch={"buffer": "64 KiB"},
        packet={"mtu": rng.choice(["1 KiB", "2 KiB"]), "header": f"{HEADER} B"},
        control={
            "scheme": scheme,
            **({"hpcc": {"telemetry": f"{TELEMETRY} B"}} if scheme == "hpcc" else {}),
        },
        traffic=traffic,
        probe={
            "interval": f"{STEP_PS} ps",
            "ports": True,
            "classes": True,
            "latency": "host",
            "messages": True,
            "trees": {"interval": f"{STEP_PS} ps"},
        },
        run={"warm-up": f"{WARM_PS} ps", "duration": f"{END_PS} ps", "seed": rng.randrange(1000)},
    )
    ports = silvan.run(
        plain.override({"run.warm-up": "0 s", "run.duration": f"{STEP_PS} ps"})
        if "program" not in traffic
        else plain
    ).ports.to_pylist()
    return plain.override(
        {"probe.packets": {"ports": [f"{row['node']}:{row['port']}" for row in ports]}}
    )


@dataclass(frozen=True)
class Recomputed:
    """All numbers of a run, from its records."""

    result: silvan.Result

    def rows(self, table: str) -> list[dict[str, Any]]:
        """List the rows of a table, none if the run does not have it."""
        return self.result.tables[table].to_pylist() if table in self.result.tables else []

    @cached_property
    def end_ps(self) -> int:
        return int(self.result.summary["simulated_ps"])

    @cached_property
    def hosts(self) -> list[str]:
        return [row["name"] for row in self.rows("hosts")]

    @cached_property
    def hops(self) -> list[dict[str, Any]]:
        """Rows of packets on links, with their payload and whether they were marked just now."""
        marked: dict[tuple[int, int], bool] = {}
        has_telemetry = self.result.scenario.to_dict()["control"]["scheme"] == "hpcc"
        rows = sorted(self.rows("packet_hops"), key=lambda row: row["time_ps"])
        for row in rows:
            packet = row["source"], row["born_ps"]
            row["is_data"] = row["kind"] == "data"
            added = TELEMETRY if has_telemetry and row["is_data"] else 0
            row["payload"] = row["wire_bytes"] - HEADER - added
            row["is_new_mark"] = row["is_data"] and row["fecn"] and not marked.get(packet, False)
            if row["is_data"]:
                marked[packet] = row["fecn"]
        return rows

    @cached_property
    def deliveries(self) -> list[dict[str, Any]]:
        """Data packets that arrived, in their order."""
        rows = [
            row
            for row in self.hops
            if row["is_data"]
            and row["delivered_ps"] is not None
            and row["delivered_ps"] <= self.end_ps
        ]
        return sorted(rows, key=lambda row: row["delivered_ps"])

    @cached_property
    def counted(self) -> list[dict[str, Any]]:
        """Deliveries after the warm-up."""
        return [row for row in self.deliveries if row["delivered_ps"] > WARM_PS]

    @cached_property
    def sent(self) -> list[dict[str, Any]]:
        """Packets that started on a link after the warm-up."""
        return [row for row in self.hops if WARM_PS <= row["time_ps"] < self.end_ps]

    # Tables

    def check_hosts(self) -> None:
        for host, row in enumerate(self.rows("hosts")):
            own = [one for one in self.counted if one["destination"] == host]
            left = [
                one
                for one in self.sent
                if one["is_data"] and one["source"] == host and one["input_row"] is None
            ]
            assert row["delivered_bytes"] == sum(one["payload"] for one in own)
            assert row["delivered_packets"] == len(own)
            # A mark counts when the packet is sure to arrive: one may be in another interval.
            assert abs(row["fecn_received"] - sum(one["fecn"] for one in own)) <= 1
            assert row["injected_bytes"] == sum(one["payload"] for one in left)
            check_latency(row, [one["delivered_ps"] - one["born_ps"] for one in own])

    def check_classes(self) -> None:
        for number, row in enumerate(self.rows("classes")):
            own = [one for one in self.counted if one["class"] == number]
            assert row["delivered_bytes"] == sum(one["payload"] for one in own)
            assert row["delivered_packets"] == len(own)
            assert row["marked_packets"] == sum(one["fecn"] for one in own)
            check_latency(row, [one["delivered_ps"] - one["born_ps"] for one in own])

    def check_series(self) -> None:
        for table, key, column in (
            ("host_series", "host", "destination"),
            ("class_series", "class", "class"),
        ):
            sums: dict[tuple[int, int], int] = defaultdict(int)
            for one in self.deliveries:
                sums[interval(one["delivered_ps"]), one[column]] += one["payload"]
            for row in self.rows(table):
                assert row["delivered_bytes"] == sums[row["time_ps"], row[key]]
        sent: dict[tuple[int, int], int] = defaultdict(int)
        marked: dict[tuple[int, int], int] = defaultdict(int)
        passed: dict[tuple[int, int], int] = defaultdict(int)
        for one in self.hops:
            # A packet that starts at a sample belongs to the next interval.
            at = interval(one["time_ps"] + 1), one["ports_row"]
            sent[at] += one["wire_bytes"]
            marked[at] += one["is_new_mark"]
            passed[at] += one["is_data"] and one["fecn"]
        for row in self.rows("port_series"):
            assert row["xmit_bytes"] == sent[row["time_ps"], row["ports_row"]]
            at = row["time_ps"], row["ports_row"]
            # A switch also marks packets that have a mark already.
            assert marked[at] <= row["fecn_marked"] <= passed[at]
        latencies: dict[int, int] = defaultdict(int)
        for row in self.rows("latency_series"):
            latencies[row["time_ps"]] += row["packets"]
        arrived: dict[int, int] = defaultdict(int)
        for one in self.deliveries:
            if one["delivered_ps"] <= self.end_ps // STEP_PS * STEP_PS:
                arrived[interval(one["delivered_ps"])] += 1
        assert latencies == arrived

    def check_ports(self) -> None:
        for number, row in enumerate(self.rows("ports")):
            own = [one for one in self.sent if one["ports_row"] == number]
            assert row["xmit_bytes"] == sum(one["wire_bytes"] for one in own)
            assert row["xmit_pkts"] == len(own)
            passed = sum(one["is_data"] and one["fecn"] for one in own)
            assert sum(one["is_new_mark"] for one in own) <= row["fecn_marked"] <= passed

    @cached_property
    def flows(self) -> list[dict[str, Any]]:
        """Rows of flows with ends and marks from the packets; starts and ideals are the table's."""
        by_pair: dict[tuple[int, str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows("flows"):
            by_pair[row["class"], row["from"], row["to"]].append(row)
        found = []
        for (number, source, target), rows in by_pair.items():
            ends = self.hosts.index(source), self.hosts.index(target)
            packets = iter(
                [
                    one
                    for one in self.deliveries
                    if (one["class"], one["source"], one["destination"]) == (number, *ends)
                ]
            )
            # Flows of a pair follow each other.
            for row in sorted(rows, key=lambda row: row["start_ps"]):
                left, last, marks = row["bytes"], None, 0
                while left and (one := next(packets, None)) is not None:
                    left -= one["payload"]
                    last, marks = one["delivered_ps"], marks + one["fecn"]
                assert left >= 0
                end_ps = last if left == 0 else None
                completion = None if end_ps is None else end_ps - row["start_ps"]
                found.append(
                    {
                        "row": row,
                        "class": number,
                        "bytes": row["bytes"],
                        "delivered_bytes": row["bytes"] - left,
                        "start_ps": row["start_ps"],
                        "finished": left == 0,
                        "end_ps": end_ps,
                        "completion_ps": completion,
                        "slowdown": completion and completion / row["ideal_ps"],
                        "marked_packets": marks,
                        "measured": row["start_ps"] >= WARM_PS,
                    }
                )
        return found

    def check_flows(self) -> None:
        for one in self.flows:
            for name in one.keys() - {"row"}:
                assert one["row"][name] == one[name], name
        for row in self.rows("flow_sizes"):
            lowest, beyond = row["from_bytes"] or 0, row["to_bytes"] or math.inf
            own = [
                one
                for one in self.flows
                if one["class"] == row["class"]
                and one["measured"]
                and lowest <= one["bytes"] < beyond
            ]
            done = [one for one in own if one["finished"]]
            assert (row["flows"], row["finished_flows"]) == (len(own), len(done))
            assert row["bytes"] == sum(one["bytes"] for one in own)
            for name in ("completion", "slowdown"):
                column = f"{name}_ps" if name == "completion" else name
                unit = "_ps" if name == "completion" else ""
                values = [math.inf if one[column] is None else one[column] for one in own]
                mean = sum(one[column] for one in done) / len(done) if done else None
                assert row[f"{name}_mean{unit}"] == (mean and pytest.approx(mean))
                for part in ("p50", "p99") if unit else ("p50", "p95", "p99", "p999"):
                    expected = rank(values, float(f"0.{part[1:]}"))
                    known = None if math.isinf(expected) else pytest.approx(expected)
                    assert row[f"{name}_{part}{unit}"] == known

    def check_sequences(self) -> None:
        stated = self.result.scenario.to_dict()["traffic"].get("sequence", [])
        for row, one in zip(self.rows("sequences"), stated, strict=True):
            last = [
                packet["delivered_ps"]
                for packet in self.deliveries
                if packet["class"] == row["class"] and packet["last"]
            ]
            assert row["messages"] == len(last)
            assert row["iterations"] == len(last) // len(one["to"])
            assert row["last_delivery_ps"] == (last[-1] if last else None)
            assert row["finished"] == (len(last) == len(one["to"]) * one["iterations"])

    def check_programs(self) -> None:
        stated = self.result.scenario.to_dict()["traffic"].get("program", [])
        messages, marks = self.rows("program_messages"), self.rows("program_marks")
        ranks = self.rows("ranks")
        for row, one in zip(self.rows("programs"), stated, strict=True):
            own = [rank for rank in ranks if rank["program"] == row["program"]]
            spans = []
            for index in range(one["iterations"]):
                these = [
                    mark
                    for mark in marks
                    if (mark["program"], mark["index"]) == (row["program"], index)
                ]
                spans.append(
                    max(mark["end_ps"] for mark in these) - min(mark["begin_ps"] for mark in these)
                )
            assert row["iterations"] == len(spans)
            assert row["iteration_mean_ps"] == pytest.approx(sum(spans) / len(spans))
            assert row["iteration_max_ps"] == max(spans)
            assert row["end_ps"] == max(mark["end_ps"] for mark in marks)
            assert row["completion_ps"] == row["end_ps"] - row["start_ps"]
            compute_ps = 12_000_000 * one["iterations"]
            for rank_row in own:
                sent = [
                    message["bytes"]
                    for message in messages
                    if message["from_rank"] == rank_row["rank"]
                ]
                received = sum(message["to_rank"] == rank_row["rank"] for message in messages)
                assert (rank_row["sends"], rank_row["sent_bytes"]) == (len(sent), sum(sent))
                assert rank_row["receives"] == received
                assert rank_row["compute_ps"] == compute_ps
            # The first iteration starts after its computing.
            starts = {
                mark["rank"]: mark["begin_ps"] - 12_000_000 for mark in marks if not mark["index"]
            }
            total = sum(rank_row["end_ps"] - starts[rank_row["rank"]] for rank_row in own)
            share = 1 - len(own) * compute_ps / total
            assert row["exposed_share"] == pytest.approx(share, rel=1e-9)

    # Measures

    @cached_property
    def span_ps(self) -> int:
        """Time over which rates are averaged: all traffic of flows, sequences and programs ends."""
        ends = [one["end_ps"] for one in self.flows]
        ends += [row["end_ps"] for row in (*self.rows("sequences"), *self.rows("programs"))]
        traffic = self.result.scenario.to_dict()["traffic"]
        goes_on = any(traffic.get(name) for name in ("uniform", "incast", "nodes", "permutation"))
        if goes_on or None in ends:
            return self.end_ps - WARM_PS
        return int(max(ends)) - WARM_PS

    @cached_property
    def hot(self) -> set[int]:
        traffic = self.result.scenario.to_dict()["traffic"]
        roles = [row["role"] for row in self.rows("hosts")]
        if traffic.get("incast"):
            return {self.hosts.index(one["to"]) for one in traffic["incast"]}
        return {
            host for host, role in enumerate(roles) if traffic.get("nodes") and "hotspot" in role
        }

    def measures(self) -> dict[str, float]:
        """Compute all measures but those of congestion trees and of the simulator."""
        received: dict[int, int] = defaultdict(int)
        for one in self.counted:
            received[one["destination"]] += one["payload"]
        to_gbps = 8000 / self.span_ps
        others = [
            row["host"]
            for row in self.rows("hosts")
            if row["receives"] and row["host"] not in self.hot
        ]
        found: dict[str, float] = {
            "total_gbps": sum(received.values()) * to_gbps,
            "delivered_bytes": sum(received.values()),
            "delivered_packets": len(self.counted),
            "marked_packets": sum(one["fecn"] for one in self.counted),
            "marked_share": sum(one["fecn"] for one in self.counted) / len(self.counted),
            "simulated_ps": self.end_ps,
        }
        if others:
            found["other_receivers_gbps"] = (
                sum(received[host] for host in others) / len(others) * to_gbps
            )
        if self.hot:
            hot_bytes = sum(received[host] for host in self.hot)
            found["hotspots_gbps"] = hot_bytes / len(self.hot) * to_gbps
            mtu = self.result.scenario.packet.mtu.bytes
            link = self.rows("ports")[0]["link_gbps"] * mtu / (mtu + HEADER)
            sink = self.result.scenario.host.sink_rate.bits_per_s / 1e9
            found["hotspot_utilisation"] = found["hotspots_gbps"] / min(link, sink)
        c_nodes = [row["host"] for row in self.rows("hosts") if row["role"].endswith("c")]
        if c_nodes:
            injected: dict[int, int] = defaultdict(int)
            for one in self.sent:
                if one["is_data"] and one["input_row"] is None:
                    injected[one["source"]] += one["payload"]
            found["fairness"] = jain([injected[host] for host in c_nodes])
        elif others:
            found["fairness"] = jain([received[host] for host in others])
        latencies = [one["delivered_ps"] - one["born_ps"] for one in self.counted]
        found |= distribution("latency", "_us", latencies)
        of_others = [
            one["delivered_ps"] - one["born_ps"]
            for one in self.counted
            if one["destination"] not in self.hot
        ]
        found |= distribution("other_latency", "_us", of_others)
        found.pop("other_latency_max_us", None)
        for part in (self._of_flows, self._of_links, self._of_programs):
            found |= part()
        found |= self._of_samples() | self._of_control()
        return {name: value for name, value in found.items() if not math.isnan(value)}

    def _of_flows(self) -> dict[str, float]:
        own = [one for one in self.flows if one["measured"]]
        if not own:
            return {}
        done = [one for one in own if one["finished"]]
        found = {
            "flows_finished": len(done) / len(own),
            "flows_end_ms": max(one["end_ps"] for one in own) / 1e9 if done == own else math.inf,
        }
        for name, column, unit, scale in (
            ("fct", "completion_ps", "_us", 1e6),
            ("slowdown", "slowdown", "", 1),
        ):
            values = [math.inf if one[column] is None else one[column] / scale for one in own]
            if done:
                found[f"{name}_mean{unit}"] = sum(one[column] / scale for one in done) / len(done)
                for part in ("50", "99", "999"):
                    found[f"{name}_p{part}{unit}"] = rank(values, float(f"0.{part}"))
                found[f"{name}_max{unit}"] = max(values)
        return found

    def _of_links(self) -> dict[str, float]:
        sent: dict[int, int] = defaultdict(int)
        for one in self.sent:
            sent[one["ports_row"]] += one["wire_bytes"]
        ports = self.rows("ports")
        used = [
            sent[number] * 8000 / self.span_ps / row["link_gbps"]
            for number, row in enumerate(ports)
            if row["node"] not in self.hosts
        ]
        found = {"link_utilisation_mean": sum(used) / len(used), "link_utilisation_max": max(used)}
        shares = {"wait_share": "xmit_wait_ps", "paused_share": "xmit_paused_ps"}
        for name, column in shares.items():
            if column in ports[0]:
                found[name] = sum(row[column] for row in ports) / len(ports) / self.span_ps
        if "pause_sent" in ports[0]:
            found["pause_frames"] = sum(row["pause_sent"] for row in ports)
        return found

    def _of_samples(self) -> dict[str, float]:
        looks = [row for row in self.rows("forest") if row["time_ps"] > WARM_PS]
        waiting = [row["waiting_bytes"] / 1e6 for row in looks]
        ports = [row["ports"] for row in looks]
        return {
            "queued_mean_mb": sum(waiting) / len(looks),
            "queued_max_mb": max(waiting),
            "tree_ports_mean": sum(ports) / len(looks),
            "tree_ports_max": max(ports),
        }

    def _of_control(self) -> dict[str, float]:
        hosts = self.rows("hosts")
        counts = sum(row["becn_received"] + row.get("grants_received", 0) for row in hosts)
        if self.result.scenario.to_dict()["control"]["feedback"]["carrier"] == "ack-per-packet":
            counts = len(self.counted)
        ways: dict[tuple[int, int], int] = defaultdict(int)
        for one in self.hops:
            if one["is_data"]:
                ways[one["source"], one["born_ps"]] += 1
        hops = sum(ways[one["source"], one["born_ps"]] for one in self.deliveries)
        return {"control_packets": counts / len(self.counted), "packet_hops": hops}

    def _of_programs(self) -> dict[str, float]:
        rows = self.rows("programs")
        if not rows:
            return {}
        marks = self.rows("program_marks")
        return {
            "programs_end_ms": max(mark["end_ps"] for mark in marks) / 1e9,
            "program_slowdown": max(row["completion_ps"] / row["ideal_ps"] for row in rows),
            "iteration_mean_ms": rows[0]["iteration_mean_ps"] / 1e9,
            "exposed_share": rows[0]["exposed_share"],
            **_allreduce_bandwidths(rows[0]),
        }


def _allreduce_bandwidths(row: Mapping[str, Any]) -> dict[str, float]:
    """Compute nccl-tests' bandwidths of the allreduce of 24 KiB, in GB/s."""
    algorithm = 24 * 1024 / row["iteration_mean_ps"] * 1e3
    return {
        "algbw_gb_per_s": algorithm,
        "busbw_gb_per_s": algorithm * 2 * (row["ranks"] - 1) / row["ranks"],
    }


def interval(time_ps: int) -> int:
    """Return the end of the probe interval that a time is in; its end is part of it."""
    return math.ceil(time_ps / STEP_PS) * STEP_PS


def rank(values: Sequence[float], share: float) -> float:
    """Interpolate a quantile between ranks; a value that depends on an infinite one is infinite."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    if low == high:
        return ordered[low]
    return ordered[low] * (high - place) + ordered[high] * (place - low)


def jain(values: Sequence[float]) -> float:
    """Compute Jain's index; not a number if no program has anything."""
    if not any(values):
        return math.nan
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def distribution(name: str, unit: str, values_ps: Sequence[int]) -> dict[str, float]:
    """Compute mean, percentiles and maximum of latencies, in microseconds."""
    if not values_ps:
        return {}
    ordered = sorted(values_ps)
    found = {f"{name}_mean{unit}": sum(ordered) / len(ordered) / 1e6}
    for part in ("50", "99", "999"):
        place = math.ceil(float(f"0.{part}") * len(ordered)) - 1
        found[f"{name}_p{part}{unit}"] = ordered[place] / 1e6
    return found | {f"{name}_max{unit}": ordered[-1] / 1e6}


def check_latency(row: Mapping[str, Any], values_ps: Sequence[int]) -> None:
    """Compare the latency columns of a row."""
    expected = {
        name.removesuffix("_us"): us
        for name, us in distribution("latency", "_us", values_ps).items()
    }
    for name in ("latency_mean", "latency_max", "latency_p50", "latency_p99", "latency_p999"):
        us = expected.get(name)
        # Percentiles have the resolution of the histogram.
        rel = 1 / 128 + 1e-3 if "_p" in name else 1e-9
        close = None if us is None else pytest.approx(us * 1e3, rel=rel)
        assert row[f"{name}_ns"] == close, name


@pytest.fixture(scope="module", params=range(10))
def recomputed(request: pytest.FixtureRequest) -> Recomputed:
    return Recomputed(silvan.run(drawn(request.param)))


def test_every_column_follows_from_packets_and_messages(recomputed: Recomputed) -> None:
    assert recomputed.result.measures["delivered_packets"] > 20
    recomputed.check_hosts()
    recomputed.check_classes()
    recomputed.check_series()
    recomputed.check_ports()
    recomputed.check_flows()
    recomputed.check_sequences()
    recomputed.check_programs()


def test_every_measure_follows_from_packets_and_messages(recomputed: Recomputed) -> None:
    expected, found = recomputed.measures(), recomputed.result.measures
    assert expected.keys() == found.keys() - {"events"}
    assert list(found) == [name for name in MEASURES if name in found]
    for name, value in expected.items():
        rel = 1 / 128 + 1e-3 if "latency_p" in name else 1e-9
        assert found[name] == pytest.approx(value, rel=rel), name


def test_every_printed_number_follows_from_packets_and_messages(
    recomputed: Recomputed, command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "drawn.toml"
    path.write_text(recomputed.result.scenario.to_toml())
    rates = ("hotspots_gbps", "other_receivers_gbps", "total_gbps")
    shown = command("run", path, "--measures", ",".join(rates)).stdout
    cells = {cell.strip() for line in shown.splitlines() for cell in line.split("│")}
    expected = recomputed.measures()
    for name in rates:
        if name in expected:
            # The order of a sum decides how a tie rounds.
            around = (expected[name] * (1 + error) for error in (-1e-12, 1e-12))
            assert {f"{value:.3f}" for value in around} & cells
    for number, row in enumerate(recomputed.rows("classes")):
        latencies = [
            one["delivered_ps"] - one["born_ps"]
            for one in recomputed.counted
            if one["class"] == number
        ]
        if latencies:
            of_class = (sum(latencies) / len(latencies), min(latencies), max(latencies))
            assert {row["name"], *(f"{ps / 1e6:.3f}" for ps in of_class)} <= cells
    if recomputed.flows:
        finished = sum(one["finished"] for one in recomputed.flows)
        line = f"{finished} of {len(recomputed.flows)} flows finished"
        for name, words, unit in (("fct", "completion time", " µs"), ("slowdown", "slowdown", "")):
            end = "_us" if unit else ""
            if f"{name}_mean{end}" not in expected:
                continue
            values = [expected[f"{name}_{part}{end}"] for part in ("mean", "p99", "max")]
            texts = ["unfinished" if math.isinf(one) else f"{one:.2f}{unit}" for one in values]
            line += f"; {words} mean {texts[0]}, 99 % {texts[1]}, max {texts[2]}"
        assert line in shown.splitlines()
    for row in recomputed.rows("programs"):
        marks = recomputed.rows("program_marks")
        end_us = max(mark["end_ps"] for mark in marks) / 1e6
        slowdown = expected["program_slowdown"]
        assert (
            f"1 of 1 programs finished; the last one after {end_us:.3f} µs; "
            f"slowdown max {slowdown:.2f}"
        ) in shown
        assert {row["name"], f"{expected['exposed_share']:.3%}", f"{slowdown:.3f}"} <= cells
