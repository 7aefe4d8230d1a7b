"""Proactive flow throttling at the host's network interface (IFIP 2021)."""

from __future__ import annotations

from silvan_papers.papers import paper
from silvan_papers.pft2021_gpcnet import FIG3_4, FIG5, THRESHOLDS
from silvan_papers.pft2021_interface import FIG1

EXPERIMENTS = (FIG1, FIG3_4, FIG5, THRESHOLDS)

PAPER = paper("pft2021", EXPERIMENTS)
