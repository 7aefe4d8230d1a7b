"""Loop of ``silvan diagnose --watch``: sweep after sweep, into a ring file, until Ctrl-C."""

from __future__ import annotations

import json
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from silvan.cli.diagnosis_tables import one_line, report_tables, stamp
from silvan.cli.printer import note, put
from silvan.cli.sweep_failures import SweepFailures
from silvan.errors import DiagnosisError, EmulationError
from silvan.live.diagnosis import FabricClock, SubnetWatcher, Ticks, span_ps
from silvan.live.host_jobs import HostJobs
from silvan.live.moments import Moment
from silvan.live.ring import RingFile

if TYPE_CHECKING:
    from rich.console import Group

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_COURSE = 60
_LEVELS = " ▁▂▃▄▅▆▇█"

Show = Callable[[Moment], None]


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Options of watching a subnet."""

    ring: Path
    keep: str
    interval: str
    address: tuple[str, int] | None
    dcms_log: Path | None
    as_json: bool


def watch_subnet(
    options: WatchOptions,
    jobs: HostJobs,
    *,
    device: str | None,
    port: int,
    tick: Ticks,
    link_percent: float,
    clock: FabricClock | None,
) -> None:
    """Sweep a subnet until Ctrl-C; failed sweeps after the first are repeated."""
    keep_ns, interval_s = keep_span_ns(options.keep), span_ps("interval", options.interval) / 1e12
    if options.address is not None:
        from silvan.extras import require_extra

        require_extra("live", "live pages")
    watcher = SubnetWatcher(
        device=device, port=port, tick=tick, link_percent=link_percent, clock=clock
    )
    addresses: list[str] = []
    with (
        suppress(KeyboardInterrupt),
        closing(RingFile(options.ring, writable=True)) as ring,
        _shown(options, addresses) as show,
        _served(options, addresses) as serve,
    ):
        for moment in _moments(watcher, interval_s):
            jobs.add_to(moment.report)
            ring.add(moment, keep_ns)
            show(moment)
            serve(moment)
    note(f"{options.ring}: silvan diagnose --from {options.ring} reports on what it keeps")


def _moments(watcher: SubnetWatcher, interval_s: float) -> Iterator[Moment]:
    is_first = True
    failures = SweepFailures(interval_s)
    while True:
        due = time.monotonic() + interval_s
        try:
            moment = watcher.sweep()
        except (DiagnosisError, EmulationError) as error:
            if is_first:
                raise
            due += failures.add(error) - interval_s
        else:
            failures.clear()
            is_first = False
            if moment is not None:
                yield moment
        time.sleep(max(0.0, due - time.monotonic()))


def keep_span_ns(text: str) -> int:
    """Read a time with the units of days and hours."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|min|h|d)", text.strip())
    nanoseconds = round(float(found[1]) * _SECONDS[found[2]] * 1e9) if found else 0
    if not 0 < nanoseconds < 1 << 62:
        raise typer.BadParameter(
            f"{text!r} is no time above 0, such as 4 h or 30 min", param_hint="--keep"
        )
    return nanoseconds


@contextmanager
def _shown(options: WatchOptions, addresses: list[str]) -> Iterator[Show]:
    if options.as_json:
        yield lambda moment: _put_json(moment)
        return
    if not sys.stdout.isatty():
        yield lambda moment: _put_line(one_line(moment))
        return
    from rich.console import Console
    from rich.live import Live

    course: deque[int] = deque(maxlen=_COURSE)
    console = Console()
    with Live(console=console, auto_refresh=False, screen=True) as live:

        def show(moment: Moment) -> None:
            course.append(len(moment.report["trees"]))
            live.update(_page(moment, course, options, addresses), refresh=True)

        yield show


def _page(moment: Moment, course: deque[int], options: WatchOptions, addresses: list[str]) -> Group:
    from rich.console import Group
    from rich.text import Text

    most = max(*course, 1)
    line = "".join(_LEVELS[-(-count * (len(_LEVELS) - 1) // most)] for count in course)
    words = [stamp(moment.at_ns), f"every {options.interval}", f"kept in {options.ring}"]
    head = Text(", ".join([*words, *addresses]), "dim")
    trees = Text(f"trees, 0 to {most}, last {len(course)} sweeps  ")
    trees.append(line, "red")
    return Group(head, trees, *report_tables(moment.report))


def _put_json(moment: Moment) -> None:
    _put_line(json.dumps({"at_ns": moment.at_ns, **moment.report}, allow_nan=False))


def _put_line(text: str) -> None:
    put(text)
    sys.stdout.flush()


@contextmanager
def _served(options: WatchOptions, addresses: list[str]) -> Iterator[Show]:
    if options.address is None:
        yield lambda _moment: None
        return
    from silvan.cli.live_page import LivePage
    from silvan.viewer.dcms_log import DcmsLog

    log = DcmsLog(options.dcms_log) if options.dcms_log is not None else None

    def announce(address: str) -> None:
        addresses.append(address)
        if options.as_json or not sys.stdout.isatty():
            note(address)

    page = LivePage(options.address, "Watched subnet", announce, log)
    try:
        yield page.add
    finally:
        page.end()
        if log is not None:
            log.close()
