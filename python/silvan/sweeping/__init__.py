"""Sweeps: a scenario run at every point of a grid, on this machine or on a cluster.

Each finished point is on disk before the next one of its worker starts, so a sweep may be killed
at any moment and goes on where it was.
"""
