"""Searches over parameters: settings that serve an objective, and parameters fitted to numbers.

Every run is a point of a sweep's folder. A search is a function of its seed and of these points, so
one that was stopped is repeated from the points on disk and goes on where it was.
"""
