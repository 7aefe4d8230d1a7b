"""The scenarios that the benchmarks run."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from silvan.inputs.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINKS: Mapping[str, Mapping[str, str]] = {
    "link": {"width": "4x", "speed": "DDR", "length": "2 m"},
    "switch": {"buffer": "64 KiB"},
    "host": {"receive-buffer": "16 KiB"},
    "packet": {"mtu": "2 KiB"},
}


def live_scenario(fabric: Mapping[str, Any], **tables: Mapping[str, Any]) -> Scenario:
    """Describe a live fabric of links that ibsim can serve: 4x DDR, with packets of 2 KiB."""
    return Scenario(fabric=dict(fabric), **_LINKS, **tables)


def bench_scenario(name: str) -> Scenario:
    """Read the scenario of a benchmark."""
    text = resources.files("silvan.bench").joinpath("studies", f"{name}.toml").read_text("utf-8")
    return Scenario.from_toml(text, source=f"bench/{name}.toml")
