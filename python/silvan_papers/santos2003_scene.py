"""santos2003, Fig. 1: the flows between two switches, and what they get of its links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import numpy.typing as npt

from silvan.inputs.toml_text import TomlValue
from silvan.results.receive_rates import (
    PS_PER_MS,
    FloatArray,
    Window,
    class_delivered,
    jain_index,
    sliding_rates_gbps,
)
from silvan.results.result import Result

STUDY = "two-switches"

# Table I: payload rate of a link, and headers.
_LINK_GBPS = 8.0
PACKET_MS = 2.068e-3
"""On a link of Table I."""

_WIRE_PER_PAYLOAD = 2068 / 2048
_START_STEP_US = 100


def scene(
    local: int,
    remote: int,
    *,
    victim_ms: tuple[int, int] | None = None,
    loads: tuple[float, float] | None = None,
    dynamic: int = 0,
    on_ms: float = 1.0,
) -> dict[str, TomlValue]:
    """Describe the flows of Fig. 1 as overrides of the study.

    Flows start one after the other every 100 µs, the local first. ``loads`` are fixed rates of
    local and remote flows and of the victim, as fractions of the link's. ``dynamic`` local and
    remote flows come and go, with means of ``on_ms``.
    """

    def flow(kind: str, letter: str, index: int, place: int, count: int) -> dict[str, TomlValue]:
        is_dynamic = index > count - dynamic
        kind = f"{kind}-dynamic" if is_dynamic else kind
        entry: dict[str, TomlValue] = {
            "name": f"{kind}-{index}",
            "from": f"{letter}{index}",
            "to": "BC",
            "start": f"{place * _START_STEP_US} us",
        }
        if is_dynamic:
            mean = f"{round(on_ms * 1000)} us"
            entry["on-off"] = {"on": mean, "off": mean}
        if loads:
            entry["load"] = loads[0]
        return entry

    flows = [flow("local", "B", index + 1, index, local) for index in range(local)]
    flows += [flow("remote", "A", index + 1, local + index, remote) for index in range(remote)]
    victim: dict[str, TomlValue] = {"name": "victim", "from": "AV", "to": "BV"}
    if victim_ms:
        victim["start"], victim["end"] = (f"{at} ms" for at in victim_ms)
    if loads:
        victim["load"] = loads[1]
    return {
        "fabric.local": local,
        "fabric.remote": remote,
        "traffic.flow": [*flows, victim],
    }


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of flows as fractions of a link with headers, and Jain's index."""

    static_local: FloatArray
    dynamic_local: FloatArray
    static_remote: FloatArray
    dynamic_remote: FloatArray
    victim: FloatArray
    jain: FloatArray

    @classmethod
    def of(cls, result: Result, window: Window) -> Self:
        """Average over a window that starts and ends at probe instants."""
        times_ps, delivered_bytes = class_delivered(result)
        inside = (times_ps > window.start_ps) & (times_ps <= window.end_ps)
        length_ps = window.end_ps - window.start_ps
        gbps = delivered_bytes[inside].sum(axis=0) * 8e3 / length_ps
        return cls(*_groups(result, gbps), np.asarray(jain_index(gbps[_contending(result)])))

    @classmethod
    def mean(cls, results: Sequence[Result], window: Window) -> Self:
        """Average over a window and over the seeds."""
        every = [cls.of(result, window) for result in results]
        return cls(
            *(np.mean([getattr(one, field.name) for one in every], axis=0) for field in fields(cls))
        )

    @classmethod
    def series(cls, result: Result, window_ms: float) -> tuple[FloatArray, Self]:
        """Average over a sliding window; gives the middles in milliseconds and the shares then."""
        times_ps, delivered_bytes = class_delivered(result)
        window_ps = round(window_ms * PS_PER_MS)
        times_ms, gbps = sliding_rates_gbps(times_ps, delivered_bytes, window_ps)
        contending = _contending(result)
        jain = np.array([jain_index(row[contending]) for row in gbps])
        return times_ms, cls(*_groups(result, gbps), jain)

    @staticmethod
    def jain_of_groups(result: Result, window: Window) -> dict[str, float]:
        """Compute Jain's index over the local flows, and over the remote ones."""
        times_ps, delivered_bytes = class_delivered(result)
        inside = (times_ps > window.start_ps) & (times_ps <= window.end_ps)
        total = delivered_bytes[inside].sum(axis=0)
        names = _names(result)
        return {
            kind: float(jain_index(total[[name.startswith(kind) for name in names]]))
            for kind in ("local", "remote")
        }

    @property
    def local(self) -> FloatArray:
        """All local flows."""
        return self.static_local + self.dynamic_local

    @property
    def remote(self) -> FloatArray:
        """All remote flows."""
        return self.static_remote + self.dynamic_remote

    @property
    def static(self) -> FloatArray:
        """All flows to the congested link that are there all the time."""
        return self.static_local + self.static_remote

    @property
    def dynamic(self) -> FloatArray:
        """All flows to the congested link that come and go."""
        return self.dynamic_local + self.dynamic_remote

    @property
    def root(self) -> FloatArray:
        """Utilisation of the link to BC, the root of the congestion tree."""
        return self.local + self.remote

    @property
    def interswitch(self) -> FloatArray:
        """Utilisation of the link between the switches."""
        return self.remote + self.victim

    def columns(self) -> Mapping[str, FloatArray]:
        """List what the paper draws, and how fair it is, by name."""
        return {
            "root link": self.root,
            "inter-switch link": self.interswitch,
            "local flows": self.local,
            "remote flows": self.remote,
            "victim": self.victim,
            "Jain's index": self.jain,
        }


def _names(result: Result) -> list[str]:
    names: list[str] = result.classes["name"].to_pylist()
    return names


def _contending(result: Result) -> npt.NDArray[np.bool_]:
    return np.array([not name.startswith("victim") for name in _names(result)])


def _groups(
    result: Result, gbps: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    names = _names(result)

    def share(kind: str, *, is_dynamic: bool = False) -> FloatArray:
        members = np.array(
            [name.startswith(kind) and ("-dynamic" in name) == is_dynamic for name in names]
        )
        total: FloatArray = gbps[..., members].sum(axis=-1)
        return total * _WIRE_PER_PAYLOAD / _LINK_GBPS

    return (
        share("local"),
        share("local", is_dynamic=True),
        share("remote"),
        share("remote", is_dynamic=True),
        share("victim"),
    )
