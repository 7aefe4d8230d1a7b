"""A scheme: a mark halves a flow's rate, an acknowledgement without one raises it by a step."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from silvan import Callbacks, SchemeSetup
from silvan.plugins import Quantity, Scheme, Size

CARRIER = "ack-per-packet"
RATE, NEXT = 0, 1
THRESHOLD, STEP = (-1, 0, 0), (-1, 0, 1)


@dataclass(frozen=True)
class Keys:
    threshold: Size = Quantity("10 kB")
    step: float = 0.001


def on_departure(
    state: Any,
    now: int,
    port_vl: int,
    queued_bytes: int,
    has_credit: int,
    wire_bytes: int,
    marked: int,
    input_port: int,
) -> Any:
    return queued_bytes >= state[THRESHOLD]


def release(state: Any, now: int, source: int, destination: int, sl: int) -> int:
    return int(state[source, destination, NEXT])


def on_send(
    state: Any, now: int, source: int, destination: int, sl: int, wire_time: int, payload: int
) -> None:
    rate = state[source, destination, RATE]
    if rate < 1:
        state[source, destination, NEXT] = now + int(wire_time / rate)


def on_feedback(
    state: Any, now: int, source: int, destination: int, sl: int, acknowledged: int, marked: int
) -> bool:
    rate = state[source, destination, RATE]
    if marked:
        if rate >= 1:
            state[source, destination, NEXT] = now
        state[source, destination, RATE] = max(rate / 2, 1 / 256)
    elif rate < 1:
        state[source, destination, RATE] = min(rate + state[STEP], 1.0)
        if rate + state[STEP] >= 1:
            state[source, destination, NEXT] = 0
    return False


def scheme(setup: SchemeSetup) -> Callbacks:
    """Halve the rate of a flow at a mark."""
    # The row behind those of the hosts has the keys.
    state = np.zeros((setup.hosts + 1, setup.hosts, 2))
    state[:-1, :, RATE] = 1
    state[THRESHOLD] = setup.parameters["threshold"]
    state[STEP] = setup.parameters["step"]
    return Callbacks(
        state,
        on_departure=on_departure,
        release=release,
        on_send=on_send,
        on_feedback=on_feedback,
    )


HALVING = Scheme(scheme, Keys)
