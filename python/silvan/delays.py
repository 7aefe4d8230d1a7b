"""Delays of programs by other programs, from the congestion trees of a run."""

from silvan.results.delays import OTHER, delays

__all__ = ["OTHER", "delays"]
