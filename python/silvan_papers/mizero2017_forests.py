"""The DCMS on the forests of gran2012's 648-host fat tree, compared with fixed settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from silvan.inputs.toml_text import TomlValue
from silvan.reproduce.experiment import Experiment, Measurement, PointTable, Results, Verdict
from silvan_papers.forests import FORESTS as KINDS
from silvan_papers.forests import forest_cases, tabulate_forests

_DEFAULT_RATE = 128


def _dcms(interval_us: int) -> dict[str, TomlValue]:
    """Scale Experiment II's thresholds to another inter-sweep interval.

    T_C and T_W are the parts that 8.0 and 27.4 million ticks are of 1.25 s, T_D is a part of a
    link's capacity; the low Marking_Rate is kept for 12 sweeps.
    """
    share = interval_us / 1_250_000
    dcms: dict[str, TomlValue] = {
        "interval": f"{interval_us} us",
        "congestion-threshold": round(8_000_000 * share),
        "rate-reduction-threshold": round(27_400_000 * share),
        # Links of 16 Gbit/s here, 32 Gbit/s there.
        "utilization-change-threshold": round(30_000_000 * share / 2),
        "low-duration": f"{12 * interval_us} us",
    }
    return {
        "control.ib-cc.switch.marking-rate": _DEFAULT_RATE,
        **{f"control.dcms.{key}": value for key, value in dcms.items()},
    }


SCHEMES: Mapping[str, Mapping[str, TomlValue]] = {
    "CC off": {"control.scheme": "none"},
    "Marking_Rate 0 (Table I)": {},
    f"Marking_Rate {_DEFAULT_RATE}": {"control.ib-cc.switch.marking-rate": _DEFAULT_RATE},
    "DCMS, sweep every 1 ms": _dcms(1000),
    "DCMS, sweep every 5 ms": _dcms(5000),
}

_WHOLE = "the whole run, from its start"


def _nothing_stated(_results: Results) -> Sequence[Measurement | Verdict]:
    return []


def _tabulate(results: Results) -> PointTable:
    return tabulate_forests(results, SCHEMES, whole=True)


def _draw(results: Results, folder: Path) -> Sequence[Path]:
    from silvan_papers.figures.schemes import draw_schemes

    return draw_schemes(
        _tabulate(results),
        panels=tuple(KINDS),
        title="Fixed Marking_Rates and the DCMS on 648 hosts",
        folder=folder,
        stem="forests",
    )


FORESTS = Experiment(
    id="beyond.forests",
    title="The DCMS on gran2012's forests, compared with fixed settings",
    cases=forest_cases("fat-tree-648", SCHEMES),
    windows=(_WHOLE, _WHOLE),
    quick={"run.duration": "15 ms"},
    quick_note="15 ms instead of 100 ms: the trees are still growing",
    measure=_nothing_stated,
    draw=_draw,
    tabulate=_tabulate,
)
