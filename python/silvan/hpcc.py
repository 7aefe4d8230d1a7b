"""The communication of the HPC Challenge benchmark: its numbers."""

from silvan.results.hpcc import Numbers, numbers

__all__ = ["Numbers", "numbers"]
