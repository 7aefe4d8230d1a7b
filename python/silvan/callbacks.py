"""A congestion-control scheme of one's own, in Python functions that numba compiles."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from silvan.errors import SchemeError, SilvanError

if TYPE_CHECKING:
    import numpy.typing as npt

HOOKS: dict[str, tuple[Sequence[str], bool]] = {
    "on_queued": (("now", "port_vl", "queued_bytes", "has_credit", "wire_bytes"), False),
    "on_departure": (
        ("now", "port_vl", "queued_bytes", "has_credit", "wire_bytes", "marked"),
        True,
    ),
    "release": (("now", "source", "destination", "sl"), True),
    "host_release": (("now", "host"), True),
    "on_flow_start": (("now", "source", "destination", "sl"), False),
    "on_send": (("now", "source", "destination", "sl", "wire_time", "payload"), False),
    "on_feedback": (("now", "source", "destination", "sl", "acknowledged", "marked"), True),
    "on_credit": (("now", "host", "used", "capacity"), False),
}
"""Arguments of each function after the state, and whether it gives something back."""

_FUNCTIONS_KEPT = 64

NEVER = 2**63 - 1
"""What ``release`` and ``host_release`` give if only feedback or credits can end the wait."""


class Callbacks:
    """A scheme in functions: what happens at switches and hosts, and when flows may send.

    Every function takes the state and whole numbers; times are in picoseconds. numba compiles them,
    which ``pip install "silvan[numba]"`` brings, and they run without the interpreter. One that is
    left out does nothing.

    Parameters
    ----------
    state : array_like of float
        What the functions remember, in any shape; each gets a view of it as its first argument.
        Every run starts with a copy.
    on_queued : callable, optional
        ``(state, now, port_vl, queued_bytes, has_credit, wire_bytes)``: a packet has been queued
        for an output Port VL of a switch.
    on_departure : callable, optional
        ``(state, now, port_vl, queued_bytes, has_credit, wire_bytes, marked)``: one leaves. Gives
        whether to mark it.
    release : callable, optional
        ``(state, now, source, destination, sl)``: gives when the flow may start its next packet.
    host_release : callable, optional
        ``(state, now, host)``: gives when the host may, whatever the flow.
    on_flow_start : callable, optional
        ``(state, now, source, destination, sl)``: a new flow starts between these hosts.
    on_send : callable, optional
        ``(state, now, source, destination, sl, wire_time, payload)``: the flow starts a packet.
    on_feedback : callable, optional
        ``(state, now, source, destination, sl, acknowledged, marked)``: an acknowledgement of so
        many bytes, or a notification (0 bytes), has arrived. Gives whether the flow may be able to
        send earlier than ``release`` last said.
    on_credit : callable, optional
        ``(state, now, host, used, capacity)``: so many of the credits of the host's own link, in
        blocks of 64 bytes, are taken now.

    Raises
    ------
    SilvanError
        numba is not installed, or there is no such function.
    SchemeError
        numba cannot compile a function, or it has other arguments.

    See Also
    --------
    silvan.run : takes it as ``control``.
    """

    def __init__(self, state: npt.ArrayLike, **functions: Callable[..., object]) -> None:
        self.state = np.ascontiguousarray(state, dtype=np.float64)
        unknown = [name for name in functions if name not in HOOKS]
        if unknown:
            raise SilvanError(
                f"there is no call {unknown[0]!r} of a scheme", f"known: {', '.join(HOOKS)}"
            )
        # The compiled functions live as long as these objects.
        self._compiled = {
            name: _compile(name, function, self.state.shape) for name, function in functions.items()
        }

    def addresses(self) -> dict[str, int]:
        """Give the address of every function, for the compiled module."""
        return {name: int(compiled.address) for name, compiled in self._compiled.items()}


@lru_cache(_FUNCTIONS_KEPT)
def _compile(name: str, function: Callable[..., object], shape: tuple[int, ...]) -> Any:
    """Compile a function for the C calling convention, with the state as an array of its shape."""
    try:
        import numba
    except ImportError:
        raise SilvanError(
            "numba is not installed", 'pip install "silvan[numba]" brings it'
        ) from None
    arguments, gives = HOOKS[name]
    found = list(inspect.signature(function).parameters)
    if len(found) != len(arguments) + 1:
        wanted = ", ".join(("state", *arguments))
        raise SchemeError(
            f"{name} takes {len(found)} arguments, not {len(arguments) + 1}",
            *_place(function),
            hint=f"write def {name}({wanted})",
        )
    inner = numba.njit(function)
    wide = numba.types.int64
    result = wide if gives else numba.types.void
    signature = result(numba.types.CPointer(numba.types.float64), *[wide] * len(arguments))
    names: dict[str, Any] = {"inner": inner, "carray": numba.carray, "shape": shape}
    # numba wants the arguments by name, and there are five different numbers of them.
    listed = ", ".join(arguments)
    call = f"inner(carray(pointer, shape), {listed})"
    body = f"return int({call})" if gives else call
    exec(f"def outer(pointer, {listed}):\n    {body}\n", names)
    try:
        return numba.cfunc(signature)(names["outer"])
    except numba.core.errors.NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        # numba wraps what is wrong into where it was noticed.
        wrong = (line for line in lines if line and not line.startswith("Failed in nopython"))
        raise SchemeError(
            f"numba cannot compile {name}: {next(wrong, 'no reason given').rstrip(':')}",
            *_place(function, str(error)),
            hint="use numbers, the state, and what numba knows of Python",
        ) from error


def _place(function: Callable[..., object], report: str = "") -> tuple[str | None, int | None]:
    """Say where a function stands, or the line of it that numba's report names first."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None, None
    found = re.search(rf" at {re.escape(code.co_filename)} \((\d+)\)", report)
    return code.co_filename, int(found[1]) if found else code.co_firstlineno
