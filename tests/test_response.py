"""Response functions: built-in ones, a user's, their tables, and the command that checks them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import silvan
from tests.conftest import Command

SMALLEST = 1 / 256


def conditions(response: silvan.Response) -> list[str]:
    """List the conditions that a function meets."""
    return [finding.condition for finding in response.check() if finding.holds]


def test_a_function_of_a_user_is_judged_like_the_same_built_in_one() -> None:
    lipd = silvan.Response.lipd()
    mine = silvan.Response(
        increase=lambda rate: min(rate / (1 - SMALLEST), 1.0),
        decrease=lambda rate: max(1 / (1 / rate + 1), SMALLEST),
    )
    assert conditions(mine) == conditions(lipd)
    assert len(conditions(lipd)) == 5
    assert mine.tables() == lipd.tables()
    assert mine.rate_after(100.0) is None


def test_an_exception_of_a_users_function_comes_back() -> None:
    def broken(rate: float) -> float:
        raise ZeroDivisionError(rate)

    with pytest.raises(ZeroDivisionError):
        silvan.Response(broken, lambda rate: rate).check()


def test_tables_run_as_the_function_does() -> None:
    scenario = silvan.Scenario(
        fabric={"generator": "single-switch", "hosts": 6},
        switch={"buffer": "8448 B"},
        packet={"header": "20 B"},
        traffic={"incast": [{"to": "host-0000"}]},
        control={"scheme": "ecn", "ecn": {"response": "lipd", "rates": "discrete", "window": 4}},
        run={"duration": "2 ms"},
    )
    tables = silvan.Response.lipd().tables()
    given = scenario.override({f"control.ecn.{key}": value for key, value in tables.items()})
    one, other = silvan.run(scenario, seed=1), silvan.run(given, seed=1)
    assert one.hosts.equals(other.hosts)
    assert sum(one.classes["marked_packets"].to_pylist()) > 0


def test_impossible_parameters_are_refused() -> None:
    with pytest.raises(silvan.SilvanError, match="decrease factor"):
        silvan.Response.fimd(factor=1.0)
    with pytest.raises(silvan.SilvanError, match="smallest rate"):
        silvan.Response.lipd(min_rate=0.0)


def test_the_command_tells_sound_functions_from_others(command: Command, tmp_path: Path) -> None:
    outcome = command("check-response", "aimd", "--json")
    assert outcome.status == 0, outcome.stderr
    found = {one["condition"]: one["holds"] for one in json.loads(outcome.stdout)}
    assert found == {
        "range": True,
        "condition 1": True,
        "condition 2": True,
        "condition 3": False,
        "equation (2)": False,
    }
    unfair = tmp_path / "unfair.py"
    unfair.write_text(
        "def increase(rate): return min(rate + 1 / 256, 1.0)\n"
        "def decrease(rate): return max(rate / 2, 1 / 256)\n"
    )
    outcome = command("check-response", str(unfair), "--tables", str(tmp_path / "tables.toml"))
    assert outcome.status == 1
    assert "condition 2" in outcome.stdout
    text = (tmp_path / "tables.toml").read_text()
    scenario = silvan.Scenario.from_toml(text).override({"control.scheme": "ecn"})
    assert scenario.to_dict()["control"]["ecn"]["response"] == "given"


@pytest.mark.parametrize("function", ["tahoe", "missing.py"])
def test_an_unknown_function_is_bad_input(command: Command, function: str) -> None:
    outcome = command("check-response", function)
    assert outcome.status == 2
    assert "hint:" in outcome.stderr
