"""The command of the live fabric."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.options import Assignments, load, user_id
from silvan.cli.printer import note
from silvan.cli.termination import terminated_as_interrupted, termination_passed_on
from silvan.errors import EmulationError

if TYPE_CHECKING:
    from silvan.live.emulation import Emulation

_EVERYBODY = "any"
_SLOW = 0.05

TimeScale = Annotated[
    float,
    typer.Option(min=1e-6, help="Simulated seconds per second."),
]


class Time(StrEnum):
    """Clock that simulated time follows."""

    REAL = "real"
    AUTO = "auto"


TimeOption = Annotated[
    Time,
    typer.Option(
        "--time",
        help="real: simulated time passes with real time. auto: it stands still while RDMA "
        "programs work or data are copied, and programs' clocks show it.",
    ),
]
Host = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Host or switch to which the tools attach; by default the first host.",
        show_default=False,
    ),
]
Udp = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=1024,
        max=60000,
        help="Serve over UDP on the loopback from this port on.",
        show_default=False,
    ),
]
AllowUser = Annotated[
    list[str] | None,
    typer.Option(
        metavar="USER",
        help="Let this user attach tools, too; 'any' allows all users. May be repeated.",
        show_default=False,
    ),
]
AllowControl = Annotated[
    list[str] | None,
    typer.Option(
        metavar="USER",
        help="Let this user control the fabric by silvan ctl, and attach tools. May be repeated.",
        show_default=False,
    ),
]
Example = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Emulate this example, in place of a file; silvan example lists all.",
        show_default=False,
    ),
]
Faults = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help="File of faults at instants of simulated time.",
        show_default=False,
    ),
]
Blank = Annotated[
    bool,
    typer.Option(
        "--blank",
        help="Start without LIDs, tables and active ports, waiting for a subnet manager.",
    ),
]
Devices = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Devices that the switches and their adapters show, which decide the tick of "
        "PortXmitWait: emulated, switch-x, switch-ib, switch-ib-2, quantum, quantum-2, quantum-3, "
        "or by-speed for the device that has the speed of the switch's fastest link.",
    ),
]
OpenSm = Annotated[
    bool | None,
    typer.Option(
        "--opensm/--no-opensm",
        help="Start OpenSM in the fabric, and wait until the subnet is up.",
        show_default=False,
    ),
]


Mount = Annotated[
    bool,
    typer.Option(
        "--mount",
        help="Also mount the fabric's sysfs files over /sys/class, for programs without libc, such "
        "as Go programs.",
    ),
]


def _user_ids(users: list[str] | None) -> tuple[list[int], bool]:
    ids = []
    for user in users or []:
        if user == _EVERYBODY:
            return [], True
        ids.append(user_id(user, "--allow-user"))
    return ids, False


@dataclass(slots=True)
class _SpeedRemarks:
    """Says once that simulated time falls behind, and once that it no longer does."""

    given_up_s: float = 0.0
    uptime_s: float = 0.0
    told: bool = False

    def look(self, status: Mapping[str, Any]) -> None:
        lost = status["given_up_s"] - self.given_up_s
        aimed = (status["uptime_s"] - self.uptime_s) * status["time_scale"]
        # Time given up with a command, such as a new time scale, is no sign of slowness.
        behind = status["speed"] < (1 - _SLOW) * status["time_scale"]
        slow = lost > _SLOW * aimed and behind
        self.given_up_s, self.uptime_s = status["given_up_s"], status["uptime_s"]
        if slow and not self.told:
            note(
                f"simulated time runs at {status['speed']:.2g} of {status['time_scale']:g}: "
                "the processor cannot keep up"
            )
        elif self.told and not slow:
            note("simulated time keeps up again")
        self.told = slow


def _tell_lost_time(emulation: Emulation) -> None:
    if not emulation.is_running:
        return
    try:
        status = emulation.control("status")
    except EmulationError:
        return
    lost, uptime = status["given_up_s"], status["uptime_s"]
    if lost > _SLOW * uptime * status["time_scale"]:
        note(
            f"simulated time has fallen behind by {lost:.2g} s in {uptime:.2g} s: "
            "the processor could not keep up"
        )


def _tell_exchange(emulation: Emulation) -> None:
    with suppress(EmulationError):
        exchange = emulation.control("status")["exchange"]
        wall, simulated = exchange["wall_s"], exchange["simulated_s"]
        if simulated:
            note(
                f"programs exchanged data for {simulated:.3g} s of simulated time in {wall:.3g} s: "
                f"a scale of 1:{max(1, wall / simulated):.3g}"
            )


def _pass_on_notices(emulation: Emulation) -> None:
    for notice in emulation.take_notices():
        note(notice)


def _serve(emulation: Emulation) -> None:
    remarks = _SpeedRemarks()
    looked = time.monotonic()
    with suppress(KeyboardInterrupt):
        while emulation.is_running:
            time.sleep(0.1)
            _pass_on_notices(emulation)
            if time.monotonic() - looked >= 1:
                looked = time.monotonic()
                with suppress(EmulationError):
                    remarks.look(emulation.control("status"))


@contextmanager
def _managed(emulation: Emulation, *, wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    from silvan.live.live_programs import opensm, opensm_log
    from silvan.scratch import scratch_folder

    with scratch_folder("opensm") as folder:
        note("OpenSM brings up the subnet ...")
        with opensm(emulation, folder) as process:
            note(f"OpenSM manages the subnet, by its own routes; its log is {opensm_log(folder)}")
            over = Event()
            watcher = Thread(target=_report_end, args=(process, over), daemon=True)
            watcher.start()
            try:
                yield
            finally:
                if process.poll() is None:
                    over.set()
                else:
                    watcher.join()


def _report_end(process: subprocess.Popen[str], over: Event) -> None:
    status = process.wait()
    if not over.is_set():
        note(f"OpenSM has ended with status {status}: the fabric has no subnet manager any more")


def _run_inside(emulation: Emulation, command: list[str]) -> int:
    from silvan.child_processes import child
    from silvan.execution.descendants import Descendants

    environment = os.environ | emulation.attach()
    try:
        with (
            Descendants() as descendants,
            termination_passed_on() as pass_on_to,
            child(
                command,
                env=environment,
                stdin=None,
                signal_of_parent=signal.SIGTERM,
            ) as process,
        ):
            pass_on_to(process)
            while True:
                try:
                    status = process.wait(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    descendants.reap(process.pid)
                    _pass_on_notices(emulation)
                    if not emulation.is_running:
                        # Attached programs would wait for answers without end.
                        process.terminate()
                except KeyboardInterrupt:
                    continue
    except OSError as error:
        raise typer.BadParameter(f"{command[0]}: {error.strerror}", param_hint="COMMAND") from error
    if descendants.ended:
        left = "1 process" if descendants.ended == 1 else f"{descendants.ended} processes"
        note(f"{left} that the command has left running: ended with the fabric")
    return status if status >= 0 else 128 - status


def emulate(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="{SCENARIO.toml | --example NAME}",
            help="The scenario file.",
            show_default=False,
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND ...]",
            help="Command to run in the fabric, which ends with the command.",
            show_default=False,
        ),
    ] = None,
    set_: Assignments = None,
    time_scale: TimeScale = 1.0,
    time_: TimeOption = Time.REAL,
    sockname: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the sockets; by default 'sim' with --serve, otherwise a free one.",
            show_default=False,
        ),
    ] = None,
    udp: Udp = None,
    host: Host = None,
    allow_user: AllowUser = None,
    allow_control: AllowControl = None,
    example: Example = None,
    faults: Faults = None,
    devices: Devices = "emulated",
    *,
    blank: Blank = False,
    opensm: OpenSm = None,
    mount: Mount = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the fabric until Ctrl-C, without a command.")
    ] = False,
) -> None:
    """Run a scenario in real time for real InfiniBand tools.

    Opens a shell, or runs the command: tools that it starts see the fabric. The fabric ends with
    the shell or the command. With --serve it stays, and silvan prints how to attach tools from
    elsewhere. A preload library attaches OpenSM, infiniband-diags and other programs, and shows
    them /dev/infiniband and /sys/class/infiniband. Tools that query a subnet manager (saquery,
    sminfo, ibqueryerrors, options such as -G) need --opensm. A shell starts OpenSM if it is
    installed, unless --no-opensm or --blank is given.
    """
    from silvan import mounted
    from silvan.execution.run_threads import fewer_threads, requested_threads
    from silvan.live.emulation import DEFAULT_SOCKNAME, Emulation

    path, command = _scenario_path(scenario, command, example)
    if serve and command:
        raise typer.BadParameter("a command ends the fabric", param_hint="--serve")
    if serve and mount:
        raise typer.BadParameter("needs a command or a shell", param_hint="--mount")
    loaded = load(path, set_)
    if loaded.has_python_scheme:
        note("warning: a scheme in a Python file has no effect in the live fabric")
    if "retry" in loaded.to_dict()["host"]:
        note("warning: host.retry has no effect in the live fabric, whose queue pairs retry")
    users, everybody = _user_ids(allow_user)
    controllers = [user_id(user, "--allow-control") for user in allow_control or []]
    if remark := fewer_threads(requested_threads(loaded), 1, "the live fabric runs on one"):
        note(remark)
    is_shell = not serve and not command
    if is_shell and opensm is None and not blank:
        opensm = _has_opensm()
    with (
        terminated_as_interrupted(),
        Emulation(
            loaded,
            sockname=sockname or (DEFAULT_SOCKNAME if serve else f"silvan-{os.getpid()}"),
            udp_port=udp,
            users=users,
            everybody=everybody,
            controllers=controllers,
            time_scale=time_scale,
            host=host,
            blank=blank,
            devices=devices,
            time="auto" if time_ is Time.AUTO else "real",
            faults=faults,
        ) as emulation,
        _managed(emulation, wanted=bool(opensm)),
    ):
        if not serve:
            if is_shell:
                note(f"this shell is attached to {emulation.default_host}; exit ends the fabric")
            words = command or [os.environ.get("SHELL", "/bin/sh")]
            status = _run_inside(emulation, mounted.command(words) if mount else words)
            _pass_on_notices(emulation)
            _tell_lost_time(emulation)
            _tell_exchange(emulation)
            raise typer.Exit(status)
        variables = " ".join(f"{key}={value}" for key, value in emulation.attach().items())
        facts = loaded.describe()
        switches = "1 switch" if facts["switches"] == 1 else f"{facts['switches']} switches"
        note(f"{facts['name']}: {facts['hosts']} hosts, {switches}, served")
        note("attach a tool to it with")
        note(f"  env {variables} ibnetdiscover")
        note(f"control it with silvan ctl status --sockname {emulation.sockname}")
        _serve(emulation)


def _scenario_path(
    scenario: Path | None, command: list[str] | None, name: str | None
) -> tuple[Path, list[str]]:
    from silvan.example_files import example

    words = command or []
    if name is None:
        if scenario is None:
            raise typer.BadParameter(
                "name a file, or an example by --example", param_hint="SCENARIO.toml"
            )
        return scenario, words
    one = example(name)
    if not one.is_scenario:
        raise typer.BadParameter(f"{name} is a program, not a scenario", param_hint="--example")
    return one.path, words if scenario is None else [str(scenario), *words]


def _has_opensm() -> bool:
    from silvan.live.live_programs import INSTALL, has_opensm

    if has_opensm():
        return True
    note(f"OpenSM is not installed, and there is no subnet manager; {INSTALL}")
    return False
