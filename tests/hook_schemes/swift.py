"""Swift (G. Kumar et al., SIGCOMM 2020, algorithm 1): a window by the delay of the round trip."""

import numpy as np

import silvan

TARGET, BETA, LARGEST_DECREASE, MTU = 10e6, 0.8, 0.5, 2048
WINDOW, IN_FLIGHT, DECREASED = range(3)


def release(state, now, source, destination, sl):
    flow = state[source, destination]
    return silvan.NEVER if flow[IN_FLIGHT] > 0 and flow[IN_FLIGHT] + MTU > flow[WINDOW] else now


def on_send(state, now, source, destination, sl, wire_time, payload):
    state[source, destination, IN_FLIGHT] += payload


def on_ack(state, now, source, destination, sl, acknowledged, marked, sent, endpoint, path, hops):
    flow = state[source, destination]
    flow[IN_FLIGHT] -= acknowledged
    delay = now - sent
    if delay < TARGET:
        flow[WINDOW] += MTU * acknowledged / flow[WINDOW]
    elif now - flow[DECREASED] >= delay:
        kept = max(1 - BETA * (delay - TARGET) / delay, 1 - LARGEST_DECREASE)
        flow[WINDOW] = max(flow[WINDOW] * kept, 256.0)
        flow[DECREASED] = now
    return True


def scheme(setup):
    state = np.zeros((setup.hosts, setup.hosts, 3))
    state[:, :, WINDOW] = 16 * MTU
    return silvan.Callbacks(state, release=release, on_send=on_send, on_ack=on_ack)
