"""Packet spraying: the packets of a host take all paths in turn."""

import numpy as np

import silvan


def select_path(state, now, source, destination, sl):
    state[source] += 1
    return state[source] - 1


def scheme(setup):
    return silvan.Callbacks(np.zeros(setup.hosts), select_path=select_path)
