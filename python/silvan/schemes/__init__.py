"""Schemes in Python: their file, their hooks, the checks of a response function."""
