"""The benchmark GPCNeT: its parts, its statistics and its table."""

from silvan.comparing.gpcnet import measure, part
from silvan.results.gpcnet import (
    PARTS,
    Report,
    Statistics,
    Test,
    congestor_rates,
    report,
    statistics,
    test,
    tests,
    text,
    values,
)

__all__ = [
    "PARTS",
    "Report",
    "Statistics",
    "Test",
    "congestor_rates",
    "measure",
    "part",
    "report",
    "statistics",
    "test",
    "tests",
    "text",
    "values",
]
