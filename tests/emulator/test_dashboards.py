"""The dashboard and the rules name metrics that the manager has, in expressions that parse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tests.emulator.conftest import REAL_TOOLS, Serve
from tests.emulator.test_dcms import TESTBED, configure, managed, stop, until
from tests.emulator.test_dcms_metrics import QUIET, address, metrics

SHIPPED = Path(__file__).resolve().parents[2] / "packaging" / "data" / "share" / "silvan"
DASHBOARD = json.loads((SHIPPED / "silvan-dcms.dashboard.json").read_text())
RULES = yaml.safe_load((SHIPPED / "silvan-dcms.rules.yml").read_text())
METRIC = re.compile(r"\b(?:infiniband_switch|silvan_dcms)_[a-z_]+")
DOCS = SHIPPED.parents[3] / "docs"
DOCUMENTED = "".join(
    (DOCS / page).read_text() for page in ("guide/dcms.md", "reference/counters.md")
)


def panel_expressions() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "5m").replace("$tick_ns", "22")
            yield text.replace("$instance", ".*")


def rules() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


EXPRESSIONS = [*panel_expressions(), *(rule["expr"] for rule in rules())]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_parse(expression: str) -> None:
    assert promql_parser.parse(expression) is not None
    assert METRIC.search(expression)


def test_rules_are_complete() -> None:
    names = [rule.get("alert", rule.get("record")) for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        if "alert" in rule:
            assert rule["labels"]["severity"] in {"info", "warning", "critical"}
            assert rule["annotations"]["summary"]
            assert rule["annotations"]["description"]
        else:
            assert rule["record"].startswith("silvan:")


def test_panels_do_not_overlap() -> None:
    cells = []
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells += [
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
    assert len(set(cells)) == len(cells)


def test_every_metric_is_documented() -> None:
    for name in {name for text in EXPRESSIONS for name in METRIC.findall(text)}:
        assert f"`{name}`" in DOCUMENTED, name


@REAL_TOOLS
@pytest.mark.slow
def test_every_metric_without_labels_is_served(serve: Serve) -> None:
    fabric = serve(TESTBED)
    with managed(fabric, configure(fabric, QUIET)) as manager:
        place = address(fabric, manager)
        until(fabric, lambda: metrics(place)["silvan_dcms_sweeps_total"] > 2)
        served = {name.partition("{")[0] for name in metrics(place)}
        named = {name for text in EXPRESSIONS for name in METRIC.findall(text)}
        # Of these there is a sample when something was decided, changed, or congested.
        rare = {
            "silvan_dcms_actions_total",
            "silvan_dcms_decisions_total",
            "silvan_dcms_port_low",
            "silvan_dcms_port_victims",
        }
        assert named - served <= rare
        assert stop(manager) == 0
