"""A pytest fixture: emulated fabrics, for the tests of programs that use InfiniBand.

Import it where pytest finds fixtures, in ``conftest.py`` or the test's own file::

    from silvan.testing import fabric

    def test_exporter(fabric):
        running = fabric("two-tier.toml", opensm=True, faults="flapping.toml")
        assert "leaf-00" in running.run("ibnetdiscover").stdout

Each fabric ends with its test. The tools are those of Debian's packages ``opensm`` and
``infiniband-diags``.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from silvan import mounted
from silvan.child_processes import end, ends_with_parent
from silvan.errors import EmulationError
from silvan.execution import descendants
from silvan.inputs.scenario import Scenario
from silvan.live.emulation import Emulation
from silvan.live.live_programs import INSTALL, environment
from silvan.live.live_programs import opensm as managed
from silvan.live.mpi import launch

__all__ = ["FabricFactory", "RunningFabric", "fabric"]

_NUMBERS = itertools.count(1)


class RunningFabric:
    """An emulated fabric, and the current folder of the tools in it."""

    def __init__(self, emulation: Emulation, folder: Path) -> None:
        self.emulation = emulation
        self.folder = folder
        self._started: dict[str, subprocess.Popen[str] | None] = {}

    def environment(self, host: str | None = None) -> dict[str, str]:
        """Give all environment variables of a program at a host, by default the first one."""
        return environment(self.emulation, self.folder, host)

    def popen(
        self, *words: str | Path, host: str | None = None, mount: bool = False
    ) -> subprocess.Popen[str]:
        """Start a program that sees the fabric, with pipes for its output.

        Arguments are those of :meth:`run`. The program starts in :attr:`folder`, and ends with the
        fabric at the latest, as do its children.
        """
        command = _located(words)
        name = descendants.mark(next(_NUMBERS))
        # Noted first: Ctrl-C may come before the process is known here.
        self._started[name] = None
        try:
            process = subprocess.Popen(
                mounted.command(command) if mount else command,
                cwd=self.folder,
                env=descendants.with_mark(self.environment(host), name),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=ends_with_parent(),
            )
        except FileNotFoundError as error:
            hint = f"{INSTALL} brings OpenSM and the tools of infiniband-diags"
            raise EmulationError(f"there is no program {command[0]}", hint) from error
        self._started[name] = process
        return process

    def run(
        self,
        *words: str | Path,
        host: str | None = None,
        mount: bool = False,
        check: bool = True,
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program that sees the fabric to its end.

        Parameters
        ----------
        *words : str or Path
            The program, relative to the current folder if it has a slash, and its arguments.
        host : str, optional
            The host or switch to attach it to; by default the first host.
        mount : bool
            Mount the fabric's files over ``/sys/class``, too, for a program that calls the kernel
            without libc; see :mod:`silvan.mounted`.
        check : bool
            Whether another exit status than 0 is an error.
        timeout_s : float
            Longest time in seconds.

        Returns
        -------
        subprocess.CompletedProcess
            Exit status and text.

        Raises
        ------
        EmulationError
            If it is not installed.
        subprocess.CalledProcessError
            If it fails; notes of the error have what it printed.
        subprocess.TimeoutExpired
            If it does not end in time; it is ended, with what it has started.
        """
        with self.popen(*words, host=host, mount=mount) as process:
            try:
                out, errors = process.communicate(timeout=timeout_s)
            except BaseException:
                self._end([name for name, one in self._started.items() if one is process])
                raise
        done = subprocess.CompletedProcess(process.args, process.returncode, out, errors)
        if check and done.returncode:
            failed = subprocess.CalledProcessError(done.returncode, done.args, out, errors)
            failed.add_note(f"{out}\n{errors}")
            raise failed
        return done

    def mpirun(
        self,
        *words: str | Path,
        ranks: int | None = None,
        per_host: int = 1,
        hosts: Iterable[str] | None = None,
        launcher: str = "mpirun",
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run an MPI program, a rank per host in turn, to its end; see ``silvan mpirun``.

        Raises the errors of :meth:`run`.
        """
        command, variables = launch(
            self.emulation.sockname,
            _located(words),
            ranks=ranks,
            per_host=per_host,
            hosts=hosts,
            launcher=launcher,
        )
        setting = [f"{name}={value}" for name, value in variables.items()]
        return self.run("env", *setting, *command, timeout_s=timeout_s)

    def end(self) -> None:
        """End all programs that were started here and still run, and what these have started."""
        self._end(self._started)

    def _end(self, names: Iterable[str]) -> None:
        marks = set(names)

        def running() -> set[int]:
            for name in marks:
                if process := self._started[name]:
                    process.poll()
            return descendants.marked(marks)

        end(running)

    def control(self, do: str, **arguments: Any) -> Any:
        """Send a command, such as ``cut`` or ``status``; see :func:`silvan.emulation.control`."""
        return self.emulation.control(do, **arguments)


def _located(words: Sequence[str | Path]) -> list[str]:
    program, *arguments = (str(word) for word in words)
    return [str(Path(program).absolute()) if "/" in program else program, *arguments]


class FabricFactory(Protocol):
    """Function of the fixture: a call starts a fabric that ends with the test."""

    def __call__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        *,
        overrides: Mapping[str, Any] | None = None,
        opensm: bool = False,
        **options: Any,
    ) -> RunningFabric:
        """Start a fabric.

        Parameters
        ----------
        scenario : Scenario or path
            Fabric to emulate.
        overrides : mapping, optional
            Values in place of those of the file, by key, such as ``{"run.seed": 2}``.
        opensm : bool
            Whether OpenSM manages it; the call returns when the subnet is up.
        **options
            Passed to :class:`~silvan.emulation.Emulation`: ``faults``, ``time``, ``time_scale``,
            ``blank``, ``host`` ...

        Returns
        -------
        RunningFabric
            The fabric.

        Raises
        ------
        ScenarioError
            If the scenario or the file of faults does not hold.
        EmulationError
            If the fabric or OpenSM does not start.
        """
        ...


@contextmanager
def _orderly_termination() -> Iterator[None]:
    is_ending = False

    def terminate(number: int, _frame: object) -> None:
        nonlocal is_ending
        if is_ending:
            # Another would interrupt the end.
            return
        is_ending = True
        pytest.exit(f"terminated by {signal.Signals(number).name}", 128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    kinds = (signal.SIGTERM, signal.SIGHUP) if is_main else ()
    own = [kind for kind in kinds if signal.getsignal(kind) is signal.SIG_DFL]
    for kind in own:
        signal.signal(kind, terminate)
    try:
        yield
    finally:
        for kind in own:
            signal.signal(kind, signal.SIG_DFL)


@pytest.fixture
def fabric(tmp_path: Path) -> Iterator[FabricFactory]:
    """Start emulated fabrics that end with the test; see :class:`FabricFactory`."""
    with ExitStack() as stack:

        def start(
            scenario: Scenario | str | os.PathLike[str],
            *,
            overrides: Mapping[str, Any] | None = None,
            opensm: bool = False,
            **options: Any,
        ) -> RunningFabric:
            if not isinstance(scenario, Scenario):
                scenario = Scenario.from_file(Path(scenario), overrides=overrides)
            elif overrides:
                scenario = scenario.override(overrides)
            number = next(_NUMBERS)
            folder = tmp_path / f"fabric-{number}"
            folder.mkdir()
            options.setdefault("sockname", f"silvan-test-{os.getpid()}-{number}")
            emulation = stack.enter_context(Emulation(scenario, **options))
            if opensm:
                stack.enter_context(managed(emulation, folder))
            running = RunningFabric(emulation, folder)
            stack.callback(running.end)
            return running

        end(descendants.orphans)
        stack.enter_context(_orderly_termination())
        yield start
