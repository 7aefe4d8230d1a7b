"""Messages on sweeps that fail, and the time of the next attempt."""

from __future__ import annotations

import pytest

from silvan.cli.sweep_failures import SweepFailures
from silvan.errors import DiagnosisError


def test_repeated_failures_are_tried_less_and_less_often(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Oracle: powers of two times the interval, up to a minute or the interval."""
    error = DiagnosisError("the local port does not answer")
    failures = SweepFailures(10)
    assert [failures.add(error) for _ in range(5)] == [10, 20, 40, 60, 60]
    failures.clear()
    failures.clear()
    assert failures.add(error) == 10
    rare = SweepFailures(300)
    assert [rare.add(error) for _ in range(3)] == [300, 300, 300]
    quick = SweepFailures(0.2)
    assert [quick.add(error) for _ in range(2000)][-1] == 60
    said = [line.partition("  ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said[0] == "no sweep: the local port does not answer"
    assert said[1].startswith("still no sweep since ")
    assert said[1].endswith(": the local port does not answer; next try in 20 s")
    assert said[5].startswith("sweeps again, after ")
    assert said[6] == "no sweep: the local port does not answer"
