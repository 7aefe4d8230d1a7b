"""Reproducing papers: their studies, and their numbers next to those of silvan."""

from silvan.reproduce.experiment import (
    Case,
    ClauseResult,
    Experiment,
    Measurement,
    PointTable,
    ShapeRow,
    TargetRow,
    Verdict,
    compare,
)
from silvan.reproduce.registry import Paper, experiments, find_paper, papers, study
from silvan.reproduce.targets import Target, Unmeasured, read_targets, read_unmeasured

__all__ = [
    "Case",
    "ClauseResult",
    "Experiment",
    "Measurement",
    "Paper",
    "PointTable",
    "ShapeRow",
    "Target",
    "TargetRow",
    "Unmeasured",
    "Verdict",
    "compare",
    "experiments",
    "find_paper",
    "papers",
    "read_targets",
    "read_unmeasured",
    "study",
]
