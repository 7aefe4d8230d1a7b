"""Sweeps: a scenario at every point of a grid, on this machine or on a cluster.

Each finished point is written at once, so a killed sweep continues.
"""
