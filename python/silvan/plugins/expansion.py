"""The step from a scenario with plug-ins to one of built-in elements, with places of errors."""

from __future__ import annotations

import inspect
import json
import re
import threading
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any, TypeAlias

from silvan import _silvan
from silvan.errors import ScenarioError, SilvanError, describe, shown
from silvan.inputs.graph import fabric_lists
from silvan.inputs.input_files import TRACE_BYTES, read_bytes
from silvan.inputs.toml_text import dotted, literal
from silvan.plugins.installed import PlugIn, installed, reserved, section_keys
from silvan.plugins.keys import key_names, numbers, plain_keys, read_keys
from silvan.plugins.kinds import (
    ROUTING,
    SCHEME,
    TOPOLOGY,
    TRACE,
    TRAFFIC,
    Fabric,
    Kind,
    PlugInObject,
)
from silvan.schemes.scheme_file import needed_carrier

Overrides: TypeAlias = Sequence[tuple[str, str]]

Reader: TypeAlias = Callable[[str, str | None, list[tuple[str, str]]], _silvan.Scenario]

_PLACES = re.compile(
    r"(control|fabric|traffic)\.[^.]+|traffic\.program\.\d+\.[^.]+|sweep\.vary\..+"
)
_AXIS = re.compile(r"""sweep\.vary\.("(?:[^"\\]|\\.)*"|[^.]+)(?:\.\d+)?""")

_LISTS = ("switch", "host", "cable")
_TABLES = ("tables", "linear-tables", "routing-file")
_ROUTES = (*_TABLES, "path-sl", "sl-to-vl", "path-choice")
_NO_ROUTE = 0xFF

_ALL_KNOWN = "known here: "
_COMMAND = "silvan plug-ins lists those of installed packages"

# A sweep builds points in several threads; plug-ins need not be thread-safe.
_ONE_AT_A_TIME = threading.RLock()


@dataclass(frozen=True, slots=True)
class Written:
    """A scenario's text with overrides (dotted keys, TOML literals)."""

    text: str
    source: str | None
    overrides: tuple[tuple[str, str], ...]

    def with_overrides(self, overrides: Overrides) -> Written:
        """Add overrides."""
        return Written(self.text, self.source, (*self.overrides, *overrides))


@dataclass(frozen=True, slots=True)
class _Patch:
    path: tuple[str | int, ...]
    removed: tuple[str, ...]
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PluggedIn:
    """The parts of a scenario that plug-ins made; ``axes`` are keys that only this module sets."""

    written: Written
    axes: Mapping[str, list[Any]]
    origins: tuple[str, ...]
    patches: tuple[_Patch, ...]
    own_entries: Mapping[str, int]

    def settings(self, tables: dict[str, Any]) -> dict[str, Any]:
        """Put the keys of plug-ins into the effective tables, in place of what these made."""
        for kind, count in self.own_entries.items():
            entries = tables["traffic"].pop(kind)
            if count:
                tables["traffic"][kind] = entries[:count]
        for patch in self.patches:
            table = reduce(getitem, patch.path, tables)  # type: ignore[arg-type]
            for key in patch.removed:
                table.pop(key, None)
            table.update(patch.values)
        return tables


def expand(
    written: Written, refused: ScenarioError, read: Reader
) -> tuple[_silvan.Scenario, PluggedIn]:
    """Read a scenario with plug-ins that the compiled reader has refused; else raise its error."""
    if refused.key is None or not _PLACES.fullmatch(refused.key):
        raise refused
    text, source, overrides = written.text, written.source, list(written.overrides)
    try:
        document = _silvan.ScenarioText(text, source, overrides)
        tables = json.loads(document.to_json())
    except ScenarioError:
        raise refused from None
    names = [one for one in _names(tables) if one.name not in reserved(one.kind)]
    found = {
        (one.kind.word, one.name): installed(one.kind)[one.name]
        for one in names
        if one.name in installed(one.kind)
    }
    if not found:
        raise _with_suggestions(refused, names)
    return _Expansion(written, document, tables, names, found, read).read()


@dataclass(frozen=True, slots=True)
class _Name:
    kind: Kind
    name: str
    key: str


def _names(tables: Mapping[str, Any]) -> Iterator[_Name]:
    control, fabric, traffic = (_table(tables, one) for one in ("control", "fabric", "traffic"))
    for kind, table, place, key in (
        (SCHEME, control, "control", "scheme"),
        (TOPOLOGY, fabric, "fabric", "generator"),
        (ROUTING, fabric, "fabric", "routing"),
    ):
        if isinstance(table.get(key), str):
            yield _Name(kind, table[key], f"{place}.{key}")
    yield from (_Name(SCHEME, name, f"control.{name}") for name in _tables_in(control))
    yield from (_Name(ROUTING, name, f"fabric.{name}") for name in _tables_in(fabric))
    for name in traffic:
        yield _Name(TRAFFIC, name, f"traffic.{name}")
    for number, entry in _programs(traffic):
        program = f"traffic.program.{number}"
        if isinstance(entry.get("kind"), str):
            yield _Name(TRACE, entry["kind"], f"{program}.kind")
        yield from (_Name(TRACE, name, f"{program}.{name}") for name in _tables_in(entry))
    for key, values in _table(_table(tables, "sweep"), "vary").items():
        for value in values if isinstance(values, list) else ():
            with suppress(tomllib.TOMLDecodeError, SilvanError):
                yield from _names(tomllib.loads(f"{key} = {literal(value)}"))


def _table(tables: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = tables.get(key)
    return table if isinstance(table, Mapping) else {}


def _tables_in(table: Mapping[str, Any]) -> list[str]:
    return [key for key, value in table.items() if isinstance(value, Mapping)]


def _programs(traffic: Mapping[str, Any]) -> Iterator[tuple[int | str, Mapping[str, Any]]]:
    entries = traffic.get("program")
    # In a key of a sweep, the place of an entry is a key.
    listed = entries if isinstance(entries, list | tuple) else ()
    numbered = entries.items() if isinstance(entries, Mapping) else enumerate(listed)
    return ((place, entry) for place, entry in numbered if isinstance(entry, Mapping))


def _with_suggestions(error: ScenarioError, names: Iterable[_Name]) -> ScenarioError:
    for one in names:
        if one.key != error.key:
            continue
        known = sorted(installed(one.kind))
        close = get_close_matches(one.name, known, n=1)
        if not known and not (error.hint or "").startswith(_ALL_KNOWN):
            return error
        more = f"plug-ins: {', '.join(known)}" if known else _COMMAND
        listed = "; ".join(filter(None, (error.hint, more)))
        hint = f'did you mean "{close[0]}"?' if close else listed
        return ScenarioError(error.message, error.source, error.line, hint, error.key, error.column)
    return error


@dataclass(frozen=True, slots=True)
class _Use:
    plug_in: PlugIn
    key: str


class _Expansion:
    def __init__(
        self,
        written: Written,
        document: _silvan.ScenarioText,
        tables: Mapping[str, Any],
        names: Sequence[_Name],
        found: Mapping[tuple[str, str], PlugIn],
        read: Reader,
    ) -> None:
        self.core: dict[str, dict[str, Any]] = {}
        self.made: dict[str, _Use] = {}
        self._written = written
        self._document = document
        self._tables = tables
        self._names = names
        self._found = found
        self._read = read
        self._patches: list[_Patch] = []
        self._own_entries: dict[str, int] = {}
        self._origins: list[str] = []
        self._view: tuple[Fabric, dict[str, int]] | None = None

    def read(self) -> tuple[_silvan.Scenario, PluggedIn]:
        self._expand_control()
        self._expand_fabric()
        self._expand_traffic()
        native, axes = self._read_core()
        origins, patches = tuple(self._origins), tuple(self._patches)
        return native, PluggedIn(self._written, axes, origins, patches, self._own_entries)

    def _expand_control(self) -> None:
        control = dict(_table(self._tables, "control"))
        values = self._take_tables(control, SCHEME, "control")
        use = self._use(SCHEME, control.get("scheme"), "control.scheme")
        if use is None and not values:
            return
        patch: dict[str, Any] = {name: plain_keys(keys) for name, keys in values.items()}
        if use is not None:
            name, plug_in = use.plug_in.name, self._load(use)
            keys = self._keys_of(use, plug_in, f"control.{name}", values)
            text = self._module(use, plug_in)
            try:
                parameters = numbers(keys)
            except SilvanError as error:
                raise self._error(use, error.message, error.hint) from None
            control["scheme"] = "python"
            control["python"] = {
                "source": text,
                "name": name,
                "function": plug_in.function.__name__,
                "parameters": parameters,
            }
            carrier, feedback = needed_carrier(text), control.get("feedback", {})
            if carrier is not None and isinstance(feedback, Mapping):
                control["feedback"] = {"carrier": carrier, **feedback}
            patch |= {"scheme": name, name: plain_keys(keys)}
            self.made["control.python"] = use
            self._note(use)
        removed = () if use is None else ("python",)
        self._patches.append(_Patch(("control",), removed, patch))
        self.core["control"] = control

    def _module(self, use: _Use, plug_in: PlugInObject) -> str:
        function = plug_in.function
        module = inspect.getmodule(function)
        hint = "make the function by def, in a module whose text is installed"
        name = getattr(function, "__name__", "")
        if module is None or getattr(module, name, None) is not function:
            raise self._error(use, "its function is not one of a module", hint)
        try:
            text = inspect.getsource(module)
        except (OSError, TypeError) as error:
            raise self._error(use, f"the text of its module: {describe(error)}", hint) from None
        return f"{text}\n# {use.plug_in.title}, module {module.__name__}\n"

    def _expand_fabric(self) -> None:
        fabric = dict(_table(self._tables, "fabric"))
        values = self._take_tables(fabric, ROUTING, "fabric")
        topology = self._use(TOPOLOGY, fabric.get("generator"), "fabric.generator")
        if topology is not None:
            fabric = self._with_topology(topology, fabric)
        self.core["fabric"] = fabric
        routing = self._use(ROUTING, fabric.get("routing"), "fabric.routing")
        if routing is None and topology is None and not values:
            del self.core["fabric"]
            return
        patch: dict[str, Any] = {name: plain_keys(keys) for name, keys in values.items()}
        if routing is not None:
            name, plug_in = routing.plug_in.name, self._load(routing)
            keys = self._keys_of(routing, plug_in, f"fabric.{name}", values)
            for key in _TABLES:
                if key in fabric:
                    raise self._placed(
                        f"fabric.{key}",
                        "forwarding tables are given, but the routing computes them",
                        'set fabric.routing to "explicit"',
                    )
            view, lids = self._fabric()
            made = self._call(routing, plug_in.function, keys, view)
            rows = self._linear_tables(routing, made, view, lids)
            fabric |= {"routing": "explicit", "linear-tables": rows}
            patch |= {"routing": name, name: plain_keys(keys)}
            self.made["fabric.linear-tables"] = routing
            self._note(routing)
        removed = () if routing is None else ("linear-tables",)
        self._patches.append(_Patch(("fabric",), removed, patch))

    def _with_topology(self, use: _Use, fabric: Mapping[str, Any]) -> dict[str, Any]:
        plug_in = self._load(use)
        own = section_keys("fabric")
        for key in key_names(plug_in.keys):
            if key in own:
                message = f"its key {key} is one of every topology"
                raise self._error(use, message, "rename the field of its keys")
        for key in ("file", *_LISTS):
            if key in fabric:
                message = f"a topology is named together with fabric.{key}"
                raise self._placed("fabric.generator", message, "use either of them")
        table = {key: value for key, value in fabric.items() if key not in own}
        keys = self._keys(use, plug_in, table, "fabric", own)
        made = self._call(use, plug_in.function, keys)
        if isinstance(made, Mapping):
            unknown = [str(key) for key in made if key not in _LISTS]
            if unknown:
                message = f"it gives {shown(unknown[0])}, not a list of a fabric"
                raise self._error(use, message, f"give the lists {', '.join(_LISTS)}")
            lists = dict(made)
            if all(isinstance(one, Sequence) and not one for one in lists.values()):
                hint = f"let {use.plug_in.name} give entries of {', '.join(_LISTS)}"
                raise self._error(use, "it gives a fabric without nodes", hint)
        else:
            lists = self._call(use, fabric_lists, made)
        self.made |= dict.fromkeys(("fabric", *(f"fabric.{one}" for one in _LISTS)), use)
        values = {"generator": use.plug_in.name, **plain_keys(keys)}
        self._patches.append(_Patch(("fabric",), _LISTS, values))
        self._note(use)
        rest = {key: value for key, value in fabric.items() if key in own and key != "generator"}
        return {**rest, **lists}

    def _linear_tables(
        self, use: _Use, made: object, fabric: Fabric, lids: Mapping[str, int]
    ) -> dict[str, str]:
        hint = "give by name of a switch the outgoing port by name of a host"
        if not isinstance(made, Mapping):
            raise self._error(use, f"it gives {shown(type(made).__name__)}, not tables", hint)
        if not lids:
            message = "forwarding tables need LIDs, and the fabric is too large to have them"
            raise self._error(use, message, "use a smaller fabric")
        hosts = set(fabric.hosts)
        rows: dict[str, str] = {}
        for switch, ports in made.items():
            if switch not in fabric.ports or not isinstance(ports, Mapping):
                message = f"it gives {shown(repr(switch))}, which is not a switch with its ports"
                raise self._error(use, message, hint)
            row = bytearray([_NO_ROUTE]) * (max(lids.values()) + 1)
            for host, port in ports.items():
                if host not in hosts:
                    message = f"switch {switch}: {shown(repr(host))} is no host"
                    raise self._error(use, message, hint)
                if port not in fabric.ports[switch]:
                    message = f"switch {switch}: port {shown(repr(port))} has no cable"
                    known = ", ".join(map(str, fabric.ports[switch]))
                    raise self._error(use, message, f"cabled ports: {known}")
                row[lids[host]] = int(port)
            rows[switch] = row.hex()
        return rows

    def _fabric(self) -> tuple[Fabric, dict[str, int]]:
        if self._view is None:
            table = self.core.get("fabric", _table(self._tables, "fabric"))
            without = {key: value for key, value in table.items() if key not in _ROUTES}
            text = f"fabric = {literal({**without, 'routing': 'none'})}"
            try:
                graph = json.loads(self._read(text, self._written.source, []).graph())
            except ScenarioError as error:
                raise self._explained(error, {"fabric"}) from None
            hosts = [node for node in graph["node"] if "ports" not in node]
            ports: dict[str, dict[int, tuple[str, int]]] = {
                node["name"]: {} for node in graph["node"] if "ports" in node
            }
            for one, other, _ in graph["cable"]:
                for (name, port), (far, far_port) in ((one, other), (other, one)):
                    if name in ports:
                        ports[name][port] = (far, far_port)
            lids = {node["name"]: node["lid"] for node in hosts if "lid" in node}
            self._view = Fabric(tuple(node["name"] for node in hosts), ports), lids
        return self._view

    def _expand_traffic(self) -> None:
        traffic = dict(_table(self._tables, "traffic"))
        kinds = [name for name in traffic if self._use(TRAFFIC, name, "")]
        programs = self._expand_programs(traffic)
        patch: dict[str, Any] = {}
        entries = {name: traffic.pop(name) for name in kinds}
        for name, listed in entries.items():
            if not isinstance(listed, list):
                hint = f"write entries as [[traffic.{name}]]"
                raise self._placed(f"traffic.{name}", "expected a list of tables", hint)
            patch[name] = []
            for place, entry in enumerate(listed):
                use = self._use(TRAFFIC, name, f"traffic.{name}.{place}")
                assert use is not None
                plug_in = self._load(use)
                keys = self._keys(use, plug_in, entry, use.key)
                made = self._call(use, plug_in.function, keys, self._fabric()[0])
                self._add_entries(use, traffic, made)
                patch[name].append(plain_keys(keys))
            self._note(_Use(self._found[TRAFFIC.word, name], f"traffic.{name}"))
        if kinds or programs:
            self._patches.append(_Patch(("traffic",), (), patch))
            self.core["traffic"] = traffic

    def _add_entries(self, use: _Use, traffic: dict[str, Any], made: object) -> None:
        hint = 'give entries by their kind, e.g. {"flow": [{"from": "host-0000", ...}]}'
        if not isinstance(made, Mapping):
            raise self._error(use, f"it gives {shown(type(made).__name__)}, not entries", hint)
        for kind, entries in made.items():
            before = traffic.get(kind, [])
            is_list = isinstance(entries, Sequence) and not isinstance(entries, str)
            if not (is_list and isinstance(before, list) and isinstance(kind, str)):
                raise self._error(use, f"it gives {shown(repr(kind))} without a list", hint)
            if kind in self._own_entries or before:
                self._own_entries.setdefault(kind, len(before))
            else:
                self._own_entries[kind] = 0
                self.made[f"traffic.{kind}"] = use
            places = range(len(before), len(before) + len(entries))
            self.made |= {f"traffic.{kind}.{place}": use for place in places}
            if entries:
                traffic[kind] = [*before, *entries]

    def _expand_programs(self, traffic: dict[str, Any]) -> bool:
        """Replace traces by GOAL schedules; return true if there are any."""
        programs = traffic.get("program")
        if not isinstance(programs, list):
            return False
        expanded = list(programs)
        found = False
        for place, entry in _programs(traffic):
            assert isinstance(place, int)
            table = dict(entry)
            path = f"traffic.program.{place}"
            values = self._take_tables(table, TRACE, path)
            use = self._use(TRACE, table.get("kind"), f"{path}.kind")
            if use is None and not values:
                continue
            found = True
            patch: dict[str, Any] = {name: plain_keys(keys) for name, keys in values.items()}
            removed: tuple[str, ...] = ()
            if use is not None:
                name, plug_in = use.plug_in.name, self._load(use)
                keys = self._keys_of(use, plug_in, f"{path}.{name}", values)
                made = self._call(use, plug_in.function, keys, self._trace(path, table))
                if not isinstance(made, str):
                    message = f"it gives {shown(type(made).__name__)}, not the text of a schedule"
                    raise self._error(use, message, "return the text of a GOAL schedule")
                patch |= {"kind": name, name: plain_keys(keys)}
                if "file" in table:
                    patch["file"], removed = table.pop("file"), ("trace",)
                table |= {"kind": "goal", "trace": made}
                self.made[f"{path}.trace"] = use
                self._note(use)
            expanded[place] = table
            self._patches.append(_Patch(("traffic", "program", place), removed, patch))
        traffic["program"] = expanded
        return found

    def _trace(self, path: str, entry: Mapping[str, Any]) -> bytes:
        if isinstance(entry.get("trace"), str) and "file" not in entry:
            return str(entry["trace"]).encode()
        file = entry.get("file")
        key = f"{path}.file"
        if not isinstance(file, str):
            raise self._placed(key, "the program needs a trace", "name it as file")
        folder = Path(self._written.source or "").parent
        hint = "paths are relative to the folder of the scenario"
        try:
            return read_bytes(folder / file, TRACE_BYTES, "trace", hint)
        except ScenarioError as error:
            raise self._placed(key, str(error), error.hint) from None

    def _read_core(self) -> tuple[_silvan.Scenario, dict[str, list[Any]]]:
        written = self._written
        sections = [(name, literal(table)) for name, table in self.core.items()]
        vary = _table(_table(self._tables, "sweep"), "vary")
        axes: dict[str, list[Any]] = {}
        while True:
            rest = {key: values for key, values in vary.items() if key not in axes}
            swept = [("sweep.vary", literal(rest))] if axes else []
            overrides = [*written.overrides, *sections, *swept]
            try:
                native = self._read(written.text, written.source, overrides)
            except ScenarioError as error:
                axis = _axis(error.key)
                values = None if axis is None else rest.get(axis)
                if axis is None or not isinstance(values, list) or not values:
                    raise self._explained(error, self.core) from None
                axes[axis] = values
                continue
            self._check(axes)
            return native, axes

    def _check(self, axes: Mapping[str, list[Any]]) -> None:
        for axis, values in axes.items():
            for place, value in enumerate(values):
                changes = ((axis, literal(value)), ("sweep", "{}"))
                try:
                    read_written(self._written.with_overrides(changes), self._read)
                except ScenarioError as error:
                    if error.key is None or not f"{error.key}.".startswith(f"{axis}."):
                        continue
                    key = f"{dotted('sweep.vary', axis)}.{place}"
                    raise self._placed(key, error.message, error.hint) from None

    def _explained(self, error: ScenarioError, sections: Iterable[str]) -> ScenarioError:
        if error.key is None:
            return error
        use = self._maker(error.key)
        if use is not None:
            return self._error(use, error.message, error.hint)
        if error.key.partition(".")[0] in sections:
            message = error.message.removeprefix(f"{error.key}: ")
            error = self._placed(error.key, message, error.hint)
        return _with_suggestions(error, self._names)

    def _maker(self, key: str) -> _Use | None:
        if key in self.made:
            return self.made[key]
        parts = key.split(".")
        # The table fabric has keys of the scenario, too.
        parents = (".".join(parts[:count]) for count in range(len(parts) - 1, 1, -1))
        return next((self.made[one] for one in parents if one in self.made), None)

    def _error(self, use: _Use, message: str, hint: str | None) -> ScenarioError:
        return self._placed(use.key, f"{use.plug_in.title}: {message}", hint)

    def _placed(self, key: str, message: str, hint: str | None) -> ScenarioError:
        source, line, column = self._document.place(key)
        return ScenarioError(f"{key}: {message}", source, line, hint, key, column)

    def _use(self, kind: Kind, name: object, key: str) -> _Use | None:
        plug_in = self._found.get((kind.word, name)) if isinstance(name, str) else None
        return None if plug_in is None else _Use(plug_in, key)

    def _note(self, use: _Use) -> None:
        self._origins.append(f"{use.key}: {use.plug_in.title}")

    def _load(self, use: _Use) -> PlugInObject:
        try:
            return use.plug_in.load()
        except ScenarioError as error:
            raise self._placed(use.key, error.message, error.hint) from error

    def _take_tables(self, table: dict[str, Any], kind: Kind, path: str) -> dict[str, Any]:
        values = {}
        for name in _tables_in(table):
            use = self._use(kind, name, f"{path}.{name}")
            if use is not None:
                values[name] = self._keys(use, self._load(use), table.pop(name), use.key)
        return values

    def _keys_of(
        self, use: _Use, plug_in: PlugInObject, path: str, values: Mapping[str, Any]
    ) -> Any:
        name = use.plug_in.name
        return values[name] if name in values else self._keys(use, plug_in, {}, path)

    def _keys(
        self,
        use: _Use,
        plug_in: PlugInObject,
        table: object,
        path: str,
        others: Iterable[str] = (),
    ) -> Any:
        try:
            return read_keys(plug_in.keys, table, path, others, use.plug_in.name)
        except ScenarioError as error:
            key = error.key or path
            message = error.message.removeprefix(f"{key}: ")
            raise self._placed(key, message, error.hint) from error.__cause__
        except SilvanError as error:
            raise self._error(use, error.message, error.hint) from None

    def _call(self, use: _Use, function: Callable[..., Any], *arguments: object) -> Any:
        try:
            with _ONE_AT_A_TIME:
                return function(*arguments)
        except SilvanError as error:
            raise self._error(use, error.message, error.hint) from error
        except (Exception, GeneratorExit, SystemExit) as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            hint = f"the exception is from {frame.filename}:{frame.lineno}"
            raise self._error(use, describe(error), hint) from error


def read_written(written: Written, read: Reader) -> tuple[_silvan.Scenario, PluggedIn | None]:
    """Read a scenario by the compiled reader, or with plug-ins if it refuses."""
    try:
        return read(written.text, written.source, list(written.overrides)), None
    except ScenarioError as error:
        refused = error
    return expand(written, refused, read)


def _axis(key: str | None) -> str | None:
    found = _AXIS.fullmatch(key or "")
    if found is None:
        return None
    return next(iter(tomllib.loads(f"{found[1]} = 0")))
