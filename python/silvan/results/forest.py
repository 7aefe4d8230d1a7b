"""Congestion trees of a run, instant by instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from silvan.results.receive_rates import PS_PER_MS
from silvan.results.result import Result

Columns = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The forest at one instant.

    Attributes
    ----------
    time_ps : int
        The instant, in picoseconds of simulated time.
    trees, ports, hosts : Mapping
        The rows of ``trees``, ``tree_ports`` and ``tree_hosts`` at that instant, by column.
    """

    time_ps: int
    trees: Columns
    ports: Columns
    hosts: Columns

    @property
    def time_ms(self) -> float:
        """The instant in milliseconds."""
        return self.time_ps / PS_PER_MS

    def port_rows(self) -> npt.NDArray[np.int64]:
        """Rows of the members of trees in the table ``ports``."""
        return self.ports["ports_row"].astype(np.int64)

    def depths(self) -> npt.NDArray[np.int64]:
        """Depths of the members of trees."""
        return self.ports["depth"].astype(np.int64)

    def victims(self) -> npt.NDArray[np.int64]:
        """Numbers of the hosts with packets that are victims."""
        suffers = self.hosts["victim_bytes"].astype(np.int64) > 0
        return np.unique(self.hosts["host"][suffers]).astype(np.int64)

    def main_trees(self) -> dict[int, int]:
        """Give for each host that contributes the tree to which it contributes most bytes."""
        contributed = self.hosts["contributing_bytes"].astype(np.int64)
        hosts, trees = self.hosts["host"].tolist(), self.hosts["tree"].tolist()
        order = np.argsort(contributed, kind="stable").tolist()
        return {hosts[row]: trees[row] for row in order if contributed[row] > 0}


class Forests:
    """All samples of the congestion trees of a run.

    Parameters
    ----------
    result : Result
        A run whose scenario has a table ``probe.trees``.

    Attributes
    ----------
    result : Result
        The run.
    times_ps : ndarray of uint64
        Times of the samples, in picoseconds.

    Raises
    ------
    SilvanError
        The run did not look for trees.

    Examples
    --------
    >>> import silvan
    >>> scenario = silvan.Scenario(
    ...     fabric={"generator": "single-switch", "hosts": 4},
    ...     traffic={"incast": [{"to": "host-0000"}]},
    ...     probe={"trees": {"interval": "100 us"}},
    ...     run={"duration": "200 us"},
    ... )
    >>> forests = Forests(silvan.run(scenario))
    >>> forests.at(-1).trees["destination"].tolist()
    ['host-0000']
    """

    def __init__(self, result: Result) -> None:
        self.times_ps: npt.NDArray[np.uint64] = result.forest["time_ps"].to_numpy()
        self.result = result

    def __len__(self) -> int:
        return len(self.times_ps)

    @cached_property
    def _columns(self) -> dict[str, Columns]:
        names = ("trees", "tree_ports", "tree_hosts")
        return {name: _columns(self.result.tables[name]) for name in names}

    def at(self, index: int) -> Snapshot:
        """Give one sample by its index; negative indexes count from the last sample."""
        time_ps = self.times_ps[index]

        def rows(name: str) -> Columns:
            columns = self._columns[name]
            first, end = np.searchsorted(columns["time_ps"], [time_ps, time_ps + np.uint64(1)])
            return {key: values[first:end] for key, values in columns.items()}

        return Snapshot(int(time_ps), rows("trees"), rows("tree_ports"), rows("tree_hosts"))

    def nearest(self, time_ps: int) -> int:
        """Find the look nearest to an instant; of two, the earlier one."""
        distances = np.abs(self.times_ps.astype(np.int64) - time_ps)
        return int(distances.argmin())

    @cached_property
    def lifetimes(self) -> Columns:
        """Columns of the table ``tree_lifetimes``; a tree is the row of its number."""
        return _columns(self.result.tables["tree_lifetimes"])

    def lineages(self) -> list[int]:
        """List the lineages of trees (a tree and all that moved from it), largest first."""
        lineage = self.lifetimes["lineage"].astype(np.int64)
        held = np.bincount(lineage[self._columns["tree_ports"]["tree"].astype(np.int64)])
        return [int(one) for one in np.argsort(-held, kind="stable") if held[one] > 0]


def tree_lives(result: Result) -> list[dict[str, Any]]:
    """List the rows of ``tree_lifetimes``, the largest tree first.

    Roots are ``"node:port"``. None stands for no tree that this tree moved from, split from or
    merged into.
    """
    ports = result.ports.select(["node", "port"]).to_pylist()
    lives = []
    for life in result.tree_lifetimes.to_pylist():
        root = ports[life.pop("root_row")]
        lineage = life.pop("lineage")
        others = {key: life.pop(key) for key in ("moved_from", "split_from", "merged_into")}
        none = life["tree"]
        lives.append(
            {
                **life,
                "died": bool(life["died"]),
                "root": f"{root['node']}:{root['port']}",
                "lineage": lineage,
                **{key: None if value == none else value for key, value in others.items()},
            }
        )
    return sorted(lives, key=lambda life: (-life["peak_ports"], life["tree"]))


def _columns(table: pa.Table) -> Columns:
    return {name: table[name].to_numpy() for name in table.column_names}
