"""Searches over parameters; every run is a point in the folder of a sweep."""
