"""Which program delayed which: the congestion trees of a run, by the programs of their hosts."""

from silvan.results.delays import OTHER, delays

__all__ = ["OTHER", "delays"]
