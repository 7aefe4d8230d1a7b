"""The scheme `half` of the guide, as a file that scenarios name."""

import numpy as np

import silvan

# Acknowledgements carry the marks back.
CARRIER = "ack-per-packet"
RATE, NEXT = 0, 1
THRESHOLD, STEP = (-1, 0, 0), (-1, 0, 1)


def on_departure(state, now, port_vl, queued_bytes, has_credit, wire_bytes, marked, input_port):
    return queued_bytes >= state[THRESHOLD]


def release(state, now, source, destination, sl):
    return int(state[source, destination, NEXT])


def on_send(state, now, source, destination, sl, wire_time, payload):
    rate = state[source, destination, RATE]
    if rate < 1:
        state[source, destination, NEXT] = now + int(wire_time / rate)


def on_feedback(state, now, source, destination, sl, acknowledged, marked):
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


def scheme(setup):
    # A row in addition to those of the hosts, for the parameters.
    state = np.zeros((setup.hosts + 1, setup.hosts, 2))
    state[:-1, :, RATE] = 1
    state[THRESHOLD] = setup.parameters.get("threshold", 10_000)
    state[STEP] = setup.parameters.get("step", 0.001)
    return silvan.Callbacks(
        state,
        on_departure=on_departure,
        release=release,
        on_send=on_send,
        on_feedback=on_feedback,
    )
