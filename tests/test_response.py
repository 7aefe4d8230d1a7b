"""Response functions: built-in ones, a user's, their tables, and the command that checks them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import silvan
from tests.conftest import Command, ddr_scenario

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
    scenario = ddr_scenario(
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


def test_validate_checks_the_response_function_of_a_scenario(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "aimd.toml"
    file.write_text('[control]\nscheme = "ecn"\n[control.ecn]\nresponse = "aimd"\n')
    outcome = command("validate", file, "--json")
    assert outcome.status == 0, outcome.stderr
    found = {one["condition"]: one["holds"] for one in json.loads(outcome.stdout)["response"]}
    # Santos et al. say that AIMD recovers more slowly than it could.
    assert found == {
        "range": True,
        "condition 1": True,
        "condition 2": True,
        "condition 3": False,
        "equation (2)": False,
    }
    lines = command("validate", file).stdout.splitlines()
    assert sum("response function, " in line for line in lines) == 5


def test_a_scenario_has_the_response_function_that_it_names() -> None:
    scenario = ddr_scenario(control={"scheme": "ecn"})
    ours = {"response": "fimd", "decrease-factor": 4.0, "min-rate": 1 / 64}
    named = silvan.Response.of_scenario(scenario.override({"control.ecn": ours}))
    assert named is not None
    assert named.decrease(0.5) == silvan.Response.fimd(4.0, 1 / 64).decrease(0.5) == 0.125
    assert named.decrease(1 / 64) == 1 / 64
    unnamed = [scenario.override({"control.ecn.response": "fixed"}), ddr_scenario()]
    assert [silvan.Response.of_scenario(one) for one in unnamed] == [None, None]


def test_an_unfair_function_fails_the_condition_of_fairness() -> None:
    unfair = silvan.Response(
        lambda rate: min(rate + SMALLEST, 1.0), lambda rate: max(rate / 2, SMALLEST)
    )
    assert "condition 2" not in conditions(unfair)
    assert not unfair.is_sound()
    given = ddr_scenario(control={"scheme": "ecn", "ecn": unfair.tables()})
    assert given.to_dict()["control"]["ecn"]["response"] == "given"
