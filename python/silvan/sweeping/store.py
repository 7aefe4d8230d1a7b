"""The folder of a sweep; finished points survive any failure.

``sweep.json`` describes the sweep. Every finished point is a file in ``points``; at the end, or
when a killed sweep continues, these become rows of ``points.parquet``. Each file appears in one
step.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from silvan.errors import OutputError, one_line, shown
from silvan.folders import (
    LOCK,
    exclusive,
    require_regular,
    require_writable,
    unwritable,
    write_bytes,
    write_text,
)
from silvan.inputs.toml_text import TomlValue
from silvan.results.result import Result
from silvan.results.result_check import digest
from silvan.sweeping.plan import Point, SweepPlan
from silvan.sweeping.table import SweepRow, from_table, to_table

MANIFEST = "sweep.json"

POINTS = "points.parquet"

DIGESTS = "points_sha256"
"""Key of the digests of this file: two while it is replaced."""

_PARTS = "points"
_FAILED = "failed"
_TABLES = "tables"

# Keys that may change between two starts: names, and the seed, which differs by point.
_FREE = ("description", "run.seed")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed point; ``silvan run`` takes its ``scenario`` file."""

    hash: str
    seed: int
    values: dict[str, TomlValue]
    error: str
    attempts: int
    scenario: str


class SweepFolder:
    """A sweep's folder, locked against other sweeps, with points by hash. Made by :meth:`open`."""

    def __init__(
        self,
        path: Path,
        plan: SweepPlan,
        simulator: str,
        *,
        tables: bool,
        changes: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.rows: dict[str, SweepRow] = {}
        self.failures: dict[str, Failure] = {}
        self._plan = plan
        self._simulator = simulator
        self._digests: list[str] = []
        self.tables = tables
        self._changes = list(changes)

    @classmethod
    @contextmanager
    def open(
        cls,
        path: Path,
        plan: SweepPlan,
        simulator: str,
        *,
        tables: bool,
        overwrite: bool = False,
        changes: Sequence[str] = (),
    ) -> Iterator[SweepFolder]:
        """Begin or continue a sweep in a folder; ``overwrite`` allows another sweep's."""
        folder = cls(path, plan, simulator, tables=tables, changes=changes)
        _require_free(path)
        require_writable(path)
        with exclusive(path, "sweep"):
            before = _manifest(path)
            if before is not None:
                try:
                    folder._require_same(before)
                except OutputError:
                    if not overwrite:
                        raise
                    _clear(path)
                    before = None
            folder._read(before)
            folder._write_manifest()
            try:
                (path / _PARTS).mkdir(exist_ok=True)
            except OSError as error:
                raise unwritable(path / _PARTS, error) from None
            try:
                yield folder
            finally:
                folder._gather()

    def is_finished(self, point: Point) -> bool:
        """Tell whether a point needs no run any more."""
        if point.hash not in self.rows:
            return False
        return not self.tables or self._tables_of(point.hash).exists()

    def finish(self, point: Point, row: SweepRow, result: Result | None) -> None:
        """Store a finished point."""
        if result is not None:
            result.write(self._tables_of(point.hash))
        part = self.path / _PARTS / f"{point.hash}.json"
        write_text(part, json.dumps(row.to_dict(), allow_nan=False) + "\n")
        self.rows[point.hash] = row
        if self.failures.pop(point.hash, None) is not None:
            self._failed_file(point.hash).unlink(missing_ok=True)

    def fail(self, point: Point, error: str, attempts: int) -> Failure:
        """Note a point that could not be finished, with a file that runs it again."""
        path = self._failed_file(point.hash)
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as problem:
            raise unwritable(path.parent, problem) from None
        head = f"# {one_line(f'{point.label}: {error}')}\n# Run it again: silvan run {path.name}\n"
        write_text(path, head + point.scenario().to_toml())
        where = str(path.relative_to(self.path))
        failure = Failure(point.hash, point.seed, point.values, error, attempts, where)
        self.failures[point.hash] = failure
        return failure

    def _failed_file(self, digest: str) -> Path:
        return self.path / _FAILED / f"{digest[:16]}.toml"

    def _tables_of(self, digest: str) -> Path:
        return self.path / _TABLES / digest[:16]

    def _require_same(self, before: _Manifest) -> None:
        hint = "name another folder with --out, or replace what is there with --overwrite"
        if before.simulator != self._simulator:
            raise OutputError(
                f"{self.path}: the sweep there was made by silvan {before.simulator}, this is "
                f"{self._simulator}; their points are not to be mixed",
                hint=hint,
            )
        now, then = list(self._plan.axes), before.grid
        if now != list(then):
            raise OutputError(
                f"{self.path}: the sweep there varies {_names(then)}, this one {_names(now)}",
                hint=hint,
            )
        difference = _difference(before.base, _base(self._plan))
        if difference is not None:
            key, old, new = difference
            raise OutputError(
                f"{self.path}: the scenario of the sweep there was another: {key} was {old}, is "
                f"now {new}",
                hint=hint,
            )

    def _read(self, before: _Manifest | None) -> None:
        parts = self.path / _PARTS
        try:
            for path in parts.glob(".*"):
                path.unlink()
            for path in (self.path / _TABLES).glob(".*"):
                shutil.rmtree(path)
            for path in self.path.glob(".*.*"):
                path.unlink()
        except OSError as error:
            raise unwritable(self.path, error) from None
        self._digests = [] if before is None else list(before.digests)
        self.rows = read_rows(self.path, list(self._plan.axes), self._digests)
        if before is not None:
            failures = before.failures
            self.failures = {one.hash: one for one in failures if one.hash not in self.rows}

    def _ordered(self) -> list[SweepRow]:
        planned = [point.hash for point in self._plan.points]
        known = set(planned)
        others = sorted(digest for digest in self.rows if digest not in known)
        return [self.rows[one] for one in (*planned, *others) if one in self.rows]

    def to_arrow(self) -> pa.Table:
        """Give all finished points as one table."""
        return to_table(self._ordered(), list(self._plan.axes))

    def _write_manifest(self) -> None:
        plan = self._plan
        manifest = {
            "name": plan.scenario.name,
            "simulator": self._simulator,
            "grid": plan.axes,
            "seeds": sorted({point.seed for point in plan.points}),
            "points": len(plan.points),
            "finished": sum(point.hash in self.rows for point in plan.points),
            "failed": [asdict(one) for one in self.failures.values()],
            "tables": self.tables,
            DIGESTS: self._digests,
            "base": _base(plan),
            "changes": self._changes,
            "scenario": plan.scenario.to_toml(),
        }
        write_text(self.path / MANIFEST, json.dumps(manifest, indent=2) + "\n")

    def _gather(self) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(self.to_arrow(), sink)
        data = sink.getvalue().to_pybytes()
        # A sweep that is killed between two of these steps has one of the digests.
        written = hashlib.sha256(data).hexdigest()
        self._digests.append(written)
        self._write_manifest()
        write_bytes(self.path / POINTS, data)
        self._digests = [written]
        self._write_manifest()
        for path in (self.path / _PARTS).glob("*.json"):
            path.unlink()


def read_rows(path: Path, keys: Sequence[str], digests: Sequence[str] = ()) -> dict[str, SweepRow]:
    """Read the finished points of a sweep's folder by hash, after a check of the digest."""
    rows: dict[str, SweepRow] = {}
    file = path / POINTS
    try:
        if file.exists():
            # Arrow takes no paths that are not UTF-8.
            require_regular(file)
            with file.open("rb") as opened:
                if digests and digest(opened) not in digests:
                    raise ValueError(f"its digest is not the one that {MANIFEST} tells of")
                opened.seek(0)
                rows = {row.hash: row for row in from_table(pq.read_table(opened), keys)}
        for file in sorted((path / _PARTS).glob("*.json")):
            row = SweepRow(**json.loads(file.read_text(encoding="utf-8")))
            rows[row.hash] = row
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
        raise OutputError(
            f"{file}: not readable: {_one_line(error)}",
            hint="remove this file and repeat the command; its points are run again",
        ) from None
    return rows


def _require_free(path: Path) -> None:
    if (path / MANIFEST).exists() or not path.exists():
        return
    unfinished = f".{MANIFEST}."
    if not path.is_dir() or any(
        one.name != LOCK and not one.name.startswith(unfinished) for one in path.iterdir()
    ):
        raise OutputError(
            f"{path}: the folder is not empty, and holds no sweep",
            hint="name another folder with --out",
        )


def _clear(path: Path) -> None:
    try:
        for name in (_PARTS, _FAILED, _TABLES):
            if (path / name).exists():
                shutil.rmtree(path / name)
        (path / POINTS).unlink(missing_ok=True)
        (path / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from None


def digests_of(manifest: Mapping[str, Any]) -> list[str]:
    """Return the manifest's digests of the file of all points."""
    digests = manifest.get(DIGESTS, [])
    if not isinstance(digests, list) or not all(isinstance(one, str) for one in digests):
        raise TypeError(f"{DIGESTS} is no list of texts")
    return digests


@dataclass(frozen=True, slots=True)
class _Manifest:
    simulator: str
    grid: Mapping[str, object]
    base: Mapping[str, TomlValue]
    failures: Sequence[Failure]
    digests: Sequence[str]


def _manifest(path: Path) -> _Manifest | None:
    file = path / MANIFEST
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
        failures = [Failure(**one) for one in read["failed"]]
        digests = digests_of(read)
        manifest = _Manifest(read["simulator"], read["grid"], read["base"], failures, digests)
        tables = (manifest.grid, manifest.base, *(one.values for one in failures))
        texts = (text for one in failures for text in (one.hash, one.error, one.scenario))
        if not all(isinstance(one, dict) for one in tables):
            raise TypeError("a table is missing")
        if not all(isinstance(one, str) for one in texts):
            raise TypeError("a text is missing")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise OutputError(
            f"{file}: not readable: {_one_line(error)}",
            hint="name another folder with --out",
        ) from None
    return manifest


def _one_line(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return shown(text).lower()


def _base(plan: SweepPlan) -> dict[str, TomlValue]:
    tables = plan.scenario.settings()
    tables.pop("sweep", None)
    varied = (*_FREE, *plan.axes)
    values = dict(_leaves(tables, ""))
    return {
        key: value
        for key, value in values.items()
        if not any(key == one or key.startswith(f"{one}.") for one in varied)
    }


def _leaves(value: Any, key: str) -> Iterator[tuple[str, TomlValue]]:
    inner: Iterable[tuple[str, Any]]
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, Sequence) and any(isinstance(one, Mapping) for one in value):
        inner = ((str(index), one) for index, one in enumerate(value))
    else:
        yield key, value
        return
    for name, one in inner:
        yield from _leaves(one, f"{key}.{name}" if key else name)


def _difference(
    then: Mapping[str, TomlValue], now: Mapping[str, TomlValue]
) -> tuple[str, ...] | None:
    for key in dict.fromkeys((*then, *now)):
        if then.get(key) != now.get(key):
            return key, *(json.dumps(one[key]) if key in one else "unset" for one in (then, now))
    return None


def _names(keys: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(keys) or "nothing"
