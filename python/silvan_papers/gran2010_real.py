"""HPC Challenge itself, an unmodified program, in a live fabric of gran2010."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from silvan.errors import EmulationError
from silvan.inputs.toml_text import TomlValue
from silvan.live.emulation import Emulation
from silvan.live.live_programs import environment
from silvan.live.mpi import launch
from silvan.reproduce.experiment import PointTable
from silvan.reproduce.live import LiveExperiment
from silvan.reproduce.registry import find_paper, study
from silvan.results.hpcc import Numbers

_HOSTS: Final = ("V1", "V2")
_RANKS: Final = 4
_DEADLINE_S: Final = 3600
_INPUT: Final = "hpccinf.txt"
_OUTPUT: Final = "hpccoutf.txt"
# Keys of HPCC's summary, with the factors to the units of the slides.
_KEYS: Final = {
    "min_pingpong_latency": ("MinPingPongLatency_usec", 1e-3),
    "avg_pingpong_latency": ("AvgPingPongLatency_usec", 1e-3),
    "max_pingpong_latency": ("MaxPingPongLatency_usec", 1e-3),
    "natural_ring_latency": ("NaturallyOrderedRingLatency_usec", 1e-3),
    "random_ring_latency": ("RandomlyOrderedRingLatency_usec", 1e-3),
    "min_pingpong_bw": ("MinPingPongBandwidth_GBytes", 1e3),
    "avg_pingpong_bw": ("AvgPingPongBandwidth_GBytes", 1e3),
    "max_pingpong_bw": ("MaxPingPongBandwidth_GBytes", 1e3),
    "natural_ring_bw": ("NaturallyOrderedRingBandwidth_GBytes", 1e3),
    "random_ring_bw": ("RandomlyOrderedRingBandwidth_GBytes", 1e3),
    "ptrans": ("PTRANS_GBs", 1.0),
    "random_access": ("MPIRandomAccess_GUPs", 1.0),
    "fft": ("MPIFFT_Gflops", 1.0),
    "hpl": ("HPL_Tflops", 1e3),
}


def read_report(text: str) -> Numbers:
    """Read the summary of HPCC's output."""
    values = dict(re.findall(r"^(\w+)=(\S+)$", text, flags=re.MULTILINE))
    if values.get("Success") != "1":
        raise EmulationError("HPCC failed", f"{_OUTPUT} says why")
    return Numbers(**{name: float(values[key]) * factor for name, (key, factor) in _KEYS.items()})


def columns() -> Mapping[str, Mapping[str, TomlValue]]:
    """Give the changes of the parking lot's scenario for each column of the slides.

    The hosts have the memory and the rates of the modelled HPCC. Their software takes no time.
    """
    text = find_paper("gran2010").studies.joinpath("hpcc.toml").read_text("utf-8")
    hosts = {"traffic.messaging": tomllib.loads(text)["traffic"]["messaging"]}
    contributors: list[Mapping[str, TomlValue]] = [
        {"name": f"{name}-H", "from": name, "to": "H"} for name in ("C1", "C2", "C3")
    ]
    return {
        "a": {**hosts, "traffic.flow": [], "control.scheme": "none"},
        "b": {**hosts, "traffic.flow": contributors, "control.scheme": "none"},
        "c": {**hosts, "traffic.flow": contributors, "control.scheme": "ib-cc"},
    }


def run_column(changes: Mapping[str, TomlValue], folder: Path, name: str) -> Numbers:
    """Run HPCC in a fabric whose time follows it."""
    from silvan.child_processes import child

    report = folder / _OUTPUT
    if report.exists() and "Success=1" in report.read_text("utf-8", errors="replace"):
        return read_report(report.read_text("utf-8", errors="replace"))
    folder.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    given = find_paper("gran2010").studies.joinpath(_INPUT).read_text("utf-8")
    (folder / _INPUT).write_text(given, "utf-8")
    scenario = study("gran2010", "parking-lot").override(changes)
    with (
        Emulation(scenario, sockname=f"gran2010-{name}", time="auto") as one,
        (folder / "hpcc.log").open("w") as log,
    ):
        words, variables = launch(one.sockname, ["hpcc"], ranks=_RANKS, hosts=_HOSTS)
        given_variables = {**environment(one, folder), **variables}
        with child(words, cwd=folder, env=given_variables, stdout=log, stderr=log) as process:
            status = process.wait(_DEADLINE_S)
    if status or not report.exists():
        raise EmulationError(f"HPCC ended with status {status}", f"see {folder / 'hpcc.log'}")
    return read_report(report.read_text("utf-8", errors="replace"))


def run(folder: Path, modelled: PointTable, note: Callable[[str], None]) -> PointTable:
    """Run HPCC in all columns; tabulate it beside the slides and the model."""
    if shutil.which("hpcc") is None:
        raise EmulationError("hpcc is not installed", "apt-get install hpcc")
    real = {}
    for name, changes in columns().items():
        note(f"HPCC, column {name}: some minutes")
        real[name] = asdict(run_column(changes, folder / f"column-{name}", name))
    known = find_paper("gran2010").targets
    rows: list[tuple[float | str, ...]] = []
    for row in modelled.rows:
        name, model_b, model_c = str(row[0]), float(row[-2]), float(row[-1])
        a, b, c = (real[column][name] for column in real)
        slides = (known[f"hpcc.{name}.{column}"].value or 0.0 for column in ("cc_off", "cc_on"))
        slides_b, slides_c = slides
        rows.append((name, a, b, c, slides_b, model_b, b / a, slides_c, model_c, c / a))
    header = ("row", "real a", "real b", "real c", "slides b/a", "model b/a", "real b/a")
    return PointTable((*header, "slides c/a", "model c/a", "real c/a"), tuple(rows))


REAL = LiveExperiment("real", "HPCC, the program, in a live fabric", "hpcc", run)
