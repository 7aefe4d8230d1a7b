"""Results of the schemes: means over seeds with confidence intervals, and losses of each scheme."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from silvan.comparing.arena.definition import Case
from silvan.comparing.arena.measure import as_sampled
from silvan.comparing.arena.store import Measured, Run
from silvan.comparing.baselines import Baseline
from silvan.comparing.comparison import Sampled
from silvan.results.measures import CLEARED, MEASURES

BEST = 0.95

# Two-sided 95 % quantiles of Student's t with 1, 2, ... degrees of freedom; then of the normal
# distribution.
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL95 = 1.960


@dataclass(frozen=True, slots=True)
class Entry:
    """Result of a scheme in a case with ``"published"`` or ``"tuned"`` settings.

    Numbers are means over the seeds: not a number if missing, infinite if an event did not occur.
    Intervals are half of the 95 % confidence interval by Student's t. ``share`` is the ratio to the
    case's best objective, 0 if that is not finite or has the other sign. ``hops_per_s`` are
    packet-hops per second of processor time, without acknowledgements.
    """

    case: str
    link: str
    baseline: Baseline
    settings: str
    numbers: Mapping[str, float]
    intervals: Mapping[str, float]
    objective: float
    objective_interval: float
    share: float
    seeds: int
    runs: tuple[Run, ...]
    hops_per_s: float
    failure: str = ""

    @property
    def label(self) -> str:
        """Name of scheme and settings."""
        return (
            self.baseline.name if self.settings == "published" else f"{self.baseline.name} (tuned)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; what is not finite is null or a text."""
        return {
            "case": self.case,
            "link": self.link,
            "scheme": self.baseline.name,
            "settings": self.settings,
            "objective": _plain(self.objective),
            "objective_interval": _plain(self.objective_interval),
            "share_of_best": self.share,
            **{name: _plain(value) for name, value in self.numbers.items()},
            "confidence_intervals": {name: _plain(one) for name, one in self.intervals.items()},
            "switch_bytes_per_port_vl": self.baseline.cost.switch_bytes,
            "host_bytes": self.baseline.cost.host_bytes,
            "flow_bytes": self.baseline.cost.flow_bytes,
            "message_kinds": self.baseline.cost.messages,
            "seeds": self.seeds,
            "packet_hops_per_s": _plain(self.hops_per_s),
            "failure": self.failure or None,
        }


def judge(
    case: Case,
    schemes: Sequence[Baseline],
    runs: Mapping[tuple[str, str, str], Sequence[tuple[Run, Measured]]],
) -> list[Entry]:
    """Compare the schemes in one case, no control first; ``runs`` by case, scheme and settings."""
    own = [
        (one, key[2], of_key)
        for one in schemes
        for key, of_key in runs.items()
        if key[:2] == (case.name, one.name)
    ]
    off = [measured for _, measured in own[0][2]]
    entries = [_entry(case, one, settings, of_key, off) for one, settings, of_key in own]
    return _with_shares(case, entries)


def _entry(
    case: Case,
    baseline: Baseline,
    settings: str,
    runs: Sequence[tuple[Run, Measured]],
    off: Sequence[Measured],
) -> Entry:
    measured = [one for _, one in runs]
    made = tuple(run for run, _ in runs)
    failure = next((one.failure for one in measured if one.numbers is None), "")
    names = (*MEASURES, CLEARED.name)
    if failure:
        nothing = dict.fromkeys(names, math.nan)
        return Entry(
            case.name,
            case.link,
            baseline,
            settings,
            numbers=nothing,
            intervals=nothing,
            objective=math.nan,
            objective_interval=math.nan,
            share=0.0,
            seeds=len(runs),
            runs=made,
            hops_per_s=math.nan,
            failure=failure,
        )
    rows = [
        _numbers(one.numbers, without.numbers)
        for one, without in zip(measured, off, strict=True)
        if one.numbers is not None
    ]
    hops = [one.numbers["packet_hops"] / one.processor_s for one in measured if one.numbers]
    reached = case.objectives(measured, off)
    return Entry(
        case.name,
        case.link,
        baseline,
        settings,
        {name: statistics.fmean(row[name] for row in rows) for name in names},
        {name: interval([row[name] for row in rows]) for name in names},
        math.nan if reached is None else statistics.fmean(reached),
        math.nan if reached is None else interval(reached),
        0.0,
        len(runs),
        made,
        statistics.fmean(hops),
    )


def _numbers(read: Mapping[str, Any], without: Mapping[str, Any] | None) -> dict[str, float]:
    nothing = Sampled(np.empty(0), np.empty(0), {})
    return as_sampled(read).numbers(nothing if without is None else as_sampled(without))


def _with_shares(case: Case, entries: Sequence[Entry]) -> list[Entry]:
    known = [one.objective for one in entries if math.isfinite(one.objective)]
    if not known:
        return list(entries)
    best = max(known) if case.objective.direction == "maximize" else min(known)
    return [replace(one, share=share(one.objective, best)) for one in entries]


def share(value: float, best: float) -> float:
    """Return the share of a value of the best value, by the ratio of their amounts.

    It is 1 for the best value alone, and falls with the distance from it. A value that is not
    finite, or on the other side of 0 than the best, has a share of 0.

    Examples
    --------
    Half the best rate, twice the best time, and twice the best time as what is to be maximized:

    >>> share(5.0, 10.0), share(4.0, 2.0), share(-4.0, -2.0)
    (0.5, 0.5, 0.5)
    >>> share(-1.0, 10.0), share(1.0, 0.0), share(0.0, 0.0)
    (0.0, 0.0, 1.0)
    """
    if value == best:
        return 1.0
    if not math.isfinite(value) or (value < 0) != (best < 0):
        return 0.0
    less, more = sorted((abs(value), abs(best)))
    return less / more


def common_cases(shares: Sequence[Mapping[str, float]]) -> list[str]:
    """List the cases that all schemes take part in.

    >>> common_cases([{"incast": 1.0, "dragonfly": 0.9}, {"incast": 0.5}])
    ['incast']
    """
    return [case for case in shares[0] if all(case in of for of in shares)]


def mean_share(shares: Mapping[str, float], common: Sequence[str]) -> float:
    """Return the mean share of a scheme over the common cases, or over its own if there are none.

    >>> mean_share({"incast": 1.0, "dragonfly": 0.5}, ["incast"])
    1.0
    """
    return statistics.fmean([shares[case] for case in common or shares])


def interval(values: Sequence[float]) -> float:
    """Return half of the 95 % confidence interval of a mean, by Student's t.

    >>> round(interval([1.0, 2.0, 3.0]), 3)  # 4.303 / sqrt(3)
    2.484
    """
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return math.nan
    freedom = len(values) - 1
    t = _T95[freedom - 1] if freedom <= len(_T95) else _NORMAL95
    return t * statistics.stdev(values) / math.sqrt(len(values))


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return "never" if math.isinf(value) else value
