"""Dashboards and rules name metrics that are served, in expressions that parse."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tests.emulator.conftest import REAL_TOOLS, Serve
from tests.emulator.test_dcms import TESTBED, configure, managed, stop, until
from tests.emulator.test_dcms_metrics import QUIET, address, metrics
from tests.emulator.test_exporter import INCAST, exporting

SHIPPED = Path(__file__).resolve().parents[2] / "packaging" / "data" / "share" / "silvan"
METRIC = re.compile(r"\b(?:infiniband_(?:switch|hca)|silvan_(?:dcms|exporter|diagnosis))_[a-z_]+")
DOCS = SHIPPED.parents[3] / "docs"
PAGES = {
    "silvan-dcms": ("guide/dcms.md", "reference/counters.md"),
    "silvan-exporter": ("guide/exporter.md",),
}
DASHBOARDS = {
    name: json.loads((SHIPPED / f"{name}.dashboard.json").read_text("utf-8")) for name in PAGES
}
RULES = {name: yaml.safe_load((SHIPPED / f"{name}.rules.yml").read_text("utf-8")) for name in PAGES}
EACH = pytest.mark.parametrize("name", PAGES)


def panel_expressions(name: str) -> Iterator[str]:
    for panel in DASHBOARDS[name]["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "5m").replace("$tick_ns", "22")
            yield text.replace("$instance", ".*")


def rules(name: str) -> list[dict[str, Any]]:
    return [rule for group in RULES[name]["groups"] for rule in group["rules"]]


def expressions(name: str) -> list[str]:
    return [*panel_expressions(name), *(rule["expr"] for rule in rules(name))]


def named(name: str) -> set[str]:
    return {metric for text in expressions(name) for metric in METRIC.findall(text)}


@pytest.mark.parametrize("expression", [text for name in PAGES for text in expressions(name)])
def test_expressions_parse(expression: str) -> None:
    assert promql_parser.parse(expression) is not None
    assert METRIC.search(expression)


def test_everything_shipped_is_tested() -> None:
    assert {path.name.partition(".")[0] for path in SHIPPED.iterdir()} == set(PAGES)


@EACH
def test_rules_are_complete(name: str) -> None:
    names = [rule.get("alert", rule.get("record")) for rule in rules(name)]
    assert len(set(names)) == len(names)
    for rule in rules(name):
        if "alert" in rule:
            assert rule["labels"]["severity"] in {"info", "warning", "critical"}
            assert rule["annotations"]["summary"]
            assert rule["annotations"]["description"]
        else:
            assert rule["record"].startswith("silvan:")


@EACH
@pytest.mark.needs("prometheus")
def test_prometheus_takes_the_rules(name: str) -> None:
    words = ["promtool", "check", "rules", str(SHIPPED / f"{name}.rules.yml")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"SUCCESS: {len(rules(name))} rules found" in done.stdout


@EACH
def test_panels_do_not_overlap(name: str) -> None:
    cells = []
    for panel in DASHBOARDS[name]["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells += [
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
    assert len(set(cells)) == len(cells)


@EACH
def test_every_metric_is_documented(name: str) -> None:
    documented = "".join((DOCS / page).read_text("utf-8") for page in PAGES[name])
    for metric in named(name):
        # A table of the exporter's page has names without the prefixes that its heading states.
        short = re.sub("^infiniband_(switch|hca)_(?=port_)", "", metric)
        assert f"`{metric}`" in documented or f"`{short}`" in documented, metric


@REAL_TOOLS
@pytest.mark.slow
def test_every_metric_without_labels_is_served(serve: Serve) -> None:
    fabric = serve(TESTBED)
    with managed(fabric, configure(fabric, QUIET)) as manager:
        place = address(fabric, manager)
        until(fabric, lambda: metrics(place)["silvan_dcms_sweeps_total"] > 2)
        served = {name.partition("{")[0] for name in metrics(place)}
        # Metrics that have a sample only after a decision, a change or congestion.
        rare = {
            "silvan_dcms_actions_total",
            "silvan_dcms_decisions_total",
            "silvan_dcms_port_low",
            "silvan_dcms_port_victims",
        }
        assert named("silvan-dcms") - served <= rare
        assert stop(manager) == 0


@pytest.mark.slow
def test_every_metric_is_served_where_there_is_congestion(serve: Serve) -> None:
    fabric = serve(INCAST, time_scale=0.2)
    with exporting(fabric) as place:
        fabric.wait(lambda: metrics(place).get("silvan_exporter_sweeps_total", 0) > 1)
        served = {name.partition("{")[0] for name in metrics(place)}
        assert named("silvan-exporter") - served == set()
