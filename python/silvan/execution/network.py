"""A fabric that a Python program steers, message by message."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from threading import get_ident
from typing import Any, SupportsIndex

from silvan import _silvan
from silvan.errors import ScenarioError, SilvanError, SimulationError, shown
from silvan.inputs.quantities import Quantity
from silvan.inputs.scenario import Scenario, checked_scenario, checked_seed

LARGEST_TOKEN = 2**32 - 1
"""Tokens have 32 bits."""


@dataclass(frozen=True, slots=True)
class Event:
    """A message that has arrived, or an alarm whose time has come.

    Attributes
    ----------
    time : int
        The instant, in picoseconds.
    tag : object
        Value that the program gave to :meth:`Network.send` or :meth:`Network.at`.
    src, dst : str
        Names of the sending and the receiving host; empty for an alarm.
    bytes : int
        Payload of the message, in bytes; 0 for an alarm.
    sent : int
        The instant at which the message or alarm was requested, in picoseconds.
    """

    time: int
    tag: Any
    src: str
    dst: str
    bytes: int
    sent: int


class Network:
    """A simulated fabric that a program steers in steps.

    Messages are those of a program's puts: they need no receive and cost no processor time.
    Fabric, routing and congestion control are those of the scenario, and its own flows run
    beside the messages. Its duration, warm-up and probes have no effect. Requests hold at
    :attr:`now`, which is the instant of an event while its iteration is in progress. Equal
    requests give equal events, to the picosecond. A network belongs to the thread that made it;
    it simulates on that one thread.

    Parameters
    ----------
    scenario : Scenario
        Fabric, links, congestion control and load.
    seed : int, optional
        Seed of every random choice; by default the scenario's own.

    Raises
    ------
    ScenarioError
        The scenario or seed is none, or its scheme is a Python file.
    SimulationError
        Load or control cannot be built.

    Examples
    --------
    A message of 1 MB crosses a switch; its receiver answers with 8 bytes:

    >>> import silvan
    >>> net = silvan.Network(silvan.Scenario(fabric={"generator": "single-switch", "hosts": 2}))
    >>> net.send("host-0000", "host-0001", 1_000_000, tag="question")
    >>> for event in net.run_until("1 ms"):
    ...     if event.tag == "question":
    ...         net.send(event.dst, event.src, 8, tag="answer")
    ...     print(event.tag, event.dst, round(event.time / 1e6, 1), "us")
    question host-0001 20.2 us
    answer host-0000 20.4 us
    >>> net.now
    1000000000
    """

    def __init__(self, scenario: Scenario, *, seed: SupportsIndex | None = None) -> None:
        scenario = checked_scenario(scenario)
        number = scenario.seed if seed is None else checked_seed(seed)
        if scenario._native.python_scheme() is not None:
            raise ScenarioError(
                f"{scenario.name}: a scheme in a Python file needs silvan.run",
                hint="choose a compiled scheme: control.scheme = NAME",
            )
        self._native = _silvan.Network(scenario._native, number)
        self._names = tuple(self._native.host_names())
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._pending: dict[int, tuple[Any, str, str, int, int]] = {}
        self._next_token = 0
        self._thread = get_ident()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts, by number."""
        return self._names

    @property
    def now(self) -> int:
        """The current instant, in picoseconds."""
        self._check_thread()
        return self._native.now()

    @property
    def pending(self) -> int:
        """Number of messages under way and alarms that are to come."""
        return len(self._pending)

    def send(
        self,
        src: str | SupportsIndex,
        dst: str | SupportsIndex,
        bytes: SupportsIndex,  # noqa: A002 - the unit is the name
        tag: Any = None,
    ) -> None:
        """Send a message now.

        Parameters
        ----------
        src, dst : str or int
            The sending and the receiving host, by name or number; they may be equal.
        bytes : int
            Payload in bytes; a message of 0 takes one packet without payload.
        tag : object, optional
            Comes back in the event of the arrival.

        Raises
        ------
        SimulationError
            A host is unknown, no route leads there, or the size is out of range.
        """
        self._check_thread()
        start, end = self._host(src), self._host(dst)
        size = _whole(bytes, "a message's size in bytes")
        token = self._token()
        self._native.send(start, end, size, token)
        self._pending[token] = (tag, self._names[start], self._names[end], size, self.now)

    def at(self, time: SupportsIndex | str, tag: Any = None) -> None:
        """Request an event at an instant.

        Parameters
        ----------
        time : int or str
            The instant: picoseconds, or a text with a unit such as ``"3 us"``; :attr:`now` at
            the earliest.
        tag : object, optional
            Comes back in the event.

        Raises
        ------
        SimulationError
            The instant has passed.
        """
        self._check_thread()
        instant, now = _instant(time), self.now
        if instant < now:
            raise SimulationError(f"the instant {instant} ps has passed: it is {now} ps")
        token = self._token()
        self._native.alarm(instant - now, token)
        self._pending[token] = (tag, "", "", 0, now)

    def run_until(self, time: SupportsIndex | str | None = None) -> Iterator[Event]:
        """Simulate up to an instant, and give each event when its time has come.

        The simulation advances while the iterator is consumed: a loop that ends early leaves
        :attr:`now` at the last event, and the next call goes on from there. Ctrl-C ends it within
        a fraction of a second and leaves the network usable.

        Parameters
        ----------
        time : int or str, optional
            The end: picoseconds, or a text with a unit such as ``"3 us"``. Events at that very
            instant belong to the next call. Without it the run ends when nothing is pending.

        Yields
        ------
        Event
            Arrivals and alarms in the order of their instants; equal ones in the order of the
            simulation, which is the same each time.

        Raises
        ------
        SimulationError
            The fabric is deadlocked, or a message can no longer arrive.
        """
        end = None if time is None else _instant(time)
        if end is not None and end < self.now:
            raise SimulationError(f"the instant {end} ps has passed: it is {self.now} ps")
        return self._events(end)

    def _events(self, end: int | None) -> Iterator[Event]:
        while end is not None or self._pending:
            self._check_thread()
            found = self._native.next_event(end)
            if found is None:
                return
            token, instant = found
            tag, src, dst, size, sent = self._pending.pop(token)
            yield Event(instant, tag, src, dst, size, sent)

    def host_counters(self, host: str | SupportsIndex) -> dict[str, int]:
        """Read counters of a host since the start: bytes, packets, FECN and BECN received.

        Raises
        ------
        SimulationError
            The host is unknown.
        """
        self._check_thread()
        return self._native.host_counters(self._host(host))

    def port_counters(self, node: str, port: SupportsIndex) -> dict[str, int]:
        """Read the counters of a port since the start, by their column in the table of ports.

        Raises
        ------
        SimulationError
            The node or its port is unknown.
        """
        self._check_thread()
        number = _whole(port, "a port's number")
        if number > 255:
            raise SimulationError(f"{node!r} has no port {number}")
        return self._native.port_counters(node, number)

    def totals(self) -> dict[str, int]:
        """Read totals since the start: events, packet-hops, delivered packets, memory in bytes."""
        self._check_thread()
        return self._native.totals()

    def __repr__(self) -> str:
        return f"<silvan.Network of {len(self._names)} hosts, {self.pending} events pending>"

    def _check_thread(self) -> None:
        if get_ident() != self._thread:
            raise SilvanError(
                "this network belongs to another thread",
                "make it in the thread that uses it",
            )

    def _token(self) -> int:
        token = self._next_token
        while token in self._pending:
            token = (token + 1) & LARGEST_TOKEN
        self._next_token = (token + 1) & LARGEST_TOKEN
        return token

    def _host(self, host: str | SupportsIndex) -> int:
        if isinstance(host, str):
            number = self._numbers.get(host)
            if number is None:
                near = difflib.get_close_matches(host, self._names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else "net.hosts has the names"
                raise SimulationError(f"no host is named {shown(repr(host))}", hint=hint)
            return number
        number = _whole(host, "a host's number")
        if number >= len(self._names):
            raise SimulationError(
                f"host {number}: the fabric has {len(self._names)} hosts, numbered from 0"
            )
        return number


def _whole(value: SupportsIndex, meaning: str) -> int:
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 2**63:
        raise SimulationError(f"{shown(repr(value))} is not {meaning}")
    return number


def _instant(time: SupportsIndex | str) -> int:
    return Quantity(time).ps if isinstance(time, str) else _whole(time, "an instant in picoseconds")
