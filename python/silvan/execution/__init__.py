"""Execution of runs: one simulation, worker processes, child processes, finished runs."""
