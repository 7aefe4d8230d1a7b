"""Making the scheme of a scenario in another process, to see whether its file can be used."""

from __future__ import annotations

import time
from collections.abc import Callable

from silvan._silvan import scheme_names
from silvan.errors import SchemeError
from silvan.execution.processes import Died, Pool, Raised
from silvan.execution.simulation import Progress
from silvan.inputs.scenario import Scenario
from silvan.schemes.scheme_file import scheme_of


def is_in_python(name: object) -> bool:
    """Tell whether a value of ``control.scheme`` is a scheme in Python, that of a plug-in too.

    >>> is_in_python("python"), is_in_python("ib-cc"), is_in_python(None)
    (True, False, False)
    """
    return isinstance(name, str) and (name == "python" or name not in scheme_names())


def require_scheme(scenario: Scenario, seed: int, limit_s: float | None = None) -> None:
    """Check in a worker process that a scheme in Python can be built; a timeout is no error."""
    scheme = scenario._native.python_scheme()
    if scheme is None:
        return
    deadline = None if limit_s is None else time.monotonic() + limit_s
    with Pool(1) as pool:
        pool.submit(0, _make, scenario, seed)
        while not pool.is_idle:
            left_s = None if deadline is None else deadline - time.monotonic()
            if left_s is not None and left_s <= 0:
                pool.kill(0)
                return
            for event in pool.wait(left_s):
                match event:
                    case Raised(_, error):
                        raise error
                    case Died(_, how):
                        raise SchemeError(
                            f"the file ended its process ({how})",
                            scheme[1],
                            hint="the file is run before the simulation; correct it",
                        )
                    case _:
                        pass


def _make(scenario: Scenario, seed: int, report: Callable[[Progress], object]) -> None:
    del report
    scheme_of(scenario, seed)
