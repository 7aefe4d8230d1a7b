"""Congestion trees of a run, instant by instant."""

from silvan.results.forest import Forests, Snapshot, tree_lives

__all__ = ["Forests", "Snapshot", "tree_lives"]
