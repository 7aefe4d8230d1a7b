"""Bytes of each program on each link: the messages of a run, along the routes of its scenario."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa

from silvan.errors import SilvanError, checked_argument
from silvan.results.result import Result

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario


def link_bytes(result: Result) -> pa.Table:
    """Count the bytes of each program on each link of a run.

    Parameters
    ----------
    result
        A run with ``probe.messages = true`` and programs, whose packets follow the tables
        (``fabric.path-choice``).

    Returns
    -------
    pyarrow.Table
        A row for each port and program that sent through it: ``node``, ``port`` and ``peer`` as in
        the table ``ports``, ``program``, and ``payload_bytes`` of the messages that arrived in the
        whole run. Headers are not counted, nor are the requests and clearances of large messages.

    Raises
    ------
    SilvanError
        The run has no messages, or its switches choose paths packet by packet.

    """
    checked_argument("result", result, Result, "a result, e.g. silvan.run(scenario)")
    if "program_messages" not in result.tables:
        raise SilvanError("the run has no messages of programs", hint="set probe.messages to true")
    choice = result.scenario.fabric["path-choice"]
    if choice != "table":
        raise SilvanError(
            f"fabric.path-choice is {choice!r}: messages have no fixed path",
            hint='set it to "table"',
        )
    programs = result.programs["name"].to_pylist()
    peers = {
        (row["node"], row["port"]): row["peer"]
        for row in result.tables["ports"].select(["node", "port", "peer"]).to_pylist()
    }
    totals: dict[tuple[str, int, int], int] = defaultdict(int)
    routes = _Routes(result.scenario, peers, result.hosts["name"].to_pylist())
    for (job, source, target), size in _pairs(result).items():
        for node, port in routes.path(source, target):
            totals[node, port, job] += size
    order = {place: number for number, place in enumerate(peers)}
    rows = sorted(totals.items(), key=lambda row: (order[row[0][:2]], row[0][2]))
    return pa.table(
        {
            "node": pa.array([node for (node, _, _), _ in rows], pa.string()),
            "port": pa.array([port for (_, port, _), _ in rows], pa.int64()),
            "peer": pa.array([peers[node, port] for (node, port, _), _ in rows], pa.string()),
            "program": pa.array([programs[job] for (_, _, job), _ in rows], pa.string()),
            "payload_bytes": pa.array([size for _, size in rows], pa.int64()),
        }
    )


def _pairs(result: Result) -> dict[tuple[int, int, int], int]:
    ranks = result.ranks.select(["program", "rank", "host"]).to_pylist()
    hosts = {(rank["program"], rank["rank"]): rank["host"] for rank in ranks}
    keys = ["program", "from_rank", "to_rank"]
    sums = result.tables["program_messages"].group_by(keys).aggregate([("bytes", "sum")])
    pairs: dict[tuple[int, int, int], int] = defaultdict(int)
    for row in sums.to_pylist():
        job = row["program"]
        source, target = hosts[job, row["from_rank"]], hosts[job, row["to_rank"]]
        if source != target:
            pairs[job, source, target] += row["bytes_sum"]
    return pairs


class _Routes:
    def __init__(
        self, scenario: Scenario, peers: dict[tuple[str, int], str], hosts: list[str]
    ) -> None:
        self._egress = scenario.egress_ports()
        self._peers = peers
        self._hosts = hosts

    def path(self, source: int, target: int) -> list[tuple[str, int]]:
        node, port = self._hosts[source], 1
        ports = [(node, port)]
        while (node := self._peers[node, port].rpartition(":")[0]) in self._egress:
            port = self._egress[node][target]
            ports.append((node, port))
        return ports
