"""Number of the papers' statements that hold, from the record of ``make check-papers``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from marked import replaced

from silvan.reproduce import find_paper, papers
from silvan.reproduce.targets import Target

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "reproductions" / "record.toml"
README = ROOT / "README.md"
TOOL = "generate_reference"

# Measurements of a machine, whose goals are no statements of a paper.
MACHINES = ("leonardo2025",)


@dataclass(frozen=True, slots=True)
class Statement:
    """A number or a shape that a paper states, and its reproduction.

    Attributes
    ----------
    paper : str
        Short name of the paper.
    target : Target
        The statement.
    is_within : bool
        The reproduction is within the tolerance in the paper's averaging window.
    measured : float, optional
        The reproduced number; None for a shape, and for a number that no experiment reproduces.
    """

    paper: str
    target: Target
    is_within: bool
    measured: float | None


def statements() -> list[Statement]:
    """List the statements of all recorded papers, in the papers' order."""
    record = tomllib.loads(RECORD.read_text("utf-8"))
    found = []
    for paper in papers():
        for name, target in find_paper(paper).targets.items() if paper in record else ():
            entry = record[paper].get(name, {"within_tolerance": False, "measured": None})
            one = Statement(paper, target, entry["within_tolerance"], entry.get("measured"))
            found.append(one)
    return found


def _counts(some: list[Statement]) -> str:
    within = sum(one.is_within for one in some)
    return f"{within} of {len(some)}" if some else ""


def _predicted(some: list[Statement], *, is_number: bool) -> list[Statement]:
    return [
        one
        for one in some
        if not one.target.calibrate and (one.target.value is not None) is is_number
    ]


def _measured(one: Statement) -> str:
    if one.measured is not None:
        return f"{one.measured:.4g}"
    return "not run" if one.target.value is not None else ""


def claim() -> str:
    """Write the sentence of the README."""
    every = [one for one in statements() if one.paper not in MACHINES]
    goals = [one for one in statements() if one.paper in MACHINES]
    numbers, shapes = _predicted(every, is_number=True), _predicted(every, is_number=False)
    fitted = sum(one.target.calibrate for one in every)
    return (
        f"{_counts(numbers)} stated numbers and {_counts(shapes)} shapes of curves of five papers\n"
        "are reproduced within tolerance.\n"
        f"Another {fitted} numbers were fitted and do not count.\n"
        f"Of the goals for congestion measured on Leonardo, {_counts(goals)} are met."
    )


def page() -> str:
    """Write the page of all papers: how many statements hold, and the list of the others."""
    every = statements()
    lines = [
        "# Papers reproduced",
        "",
        "Generated from the code by `make reference`; do not edit. `make check-papers` runs all",
        "papers and compares with the record that this page counts. The",
        "[glossary](../guide/glossary.md) explains the abbreviations.",
        "",
        claim(),
        "",
        "| paper | numbers within tolerance | shapes within tolerance | fitted numbers |",
        "|---|---|---|---|",
    ]
    for paper in dict.fromkeys(one.paper for one in every):
        some = [one for one in every if one.paper == paper]
        numbers, shapes = _predicted(some, is_number=True), _predicted(some, is_number=False)
        fitted = sum(one.target.calibrate for one in some)
        lines.append(
            f"| [{paper}]({paper}.md) | {_counts(numbers)} | {_counts(shapes)} | {fitted} |"
        )
    lines += [
        "",
        "## Not within tolerance",
        "",
        "The page of each paper says why, as far as this is known.",
        "",
        "| paper | statement | paper's number | silvan | tolerance |",
        "|---|---|---|---|---|",
    ]
    for one in every:
        if not one.is_within:
            target = one.target
            cells = (
                one.paper,
                f"`{target.id}`: {target.what or target.shape}",
                "" if target.value is None else f"{target.value:.4g}",
                _measured(one),
                "" if target.tol is None else f"{target.tol:.0%}",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def readme() -> str:
    """Write the README with its sentence on papers up to date."""
    return replaced(README.read_text("utf-8"), claim(), TOOL)
