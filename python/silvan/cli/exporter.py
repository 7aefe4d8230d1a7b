"""The command that serves metrics of a subnet for Prometheus."""

from __future__ import annotations

import signal
import threading
import time
from typing import Annotated

import typer

from silvan.cli.attached import attach
from silvan.cli.options import (
    AdapterName,
    AdapterPort,
    EmulatedFabric,
    LinkPercent,
    WaitTick,
    address_of,
)
from silvan.cli.printer import note


def exporter(
    listen: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS:PORT", help="Address of the metrics; port 0 is any free port."
        ),
    ] = "127.0.0.1:9685",
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Time from one sweep of the counters to the next.")
    ] = "10 s",
    tick: WaitTick = None,
    device: AdapterName = None,
    port: AdapterPort = 0,
    sockname: EmulatedFabric = None,
    link_percent: LinkPercent = 1.0,
) -> None:
    """Serve metrics of a subnet for Prometheus, at /metrics.

    It reads topology, forwarding tables and, at every interval, the counters of all ports, and sets
    nothing. Metrics are served from the second sweep on. Later sweeps that fail are reported, and
    repeated at growing intervals. Metrics of ports are missing until a sweep succeeds, and when the
    last success ended more than three intervals ago. A failed adapter port is opened again. SIGTERM
    and Ctrl-C end the exporter.
    """
    from silvan.cli.sweep_failures import SweepFailures
    from silvan.errors import DiagnosisError, EmulationError
    from silvan.live.diagnosis import SubnetWatcher, span_ps

    options = {
        "--listen": listen,
        "--interval": interval,
        "--tick": tick,
        "--device": device,
        "--port": port or None,
        "--link-percent": link_percent,
    }
    # Before anything is opened.
    address_of(listen, "--listen")
    clock = attach("exporter", sockname, options, {})
    interval_s = span_ps("interval", interval) / 1e12
    watcher = SubnetWatcher(
        device=device, port=port, tick=tick, link_percent=link_percent, clock=clock
    )
    ended = threading.Event()

    def end(_number: int, _frame: object) -> None:
        ended.set()

    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, end)
    note(f"metrics are served at http://{watcher.serve(listen, interval_s)}/metrics")
    has_swept = False
    failures = SweepFailures(interval_s)
    while not ended.is_set():
        due = time.monotonic() + interval_s
        try:
            watcher.sweep()
        except (DiagnosisError, EmulationError) as error:
            if not has_swept:
                raise
            watcher.note_failure()
            due += failures.add(error) - interval_s
        else:
            failures.clear()
        has_swept = True
        ended.wait(max(0.0, due - time.monotonic()))
