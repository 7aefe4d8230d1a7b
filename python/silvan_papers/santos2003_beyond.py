"""Questions that santos2003 leaves open, without targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from silvan.reproduce.experiment import Case, Experiment, PointTable, Results
from silvan.results.receive_rates import class_delivered, jain_index
from silvan_papers.forests import forest_cases, tabulate_forests
from silvan_papers.santos2003_scene import STUDY, scene

if TYPE_CHECKING:
    from silvan.inputs.toml_text import TomlValue
    from silvan.results.result import Result

_NO_NUMBERS: Callable[[Results], Sequence[object]] = lambda _results: []  # noqa: E731
_STEADY = "the second half of the run"
_GBPS = 8e3


def _rates_gbps(result: Result) -> dict[str, float]:
    times_ps, delivered_bytes = class_delivered(result)
    half = result.scenario.duration_ps // 2
    steady = times_ps > half
    total = delivered_bytes[steady].sum(axis=0) * _GBPS / (result.scenario.duration_ps - half)
    return dict(zip(result.classes["name"].to_pylist(), total.tolist(), strict=True))


def _no_figure(_results: Results, _folder: Path) -> Sequence[Path]:
    return []


def _two_way() -> list[dict[str, TomlValue]]:
    forward: list[dict[str, TomlValue]] = [
        {"name": f"remote-{n}", "from": f"A{n}", "to": "BC"} for n in (1, 2)
    ]
    back: list[dict[str, TomlValue]] = [
        {"name": f"back-{n}", "from": f"B{n}", "to": f"A{n + 2}"} for n in (1, 2, 3)
    ]
    return [*forward, *back]


def _window_case(label: str, window: tuple[int, int], response: str) -> Case:
    return Case(
        label,
        STUDY,
        1,
        {
            "fabric.local": 3,
            "fabric.remote": 5,
            "traffic.flow": _two_way(),
            "control.ecn.response": response,
            "control.ecn.window": window[0],
            "control.ecn.window-max": window[1],
            "probe.interval": "1 ms",
            "run.duration": "200 ms",
        },
    )


def _tabulate_window(results: Results) -> PointTable:
    rows = []
    for label, (run,) in results.items():
        rates = _rates_gbps(run)
        forward = sum(rate for name, rate in rates.items() if name.startswith("remote"))
        back = sum(rate for name, rate in rates.items() if name.startswith("back"))
        latency = max(run.classes["latency_p99_ns"].drop_null().to_pylist()) / 1000
        rows.append((label, forward, back, jain_index(list(rates.values())[:2]), latency))
    header = ("window", "forward (Gbit/s)", "back (Gbit/s)", "Jain's index forward")
    return PointTable((*header, "p99 latency (µs)"), tuple(rows))


WINDOW = Experiment(
    id="beyond.window",
    title="Window and rate adjusted together, acknowledgements queueing the other way",
    cases=(
        _window_case("fixed, 1 packet", (1, 1), "lipd"),
        _window_case("fixed, 2 packets", (2, 2), "lipd"),
        _window_case("fixed, 4 packets", (4, 4), "lipd"),
        _window_case("adjusted, 1 to 4 packets", (1, 4), "lipd"),
        _window_case("no rate limit, 1 packet", (1, 1), "fixed"),
        _window_case("no rate limit, 4 packets", (4, 4), "fixed"),
    ),
    windows=(_STEADY, _STEADY),
    quick={"run.duration": "50 ms"},
    quick_note="50 ms instead of 200 ms",
    measure=_NO_NUMBERS,  # type: ignore[arg-type]
    draw=_no_figure,
    tabulate=_tabulate_window,
)


def _mixed_sizes() -> dict[str, TomlValue]:
    overrides = scene(10, 10)
    flows = overrides["traffic.flow"]
    assert isinstance(flows, list)
    for place, flow in enumerate(flows[:-1]):
        if place % 2:
            flow["message"] = "512 B"
    return overrides


def _size_case(response: str, rates: str) -> Case:
    return Case(
        f"{response.upper()}, {rates}",
        STUDY,
        1,
        {
            **_mixed_sizes(),
            "control.ecn.response": response,
            "control.ecn.rates": rates,
            "switch.buffer": f"{8 * 33 * 64} B",
            "probe.interval": "1 ms",
            "run.duration": "500 ms",
        },
    )


def _tabulate_sizes(results: Results) -> PointTable:
    rows = []
    for label, (run,) in results.items():
        rates = list(_rates_gbps(run).values())[:-1]
        large, small = float(np.mean(rates[::2])), float(np.mean(rates[1::2]))
        rows.append((label, large, small, small / large, jain_index(rates)))
    header = ("response", "2048 B packets (Gbit/s per flow)", "512 B packets (Gbit/s per flow)")
    return PointTable((*header, "small / large", "Jain's index"), tuple(rows))


SIZES = Experiment(
    id="beyond.sizes",
    title="Packets of 2048 and of 512 bytes, rates in bytes (footnotes 8 and 9)",
    cases=tuple(
        _size_case(response, rates)
        for response in ("lipd", "fimd", "aimd")
        for rates in ("continuous", "discrete")
    ),
    windows=(_STEADY, _STEADY),
    quick={"run.duration": "100 ms"},
    quick_note="100 ms instead of 500 ms",
    measure=_NO_NUMBERS,  # type: ignore[arg-type]
    draw=_no_figure,
    tabulate=_tabulate_sizes,
)


_ECN: Mapping[str, TomlValue] = {
    "control.scheme": "ecn",
    "control.feedback.carrier": "ack-per-packet",
    "control.ecn.marking": "proposed-counters",
}
_SCHEMES: Mapping[str, Mapping[str, TomlValue]] = {
    "none": {"control.scheme": "none"},
    "InfiniBand CC": {},
    "ECN, LIPD": {**_ECN, "control.ecn.response": "lipd", "control.ecn.window": 4},
    "ECN, FIMD": {**_ECN, "control.ecn.response": "fimd", "control.ecn.window": 4},
    "ECN, naive marking, LIPD": {
        **_ECN,
        "control.ecn.marking": "naive",
        "control.ecn.response": "lipd",
        "control.ecn.window": 4,
    },
}


def _tabulate_forests(results: Results) -> PointTable:
    return tabulate_forests(results, _SCHEMES)


FORESTS = Experiment(
    id="beyond.forests",
    title="The schemes in addition to InfiniBand's on the 648-host fat tree of gran2012",
    cases=forest_cases("fat-tree-648", _SCHEMES),
    windows=(_STEADY, _STEADY),
    quick={"run.duration": "4 ms"},
    quick_note="4 ms instead of 20 ms",
    measure=_NO_NUMBERS,  # type: ignore[arg-type]
    draw=_no_figure,
    tabulate=_tabulate_forests,
)

EXPERIMENTS = (WINDOW, SIZES, FORESTS)
