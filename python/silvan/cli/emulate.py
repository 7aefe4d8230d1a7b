"""The commands of the live fabric: emulate, shell, ctl and route."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from silvan.cli.options import AsJson, Assignments, ScenarioPath, load
from silvan.cli.printer import note, put, put_json, put_table
from silvan.errors import EmulationError

if TYPE_CHECKING:
    from silvan.emulation import Emulation

_EVERYBODY = "any"
# Giving up more than this fraction of simulated time is worth a remark.
_SLOW = 0.05

TimeScale = Annotated[
    float,
    typer.Option(min=1e-6, help="Simulated seconds per second."),
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
        help="Let this user attach tools, too; 'any' lets everybody. May be repeated.",
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
Blank = Annotated[
    bool,
    typer.Option(
        "--blank",
        help="Start without LIDs, tables and active ports, waiting for a subnet manager.",
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
SockName = Annotated[
    str,
    typer.Option(metavar="NAME", envvar="IBSIM_SOCKNAME", help="Name of the fabric's sockets."),
]


def _user_ids(users: list[str] | None) -> tuple[list[int], bool]:
    """Turn users into ids, and say whether everybody may attach."""
    ids = []
    for user in users or []:
        if user == _EVERYBODY:
            return [], True
        ids.append(_user_id(user, "--allow-user"))
    return ids, False


def _user_id(user: str, option: str) -> int:
    """Turn a user's name or id into the id."""
    try:
        return int(user) if user.isdecimal() else pwd.getpwnam(user).pw_uid
    except KeyError as error:
        raise typer.BadParameter(f"there is no user {user!r}", param_hint=option) from error


@dataclass(slots=True)
class _SpeedRemarks:
    """Says once that simulated time falls behind, and once that it no longer does."""

    given_up_s: float = 0.0
    uptime_s: float = 0.0
    told: bool = False

    def look(self, status: Mapping[str, Any]) -> None:
        """Compare a status of the fabric with the last one.

        Parameters
        ----------
        status : mapping
            The answer to the command ``status``.
        """
        lost = status["given_up_s"] - self.given_up_s
        aimed = (status["uptime_s"] - self.uptime_s) * status["time_scale"]
        # Time that is given up with a command, such as a new time scale, is no sign of slowness.
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
    """Say at the end if simulated time has fallen behind."""
    if not emulation.is_running:
        return
    try:
        status = emulation.control("status")
    except EmulationError:
        # Then nothing is known of the speed.
        return
    lost, uptime = status["given_up_s"], status["uptime_s"]
    if lost > _SLOW * uptime * status["time_scale"]:
        note(
            f"simulated time has fallen behind by {lost:.2g} s in {uptime:.2g} s: "
            "the processor could not keep up"
        )


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, so that sockets and child processes are left in order."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _pass_on_notices(emulation: Emulation) -> None:
    """Print what the server has to report, such as users that it has refused."""
    for notice in emulation.take_notices():
        note(notice)


def _serve(emulation: Emulation) -> None:
    """Wait until somebody ends it."""
    remarks = _SpeedRemarks()
    looked = time.monotonic()
    with suppress(KeyboardInterrupt), _terminated_as_interrupted():
        while emulation.is_running:
            time.sleep(0.1)
            _pass_on_notices(emulation)
            if time.monotonic() - looked >= 1:
                looked = time.monotonic()
                # Not to learn the speed is no reason to end the fabric.
                with suppress(EmulationError):
                    remarks.look(emulation.control("status"))


@contextmanager
def _managed(emulation: Emulation, *, wanted: bool) -> Iterator[None]:
    """Let OpenSM manage the fabric while the block lasts, if it is wanted."""
    if not wanted:
        yield
        return
    from silvan.live_programs import opensm

    with TemporaryDirectory(prefix="silvan-opensm-") as folder:
        note("OpenSM brings up the subnet ...")
        with opensm(emulation, Path(folder)) as process:
            note(f"OpenSM manages the subnet, by its own routes; its log is {folder}/opensm.log")
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
    """Report that OpenSM has ended, if that was not asked of it."""
    status = process.wait()
    if not over.is_set():
        note(f"OpenSM has ended with status {status}: the fabric has no subnet manager any more")


def _run_inside(emulation: Emulation, command: list[str]) -> int:
    """Run a command attached to the fabric and give its exit status."""
    environment = os.environ | emulation.attach()
    try:
        with subprocess.Popen(command, env=environment) as process:
            while True:
                try:
                    status = process.wait(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    _pass_on_notices(emulation)
                    if not emulation.is_running:
                        # What is attached would wait for answers without end.
                        process.terminate()
                except KeyboardInterrupt:
                    # The command has got the same signal, and decides.
                    continue
    except OSError as error:
        raise typer.BadParameter(f"{command[0]}: {error.strerror}", param_hint="COMMAND") from error
    return status if status >= 0 else 128 - status


def emulate(
    scenario: ScenarioPath,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND ...]",
            help="Run this command attached to the fabric, and end with it.",
            show_default=False,
        ),
    ] = None,
    set_: Assignments = None,
    time_scale: TimeScale = 1.0,
    sockname: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the sockets; by default 'sim', with a command one of its own.",
            show_default=False,
        ),
    ] = None,
    udp: Udp = None,
    host: Host = None,
    allow_user: AllowUser = None,
    allow_control: AllowControl = None,
    *,
    blank: Blank = False,
    opensm: OpenSm = None,
) -> None:
    """Run a scenario in real time and let InfiniBand's tools manage it.

    OpenSM and infiniband-diags are attached by the preload library of the package libumad2sim0.
    Without a subnet manager, tools that ask for one find none: saquery, sminfo, ibqueryerrors and
    options such as -G. With --opensm there is one. Ctrl-C ends it.
    """
    from silvan.emulation import DEFAULT_SOCKNAME, Emulation

    loaded = load(scenario, set_)
    users, everybody = _user_ids(allow_user)
    controllers = [_user_id(user, "--allow-control") for user in allow_control or []]
    own_name = f"silvan-{os.getpid()}" if command else DEFAULT_SOCKNAME
    with (
        Emulation(
            loaded,
            sockname=sockname or own_name,
            udp_port=udp,
            users=users,
            everybody=everybody,
            controllers=controllers,
            time_scale=time_scale,
            host=host,
            blank=blank,
        ) as emulation,
        _managed(emulation, wanted=bool(opensm)),
    ):
        if command:
            status = _run_inside(emulation, command)
            _tell_lost_time(emulation)
            raise typer.Exit(status)
        variables = " ".join(f"{key}={value}" for key, value in emulation.attach().items())
        facts = loaded.describe()
        note(f"{facts['name']}: {facts['hosts']} hosts, {facts['switches']} switches, served")
        note("attach a tool to it with")
        note(f"  env {variables} ibnetdiscover")
        note(f"control it with silvan ctl --sockname {emulation.sockname} status")
        _serve(emulation)


def shell(
    scenario: ScenarioPath,
    set_: Assignments = None,
    time_scale: TimeScale = 1.0,
    host: Host = None,
    *,
    blank: Blank = False,
    opensm: OpenSm = None,
) -> None:
    """Open a shell in which InfiniBand's tools see the scenario's fabric.

    OpenSM manages it if it is installed, unless --no-opensm or --blank says otherwise. The fabric
    ends with the shell.
    """
    from silvan.emulation import Emulation
    from silvan.live_programs import INSTALL, has_opensm

    loaded = load(scenario, set_)
    if opensm is None and not blank:
        opensm = has_opensm()
        if not opensm:
            note(f"OpenSM is not installed, and there is no subnet manager; {INSTALL}")
    with (
        Emulation(
            loaded,
            sockname=f"silvan-{os.getpid()}",
            time_scale=time_scale,
            host=host,
            blank=blank,
        ) as emulation,
        _managed(emulation, wanted=bool(opensm)),
    ):
        note(f"this shell is attached to {emulation.default_host}; exit ends the fabric")
        status = _run_inside(emulation, [os.environ.get("SHELL", "/bin/sh")])
        _tell_lost_time(emulation)
        raise typer.Exit(status)


# Ports of a list that is printed for people; --json has all.
_SHOWN = 12
# How the names of quantities end, and their units.
_UNITS = {"s": "s", "gbps": "Gbit/s", "bytes": "bytes", "percent": "%"}

ctl = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Inspect and control a running emulated fabric.",
)


# Whose fabric the command line names.
_SERVER_USER: ContextVar[int | None] = ContextVar("server user", default=None)


@ctl.callback()
def of_whom(
    server_user: Annotated[
        str | None,
        typer.Option(
            metavar="USER",
            envvar="SILVAN_SERVER_USER",
            help="User who runs the fabric, if it is neither you nor root.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Inspect and control a running emulated fabric."""
    if server_user is not None:
        _SERVER_USER.set(_user_id(server_user, "--server-user"))


def _control(sockname: str, do: str, **arguments: Any) -> Any:
    """Send a command to the fabric of the user that the command line names."""
    from silvan.emulation import control

    return control(sockname, do, server_user=_SERVER_USER.get(), **arguments)


def _tell(sockname: str, do: str, *, as_json: bool = False, **arguments: Any) -> None:
    """Send a command and print the answer."""
    answer = _control(sockname, do, **arguments)
    if as_json:
        put_json(answer)
        return
    for key, value in answer.items():
        name, _, unit = key.rpartition("_")
        label, suffix = (name, f" {_UNITS[unit]}") if unit in _UNITS else (key, "")
        put(f"{label.replace('_', ' ')}: {_words(value)}{suffix}")


def _words(value: Any) -> str:
    """Say a value as people write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        shown = ", ".join(map(str, value[:_SHOWN])) or "none"
        more = len(value) - _SHOWN
        return f"{shown} and {more} more" if more > 0 else shown
    if isinstance(value, dict):
        return ", ".join(f"{count} {key.replace('_', ' ')}" for key, count in value.items())
    return str(value)


@ctl.command()
def status(sockname: SockName = "sim", *, as_json: AsJson = False) -> None:
    """Show simulated time, how far it lags, rates, links that are down, datagrams served."""
    _tell(sockname, "status", as_json=as_json)


@ctl.command()
def flows(sockname: SockName = "sim", *, as_json: AsJson = False) -> None:
    """List all that sends, with what it has delivered and its rate."""
    from rich.table import Table

    answer = _control(sockname, "flows")
    if as_json:
        put_json(answer)
        return
    table = Table()
    for heading in ("flow", "runs", "delivered, MB", "receive rate, Gbit/s"):
        table.add_column(heading, justify="left" if heading == "flow" else "right")
    for flow in answer:
        table.add_row(
            flow["flow"],
            _words(flow["running"]),
            f"{flow['delivered_bytes'] / 1e6:.1f}",
            f"{flow['receive_gbps']:.3f}",
        )
    put_table(table)


@ctl.command()
def start(
    sender: Annotated[str, typer.Argument(metavar="FROM", help="Name of the sending host.")],
    receiver: Annotated[str, typer.Argument(metavar="TO", help="Name of the receiving host.")],
    rate: Annotated[
        str | None,
        typer.Option(help="Payload rate such as '8 Gbit/s'; by default the line rate."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--bytes", help="Payload to send, such as '1 GiB'; by default unlimited."),
    ] = None,
    sl: Annotated[int, typer.Option(min=0, max=15, help="Service level.")] = 0,
    name: Annotated[str | None, typer.Option(help="Name of the flow.")] = None,
    sockname: SockName = "sim",
) -> None:
    """Start a flow, and print its name."""
    arguments: dict[str, Any] = {"from": sender, "to": receiver, "rate": rate}
    _tell(sockname, "start", **arguments, bytes=size, sl=sl, name=name)


@ctl.command()
def stop(
    flow: Annotated[str, typer.Argument(help="Name of a flow, as silvan ctl flows lists it.")],
    sockname: SockName = "sim",
) -> None:
    """Stop a flow, or everything else that has this name."""
    _tell(sockname, "stop", flow=flow)


@ctl.command("continue")
def go_on(
    flow: Annotated[str, typer.Argument(help="Name of a flow, as silvan ctl flows lists it.")],
    sockname: SockName = "sim",
) -> None:
    """Resume a stopped flow."""
    _tell(sockname, "continue", flow=flow)


@ctl.command()
def cut(
    port: Annotated[str, typer.Argument(help="One end of the cable: NODE:PORT, or a host.")],
    sockname: SockName = "sim",
) -> None:
    """Cut a cable."""
    _tell(sockname, "cut", port=port)


@ctl.command()
def restore(
    port: Annotated[str, typer.Argument(help="One end of the cable: NODE:PORT, or a host.")],
    sockname: SockName = "sim",
) -> None:
    """Restore a cable that was cut."""
    _tell(sockname, "restore", port=port)


def _percentage(text: str) -> float:
    """Read ``10%`` or ``10``."""
    try:
        return float(text.removesuffix("%"))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no percentage; write e.g. 10%") from error


@ctl.command()
def lose(
    percent: Annotated[
        float,
        typer.Argument(
            metavar="PERCENT",
            parser=_percentage,
            help="Percentage of management datagrams to drop, e.g. 10%; 0 drops none.",
        ),
    ],
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed for choosing which datagrams are dropped.")
    ] = 0,
    sockname: SockName = "sim",
) -> None:
    """Lose management datagrams, requests and answers alike."""
    _tell(sockname, "lose", percent=percent, seed=seed)


@ctl.command()
def reboot(
    switch: Annotated[str, typer.Argument(help="Name of the switch.")],
    seconds: Annotated[
        float, typer.Option(min=0, help="Seconds until the switch is powered on again.")
    ] = 1.0,
    sockname: SockName = "sim",
) -> None:
    """Reboot a switch: it comes back without LID and tables, with the scenario's settings."""
    _tell(sockname, "reboot", switch=switch, seconds=seconds)


@ctl.command()
def pause(sockname: SockName = "sim") -> None:
    """Stop simulated time; management goes on."""
    _tell(sockname, "pause")


@ctl.command()
def resume(sockname: SockName = "sim") -> None:
    """Resume simulated time."""
    _tell(sockname, "resume")


@ctl.command()
def scale(
    factor: Annotated[float, typer.Argument(min=1e-6, help="Simulated seconds per second.")],
    sockname: SockName = "sim",
) -> None:
    """Change the speed of simulated time."""
    _tell(sockname, "scale", factor=factor)


@ctl.command("quit")
def end(sockname: SockName = "sim") -> None:
    """End the emulation."""
    _tell(sockname, "quit")


def route(
    scenario: ScenarioPath,
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="OpenSM's routing engine: minhop, updn, dnup, ftree, lash, dor, torus-2QoS, ...",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="File to write the forwarding tables to, in the format of dump_lfts.",
        ),
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- OPTION ...]", help="Further options for opensm.", show_default=False
        ),
    ] = None,
    set_: Assignments = None,
) -> None:
    """Route a scenario's fabric with OpenSM, and store the forwarding tables."""
    from silvan.errors import OutputError
    from silvan.opensm_routing import route as by_opensm

    # Whatever the scenario's own routing is, it need not work: OpenSM's is what counts.
    loaded = load(scenario, set_, overrides={"fabric.routing": "none"})
    tables = by_opensm(loaded, engine, options or [])
    part = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        part.write_text(tables)
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OutputError(f"{out}: {error.strerror}") from error
    note(f"written to {out}")
