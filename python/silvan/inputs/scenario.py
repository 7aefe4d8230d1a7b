"""Scenarios: everything that one simulation needs to know."""

from __future__ import annotations

import io
import itertools
import json
import operator
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from silvan import _silvan
from silvan.errors import ScenarioError, ScenarioWarning, shown
from silvan.inputs.input_files import SCENARIO_BYTES, read_text
from silvan.inputs.quantities import Table
from silvan.inputs.toml_text import (
    SupportsToList,
    TomlInput,
    TomlValue,
    literal,
    literals,
    require_utf8,
)
from silvan.interruptible import interruptible

if TYPE_CHECKING:
    from silvan.plugins.expansion import PluggedIn

_PLUG_IN = "# plug-in: "

_IN_SWEEP = re.compile(r"^sweep\.vary\.(?:.*?\.\d+: )?")

# A node in the output of ibnetdiscover, also with lost tabs.
_DISCOVERED_NODE = re.compile(r'^(?:Switch|Ca)\s*\d+\s*"[SH]-[0-9a-fA-F]+"', re.MULTILINE)

_MAPPING = 'give for example {"run.duration": "1 ms"}'
_GRID = 'give for example {"host.sink-rate": ["4 Gbit/s", "8 Gbit/s"]}'


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Messages or flows that arrive at their senders, and their payload."""

    messages: int
    payload_bytes: int


class Scenario:
    """A checked scenario, with every default filled in.

    Build one from tables, or read it with :meth:`from_file` or :meth:`from_toml`. A
    scenario never changes; :meth:`override` makes a changed copy.

    Parameters
    ----------
    **tables : TomlInput
        The tables of a scenario file, keys spelled as there. Quantities are text with
        their unit, such as ``"13.5 Gbit/s"``. Numbers and arrays of NumPy count as numbers and
        lists.

    Raises
    ------
    ScenarioError
        A key is unknown, a unit is missing or wrong, or a value is impossible.

    See Also
    --------
    silvan.run : simulate a scenario.
    silvan.schema : which tables and keys there are.

    Examples
    --------
    >>> import silvan
    >>> scenario = silvan.Scenario(
    ...     name="pair",
    ...     fabric={"generator": "single-switch", "hosts": 2},
    ...     traffic={"flow": [{"from": "host-0000", "to": "host-0001"}]},
    ...     run={"duration": "10 us"},
    ... )
    >>> scenario.name, scenario.duration_ps
    ('pair', 10000000)
    >>> scenario.override({"run.duration": "20 us"}).duration_ps
    20000000
    """

    __slots__ = ("_native", "_origins", "_plugged_in", "_table")

    def __init__(self, **tables: TomlInput) -> None:
        lines = [f"{key} = {value}" for key, value in literals(tables)]
        try:
            self._native, self._plugged_in = _read("\n".join(lines), None, [])
        except ScenarioError as error:
            if error.source is not None:
                raise
            # The caller has written no lines.
            raise ScenarioError(error.message, hint=error.hint, key=error.key) from error.__cause__
        self._origins = self._plugged_in.origins if self._plugged_in else ()
        self._table: Table | None = None

    @classmethod
    def _wrap(
        cls,
        native: _silvan.Scenario,
        plugged_in: PluggedIn | None = None,
        origins: tuple[str, ...] = (),
    ) -> Scenario:
        scenario = cls.__new__(cls)
        scenario._native = native
        scenario._plugged_in = plugged_in
        scenario._origins = plugged_in.origins if plugged_in else origins
        scenario._table = None
        return scenario

    def _changed(self, overrides: list[tuple[str, str]]) -> Scenario:
        if self._plugged_in is None:
            try:
                return self._wrap(_with_overrides(self._native, overrides))
            except ScenarioError as error:
                refused = error
            text, source, before = self._native.written()
            return self._wrap(*_expanded(text, source, [*before, *overrides], refused))
        written = self._plugged_in.written
        return self._wrap(*_read(written.text, written.source, [*written.overrides, *overrides]))

    @classmethod
    def from_toml(
        cls,
        text: str,
        *,
        source: str | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> Scenario:
        """Read a scenario from TOML text.

        Parameters
        ----------
        text : str
            The text of a scenario file.
        source : str, optional
            Origin of the text, for error messages.
        overrides : Mapping, optional
            Values by dotted key, set over those in the text.

        Returns
        -------
        Scenario
            The checked scenario.

        Raises
        ------
        ScenarioError
            The text is no TOML, a key is unknown, or a value is impossible.
        """
        if not isinstance(text, str):
            raise ScenarioError(
                f"{shown(repr(text))} is not the text of a scenario",
                hint="read a file with silvan.Scenario.from_file(path)",
            )
        require_utf8(text)
        named = None if source is None else str(source)
        assignments = _assignments({} if overrides is None else overrides)
        native, plugged_in = _read(text, named, assignments)
        return cls._wrap(native, plugged_in, () if assignments else _noted_origins(text))

    @classmethod
    def from_file(
        cls, path: str | Path, *, overrides: Mapping[str, object] | None = None
    ) -> Scenario:
        """Read a scenario from a file.

        Parameters
        ----------
        path : str or Path
            A TOML file, encoded in UTF-8, of at most 64 MiB.
        overrides : Mapping, optional
            Values by dotted key, set over those in the file.

        Returns
        -------
        Scenario
            The checked scenario.

        Raises
        ------
        ScenarioError
            The file cannot be read, is no TOML, or asks for the impossible.
        """
        hint = "give the path of a scenario file in TOML; silvan example lists some to copy"
        text = read_text(path, SCENARIO_BYTES, "scenario", hint)
        try:
            return cls.from_toml(text, source=str(path), overrides=overrides)
        except ScenarioError as error:
            if _DISCOVERED_NODE.search(text) is None or error.source != str(path):
                raise
            raise ScenarioError(
                "this is the output of ibnetdiscover, not a scenario",
                str(path),
                hint="name the file in a scenario, by the key fabric.file; "
                "silvan whatif reads it without a scenario",
            ) from error

    @classmethod
    def from_networkx(cls, graph: Any, **tables: TomlInput) -> Scenario:
        """Make a scenario whose fabric is a graph of networkx.

        Parameters
        ----------
        graph : networkx.Graph or networkx.MultiGraph
            Its nodes are switches and hosts, its edges cables. The attribute ``kind`` of a node is
            ``"switch"`` or ``"host"``; without it, a node with one edge is a host. A switch may
            have ``ports``, by default as many as it has cables; nodes may have ``lid`` and
            ``guid``; an edge may have ``speed``, ``width``, ``rate``, ``length`` and ``latency``,
            as a cable in a scenario file. Other attributes have no effect.
        **tables : TomlInput
            The tables of the scenario, as for :class:`Scenario`. Without ``routing`` in the table
            ``fabric``, routes are those of the first of ``d-mod-k``, ``fat-tree`` and ``up-down``
            that suits the cables.

        Returns
        -------
        Scenario
            The checked scenario. Names of hosts and switches are the nodes as text.

        Raises
        ------
        ScenarioError
            The graph is directed or no graph, two nodes have the same name, a host has more than
            one edge, or the scenario is impossible: for example, two hosts have no path.

        Examples
        --------
        >>> import networkx
        >>> import silvan
        >>> star = networkx.star_graph(4)
        >>> scenario = silvan.Scenario.from_networkx(star, traffic={"incast": [{"to": "1"}]})
        >>> facts = scenario.describe()
        >>> facts["hosts"], facts["switches"]
        (4, 1)
        """
        from silvan.inputs.graph import fabric_lists

        fabric = tables.pop("fabric", {})
        if not isinstance(fabric, Mapping):
            raise ScenarioError(
                f"fabric: {shown(repr(fabric))} is not a table",
                hint='give for example fabric={"routing": "up-down"}',
            )
        return cls(fabric={**fabric, **fabric_lists(graph)}, **tables)

    def override(self, overrides: Mapping[str, object]) -> Scenario:
        """Make a changed copy.

        Parameters
        ----------
        overrides : Mapping
            Values by dotted key, or nested tables.

        Returns
        -------
        Scenario
            The changed scenario, checked again.

        Raises
        ------
        ScenarioError
            A key is unknown or a value impossible.
        """
        return self._changed(_assignments(overrides))

    def single_run(self, seed: SupportsIndex) -> Scenario:
        """Give one run of the scenario on its own, as a sweep makes it.

        The seed is fixed, nothing varies, and the description is left out: equal runs have
        equal hashes, whatever else is swept.

        Parameters
        ----------
        seed : int
            The seed of the run.

        Returns
        -------
        Scenario
            The scenario of that run.

        Raises
        ------
        ScenarioError
            There is no such seed.
        """
        number = checked_seed(seed)
        native = self._native.single_run(number)
        if self._plugged_in is None:
            return self._wrap(native, None, self._origins)
        single = [("run.seed", str(number)), ("sweep", "{}"), ("description", '""')]
        written = self._plugged_in.written.with_overrides(single)
        return self._wrap(native, replace(self._plugged_in, written=written, axes={}))

    def varying(self, grid: Mapping[str, Sequence[object] | SupportsToList]) -> Scenario:
        """Make a copy whose sweep varies these keys, too.

        Parameters
        ----------
        grid : Mapping
            Values by dotted key. They replace those that the scenario's own sweep gives a key.

        Returns
        -------
        Scenario
            The copy, its keys and values checked one by one.

        Raises
        ------
        ScenarioError
            A key is unknown, or a value can be none of its key.

        Examples
        --------
        >>> import silvan
        >>> base = silvan.Scenario().varying({"host.sink-rate": ["4 Gbit/s", "8 Gbit/s"]})
        >>> base.sweep_values()
        [{'host.sink-rate': '"4 Gbit/s"'}, {'host.sink-rate': '"8 Gbit/s"'}]
        """
        if not isinstance(grid, Mapping):
            raise ScenarioError(
                f"{shown(repr(grid))} is not a mapping of keys to lists of values", hint=_GRID
            )
        if not grid:
            return self
        vary = literal({**self.axes(), **grid})
        try:
            return self._changed([("sweep.vary", vary)])
        except ScenarioError as error:
            # The error concerns one key, not the whole grid.
            message = _IN_SWEEP.sub("", error.message)
            hint = self._hint_of(grid, message) or error.hint
            raise ScenarioError(message, "grid", hint=hint, key=error.key) from None

    def _hint_of(self, grid: Mapping[str, Any], message: str) -> str | None:
        for key in grid:
            if message == f"{key}: unknown key":
                try:
                    self._changed([(key, "0")])
                except ScenarioError as error:
                    return error.hint
        return None

    def axes(self) -> dict[str, list[TomlValue]]:
        """Give the keys that the scenario's sweep varies, each with its values."""
        vary: dict[str, list[TomlValue]] = self.to_dict().get("sweep", {}).get("vary", {})
        return vary

    def sweep_values(self) -> list[dict[str, str]]:
        """List the combinations of the sweep's values, the last key varying fastest.

        Returns
        -------
        list of dict
            Values by dotted key, as TOML literals; one empty combination if nothing varies.
        """
        if self._plugged_in is None or not self._plugged_in.axes:
            return [dict(point) for point in self._native.sweep_points()]
        axes = sorted(self.axes().items())
        values = itertools.product(*(map(literal, values) for _, values in axes))
        return [dict(zip((key for key, _ in axes), point, strict=True)) for point in values]

    def at(self, values: Mapping[str, str]) -> Scenario:
        """Give one combination of the sweep as a scenario that varies nothing.

        Parameters
        ----------
        values : Mapping
            Values by dotted key, as TOML literals.

        Returns
        -------
        Scenario
            The scenario with these values.

        Raises
        ------
        ScenarioError
            The values are impossible together.
        """
        try:
            return self._changed([*values.items(), ("sweep", "{}")])
        except ScenarioError as error:
            words = ", ".join(f"{key}={value}" for key, value in values.items())
            raise ScenarioError(
                error.message, f"point {words}", hint=error.hint, key=error.key
            ) from None

    @property
    def tables(self) -> Table:
        """The tables of the effective scenario, whose values have units and numbers.

        Each table is also an attribute of the scenario itself, if no method has its name.

        Examples
        --------
        >>> import silvan
        >>> scenario = silvan.Scenario(run={"duration": "4 ms"})
        >>> scenario.run.duration.seconds, scenario.packet.mtu.bytes
        (0.004, 4096)
        >>> scenario.tables["run"]["duration"]
        '4 ms'
        """
        if self._table is None:
            self._table = Table(self.to_dict(), "scenario", self._effective)
        return self._table

    def _effective(self, path: str) -> str | None:
        in_hosts = {"scenario.switch.buffer": False, "scenario.host.receive-buffer": True}
        if path not in in_hosts:
            return None
        buffers = self.describe()["input_buffers"]
        sizes = {one["bytes"] for one in buffers if one["in_hosts"] == in_hosts[path]}
        if len(sizes) != 1:
            return None
        (size,) = sizes
        return f"{size} B" if size % 1024 else f"{size // 1024} KiB"

    def __getattr__(self, name: str) -> Table:
        # An object whose text was refused has no tables, and debuggers ask for its name.
        if name.startswith("_") or not hasattr(self, "_native"):
            raise AttributeError(name)
        value = getattr(self.tables, name)
        if not isinstance(value, Table):
            raise AttributeError(f"scenario.{name} is not a table")
        return value

    def __dir__(self) -> list[str]:
        tables = (key for key, value in self.tables.items() if isinstance(value, Table))
        return sorted({*super().__dir__(), *tables})

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self._native.name

    @property
    def warnings(self) -> list[str]:
        """Oddities of the files that the scenario names, and the choices made for them."""
        return self._native.warnings

    @property
    def plug_ins(self) -> tuple[str, ...]:
        """The plug-ins that made parts of the scenario: place, kind, name, package and version.

        The scenario itself has what they made, so that a run needs the packages no more. Only the
        module of a scheme may import others of its package.
        """
        return self._origins

    @property
    def seed(self) -> int:
        """Seed of a run that is given no other."""
        return self._native.seed

    @property
    def warm_up_ps(self) -> int:
        """Simulated time at the start that the totals leave out, in picoseconds."""
        return self._native.warm_up_ps

    @property
    def duration_ps(self) -> int:
        """Simulated time from the start to the end of the run, in picoseconds."""
        return self._native.duration_ps

    @property
    def link_gbps(self) -> float:
        """Data rate of a cable that says nothing else, in Gbit/s."""
        return self._native.link_bits_per_s / 1e9

    @property
    def has_python_scheme(self) -> bool:
        """True if the congestion control is in a Python file."""
        return self._native.python_scheme() is not None

    @property
    def has_traffic(self) -> bool:
        """True if any host sends anything."""
        return self._native.has_traffic

    @property
    def hash(self) -> str:
        """SHA-256 of the effective scenario in hexadecimal digits: equal for equal runs."""
        return self._native.hash()

    def to_toml(self) -> str:
        """Write the scenario as TOML text, with every default as a comment.

        Reading the text gives an equal scenario, which :meth:`override` changes equally: defaults
        that depend on other values follow them. The text contains all values from files and
        plug-ins, and comments at its start name the plug-ins. Keys of plug-ins are not in it.

        Examples
        --------
        >>> import silvan
        >>> scenario = silvan.Scenario(run={"duration": "4 ms"})
        >>> '# interval = "40 us"' in scenario.to_toml()
        True
        >>> again = silvan.Scenario.from_toml(scenario.to_toml())
        >>> again.override({"run.duration": "2 ms"}).to_dict()["probe"]["interval"]
        '20 us'
        """
        return "".join(f"{_PLUG_IN}{one}\n" for one in self._origins) + self._native.to_toml()

    def export(self, name: str) -> str:
        """Write the fabric in the format of another program.

        Parameters
        ----------
        name : str
            ``slurm-tree`` and ``slurm-block`` (Slurm's ``topology.conf``), ``topograph``,
            ``graphml``, ``ibsim``, ``root-guids`` and ``cn-guids`` (OpenSM), ``ns-3`` or ``htsim``.

        Returns
        -------
        str
            The text of a file.

        Raises
        ------
        SilvanError
            There is no such format, or it cannot describe the fabric.

        Examples
        --------
        >>> import silvan
        >>> pair = silvan.Scenario(fabric={"generator": "single-switch", "hosts": 2})
        >>> print(pair.export("slurm-block"), end="")
        # Slurm's topology.conf for TopologyPlugin=topology/block
        BlockName=switch-00 Nodes=host-[0000-0001]
        BlockSizes=2
        """
        from silvan.inputs.exports.formats import export

        return export(self, name)

    def to_networkx(self) -> Any:
        """Give the fabric as a graph of networkx.

        Returns
        -------
        networkx.MultiGraph
            Nodes are the names of switches and hosts, with the attributes ``kind``, ``lid``,
            ``guid`` and, of a switch, ``ports``. Edges are cables, with ``speed``, ``width``,
            ``length``, where it differs from these ``rate`` and ``latency``, and in ``ends`` the
            port number at each node. :meth:`from_networkx` takes it; port numbers are then in
            the order of the edges.

        Examples
        --------
        >>> import networkx
        >>> import silvan
        >>> scenario = silvan.Scenario(fabric={"generator": "hyper-x", "sizes": [3, 3],
        ...                                    "hosts-per-switch": 1})
        >>> networkx.diameter(scenario.to_networkx())
        4
        """
        from silvan.inputs.graph import from_lists

        return from_lists(json.loads(self._native.graph()))

    def egress_ports(self) -> dict[str, bytes]:
        """Return the port by which each switch sends packets for each host.

        Returns
        -------
        dict of str to bytes
            By switch a number for each host, in the order of the hosts; 0 if the switch has no
            entry. If switches choose among ports (``fabric.path-choice``), it is one of them.

        Examples
        --------
        >>> scenario = Scenario(fabric={"generator": "single-switch", "hosts": 3})
        >>> {name: list(ports) for name, ports in scenario.egress_ports().items()}
        {'switch-00': [1, 2, 3]}
        """
        names, ports = self._native.egress_ports()
        hosts = len(ports) // max(1, len(names))
        return {name: ports[hosts * at : hosts * (at + 1)] for at, name in enumerate(names)}

    def to_dict(self) -> dict[str, Any]:
        """Give the effective scenario as nested dictionaries."""
        tables: dict[str, Any] = json.loads(self._native.to_json())
        if self._plugged_in is not None and self._plugged_in.axes:
            tables["sweep"] = {**tables.get("sweep", {})}
            tables["sweep"]["vary"] = tables["sweep"].get("vary", {}) | self._plugged_in.axes
        return tables

    def settings(self) -> dict[str, Any]:
        """Give the values that :meth:`override` changes, as nested dictionaries.

        They are those of :meth:`to_dict`, with the keys of plug-ins in place of what these made.
        """
        tables = self.to_dict()
        return tables if self._plugged_in is None else self._plugged_in.settings(tables)

    def describe(self) -> dict[str, Any]:
        """Summarise what the scenario builds: hosts, switches, links and the like."""
        facts: dict[str, Any] = json.loads(self._native.describe())
        return facts

    @property
    def base_rtt_s(self) -> float:
        """The longest round trip of the fabric without queues, in seconds.

        A packet of MTU size takes its time on the host's link and in the sink, and passes cables
        and switches; its acknowledgement takes the delay of feedback, and in band the path, too.

        Examples
        --------
        Two cables of 10 ns, a switch of 100 ns, two times 166 ns for 2074 bytes at 100 Gbit/s, and
        2 us for the acknowledgement:

        >>> import silvan
        >>> edr = silvan.Scenario(
        ...     fabric={"generator": "single-switch", "hosts": 4},
        ...     link={"speed": "EDR"},
        ...     switch={"latency": "100 ns"},
        ...     packet={"mtu": "2 KiB"},
        ... )
        >>> round(edr.base_rtt_s * 1e9, 2)
        2451.84
        """
        return self._native.base_rtt_s()

    def scheme_variants(self) -> list[dict[str, Any]]:
        """List the variants of all congestion-control schemes on the fabric.

        Returns
        -------
        list of dict
            ``name``, ``scheme``, ``summary``, ``overrides`` (pairs of key and value that choose
            it), ``settings`` (pairs that hold where the scenario is silent), ``written`` (keys of
            published settings that the scenario writes), ``cost``, and ``unsuited``: None, or a
            ``kind`` (``links``, ``fabric`` or ``by-hand``) and ``why`` the variant takes no part in
            comparisons.
        """
        variants: list[dict[str, Any]] = json.loads(interruptible(self._native.scheme_variants))
        return variants

    def tmax_gbps(self, seed: SupportsIndex | None = None, *, at_ps: int = 0) -> float:
        """Compute the most that hosts other than hotspots could receive, from the traffic alone.

        This is ``tmax`` of gran2012 (section V-B): "the maximum average receive rate the
        non-hotspots could possibly achieve if the hotspots were not present". Nothing is simulated:
        every host that sends uniformly gives each other host an equal part of what it may inject.

        Parameters
        ----------
        seed : int, optional
            Seed of the run, which places roles and hotspots; by default the scenario's own.
        at_ps : int
            Instant, in picoseconds: hotspots may move, and flows start and end.

        Returns
        -------
        float
            Mean payload rate per host, in Gbit/s; 0 if every host is a hotspot.

        Raises
        ------
        ScenarioError
            There is no such seed, or it places roles impossibly.

        Examples
        --------
        Two of eight hosts send 8 Gbit/s uniformly, a seventh to each other host. Of the seven that
        are no hotspot, five hear from both and two from the other one: 12 sevenths in all.

        >>> import silvan
        >>> scenario = silvan.Scenario(
        ...     fabric={"generator": "single-switch", "hosts": 8},
        ...     host={"injection-rate": "8 Gbit/s"},
        ...     traffic={
        ...         "nodes": {"v": ["host-0001", "host-0002"], "hotspots": ["host-0000"]},
        ...     },
        ... )
        >>> round(scenario.tmax_gbps(), 3) == round(12 / 7 / 7 * 8, 3)
        True
        """
        seed = self.seed if seed is None else checked_seed(seed)
        return self._native.tmax(seed, at_ps) / 1e9

    def arrivals(self, seed: SupportsIndex | None = None) -> dict[str, Arrivals | None]:
        """Count what arrives at open-loop sources between the warm-up and the end of a run.

        It depends on the traffic and the seed alone: nothing is simulated, nothing holds a source
        back.

        Parameters
        ----------
        seed : int, optional
            Seed of the run; by default the scenario's own.

        Returns
        -------
        dict
            By traffic class; ``None`` for a class of which a source makes messages when it can send
            them, as one that saturates and one in a closed loop.

        Raises
        ------
        ScenarioError
            There is no such seed, or it places roles impossibly.

        Examples
        --------
        A message of 4,096 bytes each 3.2768 us is 10 Gbit/s.

        >>> import silvan
        >>> scenario = silvan.Scenario(
        ...     fabric={"generator": "single-switch", "hosts": 2},
        ...     traffic={
        ...         "flow": [
        ...             {"name": "a", "from": "host-0000", "to": "host-0001", "message": "4 KiB",
        ...              "load": "10 Gbit/s"},
        ...         ]
        ...     },
        ...     run={"duration": "32768 us"},
        ... )
        >>> scenario.arrivals()["a"]
        Arrivals(messages=10000, payload_bytes=40960000)
        """
        seed = self.seed if seed is None else checked_seed(seed)
        counted = interruptible(lambda: self._native.arrivals(seed)).items()
        return {name: None if of is None else Arrivals(*of) for name, of in counted}

    def offered_bytes(self, seed: SupportsIndex | None = None) -> dict[str, float]:
        """Compute what sources offer between the warm-up and the end of a run, by their mean rates.

        Parameters
        ----------
        seed : int, optional
            Seed of the run; by default the scenario's own.

        Returns
        -------
        dict
            Payload in bytes by traffic class; a source that saturates offers its injection rate.

        Raises
        ------
        ScenarioError
            There is no such seed, or it places roles impossibly.
        """
        return self._native.offered_bytes(self.seed if seed is None else checked_seed(seed))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        if not hasattr(self, "_native"):
            return "<silvan.Scenario, refused>"
        return f"<silvan.Scenario {self.name!r} {self.hash[:12]}>"

    def _repr_html_(self) -> str:
        from silvan.inputs.scenario_html import scenario_html

        return scenario_html(self)

    def __reduce__(self) -> tuple[Any, tuple[str, PluggedIn | None]]:
        return (_rebuild, (self.to_toml(), self._plugged_in))


LARGEST_SEED = 2**63 - 1


def checked_seed(seed: SupportsIndex) -> int:
    """Give a seed as a plain number."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if not isinstance(seed, bool) and 0 <= number <= LARGEST_SEED:
        return number
    raise ScenarioError(
        f"{seed!r} is not a seed", hint=f"seeds are whole numbers from 0 to {LARGEST_SEED}"
    )


def checked_scenario(value: object) -> Scenario:
    """Make sure that a value is a scenario."""
    if isinstance(value, Scenario):
        return value
    hint = "make one with silvan.Scenario(...)"
    if isinstance(value, str | os.PathLike):
        hint = f"read a file with silvan.Scenario.from_file({os.fspath(value)!r})"
    raise ScenarioError(f"{value!r} is not a silvan.Scenario", hint=hint)


def warn_without_traffic(name: str) -> None:
    """Warn that no host of a scenario sends anything."""
    warnings.warn(
        f"{name}: no host sends anything; add an entry such as [[traffic.incast]]",
        ScenarioWarning,
        stacklevel=3,
    )


def _rebuild(text: str, plugged_in: PluggedIn | None) -> Scenario:
    return Scenario._wrap(_core(text, None, []), plugged_in, _noted_origins(text))


def _core(text: str, source: str | None, overrides: list[tuple[str, str]]) -> _silvan.Scenario:
    # A large fabric takes a while to build and to check.
    return interruptible(lambda: _silvan.Scenario.from_toml(text, source, overrides))


def _with_overrides(native: _silvan.Scenario, overrides: list[tuple[str, str]]) -> _silvan.Scenario:
    return interruptible(lambda: native.with_overrides(overrides))


def _read(
    text: str, source: str | None, overrides: list[tuple[str, str]]
) -> tuple[_silvan.Scenario, PluggedIn | None]:
    try:
        return _core(text, source, overrides), None
    except ScenarioError as error:
        refused = error
    return _expanded(text, source, overrides, refused)


def _expanded(
    text: str, source: str | None, overrides: list[tuple[str, str]], refused: ScenarioError
) -> tuple[_silvan.Scenario, PluggedIn]:
    from silvan.plugins.expansion import Written, expand

    return expand(Written(text, source, tuple(overrides)), refused, _core)


def _noted_origins(text: str) -> tuple[str, ...]:
    head = itertools.takewhile(lambda line: line.startswith("#"), io.StringIO(text))
    return tuple(line.removeprefix(_PLUG_IN).rstrip() for line in head if line.startswith(_PLUG_IN))


def _assignments(tables: Mapping[str, object]) -> list[tuple[str, str]]:
    if not isinstance(tables, Mapping):
        raise ScenarioError(
            f"{shown(repr(tables))} is not a mapping of keys to values", hint=_MAPPING
        )
    return literals(tables)


def schema() -> dict[str, Any]:
    """Give the JSON schema of scenario files.

    Returns
    -------
    dict
        The schema, with a description of every table and key.

    Examples
    --------
    >>> import silvan
    >>> "fabric" in silvan.schema()["properties"]
    True
    """
    parsed: dict[str, Any] = json.loads(_silvan.schema())
    return parsed


def reference() -> str:
    """List every key of a scenario file with its unit and default.

    Returns
    -------
    str
        A page in Markdown.

    Examples
    --------
    >>> import silvan
    >>> "injection-rate" in silvan.reference()
    True
    """
    return _silvan.reference()
