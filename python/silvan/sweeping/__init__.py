"""Sweeps: a scenario at every point of a grid. Each finished point is written at once."""
