"""The schemes that are compared, and their cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from silvan._silvan import scheme_names, schemes
from silvan.errors import ScenarioError, SilvanError, shown

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario
    from silvan.inputs.toml_text import TomlValue


@dataclass(frozen=True, slots=True)
class Cost:
    """Resources of a scheme in addition to the data path; None if it does not report them.

    Bytes are registers and counters of its description: per switch port and virtual lane, per host,
    and per flow that is held back or has a window (for congestion isolation, per switch that a
    congesting flow passes). ``messages`` are their kind.
    """

    switch_bytes: int | None
    host_bytes: int | None
    flow_bytes: int | None
    messages: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """A scheme with its settings; published ones are defaults."""

    name: str
    summary: str
    overrides: Mapping[str, TomlValue]
    cost: Cost


@dataclass(frozen=True, slots=True)
class Fitting:
    """Schemes that a scenario suits, no control first, and reasons against the others."""

    every: tuple[Baseline, ...]
    unsuited: Mapping[str, str]
    on_links: frozenset[str] = frozenset()
    by_hand: Mapping[str, str] = field(default_factory=dict)


def fitting(scenario: Scenario, added: Mapping[str, TomlValue] | None = None) -> Fitting:
    """Set up every scheme as :func:`baselines` does, and find reasons of unsuited schemes.

    ``added`` replaces the scenario's own scheme in a Python file. Settings need cables with the
    rate of ``[link]``.
    """
    _require_rate(scenario.link_gbps, scenario.describe()["cable_rates_bits_per_s"])
    every: list[Baseline] = []
    unsuited: dict[str, dict[str, str]] = {"links": {}, "fabric": {}, "by-hand": {}}
    for one in scenario.scheme_variants():
        if one["unsuited"]:
            unsuited[one["unsuited"]["kind"]][one["name"]] = one["unsuited"]["why"]
        else:
            overrides = dict(one["overrides"])
            every.append(Baseline(one["name"], _summary(one), overrides, Cost(**one["cost"])))
    absent = {**unsuited["fabric"], **unsuited["links"]}
    name, summary = "", ""
    keys: Mapping[str, TomlValue] = {}
    control = scenario.to_dict()["control"]
    carrier = control["feedback"]["carrier"]
    if added:
        name, summary, keys = (
            Path(str(added["control.python.file"])).name,
            "the added scheme, in Python",
            added,
        )
        carrier = str(added.get("control.feedback.carrier", carrier))
    elif scenario.has_python_scheme:
        name, summary = control["python"]["name"], "the scenario's scheme, in Python"
    if name:
        _require_own_name(name, {*(one.name for one in every), *absent})
        every.append(Baseline(name, summary, keys, _not_reported(carrier)))
    return Fitting(tuple(every), absent, frozenset(unsuited["links"]), unsuited["by-hand"])


def _summary(variant: Mapping[str, Any]) -> str:
    written = [key.removeprefix("control.") for key in variant["written"]]
    own = f"; {', '.join(written)} as the scenario has it" if written else ""
    return f"{variant['summary']}{own}"


def _require_own_name(name: str, names: Collection[str]) -> None:
    if name in {*names, *scheme_names()}:
        raise ScenarioError(
            f"the scheme in the Python file has the name {shown(name)}, which another scheme has",
            hint="give the file another name",
            key="control.python.name",
        )


def chosen(scenario: Scenario, fits: Fitting, names: Sequence[str]) -> list[Baseline]:
    """Find baselines by name, also those that do not take part by default."""
    known = {one.name: one for one in fits.every}
    summaries = dict(schemes())
    others = {
        name: summaries.get(name, fits.by_hand.get(name, ""))
        for name in scheme_names()
        if name not in {"python", *known, *(fits.unsuited.keys() - summaries.keys())}
    }
    for name in names:
        if name in fits.on_links:
            raise SilvanError(
                f"scheme {name!r} takes no part on links with PFC: {fits.unsuited[name]}",
                'leave it out, or set link.flow-control to "credits"',
            )
        if name in fits.unsuited and name not in others:
            raise SilvanError(
                f"scheme {name!r} takes no part: {fits.unsuited[name]}", "leave it out"
            )
    if any(name not in {*known, *others} for name in names):
        from silvan.plugins.installed import installed
        from silvan.plugins.kinds import SCHEME

        found = installed(SCHEME).items()
        others |= {name: one.title for name, one in found if name not in known}
    missing = [name for name in names if name not in {*known, *others}]
    if missing:
        listed = ", ".join([*known, *others])
        raise SilvanError(f"no scheme {missing[0]!r} to compare", f"known: {listed}")
    for name in names:
        if name in others:
            overrides: dict[str, TomlValue] = {"control.scheme": name}
            control = scenario.override(overrides).to_dict()["control"]
            cost = _not_reported(control["feedback"]["carrier"])
            known[name] = Baseline(name, others[name], overrides, cost)
    return [known[name] for name in names]


def _not_reported(carrier: str) -> Cost:
    kinds = "acknowledgements" if carrier == "ack-per-packet" else "notifications"
    return Cost(None, None, None, kinds)


def _require_rate(gbps: float, cable_rates_bits_per_s: Sequence[int]) -> None:
    rates = [rate / 1e9 for rate in cable_rates_bits_per_s]
    if rates and gbps not in rates:
        listed = ", ".join(f"{rate:g}" for rate in rates)
        raise ScenarioError(
            f"settings of schemes are computed for cables of {gbps:g} Gbit/s: no cable has that",
            hint=f"set the rate of those that limit flows: {listed} Gbit/s",
            key="link.speed",
        )
