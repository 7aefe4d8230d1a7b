"""HPCC (Y. Li et al., SIGCOMM 2019, algorithm 1): a window by the load of the busiest hop."""

import numpy as np

import silvan

ETA, MOST_STAGES, RTT, INCREASE, MTU = 0.95, 5, 3e6, 80.0, 2048
WINDOW, REFERENCE, LOAD, STAGE, ROUND, IN_FLIGHT, NEXT, HOPS = range(8)
AT, QUEUED, XMIT = range(3)
LINK = 100e9 / 8e12 * RTT


def stamps(state, now, port_vl):
    return True


def release(state, now, source, destination, sl):
    flow = state[source, destination]
    if flow[IN_FLIGHT] > 0 and flow[IN_FLIGHT] + MTU > flow[WINDOW]:
        return silvan.NEVER
    return int(flow[NEXT])


def on_send(state, now, source, destination, sl, wire_time, payload):
    flow = state[source, destination]
    flow[IN_FLIGHT] += payload
    flow[NEXT] = now + int(payload * RTT / flow[WINDOW])


def on_ack(state, now, source, destination, sl, acknowledged, marked, sent, endpoint, path, hops):
    flow = state[source, destination]
    load, span = 0.0, 0.0
    for number, hop in enumerate(hops):
        last = flow[HOPS + 3 * number : HOPS + 3 * number + 3]
        rate, passed = hop.rate / 8e12, hop.at - last[AT]
        found = min(hop.queued_bytes, last[QUEUED]) / (rate * RTT)
        found += (hop.xmit_bytes - last[XMIT]) / passed / rate
        if found > load:
            load, span = found, min(passed, RTT)
        last[AT], last[QUEUED], last[XMIT] = hop.at, hop.queued_bytes, hop.xmit_bytes
    flow[IN_FLIGHT] -= acknowledged
    flow[LOAD] = (1 - span / RTT) * flow[LOAD] + span / RTT * load
    factor, stage = 1.0, flow[STAGE] + 1
    if flow[LOAD] >= ETA or flow[STAGE] >= MOST_STAGES:
        factor, stage = ETA / flow[LOAD], 0.0
    flow[WINDOW] = min(max(flow[REFERENCE] * factor + INCREASE, 256.0), LINK)
    if sent >= flow[ROUND]:
        flow[REFERENCE], flow[STAGE], flow[ROUND] = flow[WINDOW], stage, now
    return True


def scheme(setup):
    state = np.zeros((setup.hosts, setup.hosts, 14))
    state[:, :, [WINDOW, REFERENCE]] = LINK
    functions = {"stamps": stamps, "release": release, "on_send": on_send, "on_ack": on_ack}
    return silvan.Callbacks(state, **functions)
