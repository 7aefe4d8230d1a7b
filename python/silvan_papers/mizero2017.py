"""Mizero et al., "A Dynamic Congestion Management System for InfiniBand Networks" (2017)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.curves import Curve, Line, curves, over_time
from silvan.reproduce.experiment import (
    Case,
    ClauseResult,
    Experiment,
    Measurement,
    PointTable,
    Results,
    Verdict,
)
from silvan.reproduce.registry import stated_value
from silvan.reproduce.shapes import Clause, judge
from silvan.results.result import Result
from silvan_papers.mizero2017_forests import FORESTS
from silvan_papers.mizero2017_runs import (
    CONTRIBUTORS,
    SENDERS,
    TICK_S,
    VICTIM,
    Course,
    actions,
    completion_s,
    course,
)
from silvan_papers.papers import paper

TIMERS = (75, 150, 300)
"""CCTI_Timer in Experiment I."""

RATES = (0, 8, 16, 32, 64, 128)
"""Marking_Rate in figure 4; figure 3(c) adds 2048."""

_ALL_FLOWS_S = 28.0
"""Start of the last flow of Experiment I."""

_SETTLED_S = 2.0
"""Time in which throughputs settle after the start of a flow (section 4.2)."""

_FOUR_FLOWS_S = 7.25

_CONGESTED_PART = 0.05
"""Part of the time in the congestion state of a fast PortXmitCongTime."""

_QUICK = 50

_SENT_BYTES = 300 * 128 * 2**20
_STARTS_S: Mapping[int, float] = {0: 0.0, 1: 8.0, 2: 13.0, 3: _ALL_FLOWS_S}

_DROPPED_GBPS = 4.0
"""X-Y drops from 7.9 to 2.6 Gbit/s."""

_BETWEEN_GBPS = 32.0

_ABOUT_THE_SAME = 0.8
"""Congestion times of Marking_Rates from 8 to 128 are this close."""

_FULL_RATE = 0.95


def label(timer: int, rate: int) -> str:
    """Name a case of Experiment I as the paper does: CCTI_Timer and Marking_Rate."""
    return f"{timer}-{rate}"


def _case(timer: int, rate: int) -> Case:
    settings: dict[str, TomlValue] = {
        "control.ib-cc.adapter.ccti-timer": timer,
        "control.ib-cc.switch.marking-rate": rate,
    }
    if rate > 0:
        # The contributors share the full rate and are done soon.
        settings["run.duration"] = "240 s"
    return Case(label(timer, rate), "experiment1", 1, settings, quick=rate in (0, 8, 64, 128, 2048))


@dataclass(frozen=True, slots=True)
class _Scale:
    factor: float

    @classmethod
    def of(cls, result: Result) -> _Scale:
        return cls(_ALL_FLOWS_S / result.scenario.traffic.flow[3].start.seconds)

    def window(self, start_s: float, end_s: float) -> tuple[float, float]:
        return start_s / self.factor, end_s / self.factor


def _measure_exp1(results: Results) -> list[Measurement | Verdict]:
    measured: list[Measurement | Verdict] = []
    for timer in TIMERS:
        measured.append(_contributors(f"exp1.{timer}-0.contributors", results[label(timer, 0)]))
    measured += [
        _victim("exp1.75-0.victim", [*results["75-0"], *results["300-0"]]),
        _victim("exp1.75-2048.victim", results["75-2048"]),
        _contributors("exp1.75-2048.contributors", results["75-2048"]),
        _contributors(
            "exp1.64.contributors", [run for timer in TIMERS for run in results[label(timer, 64)]]
        ),
        _duration(
            "exp1.victim_duration.low",
            [run for timer in TIMERS for run in results[label(timer, 0)]],
        ),
        _duration("exp1.victim_duration.high", results["75-2048"]),
        judge("exp1.75-2048.interswitch_rate", [_waits_only_at_2048(results)]),
        *_measure_ends(results),
        *_measure_waiting(results["75-2048"][0]),
        *_measure_congested(results),
    ]
    return measured


def _one(target: str, value: float, note: str = "") -> Measurement:
    return Measurement(target, (value,), (value,), note)


def _measure_ends(results: Results) -> list[Measurement | Verdict]:
    measured: list[Measurement | Verdict] = []
    for target, name in (("exp1.75-0.figure3a", "75-0"), ("exp1.300-0.figure3b", "300-0")):
        run = results[name][0]
        scale, over_time = _Scale.of(run), course(run)
        start, end = (completion_s(run, host) * scale.factor for host in ("Y", "D"))
        rate = over_time.mean(over_time.contributors(), *scale.window(start, end))
        measured.append(_one(target, rate, "mean from the end of X-Y to that of all flows"))
    for name in ("75-0", "75-2048"):
        run = results[name][0]
        measured.append(_one(f"exp1.{name}.end", completion_s(run, "D") * _Scale.of(run).factor))
    run = results["75-2048"][0]
    over_time = course(run)
    low = over_time.flows_gbps[VICTIM] < _DROPPED_GBPS
    dropped = over_time.time_s[low & (over_time.time_s * _Scale.of(run).factor > _ALL_FLOWS_S)]
    measured.append(_one("exp1.75-2048.drop", float(dropped[0]) * _Scale.of(run).factor))
    return measured


def _measure_waiting(run: Result) -> list[Measurement | Verdict]:
    factor, over_time = _Scale.of(run).factor, course(run)
    waited_s = over_time.total(over_time.upstream_wait) * TICK_S * factor
    part = waited_s / (completion_s(run, "D") * factor)
    return [
        _one("exp1.75-2048.upstream_wait", waited_s),
        _one("exp1.75-2048.effective_rate", part * _BETWEEN_GBPS),
        *(
            _one(
                f"exp1.75-2048.wait_{host.lower()}",
                over_time.total(over_time.host_wait[host]) * factor,
            )
            for host in ("X", "A")
        ),
    ]


def _congested(run: Result) -> float:
    over_time = course(run)
    return over_time.total(over_time.root_time_cong) * TICK_S * _Scale.of(run).factor


def _measure_congested(results: Results) -> list[Measurement | Verdict]:
    high = {
        name: _congested(results[name][0])
        for timer in TIMERS
        for name in (label(timer, rate) for rate in RATES[1:])
        if name in results
    }
    mean = float(np.mean(list(high.values())))
    contributors = {
        name: _contributors("", results[name]).values[0]
        for timer in TIMERS
        for name in (label(timer, 64), label(timer, 128))
        if name in results
    }

    def same(_window: int) -> ClauseResult:
        least, most = min(high, key=high.__getitem__), max(high, key=high.__getitem__)
        facts = f"{high[least]:.3g} s at {least} to {high[most]:.3g} s at {most}"
        return ClauseResult(high[least] >= _ABOUT_THE_SAME * high[most], facts)

    def enough(_window: int) -> ClauseResult:
        least = min(contributors, key=contributors.__getitem__)
        rate = contributors[least]
        return ClauseResult(rate >= _FULL_RATE * 8, f"at least {rate:.2f} Gbit/s, at {least}")

    return [
        *(
            _one(f"exp1.{timer}-0.cong_time", _congested(results[label(timer, 0)][0]) / mean)
            for timer in TIMERS
        ),
        judge(
            "exp1.cong_time.high",
            [Clause(f"the shortest is at least {_ABOUT_THE_SAME:.0%} of the longest", same)],
        ),
        judge(
            "exp1.default",
            [Clause(f"the contributors get at least {_FULL_RATE:.0%} of 8 Gbit/s", enough)],
        ),
        judge("exp1.victim_duration.rises", _duration_rises(results)),
    ]


def _duration_rises(results: Results) -> list[Clause]:
    rates = {timer: [rate for rate in RATES if label(timer, rate) in results] for timer in TIMERS}

    def seconds(timer: int) -> dict[int, float]:
        return {rate: _duration("", results[label(timer, rate)]).values[0] for rate in rates[timer]}

    def long_at_high(_window: int) -> ClauseResult:
        ends = {timer: list(seconds(timer).values())[-1] for timer in TIMERS}
        facts = ", ".join(f"{timer}: {end:.1f} s" for timer, end in ends.items())
        return ClauseResult(min(ends.values()) >= 0.9 * 65, facts)

    def sooner(_window: int) -> ClauseResult:
        first = {
            timer: next((rate for rate, end in seconds(timer).items() if end >= 60), None)
            for timer in (TIMERS[0], TIMERS[-1])
        }
        facts = ", ".join(f"{timer}: {rate}" for timer, rate in first.items())
        small, large = first.values()
        holds = small is not None and (large is None or small <= large)
        return ClauseResult(holds, facts)

    return [
        Clause("at the highest Marking_Rate of each CCTI_Timer 58.5 s or more", long_at_high),
        Clause("the first Marking_Rate with 60 s is no higher at a CCTI_Timer of 75", sooner),
    ]


def _halves(values: Sequence[tuple[float, float]], target: str, note: str) -> Measurement:
    whole, steady = zip(*values, strict=True)
    return Measurement(target, tuple(whole), tuple(steady), note)


def _contributors(target: str, runs: Sequence[Result]) -> Measurement:
    def of(run: Result) -> tuple[float, float]:
        scale, over_time = _Scale.of(run), course(run)
        total = over_time.contributors()
        whole = over_time.mean(total, *scale.window(41, 100))
        return whole, over_time.mean(total, *scale.window(70, 100))

    return _halves([of(run) for run in runs], target, "mean from 41 to 100 s")


def _victim(target: str, runs: Sequence[Result]) -> Measurement:
    def of(run: Result) -> tuple[float, float]:
        scale, over_time = _Scale.of(run), course(run)
        rate = over_time.flows_gbps[VICTIM]
        whole = over_time.mean(rate, *scale.window(_ALL_FLOWS_S + _SETTLED_S, 40))
        return whole, over_time.mean(rate, *scale.window(35, 40))

    return _halves([of(run) for run in runs], target, "mean from 30 to 40 s")


def _duration(target: str, runs: Sequence[Result]) -> Measurement:
    seconds = tuple(completion_s(run, "Y") * _Scale.of(run).factor for run in runs)
    return Measurement(target, seconds, seconds, "completion of X-Y")


def _waits_only_at_2048(results: Results) -> Clause:
    def check(_window: int) -> ClauseResult:
        waited = {name: _waited(results[name][0]) for name in ("75-0", "300-0", "75-2048")}
        facts = ", ".join(f"{name}: {part:.0%} of the time" for name, part in waited.items())
        holds = max(waited["75-0"], waited["300-0"]) < 0.01 and waited["75-2048"] > 0.2
        return ClauseResult(holds, facts)

    return Clause(
        "while all flows run, (S1, 15) waits for less than 1 % of the time at Marking_Rate 0 and "
        "for more than 20 % at 2048 (the paper: 0, and 55 s of 130 s)",
        check,
    )


def _waited(run: Result) -> float:
    scale, over_time = _Scale.of(run), course(run)
    ticks = over_time.mean(over_time.upstream_wait, *scale.window(30, 40))
    return ticks * TICK_S


def _measure_exp2(results: Results) -> list[Measurement | Verdict]:
    first, second = results["12 sweeps"], results["6 sweeps"]
    measured: list[Measurement | Verdict] = []
    for target, flows, phase in (
        ("exp2.before", (*CONTRIBUTORS, VICTIM), 0),
        ("exp2.low_mr.contributor", CONTRIBUTORS, 1),
        ("exp2.low_mr.victim", (VICTIM,), 1),
    ):
        note = "mean of the flows " + ("before the first action", "while it is low")[phase]
        values = [_phase_rates(run, flows, phase) for run in (*first, *second)]
        measured.append(_halves(values, target, note))
    measured += [
        *_measure_counters(first[0]),
        *_measure_times(first[0], second[0]),
        judge("exp2.scenario1", _scenario1(first[0])),
        judge("exp2.scenario2", _scenario2(second[0])),
    ]
    return measured


def _measure_counters(run: Result) -> list[Measurement | Verdict]:
    """Average counters of (S1, 15) over the parts of scenario 1."""
    over_time, done = course(run), actions(run)
    lowered, restored = done.lowered_s[0], done.restored_s[0]
    ends = {name: _end_s(over_time, name) for name in CONTRIBUTORS}
    three, two, one = (ends[name] for name in CONTRIBUTORS)
    contributors = over_time.contributors() / len(CONTRIBUTORS)
    parts = (
        ("exp2.upstream_wait", over_time.upstream_wait, _FOUR_FLOWS_S, lowered),
        ("exp2.data.alone", over_time.upstream_data, 2.25, 7),
        ("exp2.data.both", over_time.upstream_data, _FOUR_FLOWS_S, lowered),
        ("exp2.data.low", over_time.upstream_data, lowered + 0.25, _end_s(over_time, VICTIM)),
        ("exp2.data.restored", over_time.upstream_data, restored + 0.25, three),
        ("exp2.data.two", over_time.upstream_data, three + 0.25, two),
        ("exp2.data.one", over_time.upstream_data, two + 0.25, one),
        ("exp2.restored.contributor", contributors, restored + 0.25, three),
    )
    # A shortened run ends before the last parts.
    return [
        _one(target, over_time.mean(values, start, end), f"mean from {start:g} to {end:g} s")
        for target, values, start, end in parts
        if end > start
    ]


def _end_s(over_time: Course, flow: str) -> float:
    sending = np.flatnonzero(over_time.flows_gbps[flow])
    return float(over_time.time_s[sending[-1] - 1])


def _measure_times(first: Result, second: Result) -> list[Measurement | Verdict]:
    over_time = course(first)
    growing = over_time.time_s[over_time.root_time_cong * TICK_S > _CONGESTED_PART]
    done = actions(first)
    return [
        _one("exp2.congested_at", float(growing[0])),
        _one("exp2.lowered_at", done.lowered_s[0]),
        _one("exp2.victim_end", completion_s(first, "Y")),
        _one("exp2.restored_at.12", done.restored_s[0]),
        _one("exp2.restored_at.6", actions(second).restored_s[0]),
    ]


def _phase_rates(run: Result, flows: Sequence[str], phase: int) -> tuple[float, float]:
    """Average flows before the first action (phase 0), or during it (1)."""
    over_time, done = course(run), actions(run)
    if phase == 0:
        start, end = _FOUR_FLOWS_S, done.lowered_s[0]
    else:
        start, end = done.lowered_s[0] + 0.25, done.restored_s[0]
    values = np.mean([over_time.flows_gbps[name] for name in flows], axis=0)
    return over_time.mean(values, start, end), over_time.mean(values, (start + end) / 2, end)


def _quiet_before(run: Result) -> Clause:
    def check(_window: int) -> ClauseResult:
        first = actions(run).lowered_s[0]
        return ClauseResult(first >= 7, f"first action at {first:g} s")

    return Clause("nothing is done before A-D starts at 7 s", check)


def _scenario1(run: Result) -> list[Clause]:
    done, over_time, victim_end = actions(run), course(run), completion_s(run, "Y")

    def once(_window: int) -> ClauseResult:
        return ClauseResult(len(done.lowered_s) == 1, f"lowered at {_listed(done.lowered_s)} s")

    def victim_first(_window: int) -> ClauseResult:
        restored = done.restored_s[0]
        return ClauseResult(
            victim_end < restored, f"X-Y ends at {victim_end:.1f} s, restored at {restored:g} s"
        )

    def recover(_window: int) -> ClauseResult:
        restored = done.restored_s[0]
        total = over_time.mean(over_time.contributors(), restored + 0.25, restored + 5.25)
        return ClauseResult(total >= _FULL_RATE * 7.9, f"{total:.2f} Gbit/s in the 5 s after it")

    return [
        _quiet_before(run),
        Clause("the Marking_Rate is lowered once", once),
        Clause("X-Y ends before it is restored", victim_first),
        Clause(f"then the contributors get at least {_FULL_RATE:.0%} of 7.9 Gbit/s", recover),
    ]


def _scenario2(run: Result) -> list[Clause]:
    done, over_time, victim_end = actions(run), course(run), completion_s(run, "Y")
    victim = over_time.flows_gbps[VICTIM]

    def restored_early(_window: int) -> ClauseResult:
        restored = done.restored_s[0]
        return ClauseResult(
            restored < victim_end, f"restored at {restored:g} s, X-Y ends at {victim_end:.1f} s"
        )

    def drops(_window: int) -> ClauseResult:
        start = done.restored_s[0] + 0.25
        rate = over_time.mean(victim, start, done.lowered_s[1])
        return ClauseResult(rate < 4, f"{rate:.2f} Gbit/s")

    def recovers(_window: int) -> ClauseResult:
        again = done.lowered_s[1]
        rate = over_time.mean(victim, again + 0.25, min(again + 2.25, victim_end))
        return ClauseResult(rate >= _FULL_RATE * 7.9, f"{rate:.2f} Gbit/s, lowered at {again:g} s")

    return [
        _quiet_before(run),
        Clause("the default is restored while X-Y runs", restored_early),
        Clause("X-Y falls below 4 Gbit/s then", drops),
        Clause(f"lowered again, X-Y gets at least {_FULL_RATE:.0%} of 7.9 Gbit/s", recovers),
    ]


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _tabulate_exp1(results: Results) -> PointTable:
    rows: list[tuple[float | str, ...]] = []
    for case in EXP1.cases:
        for run in results.get(case.label, ()):
            timer, rate = map(int, case.label.split("-"))
            total = _contributors("", [run]).values[0]
            duration = _duration("", [run]).values[0]
            rows.append((timer, rate, duration, total, _waited(run)))
    header = (
        "ccti_timer",
        "marking_rate",
        "victim_completion_s",
        "contributors_gbps",
        "upstream_wait_part",
    )
    return PointTable(header, tuple(rows))


# Numbers of the paper, by place in figure 4.
_STATED: Sequence[tuple[str, int | None, int, str]] = (
    *(("contributors_gbps", timer, 0, f"exp1.{timer}-0.contributors") for timer in TIMERS),
    ("contributors_gbps", None, 64, "exp1.64.contributors"),
    ("victim_completion_s", None, 0, "exp1.victim_duration.low"),
    ("victim_completion_s", None, 128, "exp1.victim_duration.high"),
)


_EXP1_CHARTS = (
    ("contributors_gbps", "Throughput of the contributors", "Gbit/s"),
    ("victim_completion_s", "Completion of the victim's transfer", "s"),
    ("upstream_wait_part", "Waiting of the port before the tree", "part of the time"),
)


def _plot_exp1(table: PointTable) -> list[Curve]:
    from silvan_papers.figures.mizero2017 import colours_of_timers

    def line(column: str, chart: str, unit: str) -> Line:
        def paper(label: str) -> list[tuple[float, float]]:
            return [
                (rate, stated_value("mizero2017", target))
                for name, timer, rate, target in _STATED
                if name == column and (timer is None or label == _timer(timer))
            ]

        return Line(
            column,
            chart,
            unit,
            lambda row: _timer(int(row["ccti_timer"])),
            lambda row: [f"{row['ccti_timer']}-{row['marking_rate']}"],
            paper,
        )

    rate = table.header.index("marking_rate")
    rows = tuple(row for row in table.rows if row[rate] in RATES)
    shown = PointTable(table.header, rows)
    drawn = curves(shown, "marking_rate", "Marking_Rate", [line(*one) for one in _EXP1_CHARTS])
    timers = {int(row[table.header.index("ccti_timer")]) for row in rows}
    by_label = {_timer(timer): colour for timer, colour in colours_of_timers(timers).items()}
    return [replace(curve, colour=by_label[curve.label]) for curve in drawn]


def _timer(timer: int) -> str:
    return f"CCTI_Timer {timer}"


def _draw_exp1(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.mizero2017 import Stated, draw_throughputs, draw_tradeoff

    stated = [
        Stated(column, timer, rate, stated_value("mizero2017", target))
        for column, timer, rate, target in _STATED
    ]
    shown = {name: course(results[name][0]) for name in ("75-0", "300-0", "75-2048")}
    return [
        *draw_throughputs(shown, folder=folder, stem="fig3"),
        _save_courses(shown, folder / "fig3.csv"),
        *draw_tradeoff(_tabulate_exp1(results), stated, folder=folder, stem="fig4"),
    ]


def _draw_exp2(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.mizero2017 import draw_managed

    written: list[Path] = []
    for stem, name, limit in (("fig5", "12 sweeps", "12 s"), ("fig6", "6 sweeps", "6 s")):
        run = results[name][0]
        shown = course(run)
        written.append(_save_courses({name: shown}, folder / f"{stem}.csv"))
        written += draw_managed(
            shown,
            actions(run),
            title=f"Figure {stem[3:]}: the DCMS with a low-MR duration threshold of {limit}",
            folder=folder,
            stem=stem,
        )
    return written


def _trace_exp2(results: Results) -> list[Curve]:
    from silvan_papers.figures.mizero2017 import FLOW_COLOURS

    return [
        replace(
            over_time(
                f"Rate of each flow, {name}", "Gbit/s", flow, one.time_s * 1e3, rates, [name]
            ),
            colour=FLOW_COLOURS[flow],
        )
        for name, runs in results.items()
        for one in [course(runs[0])]
        for flow, rates in one.flows_gbps.items()
    ]


def _save_courses(courses: Mapping[str, Course], path: Path) -> Path:
    from silvan.figures.style import save_csv

    rows = []
    for name, one in courses.items():
        columns = (
            one.time_s,
            *one.flows_gbps.values(),
            one.root_time_cong,
            one.upstream_wait,
            one.upstream_data,
        )
        rows += [(name, *map(float, values)) for values in zip(*columns, strict=True)]
    header = (
        "run",
        "time_s",
        *(f"{flow}_gbps" for flow in SENDERS),
        "root_time_cong_ticks_per_s",
        "upstream_wait_ticks_per_s",
        "upstream_data_words_per_s",
    )
    return save_csv(header, rows, path)


_SHORT: Mapping[str, TomlValue] = {
    **{f"traffic.flow.{index}.bytes": f"{_SENT_BYTES // _QUICK} B" for index in _STARTS_S},
    **{
        f"traffic.flow.{index}.start": f"{1000 * start / _QUICK:g} ms"
        for index, start in _STARTS_S.items()
    },
    "probe.interval": f"{250 // _QUICK} ms",
    "run.duration": f"{480_000 // _QUICK} ms",
}

EXP1 = Experiment(
    id="exp1",
    title="Experiment I, figures 3 and 4: Marking_Rate and CCTI_Timer, victim and contributors",
    cases=(*(_case(timer, rate) for timer in TIMERS for rate in RATES), _case(75, 2048)),
    windows=("the time that is stated with each number", "the later part of it"),
    quick=_SHORT,
    quick_note=f"flows, starts and run {_QUICK} times shorter, fewer values of Marking_Rate",
    measure=_measure_exp1,
    draw=_draw_exp1,
    tabulate=_tabulate_exp1,
    plot=_plot_exp1,
)

EXP2 = Experiment(
    id="exp2",
    title="Experiment II, figures 5 and 6: the DCMS at work",
    cases=(
        Case("12 sweeps", "experiment2", 1),
        Case("6 sweeps", "experiment2", 1, {"control.dcms.low-duration": "7500 ms"}),
    ),
    windows=("the time that is stated with each number", "the later half of it"),
    quick={"run.duration": "40 s"},
    quick_note="40 s instead of 80 s: the contributors' ends are cut off",
    measure=_measure_exp2,
    draw=_draw_exp2,
    trace=_trace_exp2,
)

EXPERIMENTS = (EXP1, EXP2, FORESTS)

PAPER = paper("mizero2017", EXPERIMENTS)
