"""Congestion trees in lossless fabrics: grown, shown and pruned.

A :class:`Scenario` describes one simulation: the fabric, its links and buffers, the traffic, and
the congestion control.
:func:`run` simulates it, and the :class:`Result` holds Arrow tables and measures. :func:`sweep`
runs it at every point of a grid, :func:`compare` with every scheme. :func:`saturate` finds the load
that its fabric can carry, :func:`tune` settings of its congestion control. A :class:`Network`
carries the messages of a program, step by step.

Examples
--------
Four hosts on one switch, three of them sending to the fourth:

>>> import silvan
>>> scenario = silvan.Scenario(
...     fabric={"generator": "single-switch", "hosts": 4},
...     traffic={"incast": [{"to": "host-0000"}]},
...     run={"duration": "100 us"},
... )
>>> result = silvan.run(scenario, seed=1)
>>> sum(result.hosts["delivered_bytes"].to_pylist()) > 0
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from silvan.comparing.comparison import compare
    from silvan.comparing.tuning.tune import tune
    from silvan.errors import (
        EmulationError,
        EvaluationError,
        ManagerError,
        MissingExtraError,
        OutputError,
        ProgramError,
        ScenarioError,
        ScenarioWarning,
        SchedulerError,
        SchemeError,
        SilvanError,
        SimulationError,
        UnsupportedSystemError,
    )
    from silvan.execution.network import Event, Network
    from silvan.execution.simulation import Progress, run
    from silvan.figures.result_plots import plot
    from silvan.inputs.scenario import Scenario, reference, schema
    from silvan.planning.saturation import saturate
    from silvan.results.result import Result
    from silvan.schemes.callbacks import NEVER, Callbacks
    from silvan.schemes.response import Response
    from silvan.schemes.scheme_file import SchemeSetup
    from silvan.sweeping.sweep import SweepProgress, SweepResult, sweep

    __version__: str

# Public names load on first use, so that `silvan --help` and `import silvan` need no Arrow or
# NumPy.
_HOME = {
    "NEVER": "silvan.schemes.callbacks",
    "Callbacks": "silvan.schemes.callbacks",
    "EmulationError": "silvan.errors",
    "EvaluationError": "silvan.errors",
    "Event": "silvan.execution.network",
    "ManagerError": "silvan.errors",
    "MissingExtraError": "silvan.errors",
    "Network": "silvan.execution.network",
    "OutputError": "silvan.errors",
    "ProgramError": "silvan.errors",
    "Progress": "silvan.execution.simulation",
    "Response": "silvan.schemes.response",
    "Result": "silvan.results.result",
    "Scenario": "silvan.inputs.scenario",
    "ScenarioError": "silvan.errors",
    "ScenarioWarning": "silvan.errors",
    "SchedulerError": "silvan.errors",
    "SchemeError": "silvan.errors",
    "SchemeSetup": "silvan.schemes.scheme_file",
    "SilvanError": "silvan.errors",
    "SimulationError": "silvan.errors",
    "SweepProgress": "silvan.sweeping.sweep",
    "SweepResult": "silvan.sweeping.sweep",
    "UnsupportedSystemError": "silvan.errors",
    "compare": "silvan.comparing.comparison",
    "plot": "silvan.figures.result_plots",
    "reference": "silvan.inputs.scenario",
    "run": "silvan.execution.simulation",
    "saturate": "silvan.planning.saturation",
    "schema": "silvan.inputs.scenario",
    "sweep": "silvan.sweeping.sweep",
    "tune": "silvan.comparing.tuning.tune",
}

__all__ = [
    "NEVER",
    "Callbacks",
    "EmulationError",
    "EvaluationError",
    "Event",
    "ManagerError",
    "MissingExtraError",
    "Network",
    "OutputError",
    "ProgramError",
    "Progress",
    "Response",
    "Result",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "SchedulerError",
    "SchemeError",
    "SchemeSetup",
    "SilvanError",
    "SimulationError",
    "SweepProgress",
    "SweepResult",
    "UnsupportedSystemError",
    "__version__",
    "compare",
    "plot",
    "reference",
    "run",
    "saturate",
    "schema",
    "sweep",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = importlib.import_module("silvan._silvan").version()
    elif name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'silvan' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
