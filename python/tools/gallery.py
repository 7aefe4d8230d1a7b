"""Run the examples, compare each with ``docs/gallery.toml``, and write the site's gallery page."""

from __future__ import annotations

import argparse
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import silvan
from silvan.example_files import Example, examples

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = tomllib.loads((ROOT / "docs" / "gallery.toml").read_text("utf-8"))

_LINES = 6
_PS_PER_MS = 10**9


@dataclass(frozen=True)
class Shown:
    """An example with its number, as expected and as measured."""

    example: Example
    result: silvan.Result
    expected: dict[str, Any]
    measured: float

    @property
    def is_met(self) -> bool:
        """True if the measured number is within the tolerance."""
        wanted = float(self.expected[self.unit])
        return abs(self.measured - wanted) <= float(self.expected["tolerance"]) * wanted

    @property
    def unit(self) -> str:
        """Unit of the measured number: ``gbps`` or ``bytes``."""
        return "gbps" if "gbps" in self.expected else "bytes"

    @property
    def number(self) -> str:
        """The measured number in words."""
        who = self.expected.get("class") or self.expected["host"]
        if self.unit == "bytes":
            return f"{who}: {self.measured:,.0f} bytes received"
        return f"{who}: {self.measured:.2f} Gbit/s received"


def scenarios() -> list[Example]:
    """List the examples that are scenarios; programs have no number."""
    return [one for one in examples() if one.is_scenario]


def show(example: Example) -> Shown:
    """Run an example and measure its number."""
    expected = EXPECTED[example.name]
    scenario = silvan.Scenario.from_file(example.path)
    result = silvan.run(scenario)
    received = _received(result, expected)
    if "gbps" in expected:
        measured_ps = result.summary["simulated_ps"] - result.scenario.warm_up_ps
        return Shown(example, result, expected, received * 8e3 / measured_ps)
    return Shown(example, result, expected, received)


def _received(result: silvan.Result, expected: dict[str, Any]) -> float:
    if "class" in expected:
        rows = result.classes.to_pylist()
        return float(sum(r["delivered_bytes"] for r in rows if r["name"] == expected["class"]))
    rows = result.hosts.to_pylist()
    if expected["host"] == "busiest":
        return float(max(row["delivered_bytes"] for row in rows))
    return float(sum(r["delivered_bytes"] for r in rows if r["name"] == expected["host"]))


def draw(shown: Shown, folder: Path) -> Path | None:
    """Draw the receive rates of the busiest hosts over time, if the run has samples."""
    from silvan.figures.style import save, styled

    series = shown.result.host_series
    if not series.num_rows:
        return None
    hosts = shown.result.hosts.to_pylist()
    times = np.unique(series["time_ps"].to_numpy())
    received = series["delivered_bytes"].to_numpy().astype(float).reshape(len(times), -1)
    rates = received * 8e3 / np.diff(times.astype(float), prepend=0.0)[:, None]
    with styled(3.6, 2.2) as figure:
        axes = figure.subplots()
        busiest = np.argsort(-rates.sum(axis=0), kind="stable")[:_LINES]
        for index in busiest[rates.sum(axis=0)[busiest] > 0]:
            axes.plot(times / _PS_PER_MS, rates[:, index], label=hosts[index]["name"])
        axes.legend(frameon=False, fontsize=6)
        axes.set(xlabel="time, ms", ylabel="received, Gbit/s", ylim=(0, None))
        paths = save(figure, folder, shown.example.name)
    return next(path for path in paths if path.suffix == ".png")


def page(gallery: list[tuple[Shown, Path | None]]) -> str:
    """Write the page."""
    lines = [
        "# Gallery",
        "",
        "The examples that are installed with silvan: `silvan example NAME` copies one. Each "
        "picture shows what the busiest hosts receive over time. Each number is checked by a test.",
    ]
    for shown, picture in gallery:
        lines += [
            "",
            f"## {shown.example.name}",
            "",
            shown.example.description,
            "",
            "```",
            f"silvan example {shown.example.name}",
            shown.example.commands[0],
            "```",
            "",
            *_picture(shown, picture),
            f"**{shown.number}.** {shown.expected['because']}",
        ]
    return "\n".join(lines) + "\n"


def _picture(shown: Shown, picture: Path | None) -> list[str]:
    if picture is None:
        return []
    name = shown.example.name
    return [f"![{name}: receive rates over time](gallery/{picture.name}){{ width=400 }}", ""]


def main() -> int:
    """Write the gallery into a folder; fail where a number is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    (folder / "gallery").mkdir(parents=True, exist_ok=True)
    gallery = [(shown, draw(shown, folder / "gallery")) for shown in map(show, scenarios())]
    wrong = [shown for shown, _ in gallery if not shown.is_met]
    for shown in wrong:
        print(f"{shown.number}; expected {shown.expected[shown.unit]}", file=sys.stderr)
    (folder / "gallery.md").write_text(page(gallery), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
