"""Receiver-driven: a packet of each flow is free, every other one needs a grant of its receiver."""

import numpy as np

import silvan

LIMIT, MTU = 20 * 2048, 2048
# State of a sender towards a host, of a host towards its senders, and of a host.
CREDIT, SEEN, GRANTED, TURN = range(4)


def release(state, now, source, destination, sl):
    return now if state[CREDIT, source, destination] >= MTU else silvan.NEVER


def on_send(state, now, source, destination, sl, wire_time, payload):
    state[CREDIT, source, destination] -= payload


def on_grant(state, now, source, destination, sl, granted):
    state[CREDIT, source, destination] += granted
    return True


def on_receive(
    state, now, source, destination, sl, payload, marked, last, sent, behind, takes, grants
):
    seen, granted, turn = state[SEEN, destination], state[GRANTED], state[TURN]
    if seen[source]:
        granted[destination, 0] -= payload
    seen[source] = 1
    for grant in grants[:2]:
        if granted[destination, 0] + MTU > LIMIT:
            return
        sender = (int(turn[destination, 0]) + 1) % len(seen)
        while not seen[sender]:
            sender = (sender + 1) % len(seen)
        turn[destination, 0] = sender
        granted[destination, 0] += MTU
        grant.source, grant.sl, grant.bytes, grant.at = sender, sl, MTU, now


def scheme(setup):
    state = np.zeros((4, setup.hosts, setup.hosts))
    state[CREDIT] = MTU
    functions = {"release": release, "on_send": on_send}
    functions |= {"on_grant": on_grant, "on_receive": on_receive}
    return silvan.Callbacks(state, **functions)
