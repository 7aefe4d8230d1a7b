"""The ring file: what a watched subnet has shown in the last hours.

It is an SQLite database with a rollback journal: a moment is in it as a whole or not at all, also
after ``kill -9`` or a loss of power, and other processes read it while it is written. What is older
than the ring keeps is removed, and so are the oldest moments where the file would grow beyond its
largest size.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from silvan.errors import DiagnosisError
from silvan.moments import Moment, Subnet

RING_BYTES = 256 << 20
"""Largest size of a ring file; where it is full, the oldest moments go early."""

_PAGE_BYTES = 4096
# "slvn", as a number: tells a ring file from other databases.
_APPLICATION = 0x736C766E
_VERSION = 1
_PATIENCE_S = 10.0
# Part of the moments that goes where the file is full.
_PART = 20
_NO_RING = "name a file that silvan diagnose --watch has written"
_REASONS = {
    sqlite3.SQLITE_FULL: ("no room for another sweep", "make room on the disk"),
    sqlite3.SQLITE_NOTADB: ("is no ring file", _NO_RING),
    sqlite3.SQLITE_CORRUPT: (
        "the ring file is damaged or cut off",
        "copy a ring file as a whole; silvan diagnose --watch begins another one",
    ),
}
_SCHEMA = """
create table subnets (digest text primary key, nodes blob not null, routes blob not null);
create table moments (
    at_ns integer primary key, subnet text not null, report blob not null, loads blob not null
);
"""


class RingFile:
    """A ring file that is open.

    Parameters
    ----------
    path : Path
        The file.
    writable : bool
        Whether moments are added. The file is then made if there is none.
    largest : int
        Largest size in bytes.

    Raises
    ------
    DiagnosisError
        There is no such file, or it is no ring file.
    """

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
                "name another file",
            )

    def add(self, moment: Moment, keep_ns: int) -> None:
        """Add a moment, and remove those that are older than the ring keeps.

        Parameters
        ----------
        moment : Moment
            The moment. One that is not later than the last one, because the clock was set back, is
            put right after it.
        keep_ns : int
            Nanoseconds that the ring keeps.
        """
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
                self._file.execute("insert into subnets values (?, ?, ?)", row)
            self._file.execute(
                "insert into moments values (?, ?, ?, ?)",
                (at_ns, subnet.digest, report, zlib.compress(moment.values, 1)),
            )
            self._file.execute(
                "delete from subnets where digest not in (select subnet from moments)"
            )

    def _drop_oldest(self) -> bool:
        """Make room; ``False`` if there is nothing to remove."""
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

    def moments(self, first_ns: int = 0, last_ns: int = 2**63 - 1) -> Iterator[Moment]:
        """Read moments one after the other.

        Parameters
        ----------
        first_ns, last_ns : int
            The times of the first and of the last one.

        Yields
        ------
        Moment
            The moments by time.
        """
        subnets: dict[str, Subnet] = {}
        with self._errors():
            query = "select * from moments where at_ns >= ? and at_ns <= ? order by at_ns limit 1"
            while row := self._file.execute(query, (first_ns, last_ns)).fetchone():
                at_ns, digest, report, values = row
                if digest not in subnets:
                    found = self._file.execute(
                        "select nodes, routes from subnets where digest = ?", (digest,)
                    ).fetchone()
                    if found is None:
                        # The writer has removed this moment since.
                        first_ns = at_ns + 1
                        continue
                    subnets[digest] = Subnet(zlib.decompress(found[0]).decode(), found[1])
                text = json.loads(zlib.decompress(report))
                yield Moment(subnets[digest], text, zlib.decompress(values), at_ns)
                first_ns = at_ns + 1

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
        """Name the file in errors of the database."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
            reason, hint = _REASONS.get(code, (str(error), _NO_RING))
            raise DiagnosisError(f"{self._path}: {reason}", hint) from error
