"""The figures of the page: sizes against their goals; all are printed at the end of the tests."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

TOOLS = Path(__file__).resolve().parents[2] / "python" / "tools"


@pytest.mark.slow
def test_a_page_of_648_hosts_keeps_to_its_sizes(
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Oracle: the goals, for 100 ms with 500 samples of everything. Times are printed only."""
    monkeypatch.syspath_prepend(TOOLS)
    tool = importlib.import_module("viewer_figures")
    sampled = tool.SAMPLED
    result = tool.recorded({}, "200 us")
    figures = [
        ("JavaScript, compressed", tool.script_kb(), "kB"),
        (f"{sampled}: result on disk", tool.written_mb(result, tmp_path / "result"), "MB"),
        *tool.measure(browser, result, sampled, tmp_path, 1),
    ]
    for figure in figures:
        record_property("figure", tool.row(*figure))
    values = {name: value for name, value, _ in figures}
    assert values["JavaScript, compressed"] <= 600
    assert values[f"{sampled}: result on disk"] <= 20
    assert values[f"{sampled}: file"] <= 5
