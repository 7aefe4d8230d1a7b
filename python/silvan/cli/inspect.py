"""The commands that describe scenarios: validate, show and schema."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from silvan._silvan import scheme_names, scheme_tables
from silvan.cli.options import AsJson, Assignments, ScenarioPath, Scheme, load
from silvan.cli.printer import put, put_json

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario

_CONTROL = re.compile(r"(?:# )?\[control\.([\w-]+)")


def validate(
    scenario: ScenarioPath,
    set_: Assignments = None,
    scheme: Scheme = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Check a scenario: keys, values, fabric, routes, credit loops.

    A scheme in a Python file is compiled. A response function of the scheme ecn is checked against
    the design conditions of santos2003, section V.
    """
    from silvan.execution.estimate import estimate
    from silvan.execution.scheme_check import require_scheme
    from silvan.schemes.response import Response

    loaded = load(scenario, set_, scheme)
    require_scheme(loaded, loaded.seed)
    facts = loaded.describe()
    size = estimate(loaded)
    sizes = {"packet_hops": size.packet_hops, "memory_bytes": size.memory_bytes}
    response = Response.of_scenario(loaded)
    diagnoses = response.check() if response else []
    if as_json:
        found = {"response": [one.to_dict() for one in diagnoses]} if response else {}
        put_json({**facts, "estimate": sizes, "warnings": loaded.warnings, **found})
        return
    put(f"{scenario}: valid")
    for line in _lines(facts):
        put(f"  {line}")
    put(f"  estimate: {size}")
    for one in diagnoses:
        held = "holds" if one.holds else "fails"
        values = f"{one.value:.6g}, bound {one.bound:.6g}"
        at = f"{'tightest ' if one.holds else ''}at rate {one.rate:.4g}: {values}"
        put(f"  response function, {one.condition} ({one.meaning}): {held}, {at}")


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = []
    for key, value in facts.items():
        if key == "routing":
            lines.append(f"routing: {value} ({facts['routing_reason']})")
        elif key == "input_buffers":
            lines += [_buffers(one) for one in value]
        elif key != "routing_reason":
            lines.append(_fact(key, value))
    return lines


def _buffers(one: dict[str, Any]) -> str:
    where = "hosts" if one["in_hosts"] else "switches"
    cable = f"{one['rate_bits_per_s'] / 1e9:g} Gbit/s, {one['propagation_ps'] / 1e3:g} ns"
    text = f"input buffer per virtual lane in {where}, {cable}: {one['bytes']} B"
    needed = one["needed_bytes"]
    return text if needed is None else f"{text} (the rate needs {needed} B)"


def _fact(key: str, value: object) -> str:
    if key == "duration_ps" and isinstance(value, int):
        return f"duration: {value / 1e9:g} ms"
    if key == "cable_rates_bits_per_s" and isinstance(value, list):
        return f"cable rates: {', '.join(f'{rate / 1e9:g}' for rate in value)} Gbit/s"
    name = "data virtual lanes" if key == "data_vls" else key.replace("_", " ")
    if isinstance(value, bool):
        return f"{name}: {'yes' if value else 'no'}"
    return f"{name}: {value:.2f}" if isinstance(value, float) else f"{name}: {value}"


def show(
    scenario: ScenarioPath,
    set_: Assignments = None,
    scheme: Scheme = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Print the effective scenario, its defaults and what it builds.

    Defaults of congestion-control schemes that are not in force are left out.
    """
    loaded = load(scenario, set_, scheme)
    if as_json:
        put_json(loaded.to_dict())
    else:
        put(_in_force(loaded))
        put("# What it builds:")
        for line in _lines(loaded.describe()):
            put(f"#   {line}")


def _in_force(loaded: Scenario) -> str:
    scheme = loaded.control.scheme
    used = {*scheme_tables(scheme), *(() if scheme == "none" else ("feedback",))}
    known = {name for one in scheme_names() for name in scheme_tables(one)}
    blocks = []
    for block in loaded.to_toml().split("\n\n"):
        header = _CONTROL.match(block)
        is_default = all(line.startswith("#") for line in block.splitlines())
        if header and is_default and header[1] in {*known, "feedback"} - used:
            continue
        blocks.append(block)
    return "\n\n".join(blocks)


def schema() -> None:
    """Print the JSON schema of scenario files."""
    from silvan.inputs import scenario

    put_json(scenario.schema())
