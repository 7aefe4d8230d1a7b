"""What is tuned of each scheme: the same number of trials for all, whatever their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from silvan.baselines import Baseline
from silvan.errors import ScenarioError
from silvan.quantities import Quantity
from silvan.scenario import Scenario
from silvan.toml_text import TomlValue
from silvan.tuning.space import Parameter, Space

BATCH = 8
"""Trials that are drawn before the results of any of them are known."""

SAMPLER_SEED = 1
"""Seed of the sampler of every search."""

_SCALE = 8.0
"""Sizes, times and rates are searched from an eighth of the published value to eight times."""

_Parameters = tuple[Parameter | str, ...]

_IB_CC: _Parameters = (
    Parameter("control.ib-cc.switch.threshold", 1, 15, whole=True),
    Parameter("control.ib-cc.switch.marking-rate", choices=(0, 1, 3, 7, 15, 31, 63, 127, 255)),
    Parameter("control.ib-cc.adapter.ccti-timer", 10, 600, log=True, whole=True),
    Parameter("control.ib-cc.adapter.ccti-increase", 1, 16, log=True, whole=True),
    Parameter("control.ib-cc.adapter.cct.slope", 0.05, 4.0, log=True),
)
_BESIDE: Mapping[str, str] = {"control.ib-cc.adapter.cct.slope": "control.ib-cc.adapter.cct.shape"}
"""What a parameter needs beside it."""

_PFT: _Parameters = (
    Parameter("control.pft.m", 0, 12, whole=True),
    Parameter("control.pft.n", 0, 12, whole=True),
    Parameter("control.pft.enter", 0x80, 0x400, whole=True),
)
_NSCC: _Parameters = ("control.nscc.target-delay", "control.nscc.k-min", "control.nscc.k-max")
_REPS_BUFFER = Parameter("control.reps.buffer", 1, 32, log=True, whole=True)
TUNABLE: Mapping[str, _Parameters] = {
    "ib-cc": _IB_CC,
    "pft": _PFT,
    "ib-cc-pft": (*_IB_CC, *_PFT),
    "ecn": (
        Parameter("control.ecn.window", 1, 512, log=True, whole=True),
        Parameter("control.ecn.decrease-factor", 1.05, 8.0, log=True),
        Parameter("control.ecn.initial-rate", 0.02, 1.0, log=True),
    ),
    "dcqcn": (
        "control.dcqcn.k-min",
        "control.dcqcn.k-max",
        Parameter("control.dcqcn.p-max", 0.001, 1.0, log=True),
        "control.dcqcn.rate-ai",
        "control.dcqcn.alpha-timer",
        "control.dcqcn.rate-timer",
    ),
    "timely": (
        "control.timely.t-low",
        "control.timely.t-high",
        "control.timely.delta",
        Parameter("control.timely.beta", 0.005, 1.0, log=True),
    ),
    "hpcc": (
        Parameter("control.hpcc.eta", 0.7, 0.99),
        "control.hpcc.additive-increase",
        Parameter("control.hpcc.max-stage", 0, 10, whole=True),
    ),
    "swift": (
        "control.swift.base-target",
        "control.swift.flow-range",
        Parameter("control.swift.additive-increase", 0.1, 8.0, log=True),
        Parameter("control.swift.beta", 0.1, 0.95),
    ),
    "nscc": _NSCC,
    "reps": ("control.reps.k-min", "control.reps.k-max", _REPS_BUFFER),
    "nscc-reps": (*_NSCC, _REPS_BUFFER),
    "rccc": ("control.rccc.window", Parameter("control.rccc.pull-rate", 0.7, 1.0)),
    "congestion-isolation": (
        "control.congestion-isolation.set-point",
        "control.congestion-isolation.hold",
    ),
    "dftree": ("control.dftree.threshold", "control.dftree.hold"),
    "recn": ("control.recn.detection", "control.recn.propagation"),
    "pair-backpressure": (
        "control.pair-backpressure.threshold",
        Parameter("control.pair-backpressure.least-window", 1, 8, log=True, whole=True),
        Parameter("control.pair-backpressure.increase", 0.25, 8.0, log=True),
    ),
    "srp": ("control.srp.timeout", "control.srp.threshold", "control.srp.reservation"),
}
"""Parameters that are searched for each scheme: ranges, or keys whose published value is scaled.
A scheme that is not listed has none, or none that is known."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched for one scheme in one group of cases.

    Attributes
    ----------
    space : Space
        The parameters.
    start : dict
        The published settings, as drawn values.
    fixed : dict
        Keys that are needed beside the parameters: a table in a scenario has either all of its keys
        from a default or none.
    """

    space: Space
    start: dict[str, float]
    fixed: dict[str, TomlValue]


def search_of(scenario: Scenario, baseline: Baseline) -> Search | None:
    """Set up the search for a scheme's settings.

    Parameters
    ----------
    scenario : Scenario
        The case that settings are tuned on.
    baseline : Baseline
        The scheme with its published settings.

    Returns
    -------
    Search, optional
        Parameters with their ranges, and the published settings. None if nothing is tuned.
    """
    keys = scenario.override(baseline.overrides).to_dict()
    listed = TUNABLE.get(str(keys["control"]["scheme"]), ())
    parameters: list[Parameter] = []
    start: dict[str, float] = {}
    for one in listed:
        value = _value(keys, one if isinstance(one, str) else one.key)
        if value is None:
            continue
        if isinstance(one, str):
            parameters.append(_scaled(one, str(value)))
            start[one] = 1.0
        elif one.choices:
            if value in one.choices:
                parameters.append(one)
                start[one.key] = one.choices.index(value)
        else:
            parameters.append(_containing(one, float(value)))
            start[one.key] = int(value) if one.whole else float(value)
    fixed = {
        key: _value(keys, key)
        for one, key in _BESIDE.items()
        if one in start and key not in start and _value(keys, key) is not None
    }
    return Search(Space(tuple(parameters)), start, fixed) if parameters else None


def _containing(one: Parameter, value: float) -> Parameter:
    """Widen a range so that the published value is in it."""
    return replace(one, low=min(one.low, value), high=max(one.high, value))


def _scaled(key: str, published: str) -> Parameter:
    unit = f"x {_in_base_unit(Quantity(published))}"
    return Parameter(key, 1 / _SCALE, _SCALE, unit, log=True)


def _in_base_unit(value: Quantity) -> str:
    """Write a size in bytes, a time in picoseconds, or a rate in bit/s."""
    readers: Sequence[tuple[Callable[[Quantity], Any], str]] = (
        (lambda one: one.bytes, "B"),
        (lambda one: one.ps, "ps"),
        (lambda one: round(one.bits_per_s), "bit/s"),
    )
    for read, unit in readers:
        try:
            return f"{read(value)} {unit}"
        except ScenarioError:
            continue
    raise ScenarioError(f"{value!r} is neither a size, a time nor a rate")


def _value(keys: Mapping[str, Any], dotted: str) -> Any:
    value: Any = keys
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
