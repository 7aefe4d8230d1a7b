"""Gran et al., "First Experiences with Congestion Control in InfiniBand Hardware" (IPDPS 2010)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import numpy as np

from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.curves import Curve, by_name, over_time
from silvan.reproduce.experiment import (
    Case,
    ClauseResult,
    Experiment,
    Measurement,
    PointTable,
    Results,
    Verdict,
)
from silvan.reproduce.registry import find_paper
from silvan.reproduce.shapes import Clause, judge
from silvan.reproduce.targets import Target
from silvan.results.hpcc import Numbers, numbers
from silvan.results.receive_rates import PS_PER_MS
from silvan.results.result import Result
from silvan_papers.gran2010_real import REAL
from silvan_papers.papers import paper, targets_file

_QUIET: Final = "a) no congestion"
_OFF: Final = "b) congestion, CC off"
_ON: Final = "c) congestion, CC on"
_SEEDS = 3

CONTRIBUTORS = ("C1-H", "C2-H", "C3-H")
VICTIM = "V1-V2"
_CONGESTION: Mapping[str, TomlValue] = {
    "traffic.flow": [{"name": name, "from": name.split("-")[0], "to": "H"} for name in CONTRIBUTORS]
}
_SINK_GBPS = 13.6
_INJECTION_GBPS = 12.8
_STEADY_MS = 30
_CLOSE = 0.05


_UNITS = {"_ms": "ms", "_MBps": "MB/s", "_GBps": "GB/s", "_gflops": "Gflop/s", "_gups": "GUP/s"}
# Rows of column a to which the model of the hosts was fitted.
_FITTED = (
    "min_pingpong_latency",
    "max_pingpong_latency",
    "natural_ring_latency",
    "min_pingpong_bw",
    "max_pingpong_bw",
    "natural_ring_bw",
    "ptrans",
    "hpl",
    "random_access",
    "fft",
)
# silvan's tolerances. With congestion control nearly all ratios are within 5 % of 1, so a wider one
# would accept a simulation without any effect.
_TOLERANCES = {"value": 0.25, "cc_off": 0.25, "cc_on": 0.05}


def hpcc_targets(file: Traversable) -> dict[str, Target]:
    """Derive targets from the tables ``[hpcc]`` and ``[improvement]`` of a file of targets."""
    tables = tomllib.loads(file.read_text("utf-8"))
    derived = _derived(tables["hpcc"], tables["improvement"])
    return {target.id: target for target in derived}


def _derived(
    table: Mapping[str, Sequence[float]], improvement: Mapping[str, float]
) -> Iterator[Target]:
    for key, (alone, off, on) in table.items():
        if key == "columns":
            continue
        unit = next(unit for end, unit in _UNITS.items() if key.endswith(end))
        name = key.rpartition("_")[0].removeprefix("mpi_")
        words = name.replace("_", " ").replace("bw", "bandwidth")
        yield Target(
            f"hpcc.{name}.no_congestion",
            f"{words} without congestion, {unit}",
            alone,
            _TOLERANCES["value"],
            calibrate=name in _FITTED,
        )
        for column, control, value in (("cc_off", "off", off), ("cc_on", "on", on)):
            yield Target(
                f"hpcc.{name}.{column}",
                f"{words} with congestion and CC {control}, over that without",
                value / alone,
                _TOLERANCES[column],
            )
        for column, control, value in (("b", "off", off), ("c", "on", on)):
            yield Target(
                f"hpcc.{name}.column_{column}",
                f"{words} with congestion and CC {control}, {unit}",
                value,
                _TOLERANCES["value"],
            )
        part = improvement[key] / 100
        is_time = unit == "ms"
        yield Target(
            f"hpcc.{name}.improvement",
            f"{words}: how many times better with CC on than with CC off",
            1 / (1 - part) if is_time else 1 + part,
            _TOLERANCES["value"],
        )


def _numbers(results: Results, label: str) -> list[Numbers]:
    return [numbers(run) for run in results[label]]


def _names() -> list[str]:
    return [field.name for field in fields(Numbers)]


def _measure_hpcc(results: Results) -> list[Measurement | Verdict]:
    columns = {label: _numbers(results, label) for label in (_QUIET, _OFF, _ON)}
    measured: list[Measurement | Verdict] = []

    def add(target: str, values: tuple[float, ...]) -> None:
        measured.append(Measurement(target, values, values))

    for name in _names():
        alone, off, on = (
            tuple(float(getattr(one, name)) for one in column) for column in columns.values()
        )
        add(f"hpcc.{name}.no_congestion", alone)
        add(f"hpcc.{name}.cc_off", _ratios(off, alone))
        add(f"hpcc.{name}.cc_on", _ratios(on, alone))
        add(f"hpcc.{name}.column_b", off)
        add(f"hpcc.{name}.column_c", on)
        better = _ratios(off, on) if name.endswith("latency") else _ratios(on, off)
        add(f"hpcc.{name}.improvement", better)
    return measured


def _ratios(over: Sequence[float], under: Sequence[float]) -> tuple[float, ...]:
    return tuple(above / below for above, below in zip(over, under, strict=True))


def _tabulate_hpcc(results: Results) -> PointTable:
    rows: list[tuple[float | str, ...]] = []
    for name in _names():
        means = [
            float(np.mean([getattr(one, name) for one in _numbers(results, label)]))
            for label in (_QUIET, _OFF, _ON)
        ]
        rows.append((name, *means, means[1] / means[0], means[2] / means[0]))
    return PointTable(("row", "a", "b", "c", "b/a", "c/a"), tuple(rows))


def _words(name: str) -> str:
    return name.replace("_", " ").replace("bw", "bandwidth")


def _plot_hpcc(table: PointTable) -> list[Curve]:
    known = find_paper("gran2010").targets
    return [
        by_name(
            "With congestion, relative to without",
            "times",
            f"CC {control}",
            {_words(str(row[0])): ([float(row[place])], [_QUIET, label]) for row in table.rows},
            {_words(name): known[f"hpcc.{name}.{column}"].value or 0.0 for name in _names()},
        )
        for control, column, label, place in (("off", "cc_off", _OFF, 4), ("on", "cc_on", _ON, 5))
    ]


def _draw_hpcc(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.gran2010 import draw_ratios

    known = find_paper("gran2010").targets
    table = _tabulate_hpcc(results)
    paper = {
        name: (known[f"hpcc.{name}.cc_off"].value or 0.0, known[f"hpcc.{name}.cc_on"].value or 0.0)
        for name in _names()
    }
    ours = {str(row[0]): (float(row[4]), float(row[5])) for row in table.rows}
    return draw_ratios(paper, ours, folder=folder, stem="hpcc")


def rates_gbps(run: Result, window: int) -> dict[str, float]:
    """Average the receive rate of every flow over the whole run (0) or its last part (1)."""
    names = run.classes["name"].to_pylist()
    series = run.tables["class_series"]
    times, which, moved = (
        series[name].to_numpy() for name in ("time_ps", "class", "delivered_bytes")
    )
    end = int(times.max())
    start = end - _STEADY_MS * PS_PER_MS if window else 0
    chosen = times > start
    return {
        name: float(moved[chosen & (which == number)].sum()) * 8e3 / (end - start)
        for number, name in enumerate(names)
    }


def _fractions(results: Results, label: str, wanted: Sequence[float]) -> Clause:
    def check(window: int) -> ClauseResult:
        rates = rates_gbps(results[label][0], window)
        total = sum(rates[name] for name in CONTRIBUTORS)
        shares = {name: rates[name] / total for name in CONTRIBUTORS}
        close = all(
            abs(share - fraction) <= _CLOSE
            for share, fraction in zip(shares.values(), wanted, strict=True)
        )
        facts = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        used = total / _SINK_GBPS
        return ClauseResult(close, f"{facts}, of {used:.0%} of what the hotspot can take in")

    parts = ", ".join(f"{fraction:.2f}" for fraction in wanted)
    return Clause(f"{label}: shares of what the hotspot gets within {_CLOSE} of {parts}", check)


def _victim(results: Results, label: str, *, free: bool) -> Clause:
    def check(window: int) -> ClauseResult:
        rate = rates_gbps(results[label][0], window)[VICTIM]
        whole = rate >= (1 - _CLOSE) * _INJECTION_GBPS
        return ClauseResult(whole == free, f"victim {rate:.2f} Gbit/s")

    has = "at least" if free else "less than"
    return Clause(
        f"{label}: the victim has {has} {1 - _CLOSE:.0%} of {_INJECTION_GBPS} Gbit/s", check
    )


def _measure_parking(results: Results) -> list[Measurement | Verdict]:
    third = 1 / 3
    clauses = [
        _fractions(results, "CC off", (0.25, 0.25, 0.5)),
        _victim(results, "CC off", free=False),
        _fractions(results, "CC on", (third, third, third)),
        _victim(results, "CC on", free=True),
    ]
    return [judge("parking_lot", clauses)]


def _parking_windows(results: Results) -> tuple[str, str]:
    length_ms = results["CC off"][0].scenario.duration_ps / PS_PER_MS
    return f"0 to {length_ms:g} ms", f"the last {_STEADY_MS} ms"


def _tabulate_parking(results: Results) -> PointTable:
    rows: list[tuple[float | str, ...]] = [
        (label, *(rates_gbps(runs[0], window)[name] for name in (*CONTRIBUTORS, VICTIM)), when)
        for label, runs in results.items()
        for window, when in enumerate(("whole run", "last 30 ms"))
    ]
    return PointTable(
        ("run", *(f"{name} (Gbit/s)" for name in (*CONTRIBUTORS, VICTIM)), "when"), tuple(rows)
    )


def _trace_parking(results: Results) -> list[Curve]:
    from silvan_papers.figures.gran2010 import flow_colour

    found = []
    for label, runs in results.items():
        run = runs[0]
        series = run.tables["class_series"]
        times, which, moved = (
            series[name].to_numpy() for name in ("time_ps", "class", "delivered_bytes")
        )
        for number, name in enumerate(run.classes["name"].to_pylist()):
            at = times[which == number].astype(np.float64)
            rates = moved[which == number] * 8e3 / np.diff(at, prepend=0.0)
            words = f"{name}, the victim" if name == VICTIM else name
            chart = f"Receive rate of each flow, {label}"
            course = over_time(chart, "Gbit/s", words, at / PS_PER_MS, rates, [label])
            found.append(replace(course, colour=flow_colour(number, name)))
    return found


def _draw_parking(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.gran2010 import draw_parking

    return draw_parking({label: runs[0] for label, runs in results.items()}, folder=folder)


HPCC = Experiment(
    id="hpcc",
    title="HPCC as the victim of a congested link",
    cases=(
        Case(_QUIET, "hpcc", _SEEDS),
        Case(_OFF, "hpcc", _SEEDS, _CONGESTION),
        Case(_ON, "hpcc", _SEEDS, {**_CONGESTION, "control.scheme": "ib-cc"}),
    ),
    windows=("the whole benchmark", "the same"),
    quick={
        "traffic.hpcc.latency-rings": 3,
        "traffic.hpcc.bandwidth-rings": 1,
        "traffic.hpcc.bandwidth-bytes": "200 kB",
        "traffic.hpcc.access-rounds": 50,
        "probe.interval": "6 s",
        "run.duration": "6 s",
    },
    quick_note="bandwidths with a tenth of the bytes, and few rings",
    measure=_measure_hpcc,
    draw=_draw_hpcc,
    tabulate=_tabulate_hpcc,
    plot=_plot_hpcc,
)

PARKING_LOT = Experiment(
    id="parking_lot",
    title="Parking lot and head-of-line blocking",
    cases=(
        Case("CC off", "parking-lot", 1, {"control.scheme": "none"}),
        Case("CC on", "parking-lot", 1),
    ),
    windows=_parking_windows,
    quick={"run.duration": "40 ms"},
    quick_note="40 ms instead of 100 ms",
    measure=_measure_parking,
    draw=_draw_parking,
    tabulate=_tabulate_parking,
    trace=_trace_parking,
)

EXPERIMENTS = (PARKING_LOT, HPCC)

PAPER = replace(
    paper("gran2010", EXPERIMENTS, hpcc_targets(targets_file("gran2010"))), live=(REAL,)
)
