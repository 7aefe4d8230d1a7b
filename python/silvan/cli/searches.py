"""Options that the searches share, `silvan tune` and `silvan fit`."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from silvan.cli.printer import note
from silvan.errors import shown

Trials = Annotated[
    int, typer.Option(min=1, metavar="N", help="Values to try, the starting ones included.")
]
SamplerSeed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        max=2**32 - 1,
        help="Seed of the sampler: equal seeds try equal values.",
    ),
]
OutFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Folder to keep runs in, and to go on from.",
        show_default=False,
    ),
]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="Time on the wall clock after which no further trials begin, such as '10 min'. Repeat "
        "the command to continue.",
        show_default=False,
    ),
]
Scheduler = Annotated[
    str,
    typer.Option(
        metavar="WHERE",
        help="local: the cores of this machine; tcp://HOST:PORT: a running Dask cluster; "
        "slurm: jobs of Slurm.",
    ),
]


def begin_on(scheduler: str) -> None:
    """Print that the command waits for a scheduler, in place of Dask's log."""
    logging.disable()
    if "://" in scheduler:
        from silvan.sweeping.cluster import ANSWER_S
        from silvan.sweeping.sweep import require_scheduler

        require_scheduler(scheduler)
        note(f"asking the scheduler at {shown(scheduler)}, for {ANSWER_S} s at most")


Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Processes at once, by default one per core; with Slurm, jobs at once.",
        show_default=False,
    ),
]
Batch = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Trials drawn together, before any of their results is known; more keep more workers "
        "busy. A changed number starts another search.",
    ),
]
