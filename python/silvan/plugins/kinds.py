"""The five kinds of plug-ins."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from silvan.schemes.callbacks import Callbacks
    from silvan.schemes.scheme_file import SchemeSetup


@dataclass(frozen=True, slots=True)
class NoKeys:
    """A plug-in without keys."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """The fabric that traffic and routes are made for.

    Attributes
    ----------
    hosts : tuple of str
        Names of the hosts, in the order of their numbers.
    ports : Mapping
        By name of a switch, its cabled ports: by number, the name and the port at the far end.
    """

    hosts: tuple[str, ...]
    ports: Mapping[str, Mapping[int, tuple[str, int]]]

    @property
    def switches(self) -> tuple[str, ...]:
        """Names of the switches."""
        return tuple(self.ports)


@dataclass(frozen=True, slots=True)
class Scheme:
    """A congestion-control scheme of ``control.scheme``; its keys are the table of its name.

    The module of the function becomes part of the scenario, as a scheme file does: a result can be
    run again without the package, unless the module imports other parts of the package. It imports
    them by their full names.

    Attributes
    ----------
    function : callable
        Function of the module that is called at the start of every run with a
        :class:`silvan.SchemeSetup`. The keys are ``setup.parameters``, by field; quantities are
        numbers of bytes, picoseconds or bits in a second.
    keys : type
        Dataclass of the keys: numbers, truth values and quantities, all with defaults.
    """

    function: Callable[[SchemeSetup], Callbacks]
    keys: type[Any] = NoKeys


@dataclass(frozen=True, slots=True)
class Topology:
    """A topology of ``fabric.generator``; its keys are in the table ``fabric``.

    Attributes
    ----------
    function : callable
        Function of the keys. It returns a graph of networkx, as
        :meth:`silvan.Scenario.from_networkx` takes it, or a mapping with the lists ``switch``,
        ``host`` and ``cable`` of the table ``fabric``. Without ``routing`` in the scenario, routes
        are those of the first of ``d-mod-k``, ``fat-tree`` and ``up-down`` that suits.
    keys : type
        Dataclass of the keys.
    """

    function: Callable[[Any], object]
    keys: type[Any] = NoKeys


Tables: TypeAlias = Mapping[str, Sequence[Mapping[str, object]]]
"""Entries of ``traffic`` by kind, such as ``{"flow": [{"from": ...}]}``."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """A kind of traffic, ``[[traffic.NAME]]``; its keys are those of the entry.

    Attributes
    ----------
    function : callable
        Function of the keys and the :class:`Fabric`. It returns entries of built-in kinds by their
        kind. They follow those of the scenario.
    keys : type
        Dataclass of the keys.
    """

    function: Callable[[Any, Fabric], Tables]
    keys: type[Any] = NoKeys


@dataclass(frozen=True, slots=True)
class Routing:
    """A routing algorithm of ``fabric.routing``; its keys are the table ``fabric.NAME``.

    Attributes
    ----------
    function : callable
        Function of the keys and the :class:`Fabric`. It returns by name of a switch the outgoing
        port by name of a host.
    keys : type
        Dataclass of the keys.
    """

    function: Callable[[Any, Fabric], Mapping[str, Mapping[str, int]]]
    keys: type[Any] = NoKeys


@dataclass(frozen=True, slots=True)
class Trace:
    """A format of traces, ``kind`` of a ``[[traffic.program]]``; its keys are a table of its name.

    Attributes
    ----------
    function : callable
        Function of the keys and the bytes of the program's ``file``. It returns the text of a GOAL
        schedule.
    keys : type
        Dataclass of the keys.
    """

    function: Callable[[Any, bytes], str]
    keys: type[Any] = NoKeys


PlugInObject: TypeAlias = Scheme | Topology | Traffic | Routing | Trace


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plug-ins."""

    word: str
    group: str
    type: type[Any]


SCHEME = Kind("scheme", "silvan.schemes", Scheme)
TOPOLOGY = Kind("topology", "silvan.topologies", Topology)
TRAFFIC = Kind("traffic", "silvan.traffic", Traffic)
ROUTING = Kind("routing", "silvan.routings", Routing)
TRACE = Kind("trace", "silvan.traces", Trace)

KINDS = (SCHEME, TOPOLOGY, TRAFFIC, ROUTING, TRACE)


def summary(plug_in: PlugInObject) -> str:
    """Give the first line of the docstring of a plug-in's function."""
    text = inspect.getdoc(plug_in.function) or ""
    return text.partition("\n")[0]
