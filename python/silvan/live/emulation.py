"""The live fabric: a scenario that real InfiniBand tools use as if it were hardware.

The tools are attached by a preload library, which shows the fabric to them
where the kernel shows adapters: ``/dev/infiniband`` and
``/sys/class/infiniband``. The preload library umad2sim of ibsim (Debian
package ``libumad2sim0``) attaches tools, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from silvan.errors import EmulationError, shown
from silvan.inputs.input_files import CONFIGURATION_BYTES, read_text
from silvan.live.systems import require_linux

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario

DEFAULT_SOCKNAME = "sim"

_CREDENTIALS = struct.Struct("iII")
"""SO_PEERCRED: process, user and group."""

_PATIENCE_S = 120

_LONGEST_ANSWER = 4 << 30

_OF_PORTS = "name a cabled port as NODE:PORT, or a host; iblinkinfo lists the ports"
_OF_FLOWS = "silvan ctl flows lists the flows"
_HINTS = {
    "start": "name two hosts, which ibhosts lists; silvan ctl start --help describes the options",
    "stop": _OF_FLOWS,
    "continue": _OF_FLOWS,
    "cut": _OF_PORTS,
    "restore": _OF_PORTS,
    "degrade": _OF_PORTS,
    "symbol-errors": _OF_PORTS,
    "slow": "name a host, which ibhosts lists, and a rate such as '1 Gbit/s'",
    "lose": "give 0 to 100 %",
    "reboot": "name a switch that is on; ibswitches lists the switches",
    "scale": "give a factor above 0",
    "query-paths": "start a subnet manager, e.g. with silvan emulate --opensm",
}

_LIBRARIES = (
    "/usr/lib/*/umad2sim/libumad2sim.so",
    "/usr/lib64/umad2sim/libumad2sim.so",
    "/usr/lib/umad2sim/libumad2sim.so",
    "/usr/local/lib/umad2sim/libumad2sim.so",
)


def preload_library() -> Path:
    """Give the file of the library that attaches programs to a live fabric.

    It is in a folder for temporary files, where a program that has it loaded does not depend on
    this process.

    Raises
    ------
    UnsupportedSystemError
        This is not Linux.
    EmulationError
        The folder is another user's.
    OSError
        The file cannot be written.
    """
    from silvan import _silvan

    require_linux("the live fabric")
    library = _silvan.Emulation.preload_library()
    folder = Path(tempfile.gettempdir(), f"silvan-{os.getuid()}")
    folder.mkdir(mode=0o755, exist_ok=True)
    owner = folder.lstat()
    if owner.st_uid != os.getuid() or not stat.S_ISDIR(owner.st_mode) or owner.st_mode & 0o022:
        raise EmulationError(
            f"{folder} can be written by other users", "remove it, or set TMPDIR to another folder"
        )
    path = folder / f"libsilvan-{hashlib.sha256(library).hexdigest()[:16]}.so"
    if not path.exists():
        # Another process may write it at the same time.
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(library)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    return path


def is_attached() -> bool:
    """Say whether this process is attached to a live fabric."""
    libraries = os.environ.get("LD_PRELOAD", "")
    return "umad2sim" in libraries or "libsilvan-" in libraries


def umad2sim_library() -> Path:
    """Find the preload library of ibsim, or raise :class:`EmulationError`."""
    for pattern in _LIBRARIES:
        for path in sorted(Path("/").glob(pattern.lstrip("/"))):
            return path
    raise EmulationError("libumad2sim.so is not installed", "apt-get install libumad2sim0")


def _faults(path: str | os.PathLike[str]) -> str:
    hint = "name a TOML file with tables [[fault]]"
    return read_text(Path(path), CONFIGURATION_BYTES, "file of faults", hint)


class Emulation:
    """A scenario that runs in real time and answers InfiniBand's tools.

    Use it as a context manager; it ends with the block.

    Parameters
    ----------
    scenario : Scenario
        Scenario to emulate. Its duration, ``host.retry`` and a scheme in a Python file have
        no effect.
    sockname : str, optional
        Name of the sockets (IBSIM_SOCKNAME of the tools).
    udp_port : int, optional
        Serve over UDP on the loopback from this port on, instead of over UNIX sockets.
    users : sequence of int, optional
        User ids that may attach tools in addition to one's own. They cannot control the fabric.
    everybody : bool
        Let every local user attach tools.
    controllers : sequence of int, optional
        User ids that may control the fabric and attach tools in addition to one's own.
    time_scale : float
        Simulated seconds per second.
    host : str, optional
        The host or switch that tools are attached to which name none (SIM_HOST); by default the
        first host.
    blank : bool
        Start without LIDs, forwarding tables and active ports, as a fabric that waits for a
        subnet manager.
    devices : str
        Devices that the switches and their adapters show, which decide the tick of PortXmitWait:
        ``emulated``, ``switch-x``, ``switch-ib``, ``switch-ib-2``, ``quantum``, ``quantum-2``,
        ``quantum-3``, or ``by-speed`` for the device that has the speed of the switch's fastest
        link.
    paused : bool
        Start with simulated time paused.
    time : str
        ``"real"``, or ``"auto"``: simulated time stands still while RDMA programs work, and
        programs see it as their clocks.
    faults : path, optional
        A TOML file of faults that come about at instants of simulated time: cables that are cut,
        run at a lower rate or have symbol errors, slow receivers, switches that reboot.

    Raises
    ------
    UnsupportedSystemError
        This is not Linux.
    ScenarioError
        If the file of faults cannot be read, or does not hold.
    EmulationError
        If the name or port is in use, or there is no such host or device.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        sockname: str = DEFAULT_SOCKNAME,
        udp_port: int | None = None,
        users: Sequence[int] = (),
        everybody: bool = False,
        controllers: Sequence[int] = (),
        time_scale: float = 1.0,
        host: str | None = None,
        blank: bool = False,
        devices: str = "emulated",
        paused: bool = False,
        time: Literal["real", "auto"] = "real",
        faults: str | os.PathLike[str] | None = None,
    ) -> None:
        from silvan import _silvan

        require_linux("the live fabric")
        self._udp_port = udp_port
        if time not in ("real", "auto"):
            raise ValueError(f'time is "real" or "auto", not {time!r}')
        self._follows_programs = time == "auto"
        self.sockname = sockname if udp_port is None else f"udp-{udp_port}"
        if scenario.has_python_scheme:
            scenario = scenario.override({"control.scheme": "none"})
        self._inner = _silvan.Emulation(
            scenario._native,
            sockname=sockname if udp_port is None else None,
            udp_port=udp_port or 0,
            users=None if everybody else [os.getuid(), *controllers, *users],
            controllers=[os.getuid(), *controllers],
            time_scale=time_scale,
            host=host,
            blank=blank,
            devices=devices,
            paused=paused,
            follows_programs=self._follows_programs,
            faults=None if faults is None else (_faults(faults), os.fspath(faults)),
        )

    @property
    def default_host(self) -> str:
        """The node that tools are attached to which name none."""
        return self._inner.default_host

    @property
    def is_running(self) -> bool:
        """True while the fabric is served."""
        return self._inner.is_running()

    def take_notices(self) -> list[str]:
        """Give what the server had to report since the last call.

        Users that were refused, and clients that were disconnected because they do not read.
        """
        return self._inner.take_notices()

    def attach(self, host: str | None = None, *, umad2sim: bool = False) -> dict[str, str]:
        """Give the environment variables that attach a tool.

        Parameters
        ----------
        host : str, optional
            The host or switch to attach it to.
        umad2sim : bool
            Attach it by ibsim's library umad2sim, as every tool of a fabric served over UDP.

        Returns
        -------
        dict
            Variables to add to the tool's environment.
        """
        name = host or self.default_host
        if self._udp_port is not None:
            where = {"IBSIM_SERVER_NAME": "127.0.0.1", "IBSIM_SERVER_PORT": str(self._udp_port)}
            umad2sim = True
        else:
            where = {"IBSIM_SOCKNAME": self.sockname}
        # UCX would take the handler by which the time-stamp counter is read.
        clock = {"SIM_TIME": "auto", "UCX_HANDLE_ERRORS": "none"}
        return {
            "LD_PRELOAD": str(umad2sim_library() if umad2sim else preload_library()),
            "SIM_HOST": name[:31] if umad2sim else name,
            **where,
            **(clock if self._follows_programs else {}),
        }

    def control(self, do: str, **arguments: Any) -> Any:
        """Send a command to the running fabric; see :func:`control`."""
        return control(self.sockname, do, **arguments)

    def stop(self) -> None:
        """End the emulation; raise :class:`EmulationError` if a failure had ended it."""
        self._inner.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def control(sockname: str, do: str, *, server_user: int | None = None, **arguments: Any) -> Any:
    """Send a command to an emulated fabric that may run in another process.

    Parameters
    ----------
    sockname : str
        Name of its sockets; ``udp-PORT`` for one served over UDP.
    do : str
        The command: ``status``, ``flows``, ``start``, ``stop``, ``continue``, ``cut``, ``restore``,
        ``degrade``, ``symbol-errors``, ``slow``, ``lose``, ``reboot``, ``pause``, ``resume``,
        ``scale``, ``tables``, ``query-paths``, ``fabric``, ``quit``.
    server_user : int, optional
        Whose fabric it may be: by default one's own or root's. Any user can take a free name, so
        others are trusted only by name.
    **arguments
        Its arguments.

    Returns
    -------
    Any
        The answer, in plain values.

    Raises
    ------
    UnsupportedSystemError
        This is not Linux.
    EmulationError
        If there is no such fabric, it is another user's, refuses, or gives no valid answer.
    """
    with ControlChannel(sockname, server_user=server_user) as channel:
        return channel.answer(do, **arguments)


class ControlChannel:
    """A connection to the control channel of an emulated fabric, for several commands.

    Use it as a context manager; it is closed with the block.

    Parameters
    ----------
    sockname : str
        Name of the fabric's sockets; ``udp-PORT`` for one served over UDP.
    server_user : int, optional
        Whose fabric it may be, see :func:`control`.

    Raises
    ------
    UnsupportedSystemError
        This is not Linux.
    EmulationError
        If there is no such fabric, or it is another user's.
    """

    def __init__(self, sockname: str, *, server_user: int | None = None) -> None:
        require_linux("the live fabric")
        self._sockname = sockname
        self._server_user = server_user
        self._has_answered = False
        self._stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._stream.settimeout(_PATIENCE_S)
            self._stream.connect(f"\0{sockname}:silvan\0")
            _check_server(self._stream, sockname, server_user)
        except OSError as error:
            self._stream.close()
            raise self._failure(error) from error
        except EmulationError:
            self._stream.close()
            raise
        self._lines = self._stream.makefile("rb")

    def answer(self, do: str, **arguments: Any) -> Any:
        """Send a command and return the answer in plain values; see :func:`control`."""
        given = {key: value for key, value in arguments.items() if value is not None}
        try:
            self._stream.sendall(json.dumps({"do": do, **given}).encode() + b"\n")
            answer = self._lines.readline(_LONGEST_ANSWER)
        except OSError as error:
            raise self._failure(error) from error
        if not answer:
            raise self._failure(ConnectionResetError())
        self._has_answered = True
        try:
            decoded = json.loads(answer)
            if "error" in decoded:
                message = str(decoded["error"])
                is_advised = "did you mean" in message or "hint:" in message
                raise EmulationError(message, None if is_advised else _HINTS.get(do))
            return decoded["ok"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise EmulationError(
                f"what answers under the name {self._sockname!r} is no emulated fabric: "
                f"{answer[:40]!r}"
            ) from error

    def numbers(self, count: int) -> bytes:
        """Read the bytes that follow an answer."""
        try:
            numbers = self._lines.read(count)
        except OSError as error:
            raise self._failure(error) from error
        if len(numbers) < count:
            raise _cut_off(self._sockname, self._server_user)
        return numbers

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _failure(self, error: OSError) -> EmulationError:
        if isinstance(error, TimeoutError):
            return EmulationError(
                f"the fabric {self._sockname!r} has not answered for {_PATIENCE_S} s"
            )
        if isinstance(error, ConnectionResetError | BrokenPipeError):
            if not self._has_answered:
                return _refused(self._sockname)
            return _cut_off(self._sockname, self._server_user)
        return EmulationError(
            f"no emulated fabric answers under the name {shown(repr(self._sockname))}"
            f" ({error.strerror or error})",
            "start one with silvan emulate, and name it with --sockname",
        )


def _cut_off(sockname: str, server_user: int | None) -> EmulationError:
    try:
        with ControlChannel(sockname, server_user=server_user) as again:
            again.answer("status")
    except EmulationError:
        return EmulationError(
            f"the fabric {sockname!r} has ended",
            "start it again with silvan emulate, then repeat this command",
        )
    return EmulationError(
        f"the fabric {sockname!r} has closed the connection, but still runs", "repeat this command"
    )


def _refused(sockname: str) -> EmulationError:
    return EmulationError(
        f"the fabric {sockname!r} does not let this user control it",
        "start it with --allow-control; --allow-user only lets tools attach",
    )


def _check_server(stream: socket.socket, sockname: str, expected: int | None) -> None:
    credentials = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _process, user, _group = _CREDENTIALS.unpack(credentials)
    trusted = {os.getuid(), 0} if expected is None else {expected}
    if user not in trusted:
        raise EmulationError(
            f"the socket {sockname!r} is user {user}'s",
            "name another fabric, or trust this user with --server-user",
        )
