"""The tool that counts what recording for the page costs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "python" / "tools" / "recording_instructions.py"


@pytest.mark.nightly
@pytest.mark.needs("valgrind")
def test_parts_of_the_cost_are_not_more_than_all_of_it() -> None:
    words = [sys.executable, str(TOOL), "--duration", "1 ms"]
    table = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    counts = {
        name: float(count) for name, count in re.findall(r"^\| (.+?) \| ([\d.]+) \|", table, re.M)
    }
    whole = counts.pop("all that `--record view` adds")
    assert counts.pop("the run without `--record view`") > 0
    assert all(count > 0 for count in counts.values())
    assert sum(counts.values()) < whole
