"""Control takes the rate of cables from ``[link]``: a fabric without a cable of that rate gets a
warning.
"""

from __future__ import annotations

from typing import Any

import pytest

import silvan
from silvan.comparing.arena import read_arena
from silvan.comparing.baselines import fitting
from tests.conftest import Command

RAILS: dict[str, Any] = {
    "generator": "rail-optimised",
    "servers": 2,
    "gpus-per-server": 2,
    "spines": 0,
    "server-link": {"rate": "3.6 Tbit/s"},
    "rail-link": {"speed": "NDR"},
}
INCAST = {"incast": [{"to": "server-00-gpu-00"}]}


def rails(**sections: Any) -> silvan.Scenario:
    return silvan.Scenario(**{"link": {"speed": "DDR"}, **sections}, fabric=RAILS, traffic=INCAST)


def test_the_rates_of_all_cables_are_listed() -> None:
    # 4x NDR, the default, carries 400 Gbit/s of data, 4x DDR 16.
    assert rails().describe()["cable_rates_bits_per_s"] == [400_000_000_000, 3_600_000_000_000]
    assert silvan.Scenario().describe()["cable_rates_bits_per_s"] == [400_000_000_000]
    slower = silvan.Scenario(link={"speed": "DDR"})
    assert slower.describe()["cable_rates_bits_per_s"] == [16_000_000_000]


@pytest.mark.parametrize("scheme", ["nscc", "rccc", "dcqcn", "pft", "ib-cc+pft"])
def test_control_for_cables_that_do_not_exist_is_warned_of(scheme: str) -> None:
    control = {"scheme": scheme}
    (warning,) = rails(control=control).warnings
    assert warning.startswith(f"link.speed: {scheme} is set up for cables of 16 Gbit/s")
    assert "400 Gbit/s, 3.6 Tbit/s" in warning
    assert rails(control=control, link={"speed": "NDR"}).warnings == []
    # No setting of these schemes follows from a rate.
    for other in ("none", "ib-cc", "ecn", "hpcc"):
        assert rails(control={"scheme": other}).warnings == []


def test_a_comparison_computes_no_settings_for_cables_that_do_not_exist(
    command: Command, tmp_path: Any
) -> None:
    with pytest.raises(silvan.ScenarioError) as raised:
        fitting(rails())
    assert raised.value.key == "link.speed"
    file = tmp_path / "rails.toml"
    file.write_text(rails().to_toml())
    done = command("compare", file, "--schemes", "nscc", "--out", tmp_path / "out")
    assert done.status == 2
    assert "no cable has that" in done.stderr
    assert "400, 3600 Gbit/s" in done.stderr
    assert not (tmp_path / "out").exists()


def test_windows_of_all_cases_of_the_arena_are_for_cables_that_they_have() -> None:
    """Oracle: what a cable of the fabric carries in the base round trip, and a packet."""
    for case in read_arena(None, quick=True).cases:
        rates = case.scenario.describe()["cable_rates_bits_per_s"]
        (one,) = (each for each in fitting(case.scenario).every if each.name == "pair-backpressure")
        controlled = case.scenario.override(one.overrides)
        window = controlled.control.pair_backpressure.window.bytes
        packet = case.scenario.packet.mtu.bytes
        products = [controlled.base_rtt_s * rate / 8 + packet for rate in rates]
        assert any(window == pytest.approx(product, rel=1e-3) for product in products), case.name
