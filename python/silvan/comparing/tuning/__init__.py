"""Searches over parameters: settings for an objective, and parameters fitted to numbers.

Every run is a point of a sweep's folder. A search is a function of its seed and these points, so a
stopped search continues.
"""
