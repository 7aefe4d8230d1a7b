"""Reproducing papers: their studies, their numbers, and ours beside them."""

from silvan.reproduce.experiment import (
    Case,
    Experiment,
    Finding,
    Measurement,
    PointTable,
    Row,
    ShapeRow,
    Verdict,
    compare,
)
from silvan.reproduce.registry import experiments, papers
from silvan.reproduce.targets import Target, load_targets

__all__ = [
    "Case",
    "Experiment",
    "Finding",
    "Measurement",
    "PointTable",
    "Row",
    "ShapeRow",
    "Target",
    "Verdict",
    "compare",
    "experiments",
    "load_targets",
    "papers",
]
