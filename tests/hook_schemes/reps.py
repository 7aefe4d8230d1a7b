"""REPS (T. Bonato et al., EuroSys 2025): a path that delivers unmarked is taken again."""

import numba
import numpy as np

import silvan

THRESHOLD, KEPT, ENTROPIES = 20_000, 8, 2**16
FIRST, COUNT = KEPT, KEPT + 1
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@numba.njit
def mixed(number):
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


def on_departure(state, now, port_vl, queued_bytes, has_credit, wire_bytes, marked, input_port):
    return queued_bytes > THRESHOLD


def select_path(state, now, source, destination, sl):
    flow = state[source, destination]
    if flow[COUNT] > 0:
        flow[COUNT] -= 1
        path = flow[int(flow[FIRST])]
        flow[FIRST] = (flow[FIRST] + 1) % KEPT
        return int(path)
    # Behind all hosts: the start of the stream in halves, and how many numbers are drawn.
    host = state[-1, source]
    start = (np.uint64(host[0]) << np.uint64(32)) | np.uint64(host[1])
    host[2] += 1
    number = mixed(start + GOLDEN * np.uint64(host[2]))
    return int(number >> np.uint64(48))


def on_ack(state, now, source, destination, sl, acknowledged, marked, sent, endpoint, path, hops):
    if marked == 0 and path >= 0:
        flow = state[source, destination]
        flow[int(flow[FIRST] + flow[COUNT]) % KEPT] = path
        if flow[COUNT] < KEPT:
            flow[COUNT] += 1
        else:
            flow[FIRST] = (flow[FIRST] + 1) % KEPT
    return False


def scheme(setup):
    state = np.zeros((setup.hosts + 1, setup.hosts, KEPT + 2))
    state[-1, :, 0:3] = [stream(setup.seed ^ 0x414441505445, host) for host in range(setup.hosts)]
    functions = {"on_departure": on_departure, "select_path": select_path, "on_ack": on_ack}
    return silvan.Callbacks(state, **functions)


def stream(seed, number):
    with np.errstate(over="ignore"):
        start = mixed(np.uint64(seed) + GOLDEN) ^ mixed(~np.uint64(number) + GOLDEN)
    return int(start >> np.uint64(32)), int(start & np.uint64(2**32 - 1)), 0
