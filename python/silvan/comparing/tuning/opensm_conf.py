"""InfiniBand congestion control as OpenSM sets it: the ``cc_*`` lines of ``opensm.conf``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from silvan.comparing.tuning.space import cct_entry
from silvan.errors import ScenarioError
from silvan.inputs.fabric_lists import FabricLists
from silvan.inputs.scenario import Scenario
from silvan.inputs.toml_text import TomlValue

MOST_ENTRIES = 128

_SERVICE_LEVELS = 16
_ALL_PORTS = 2**255 - 2
# Victim_Mask; Threshold and Packet_Size; Marking_Rate.
_SWITCH_CONTROL_MAP = 0b10101


@dataclass(frozen=True, slots=True)
class OpensmSettings:
    """Settings of OpenSM in all switches and adapters; bit p of ``victim_mask`` is port p."""

    victim_mask: int
    threshold: int
    packet_size: int
    marking_rate: int
    by_service_level: bool
    ccti_timer: int
    ccti_increase: int
    ccti_min: int
    trigger_threshold: int
    entries: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, scenario: Scenario) -> OpensmSettings:
        """Read the settings of a scenario."""
        control = scenario.to_dict()["control"]["ib-cc"]
        switch, adapter = control["switch"], control["adapter"]
        mask = {"none": 0, "all": _ALL_PORTS}.get(switch["victim-mask"])
        if mask is None:
            mask = sum(1 << port for port in host_ports(FabricLists.of(scenario)))
        limit = int(adapter["ccti-limit"])
        if limit >= MOST_ENTRIES:
            raise ScenarioError(
                f"control.ib-cc.adapter.ccti-limit is {limit}, but OpenSM sets at most "
                f"{MOST_ENTRIES} entries",
                hint=f"use at most {MOST_ENTRIES - 1}",
            )
        entries = table_of(adapter["cct"], limit)
        return cls(
            victim_mask=mask,
            threshold=switch["threshold"],
            packet_size=switch["packet-size"],
            marking_rate=switch["marking-rate"],
            by_service_level=adapter["level"] == "sl",
            ccti_timer=adapter["ccti-timer"],
            ccti_increase=adapter["ccti-increase"],
            ccti_min=adapter["ccti-min"],
            trigger_threshold=adapter["trigger-threshold"],
            entries=tuple((shift, multiplier) for shift, multiplier in entries),
        )

    def to_conf(self) -> str:
        """Write the settings as lines of ``opensm.conf``."""
        lines = [
            "congestion_control TRUE",
            f"cc_sw_cong_setting_control_map {_SWITCH_CONTROL_MAP:#x}",
            f"cc_sw_cong_setting_victim_mask {self.victim_mask:#x}",
            f"cc_sw_cong_setting_threshold {self.threshold:#04x}",
            f"cc_sw_cong_setting_packet_size {self.packet_size}",
            f"cc_sw_cong_setting_marking_rate {self.marking_rate}",
            f"cc_ca_cong_setting_port_control {int(self.by_service_level):#06x}",
            f"cc_ca_cong_setting_control_map {2**_SERVICE_LEVELS - 1:#06x}",
        ]
        for name in ("ccti_timer", "ccti_increase", "trigger_threshold", "ccti_min"):
            value = getattr(self, name)
            lines += [f"cc_ca_cong_setting_{name} {sl} {value}" for sl in range(_SERVICE_LEVELS)]
        table = ",".join(f"{shift}:{multiplier}" for shift, multiplier in self.entries)
        return "\n".join([*lines, f"cc_cct {table}", ""])


def table_of(cct: dict[str, Any], limit: int) -> list[list[int]]:
    """Give all entries of a Congestion Control Table, for any shape in the scenario."""
    shape = cct["shape"]
    if shape == "given":
        entries: list[list[int]] = [list(one) for one in cct["entries"]]
        return entries[: limit + 1]
    if shape == "geometric":
        delays = [0.0, *(cct["first"] * cct["ratio"] ** step for step in range(limit))]
    else:
        delays = [cct["slope"] * index for index in range(limit + 1)]
    return [cct_entry(delay) for delay in delays]


def host_ports(lists: FabricLists) -> list[int]:
    """List the numbers of ports that lead to a host at some switch."""
    ports = {
        port
        for cable in lists.cables
        for (name, port), (other, _) in (cable.ends, cable.ends[::-1])
        if lists.is_switch(name) and not lists.is_switch(other)
    }
    return sorted(ports)


def as_opensm_sets(scenario: Scenario) -> dict[str, TomlValue]:
    """Return changes, by dotted key, to equal settings that OpenSM can make."""
    control = scenario.to_dict()["control"]["ib-cc"]
    if control["switch"]["victim-mask"] != "hosts":
        return {}
    lists = FabricLists.of(scenario)
    masked = set(host_ports(lists))
    entries: list[TomlValue] = [
        {"switch": name, "port": port, "victim-mask": True}
        for cable in lists.cables
        for (name, port), (other, _) in (cable.ends, cable.ends[::-1])
        if lists.is_switch(name) and lists.is_switch(other) and port in masked
    ]
    return {"control.ib-cc.port": entries} if entries else {}


def require_default_ports(scenario: Scenario) -> None:
    """Make sure that no port has separate settings, which OpenSM does not set."""
    control = scenario.to_dict()["control"]["ib-cc"]
    named: Sequence[str] = [key for key in ("port", "change") if control.get(key)]
    if named:
        raise ScenarioError(
            f"control.ib-cc.{named[0]}: OpenSM sets all ports alike, once",
            hint=f"remove [[control.ib-cc.{named[0]}]] for tuning",
        )
