"""santos2003, Figs. 6 and 7: response functions under static and dynamic traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from silvan.reproduce.curves import Curve, Line, Row, coloured, curves
from silvan.reproduce.experiment import (
    Case,
    ClauseResult,
    Experiment,
    Measurement,
    PointTable,
    Results,
    Verdict,
)
from silvan.reproduce.shapes import Clause, judge
from silvan.results.receive_rates import PS_PER_MS, Window
from silvan_papers.santos2003_scene import PACKET_MS, STUDY, Shares, scene

RESPONSES = ("LIPD", "FIMD", "AIMD")
_RATES = ("continuous", "discrete")
# Packets per input port. Table I has 4, from which rules are judged. Ten remote flows and the
# victim, each with a window of one packet, never fill more than eleven.
_SMALLER_BUFFERS = (2, 3)
_PAPERS_BUFFERS = (4, 5, 6, 7, 8, 9, 10)
_BUFFERS = (*_SMALLER_BUFFERS, *_PAPERS_BUFFERS)
_PACKET_CREDITS_BYTES = 33 * 64
# The paper's axis starts at 0.05 ms, from which rules are judged.
_SHORTER_ON_MS = (0.01, 0.02)
_PAPERS_ON_MS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
_ON_MS = (*_SHORTER_ON_MS, *_PAPERS_ON_MS)

# Section VI-B: 500 ms, of which the last 400 count.
_WARM_UP_MS = 100
_STATIC_MS = 500
# Section VI-B.2: at least 20 times on per flow.
_ON_CYCLES = 20

# "almost 100 %", "high", "nearly identical".
_FULL = 0.95
_HIGH = 0.9
_SAME = 0.05
# "approximately 10 % lower", "a fair share", "approach 0.5".
_AIMD_LOSS = (0.05, 0.15)
_FAIR = 0.15
_STARVED = 0.5
# Footnote 13: packets of a flow in a time on of 0.2 ms.
_SHORT_ON_MS = 0.2
_SHORT_ON_PACKETS = (5, 10)


def _shares(results: Results, label: str, window: int) -> Shares:
    runs = results[label]
    end = runs[0].scenario.duration_ps
    start = _WARM_UP_MS * PS_PER_MS
    if window:
        interval = 10 * PS_PER_MS
        start += (end - start) // 2 // interval * interval
    return Shares.mean(runs, Window(start, end))


_Read = Callable[[Shares], float]


def _root(shares: Shares) -> float:
    return float(shares.root)


def _interswitch(shares: Shares) -> float:
    return float(shares.interswitch)


def _local_share(shares: Shares) -> float:
    return float(shares.local / shares.root)


def _static_label(response: str, rates: str, buffer: int) -> str:
    return f"{response} {rates} {buffer}"


def _static_case(response: str, rates: str, buffer: int) -> Case:
    return Case(
        _static_label(response, rates, buffer),
        STUDY,
        1,
        {
            **scene(10, 10),
            "switch.buffer": f"{buffer * _PACKET_CREDITS_BYTES} B",
            "control.ecn.response": response.lower(),
            "control.ecn.rates": rates,
            "probe.interval": "10 ms",
            "run.duration": f"{_STATIC_MS} ms",
        },
        quick=buffer in (4, 8),
    )


def _static(
    results: Results,
    read: _Read,
    window: int,
    rates: str = "continuous",
    buffers: Sequence[int] = _PAPERS_BUFFERS,
) -> dict[str, dict[int, float]]:
    return {
        response: {
            buffer: read(_shares(results, label, window))
            for buffer in buffers
            if (label := _static_label(response, rates, buffer)) in results
        }
        for response in RESPONSES
    }


def _smaller_buffers(results: Results, read: _Read, window: int, response: str) -> str:
    curve = _static(results, read, window, buffers=_SMALLER_BUFFERS)[response]
    facts = ", ".join(f"{value:.2f} at {buffer} packets" for buffer, value in curve.items())
    return f" (smaller than the paper's, not judged: {facts})" if facts else ""


def _measure_fig6(results: Results) -> list[Measurement | Verdict]:
    def lipd_is_full(window: int) -> ClauseResult:
        root, between = (
            list(_static(results, read, window)["LIPD"].values()) for read in (_root, _interswitch)
        )
        return ClauseResult(
            min(root) >= _FULL and min(between) >= _HIGH,
            f"root link {min(root):.2f} to {max(root):.2f}"
            f"{_smaller_buffers(results, _root, window, 'LIPD')}, "
            f"inter-switch link {min(between):.2f} to {max(between):.2f}",
        )

    def lipd_is_best(window: int) -> ClauseResult:
        root = _static(results, _root, window)
        lead = {
            buffer: root["LIPD"][buffer] - max(root["FIMD"][buffer], root["AIMD"][buffer])
            for buffer in root["LIPD"]
        }
        worst = min(lead, key=lambda buffer: lead[buffer])
        return ClauseResult(
            lead[worst] > 0, f"smallest lead {lead[worst]:+.2f}, at {worst} packets"
        )

    def aimd_starves_the_victim(window: int) -> ClauseResult:
        between = _static(results, _interswitch, window)
        smallest = min(between["AIMD"])
        used = {response: curve[smallest] for response, curve in between.items()}
        largest = between["AIMD"][max(between["AIMD"])]
        return ClauseResult(
            used["AIMD"] < min(used["LIPD"], used["FIMD"], _HIGH) and used["AIMD"] < largest,
            f"{used['AIMD']:.2f} at {smallest} packets (LIPD {used['LIPD']:.2f}, FIMD "
            f"{used['FIMD']:.2f}), {largest:.2f} at {max(between['AIMD'])}"
            + _smaller_buffers(results, _interswitch, window, "AIMD"),
        )

    def discrete_is_continuous(window: int) -> ClauseResult:
        differences = [
            abs(discrete[response][buffer] - value)
            for read in (_root, _interswitch)
            for discrete in [_static(results, read, window, "discrete")]
            for response, curve in _static(results, read, window).items()
            for buffer, value in curve.items()
        ]
        return ClauseResult(
            max(differences) <= _SAME,
            f"largest difference {max(differences):.3f}, mean "
            f"{sum(differences) / len(differences):.3f}",
        )

    def larger_is_fairer(window: int) -> ClauseResult:
        ends = {
            response: (curve[min(curve)], curve[max(curve)])
            for response, curve in _static(results, _local_share, window).items()
        }
        return ClauseResult(
            all(abs(last - 0.5) < abs(first - 0.5) for first, last in ends.values()),
            ", ".join(f"{name} {first:.2f} to {last:.2f}" for name, (first, last) in ends.items()),
        )

    return [
        judge(
            "fig6",
            [
                Clause(
                    f"from 4 packets on, LIPD: root link at least {_FULL} and inter-switch link at "
                    f"least {_HIGH} used at every buffer size",
                    lipd_is_full,
                ),
                Clause("root link: LIPD above FIMD and AIMD at every buffer size", lipd_is_best),
                Clause(
                    "buffer of 4 packets: AIMD uses less of the inter-switch link than the others, "
                    "and less than with the largest buffer",
                    aimd_starves_the_victim,
                ),
                Clause(
                    f"discrete and continuous rates differ by at most {_SAME} of a link",
                    discrete_is_continuous,
                ),
                Clause(
                    "local flows' share is nearer to one half with the largest buffer than with "
                    "that of 4 packets",
                    larger_is_fairer,
                ),
            ],
        )
    ]


_BUFFER = "buffer (packets)"


def _draw_fig6(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.two_switches import Panel, draw_curves

    def lines(read: _Read) -> dict[str, dict[float, float]]:
        drawn: dict[str, dict[float, float]] = {}
        for rates in _RATES:
            for response, curve in _static(results, read, 0, rates, _BUFFERS).items():
                drawn[f"{response}, {rates}"] = {float(at): value for at, value in curve.items()}
        return drawn

    return draw_curves(
        [
            Panel("Root link", "utilisation", lines(_root)),
            Panel("Inter-switch link", "utilisation", lines(_interswitch)),
            Panel("Local flows' share of the root link", "share", lines(_local_share)),
        ],
        title="Figure 6: response functions under static traffic, L = 10, R = 10",
        axis="input buffer (packets per port)",
        folder=folder,
        stem="fig6",
    )


def _tabulate_fig6(results: Results) -> PointTable:
    rows = []
    for response in RESPONSES:
        for rates in _RATES:
            for buffer in _BUFFERS:
                label = _static_label(response, rates, buffer)
                if label in results:
                    shares = _shares(results, label, 0)
                    values = (_root(shares), _interswitch(shares), _local_share(shares))
                    rows.append((response, rates, buffer, *values, float(shares.jain)))
    header = ("response", "rates", _BUFFER, "root link", "inter-switch link")
    return PointTable((*header, "local share", "Jain's index"), tuple(rows))


def _plot_fig6(table: PointTable) -> list[Curve]:
    from silvan_papers.figures.two_switches import colour_of

    def cases(row: Row) -> list[str]:
        return [_static_label(str(row["response"]), str(row["rates"]), int(row[_BUFFER]))]

    lines = [
        Line(column, chart, unit, lambda row: f"{row['response']}, {row['rates']}", cases)
        for column, chart, unit in (
            ("root link", "Root link", "utilisation"),
            ("inter-switch link", "Inter-switch link", "utilisation"),
            ("local share", "Local flows' share of the root link", "share"),
        )
    ]
    return coloured(curves(table, _BUFFER, "input buffer (packets per port)", lines), colour_of)


def _dynamic_label(kind: str, on_ms: float) -> str:
    return f"{kind} {on_ms:g}"


def _duration_ms(on_ms: float) -> int:
    return max(_STATIC_MS, round(_WARM_UP_MS + 2 * on_ms * _ON_CYCLES))


def _dynamic_case(
    kind: str, on_ms: float, dynamic: int, response: str, *, persistent: bool
) -> Case:
    return Case(
        _dynamic_label(kind, on_ms),
        STUDY,
        1,
        {
            **scene(10, 10, dynamic=dynamic, on_ms=on_ms),
            "control.ecn.response": response.lower(),
            "control.ecn.persistent": persistent,
            "probe.interval": "10 ms",
            "run.duration": f"{_duration_ms(on_ms)} ms",
        },
        quick=on_ms in (0.01, 0.05, 0.2, 1.0, 10.0),
    )


def _dynamic(
    results: Results,
    kinds: Sequence[str],
    read: _Read,
    window: int,
    times_ms: Sequence[float] = _PAPERS_ON_MS,
) -> dict[str, dict[float, float]]:
    return {
        kind: {
            on_ms: read(_shares(results, label, window))
            for on_ms in times_ms
            if (label := _dynamic_label(kind, on_ms)) in results
        }
        for kind in kinds
    }


_PERSISTENCE = ("persistent", "not persistent")


def _static_part(shares: Shares) -> float:
    return float(shares.static / shares.root)


def _dynamic_part(shares: Shares) -> float:
    return float(shares.dynamic / shares.root)


def _beyond_the_axis(curves: Mapping[str, Mapping[float, float]]) -> str:
    facts = [
        f"{name} " + ", ".join(f"{value:.3f} at {on_ms:g} ms" for on_ms, value in curve.items())
        for name, curve in curves.items()
        if curve
    ]
    return f" (below the paper's range, not judged: {'; '.join(facts)})" if facts else ""


def _measure_fig7a(results: Results) -> list[Measurement | Verdict]:
    def curves(window: int) -> dict[str, dict[float, float]]:
        return _dynamic(results, _PERSISTENCE, _static_part, window)

    def shorter(window: int, kind: str) -> str:
        return _beyond_the_axis(_dynamic(results, [kind], _static_part, window, _SHORTER_ON_MS))

    def starved(window: int) -> ClauseResult:
        curve = curves(window)["not persistent"]
        shortest = min(curve)
        return ClauseResult(
            curve[shortest] <= _STARVED * 0.5,
            f"{curve[shortest]:.2f} at {shortest:g} ms, {curve[max(curve)]:.2f} at "
            f"{max(curve):g} ms{shorter(window, 'not persistent')}",
        )

    def fair(window: int) -> ClauseResult:
        curve = curves(window)["persistent"]
        lowest = min(curve, key=lambda on_ms: curve[on_ms])
        return ClauseResult(
            curve[lowest] >= 0.5 - _FAIR, f"lowest {curve[lowest]:.2f}, at {lowest:g} ms"
        )

    def equal(window: int) -> ClauseResult:
        curve = curves(window)["persistent"]
        shortest = min(curve)
        return ClauseResult(
            abs(curve[shortest] - 0.5) <= _FAIR / 2,
            f"{curve[shortest]:.2f} at {shortest:g} ms" + shorter(window, "persistent"),
        )

    def nearly_static(window: int) -> ClauseResult:
        ends = {kind: curve[max(curve)] for kind, curve in curves(window).items()}
        return ClauseResult(
            all(abs(value - 2 / 3) <= _FAIR for value in ends.values()),
            ", ".join(f"{kind} {value:.2f}" for kind, value in ends.items()),
        )

    return [
        judge(
            "fig7a",
            [
                Clause(
                    "without persistent state static flows get at most half their fair share at "
                    "the paper's shortest time on, 0.05 ms",
                    starved,
                ),
                Clause(
                    f"with it they never get less than {0.5 - _FAIR:.2f} of the root link", fair
                ),
                Clause(f"and within {_FAIR / 2} of one half of it at the shortest, 0.05 ms", equal),
                Clause(
                    f"at the longest they get within {_FAIR} of two thirds either way",
                    nearly_static,
                ),
            ],
        )
    ]


def _measure_fig7b(results: Results) -> list[Measurement | Verdict]:
    def root(window: int) -> dict[str, dict[float, float]]:
        return _dynamic(results, RESPONSES, _root, window)

    def best_at(
        window: int, times: Callable[[Sequence[float]], list[float]], name: str
    ) -> ClauseResult:
        curves = root(window)
        places = times(list(curves["LIPD"]))
        best = {at: max(RESPONSES, key=lambda one: curves[one][at]) for at in places}
        facts = ", ".join(f"{at:g} ms: {one} {curves[one][at]:.3f}" for at, one in best.items())
        return ClauseResult(all(one == name for one in best.values()), facts)

    def at_the_ends(window: int) -> ClauseResult:
        found = best_at(window, lambda times: [times[0], times[-1]], "LIPD")
        curves = _dynamic(results, RESPONSES, _root, window, _SHORTER_ON_MS)
        best = max(RESPONSES, key=lambda one: next(iter(curves[one].values()), 0.0))
        return ClauseResult(found.holds, found.facts + _beyond_the_axis({best: curves[best]}))

    def between(window: int) -> ClauseResult:
        return best_at(window, lambda times: [at for at in times if 0.2 <= at <= 2], "FIMD")

    def aimd(window: int) -> ClauseResult:
        curves = root(window)
        loss = {
            at: 1 - curves["AIMD"][at] / max(curve[at] for curve in curves.values())
            for at in curves["AIMD"]
        }
        low, high = _AIMD_LOSS
        mean = sum(loss.values()) / len(loss)
        return ClauseResult(
            all(value > 0 for value in loss.values()) and low <= mean <= high,
            f"{mean:.1%} below on average, {min(loss.values()):.1%} to {max(loss.values()):.1%}",
        )

    def packets(window: int) -> ClauseResult:
        counts = {}
        for response in RESPONSES:
            label = _dynamic_label(response, _SHORT_ON_MS)
            if label in results:
                shares = _shares(results, label, window)
                # Each of the twenty flows is on for half of the time.
                packets_per_ms = float(shares.dynamic) / PACKET_MS
                counts[response] = packets_per_ms * 2 * _SHORT_ON_MS / 20
        least, most = _SHORT_ON_PACKETS
        facts = ", ".join(f"{name} {count:.1f}" for name, count in counts.items())
        return ClauseResult(
            bool(counts) and all(least <= count <= most for count in counts.values()), facts
        )

    return [
        judge(
            "fig7b.packets",
            [
                Clause(
                    f"{_SHORT_ON_PACKETS[0]} to {_SHORT_ON_PACKETS[1]} packets of a flow are "
                    f"delivered in a mean time on of {_SHORT_ON_MS} ms",
                    packets,
                )
            ],
        ),
        judge(
            "fig7b",
            [
                Clause(
                    "root link best with LIPD at the paper's shortest and longest time on",
                    at_the_ends,
                ),
                Clause("with FIMD at every time on from 0.2 to 2 ms", between),
                Clause(
                    f"AIMD never best, and {_AIMD_LOSS[0]:.0%} to {_AIMD_LOSS[1]:.0%} below the "
                    "best on average",
                    aimd,
                ),
            ],
        ),
    ]


def _draw_fig7a(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.two_switches import Panel, draw_curves

    lines: dict[str, Mapping[float, float]] = {}
    for kind in _PERSISTENCE:
        for name, read in (("static", _static_part), ("dynamic", _dynamic_part)):
            lines[f"{name} flows, {kind}"] = _dynamic(results, [kind], read, 0, _ON_MS)[kind]
    return draw_curves(
        [Panel("Share of the root link", "share", lines)],
        title="Figure 7(a): static and dynamic flows, L = 5 + 5, R = 5 + 5, LIPD",
        axis="mean time on, and off (ms)",
        folder=folder,
        stem="fig7a",
        log=True,
    )


def _draw_fig7b(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.two_switches import Panel, draw_curves

    panels = [
        Panel(name, "utilisation", dict(_dynamic(results, RESPONSES, read, 0, _ON_MS)))
        for name, read in (("Root link", _root), ("Inter-switch link", _interswitch))
    ]
    return draw_curves(
        panels,
        title="Figure 7(b): all flows dynamic, with persistent state, L = 10, R = 10",
        axis="mean time on, and off (ms)",
        folder=folder,
        stem="fig7b",
        log=True,
    )


_TIME_ON = "mean time on (ms)"


def _tabulate_dynamic(kinds: Sequence[str]) -> Callable[[Results], PointTable]:
    def tabulate(results: Results) -> PointTable:
        rows = []
        for kind in kinds:
            for on_ms in _ON_MS:
                label = _dynamic_label(kind, on_ms)
                if label in results:
                    shares = _shares(results, label, 0)
                    parts = (float(shares.static), float(shares.dynamic))
                    rows.append((kind, on_ms, _root(shares), _interswitch(shares), *parts))
        header = ("case", _TIME_ON, "root link", "inter-switch link")
        return PointTable((*header, "static flows", "dynamic flows"), tuple(rows))

    return tabulate


def _plot_dynamic(columns: Sequence[str], table: PointTable) -> list[Curve]:
    from silvan_papers.figures.two_switches import colour_of

    def cases(row: Row) -> list[str]:
        return [_dynamic_label(str(row["case"]), float(row[_TIME_ON]))]

    lines = [
        Line(column, column.capitalize(), "share of the link", lambda row: str(row["case"]), cases)
        for column in columns
    ]
    drawn = curves(table, _TIME_ON, "mean time on, and off (ms)", lines)
    return [
        replace(one, colour=colour_of(one.label if "link" in one.chart else one.chart.lower()))
        for one in drawn
    ]


_WINDOWS = ("all but the first 100 ms", "the second half of that")

EXPERIMENTS = (
    Experiment(
        id="fig6",
        title="Figure 6: response functions under static traffic",
        cases=tuple(
            _static_case(response, rates, buffer)
            for response in RESPONSES
            for rates in _RATES
            for buffer in _BUFFERS
        ),
        windows=_WINDOWS,
        quick={"run.duration": "200 ms"},
        quick_note="two buffer sizes, and 200 ms instead of 500 ms",
        measure=_measure_fig6,
        draw=_draw_fig6,
        tabulate=_tabulate_fig6,
        plot=_plot_fig6,
    ),
    Experiment(
        id="fig7a",
        title="Figure 7(a): static and dynamic flows",
        cases=tuple(
            _dynamic_case(kind, on_ms, 5, "LIPD", persistent=kind == "persistent")
            for kind in _PERSISTENCE
            for on_ms in _ON_MS
        ),
        windows=_WINDOWS,
        quick={"run.duration": "300 ms"},
        quick_note="five times on, and 300 ms instead of 500 ms and more",
        measure=_measure_fig7a,
        draw=_draw_fig7a,
        tabulate=_tabulate_dynamic(_PERSISTENCE),
        plot=partial(_plot_dynamic, ("static flows", "dynamic flows")),
    ),
    Experiment(
        id="fig7b",
        title="Figure 7(b): response functions under dynamic traffic",
        cases=tuple(
            _dynamic_case(response, on_ms, 10, response, persistent=True)
            for response in RESPONSES
            for on_ms in _ON_MS
        ),
        windows=_WINDOWS,
        quick={"run.duration": "300 ms"},
        quick_note="five times on, and 300 ms instead of 500 ms and more",
        measure=_measure_fig7b,
        draw=_draw_fig7b,
        tabulate=_tabulate_dynamic(RESPONSES),
        plot=partial(_plot_dynamic, ("root link", "inter-switch link")),
    ),
)
