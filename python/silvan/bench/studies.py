"""The scenarios that the benchmarks run."""

from __future__ import annotations

from importlib import resources

from silvan.scenario import Scenario


def bench_scenario(name: str) -> Scenario:
    """Read the scenario of a benchmark.

    Examples
    --------
    >>> bench_scenario("uniform-50").name
    'bench-uniform-50'
    """
    text = resources.files("silvan.bench").joinpath("studies", f"{name}.toml").read_text("utf-8")
    return Scenario.from_toml(text, source=f"bench/{name}.toml")
