"""Targets: the numbers that a paper states."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Target:
    """One number, or the shape of one curve, that a paper states.

    Attributes
    ----------
    id : str
        Experiment, case and quantity, joined by dots.
    what : str
        What the number is, with its unit.
    value : float, optional
        The number. None where the paper only draws it.
    tol : float, optional
        Relative difference that we aim to stay within.
    shape : str, optional
        What a drawn curve must do, where there is no number.
    calibrate : bool
        Whether the model's free parameters were fitted to this number.
    """

    id: str
    what: str = ""
    value: float | None = None
    tol: float | None = None
    shape: str | None = None
    calibrate: bool = False


@cache
def load_targets(paper: str) -> dict[str, Target]:
    """Read the targets of one paper.

    Parameters
    ----------
    paper : str
        The paper's short name.

    Returns
    -------
    dict of str to Target
        Targets by id, in the paper's order.

    Examples
    --------
    >>> load_targets("gran2012")["table2.nohot.cc_off"].value
    2.699
    """
    text = resources.files("silvan").joinpath("targets", f"{paper}.toml").read_text("utf-8")
    document = tomllib.loads(text)
    targets = [
        *_hpcc_targets(document.get("hpcc", {})),
        *(Target(**entry) for entry in document["target"]),
    ]
    return {target.id: target for target in targets}


# The rows of gran2010's table by the ends of their names.
_UNITS = {"_ms": "ms", "_MBps": "MB/s", "_GBps": "GB/s", "_gflops": "Gflop/s", "_gups": "GUP/s"}
# Rows that measure the network alone, whose values without congestion are targets too; and those to
# which the model of the hosts was fitted.
_NETWORK = ("latency", "bw")
_FITTED = ("min_pingpong_latency", "max_pingpong_latency", "min_pingpong_bw", "max_pingpong_bw")
# The tolerances are ours. With congestion control nearly all ratios lie within 5 % of 1, so a wider
# one would accept a simulation in which nothing happens.
_TOLERANCES = {"no_congestion": 0.25, "cc_off": 0.25, "cc_on": 0.05}


def _hpcc_targets(table: Mapping[str, Sequence[float]]) -> Iterator[Target]:
    """Derive targets from a table of absolute values of one cluster.

    What must hold on another cluster is what congestion does to them, so each value with
    congestion becomes a ratio to the one without.
    """
    for key, (alone, off, on) in table.items():
        if key == "columns":
            continue
        unit = next(unit for end, unit in _UNITS.items() if key.endswith(end))
        name = key.rpartition("_")[0].removeprefix("mpi_")
        words = name.replace("_", " ").replace("bw", "bandwidth")
        if name.endswith(_NETWORK):
            yield Target(
                f"hpcc.{name}.no_congestion",
                f"{words} without congestion, {unit}",
                alone,
                _TOLERANCES["no_congestion"],
                calibrate=name in _FITTED,
            )
        for column, control, value in (("cc_off", "off", off), ("cc_on", "on", on)):
            yield Target(
                f"hpcc.{name}.{column}",
                f"{words} with congestion and CC {control}, over that without",
                value / alone,
                _TOLERANCES[column],
            )


def stated_value(paper: str, name: str) -> float:
    """Give the number that a paper states.

    Parameters
    ----------
    paper : str
        The paper's short name.
    name : str
        Id of a target that has a number.

    Returns
    -------
    float
        The number.

    Examples
    --------
    >>> stated_value("gran2012", "fig5a.p0.on")
    4.75
    """
    value = load_targets(paper)[name].value
    assert value is not None, f"{name} is a shape"
    return value
