"""Delays of programs by other programs, from the congestion trees of a run."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa

from silvan.errors import SilvanError, checked_argument
from silvan.results.result import Result

OTHER = "other traffic"


def delays(result: Result) -> pa.Table:
    """List who held back whom in the congestion trees of a run.

    A tree holds packets that go through its root, those of its contributors, and others that
    wait behind them, those of its victims. Programs are known by their hosts.

    Parameters
    ----------
    result
        A run with ``[probe.trees]`` and programs, whose hosts have one program each.

    Returns
    -------
    pyarrow.Table
        A row for each pair of a program that was held back (``victim``) and one that contributed
        (``contributor``) to a tree at the same time: the number of ``trees`` and of their
        ``samples``, and the mean of the ``victim_bytes`` in a sample; most samples first.

    Raises
    ------
    SilvanError
        The run has no trees or no programs, or two programs share a host.

    """
    checked_argument("result", result, Result, "a result, e.g. silvan.run(scenario)")
    if "tree_hosts" not in result.tables:
        raise SilvanError("the run has no congestion trees", hint="add [probe.trees]")
    owners = _owners(result)
    sides: dict[tuple[int, int], tuple[dict[str, int], dict[str, int]]] = {}
    columns = ("time_ps", "tree", "host", "contributing_bytes", "victim_bytes")
    rows = zip(*(result.tables["tree_hosts"][name].to_pylist() for name in columns), strict=True)
    for time, tree, host, contributing, waiting in rows:
        victims, contributors = sides.setdefault((time, tree), (defaultdict(int), defaultdict(int)))
        owner = owners.get(host, OTHER)
        if waiting:
            victims[owner] += waiting
        if contributing:
            contributors[owner] += contributing
    pairs: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for (_, tree), (victims, contributors) in sides.items():
        for victim, waiting in victims.items():
            for contributor in contributors:
                pairs[victim, contributor].append((tree, waiting))
    ordered = sorted(pairs.items(), key=lambda item: (-len(item[1]), item[0]))
    return pa.table(
        {
            "victim": pa.array([victim for (victim, _), _ in ordered], pa.string()),
            "contributor": pa.array([one for (_, one), _ in ordered], pa.string()),
            "trees": pa.array([len({tree for tree, _ in seen}) for _, seen in ordered], pa.int64()),
            "samples": pa.array([len(seen) for _, seen in ordered], pa.int64()),
            "victim_bytes": pa.array(
                [sum(waiting for _, waiting in seen) / len(seen) for _, seen in ordered],
                pa.float64(),
            ),
        }
    )


def _owners(result: Result) -> dict[int, str]:
    names = result.programs["name"].to_pylist()
    owners: dict[int, str] = {}
    for rank in result.ranks.to_pylist():
        name = names[rank["program"]]
        other = owners.setdefault(rank["host"], name)
        if other != name:
            raise SilvanError(
                f"host {rank['host']} has ranks of {other!r} and {name!r}",
                hint="give each program separate hosts",
            )
    return owners
