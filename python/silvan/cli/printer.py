"""The one place that prints: data to stdout, everything else to stderr."""

from __future__ import annotations

import errno
import io
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.execution.simulation import Progress
    from silvan.execution.workers import OnProgress

_PIPE_WIDTH = 150
# A real fabric may have hundreds of links whose ends differ.
_WARNINGS = 5
_LONGEST = 2000
"""Characters of a message."""

_STDOUT_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


# Names come from files and fabrics: escape control characters.
_CONTROLS = {code: repr(chr(code))[1:-1] for code in (*range(9), *range(11, 32), *range(127, 160))}


def put(text: str) -> None:
    """Print a line of data."""
    sys.stdout.write(text.rstrip("\n").translate(_CONTROLS) + "\n")


def put_json(value: Any) -> None:
    """Print a value as JSON, the only thing on stdout."""
    put(json.dumps(value, indent=2, allow_nan=False))


def put_table(table: Table) -> None:
    """Print a table, in colour on a terminal."""
    from rich.console import Console
    from rich.segment import Segment, Segments

    if sys.stdout.isatty():
        console = Console()
        segments = console.render(table)
        harmless = (Segment(part.text.translate(_CONTROLS), part.style) for part in segments)
        console.print(Segments(harmless), end="")
        return
    _put_piped(table, _PIPE_WIDTH)


def put_widest(whole: Table, parts: Sequence[Table]) -> None:
    """Print a table, in its parts on a terminal that is too narrow for it; never cut in a pipe."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    options = console.options.update(width=100_000)
    width = Measurement.get(console, options, whole).maximum
    if not sys.stdout.isatty():
        _put_piped(whole, max(width, _PIPE_WIDTH))
        return
    for table in [whole] if width <= console.width else parts:
        put_table(table)


def _put_piped(table: Table, width: int) -> None:
    from rich.console import Console

    lines = io.StringIO()
    Console(file=lines, width=width).print(table)
    for line in lines.getvalue().splitlines():
        put(line.rstrip())


def note(text: str) -> None:
    """Print a remark, if there is room for it."""
    with suppress(OSError):
        sys.stderr.write(text.rstrip("\n").translate(_CONTROLS) + "\n")


@contextmanager
def noted_if_slow(text: str, after_s: float = 5.0) -> Iterator[None]:
    """Print a remark once if the block takes long."""
    timer = threading.Timer(after_s, note, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def is_stdout(error: OSError) -> bool:
    """Tell whether an error comes from writing to stdout: errors of files name the file."""
    return error.filename is None and error.errno in _STDOUT_ERRORS


def warn(warnings: Sequence[str]) -> None:
    """Print warnings, but no more than a few."""
    for text in warnings[:_WARNINGS]:
        note(f"warning: {_clipped(text)}")
    more = len(warnings) - _WARNINGS
    if more > 0:
        note(f"warning: and {more} more such; silvan validate --json lists them all")


def fail(message: str, hint: str | None) -> None:
    """Print an error, and its advice on a separate line."""
    note(f"error: {_clipped(message)}")
    if hint:
        note(f"hint: {_clipped(hint)}")


def _clipped(text: str) -> str:
    """Omit the middle of a long text: messages quote lines of files."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]} ... {text[-half:]}"


@contextmanager
def progress_bars(labels: list[str]) -> Iterator[OnProgress]:
    """Show the progress of several runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _index, _state: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[simulated]}"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    tasks: dict[int, Any] = {}

    def update(index: int, state: Progress) -> None:
        if index not in tasks:
            tasks[index] = bars.add_task(
                labels[index], total=state.duration_ps, simulated="", speed=""
            )
        bars.update(
            tasks[index],
            completed=state.simulated_ps,
            simulated=f"{state.simulated_ps / 1e9:.2f} of {state.duration_ps / 1e9:g} ms",
            speed=f"{state.packet_hops / max(state.wall_s, 1e-9) / 1e6:.1f} M packet-hops/s",
        )
        if state.simulated_ps >= state.duration_ps:
            bars.update(tasks[index], visible=False)

    with bars:
        yield update
