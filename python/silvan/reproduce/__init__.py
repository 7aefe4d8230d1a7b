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
from silvan.reproduce.registry import Paper, experiments, find_paper, papers, study
from silvan.reproduce.targets import Target, read_targets

__all__ = [
    "Case",
    "Experiment",
    "Finding",
    "Measurement",
    "Paper",
    "PointTable",
    "Row",
    "ShapeRow",
    "Target",
    "Verdict",
    "compare",
    "experiments",
    "find_paper",
    "papers",
    "read_targets",
    "study",
]
