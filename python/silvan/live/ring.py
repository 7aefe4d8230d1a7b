"""The ring file: recent moments of a watched subnet.

An SQLite database with a rollback journal: a moment is complete or absent, also after ``kill -9``
or a power loss, and others read it meanwhile. Old rows are removed, and the oldest moments if the
file is full. Each row has a digest, which is checked before use.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from silvan.errors import DiagnosisError
from silvan.live.moments import Moment, Subnet

RING_BYTES = 256 << 20
"""Largest size of a ring file; a full one loses its oldest moments early."""

_PAGE_BYTES = 4096
# "slvn" as a number distinguishes ring files from other databases.
_APPLICATION = 0x736C766E
_VERSION = 2
_PATIENCE_S = 10.0
_PART = 20
_LATEST_NS = 2**63 - 1
_NO_RING = "name a file that silvan diagnose --watch has written"
_DAMAGED = (
    "the ring file is damaged or cut off",
    "copy ring files as a whole; if this one is the original, remove it, and silvan diagnose "
    "--watch begins another one",
)
_REASONS = {
    sqlite3.SQLITE_FULL: ("no room for another sweep", "make room on the disk"),
    sqlite3.SQLITE_NOTADB: ("is no ring file", _NO_RING),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_TOOBIG: _DAMAGED,
    # A column or a table is missing, or a text is not UTF-8: the schema is silvan's own.
    sqlite3.SQLITE_ERROR: _DAMAGED,
}
_SCHEMA = """
create table subnets (
    digest text primary key, nodes blob not null, routes blob not null, row_digest blob not null
);
create table moments (
    at_ns integer primary key, subnet text not null, report blob not null, loads blob not null,
    row_digest blob not null
);
"""


def _row_digest(*values: int | str | bytes) -> bytes:
    found = hashlib.sha256()
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        found.update(f"{type(value).__name__} {len(data)} ".encode() + data)
    return found.digest()


def _inflated(data: bytes) -> bytes:
    """Decompress at most :data:`RING_BYTES`, because a few bytes can become gigabytes."""
    stream = zlib.decompressobj()
    inflated = stream.decompress(data, RING_BYTES)
    if not stream.eof:
        raise zlib.error("cut off, or too large")
    return inflated


class RingFile:
    """An open ring file; a writable one is made if missing."""

    def __init__(self, path: Path, *, writable: bool = False, largest: int = RING_BYTES) -> None:
        self._path = path
        if not writable and not path.is_file():
            raise DiagnosisError(f"{path}: there is no such ring file", _NO_RING)
        with self._errors():
            self._file = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
            try:
                self._open(writable=writable, largest=largest)
            except BaseException:
                self._file.close()
                raise

    def _open(self, *, writable: bool, largest: int) -> None:
        one = self._one
        # A damaged row must not claim more memory than the file has.
        self._file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, RING_BYTES)
        self._file.execute("pragma trusted_schema = off")
        self._file.execute("pragma cell_size_check = on")
        if writable:
            self._file.execute(f"pragma page_size = {_PAGE_BYTES}")
            with self._transaction():
                if one("pragma application_id") == 0 and not one(
                    "select count(*) from sqlite_schema"
                ):
                    for statement in _SCHEMA.split(";"):
                        self._file.execute(statement)
                    self._file.execute(f"pragma application_id = {_APPLICATION}")
                    self._file.execute(f"pragma user_version = {_VERSION}")
            self._file.execute("pragma synchronous = full")
            self._file.execute(f"pragma max_page_count = {largest // _PAGE_BYTES}")
        else:
            self._file.execute("pragma query_only = on")
        if one("pragma application_id") != _APPLICATION:
            raise DiagnosisError(f"{self._path}: is no ring file", _NO_RING)
        if (version := one("pragma user_version")) != _VERSION:
            raise DiagnosisError(
                f"{self._path}: ring file of version {version}, and {_VERSION} can be read",
                "a newer silvan has written it: use that one, or name another file"
                if version > _VERSION
                else "name another file",
            )
        if self._file.execute("pragma quick_check(1)").fetchone() != ("ok",):
            raise self._damaged()
        if writable:
            newest = self._file.execute("select * from moments order by at_ns desc limit 1")
            self._require_moment(newest.fetchone())

    def add(self, moment: Moment, keep_ns: int) -> None:
        """Add a moment, after the last one if the clock was set back, and remove old ones."""
        with self._errors():
            while True:
                try:
                    self._add(moment, keep_ns)
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode != sqlite3.SQLITE_FULL or not self._drop_oldest():
                        raise
                else:
                    return

    def _add(self, moment: Moment, keep_ns: int) -> None:
        report = zlib.compress(json.dumps(moment.report, separators=(",", ":")).encode())
        subnet = moment.subnet
        with self._transaction():
            last = self._one("select max(at_ns) from moments") or 0
            at_ns = max(moment.at_ns, last + 1)
            self._file.execute("delete from moments where at_ns < ?", (at_ns - keep_ns,))
            known = "select count(*) from subnets where digest = ?"
            if not self._file.execute(known, (subnet.digest,)).fetchone()[0]:
                row = (subnet.digest, zlib.compress(subnet.text.encode()), subnet.routes)
                self._file.execute(
                    "insert into subnets values (?, ?, ?, ?)", (*row, _row_digest(*row))
                )
            values = (at_ns, subnet.digest, report, zlib.compress(moment.values, 1))
            self._file.execute(
                "insert into moments values (?, ?, ?, ?, ?)", (*values, _row_digest(*values))
            )
            self._file.execute(
                "delete from subnets where digest not in (select subnet from moments)"
            )

    def _drop_oldest(self) -> bool:
        with self._transaction():
            count = self._one("select count(*) from moments")
            self._file.execute(
                "delete from moments where at_ns in "
                "(select at_ns from moments order by at_ns limit ?)",
                (max(1, count // _PART),),
            )
        return bool(count)

    def times_ns(self) -> list[int]:
        """Return the times of all moments, the first one first."""
        with self._errors():
            rows = self._file.execute("select at_ns from moments order by at_ns").fetchall()
            return [at for (at,) in rows]

    def moments(self, first_ns: int = 0, last_ns: int = _LATEST_NS) -> Iterator[Moment]:
        """Read moments one after the other."""
        subnets: dict[str, Subnet] = {}
        with self._errors():
            query = "select * from moments where at_ns >= ? and at_ns <= ? order by at_ns limit 1"
            while row := self._file.execute(query, (first_ns, last_ns)).fetchone():
                self._require_moment(row)
                at_ns, digest, report, values, _ = row
                if not first_ns <= at_ns <= last_ns:
                    raise self._damaged(at_ns)
                first_ns = at_ns + 1
                if digest not in subnets:
                    subnet = self._subnet(digest, at_ns)
                    if subnet is None:
                        continue
                    subnets[digest] = subnet
                with self._decoded(at_ns):
                    text, loads = json.loads(_inflated(report)), _inflated(values)
                yield Moment(subnets[digest], text, loads, at_ns)
                if at_ns == _LATEST_NS:
                    return

    def _subnet(self, digest: str, at_ns: int) -> Subnet | None:
        query = "select * from subnets where digest = ?"
        row = self._file.execute(query, (digest,)).fetchone()
        if row is None:
            if self._file.execute("select 1 from moments where at_ns = ?", (at_ns,)).fetchone():
                raise self._damaged(at_ns)
            return None
        if _row_digest(*row[:-1]) != row[-1] or row[0] != digest:
            raise self._damaged(at_ns)
        with self._decoded(at_ns):
            return Subnet(_inflated(row[1]).decode(), row[2])

    def _require_moment(self, row: tuple[Any, ...] | None) -> None:
        if row is not None and _row_digest(*row[:-1]) != row[-1]:
            raise self._damaged(row[0])

    @contextmanager
    def _decoded(self, at_ns: int) -> Iterator[None]:
        try:
            yield
        except (zlib.error, ValueError, TypeError, RecursionError):
            raise self._damaged(at_ns) from None

    def _damaged(self, at_ns: int | None = None) -> DiagnosisError:
        reason, hint = _DAMAGED
        if at_ns is None:
            return DiagnosisError(f"{self._path}: {reason}", hint)
        at = datetime.fromtimestamp(at_ns / 1e9).isoformat(sep=" ", timespec="milliseconds")
        return DiagnosisError(
            f"{self._path}: {reason}: the sweep of {at}", f"{hint}; --at reports on another sweep"
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _one(self, query: str) -> int:
        value: int = self._file.execute(query).fetchone()[0]
        return value

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("begin immediate")
        try:
            yield
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("rollback")
            raise
        self._file.execute("commit")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            reason, hint = _REASONS.get(code & 0xFF, (str(error), _NO_RING))
            raise DiagnosisError(f"{self._path}: {reason}", hint) from error
