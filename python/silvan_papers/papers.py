"""Papers of this package, made of their files and their experiments."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable

from silvan.reproduce.experiment import Experiment
from silvan.reproduce.registry import Paper
from silvan.reproduce.targets import Target, read_targets, read_unmeasured


def targets_file(name: str) -> Traversable:
    """Return the file of a paper's targets."""
    return resources.files("silvan_papers").joinpath("targets", f"{name}.toml")


def paper(
    name: str, experiments: tuple[Experiment, ...], more: Mapping[str, Target] | None = None
) -> Paper:
    """Make a paper of the studies and targets under its name; ``more`` targets come first."""
    studies = resources.files("silvan_papers").joinpath("studies", name)
    file = targets_file(name)
    targets = {**(more or {}), **read_targets(file)}
    fit = resources.files("silvan_papers").joinpath("fits", f"{name}.toml")
    stated = fit if fit.is_file() else None
    return Paper(name, studies, targets, experiments, stated, read_unmeasured(file))
