"""Forwarding tables by any routing engine of OpenSM, for simulation without it."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.emulation import Emulation
from silvan.errors import EmulationError
from silvan.live_programs import attached, wait_for

if TYPE_CHECKING:
    from silvan.scenario import Scenario

LEVELED = ("lash",)
"""Engines whose routes cannot deadlock only if each path has the service level that they give it,
which all switches map to a lane of its own."""

_SECONDS = 3600


def route(scenario: Scenario, engine: str, options: Sequence[str] = ()) -> str:
    """Let OpenSM route a scenario's fabric, and give its forwarding tables.

    Parameters
    ----------
    scenario : Scenario
        Whose fabric to route.
    engine : str
        OpenSM's routing engine, such as ``ftree``.
    options : sequence of str, optional
        Further options for ``opensm``.

    Returns
    -------
    str
        The tables of all switches, in the form of ``dump_lfts``. Of engines that give paths service
        levels (:data:`LEVELED`), a level other than 0 stands behind the destination.

    Raises
    ------
    EmulationError
        If OpenSM is not installed, or does not route the fabric by this engine.
    """
    name = f"silvan-route-{os.getpid()}"
    with (
        tempfile.TemporaryDirectory(prefix="silvan-route-") as folder,
        Emulation(scenario, sockname=name, paused=True) as emulation,
        Path(folder, "said").open("w+", errors="replace") as said,
    ):
        log = Path(folder, "opensm.log")

        def logged() -> str:
            return log.read_text(errors="replace") if log.exists() else ""

        # With this level of debugging every line of the log is there at once.
        words = ["opensm", "--debug", "2", "--routing_engine", engine, "--log_file", str(log)]
        with attached(
            emulation,
            Path(folder),
            [*words, *options],
            stdout=said.fileno(),
            stderr=subprocess.STDOUT,
        ) as process:
            wait_for(
                lambda: process.poll() is not None or "SUBNET UP" in logged(),
                "OpenSM has not brought up the fabric",
                _SECONDS,
            )
            text = logged()
            if "SUBNET UP" not in text:
                said.seek(0)
                last = (said.read().strip().splitlines() or ["it said nothing"])[-1]
                raise EmulationError(f"OpenSM has not brought up the fabric: {last}")
            used = re.findall(r"(\S+) tables configured on all switches", text)
            if not used or used[-1] != engine:
                instead = used[-1] if used else "none"
                raise EmulationError(
                    f"OpenSM has not routed this fabric by {engine}, but by {instead}",
                    "the engine may not fit the topology, or its name may be misspelled",
                )
            if engine in LEVELED:
                _ask_paths(emulation)
            return str(emulation.control("tables", levels=engine in LEVELED)["tables"])


def _ask_paths(emulation: Emulation) -> None:
    """Let hosts ask OpenSM for the service levels of their paths."""

    def paths() -> dict[str, int]:
        return dict(emulation.control("status")["paths"])

    before = paths()["answered"]
    questions = emulation.control("ask-paths")["questions"]
    complaint = "OpenSM has not said the service levels of all paths"
    wait_for(lambda: paths()["unanswered"] == 0, complaint, _SECONDS)
    # Without a subnet manager nobody waits for answers.
    if paths()["answered"] - before != questions:
        raise EmulationError(complaint)
