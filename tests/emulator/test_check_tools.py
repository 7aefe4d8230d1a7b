"""The table of ``make check-tools``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gate import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "python/tools/check_tools.py"
GUIDE = ROOT / "docs/guide/emulator.md"


@pytest.mark.slow
@pytest.mark.needs(
    "opensm",
    "infiniband-diags",
    "ibverbs-utils",
    "prometheus-node-exporter",
    "collectd-core",
    "python3-pyverbs",
    "pcp-pmda-infiniband",
    "root",
)
def test_programs_see_the_fabric_as_the_guide_says() -> None:
    """Oracle: the fabric, with which the program compares; and the table in the guide."""
    done = subprocess.run(
        [sys.executable, PROGRAM], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("These pass:\n\n- `")
    assert done.stdout in GUIDE.read_text("utf-8")


def test_a_wrong_outcome_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROGRAM.parent)
    from check_tools import Checks

    checks = Checks()
    checks.cell("right", lambda: True)
    checks.cell("wrong", lambda: False)
    checks.cell("hangs", lambda: subprocess.run(["sleep", "1000"], timeout=0.01, check=True))
    checks.cell("raises", lambda: int("no number"))
    checks.cell("differs", lambda: True, known="the reason")
    checks.cell("differs otherwise", lambda: False, known="the reason")
    outcomes = [outcome.split(":")[0] for _, outcome in checks.rows]
    assert outcomes == ["pass", "FAIL", "FAIL", "FAIL", "known difference", "FAIL"]
