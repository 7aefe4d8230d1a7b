"""The ring file: what it keeps, how large it gets, and what a killed writer leaves."""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silvan.cli import main
from silvan.errors import DiagnosisError
from silvan.live.moments import Moment
from silvan.live.ring import RING_BYTES, RingFile, _row_digest
from tests.gate import PATIENCE_S
from tests.subnet_dumps import TOPOLOGY, dumped_moment

HOUR_NS = 3600 * 10**9

WRITER = """\
import random, resource, signal, sys
from pathlib import Path
from silvan.live.moments import Moment, Subnet
from silvan.live.ring import RingFile

path, limit, keep = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
random.seed(limit)
subnet = Subnet('{"nodes": [], "ports": []}', b"")
with RingFile(Path(path), writable=True) as ring:
    first = max(ring.times_ns(), default=0)
    if limit:
        # The write that reaches this byte of a file ends the process.
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    for at in range(first + 1, first + 1000):
        ring.add(Moment(subnet, {"at": at}, random.randbytes(3000), at), keep)
        print(at, flush=True)
"""


def test_moments_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    before = [dumped_moment(tmp_path, at_s) for at_s in (1, 2.5, 7)]
    other = dumped_moment(tmp_path, 8, TOPOLOGY.replace("b HCA-1", "renamed"))
    with RingFile(path, writable=True) as ring:
        for moment in [*before, other]:
            ring.add(moment, HOUR_NS)
    with RingFile(path) as ring:
        assert ring.times_ns() == [10**9, 2_500_000_000, 7 * 10**9, 8 * 10**9]
        after = list(ring.moments())
        assert after == [*before, other]
        assert list(ring.moments(2 * 10**9, 7 * 10**9)) == before[1:]
    assert after[0].subnet.digest != after[-1].subnet.digest


def test_what_is_older_than_kept_goes_and_its_subnet_with_it(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    with RingFile(path, writable=True) as ring:
        ring.add(dumped_moment(tmp_path, 1, TOPOLOGY.replace("b HCA-1", "renamed")), 10**10)
        for at_s in range(2, 30):
            ring.add(dumped_moment(tmp_path, at_s), 10**10)
        assert ring.times_ns() == [at_s * 10**9 for at_s in range(19, 30)]
    with sqlite3.connect(path) as file:
        assert file.execute("select count(*) from subnets").fetchone() == (1,)
    file.close()


def test_a_clock_that_was_set_back_loses_no_moment(tmp_path: Path) -> None:
    with RingFile(tmp_path / "ring", writable=True) as ring:
        ring.add(dumped_moment(tmp_path, 100), HOUR_NS)
        ring.add(dumped_moment(tmp_path, 50), HOUR_NS)
        assert ring.times_ns() == [100 * 10**9, 100 * 10**9 + 1]


def test_the_file_never_grows_beyond_its_size(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    largest = 256 << 10
    subnet = dumped_moment(tmp_path).subnet
    numbers = random.Random(1)
    with RingFile(path, writable=True, largest=largest) as ring:
        for at in range(1, 300):
            ring.add(Moment(subnet, {}, numbers.randbytes(5000), at), HOUR_NS)
            assert path.stat().st_size <= largest
        times = ring.times_ns()
    # The last ones are there, without a gap, and fill at least half of the file.
    assert times == list(range(times[0], 300))
    assert len(times) * 5000 > largest / 2


def kept(path: Path) -> list[int]:
    """Read all moments of a ring file, and check the file."""
    with RingFile(path) as ring:
        moments = list(ring.moments())
    for moment in moments:
        assert moment.report == {"at": moment.at_ns}
        assert len(moment.values) == 3000
    with sqlite3.connect(path) as file:
        assert file.execute("pragma integrity_check").fetchone() == ("ok",)
    file.close()
    return [moment.at_ns for moment in moments]


@pytest.mark.slow
def test_a_writer_that_ends_at_any_byte_leaves_all_that_it_has_added(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    bytes_of_file = random.Random(7)
    for _ in range(12):
        size = path.stat().st_size if path.exists() else 8192
        limit = size + bytes_of_file.randrange(1, 30_000)
        words = [sys.executable, "-c", WRITER, str(path), str(limit), "40"]
        done = subprocess.run(
            words, stdout=subprocess.PIPE, text=True, check=False, timeout=PATIENCE_S
        )
        added = [int(line) for line in done.stdout.split()]
        if done.returncode == 0:
            # Removal makes room: the file has stopped growing.
            break
        assert done.returncode == -signal.SIGXFSZ
        times = kept(path) if path.exists() and path.stat().st_size else []
        assert times[-len(added) :] == added[-41:] or not added
    assert kept(path)


@pytest.mark.slow
def test_a_killed_writer_leaves_all_that_it_has_added(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    counts = random.Random(3)
    last = 0
    for _ in range(8):
        words = [sys.executable, "-c", WRITER, str(path), "0", "40"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(counts.randrange(1, 60)):
                line = writer.stdout.readline()
            os.kill(writer.pid, signal.SIGKILL)
            added = [int(line), *map(int, writer.stdout.read().split())][-1]
        times = kept(path)
        # Another one may be in the file, whose number was not printed any more.
        assert times[-1] in (added, added + 1)
        assert times == list(range(times[-1] - len(times) + 1, times[-1] + 1))
        assert added > last
        last = added


def test_a_ring_is_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "ring"
    with RingFile(path, writable=True) as ring:
        ring.add(dumped_moment(tmp_path, 1), HOUR_NS)
        with RingFile(path) as reader:
            found = reader.moments()
            assert next(found).at_ns == 10**9
            ring.add(dumped_moment(tmp_path, 2), HOUR_NS)
            assert next(found).at_ns == 2 * 10**9
            with pytest.raises(DiagnosisError, match="readonly"):
                reader.add(dumped_moment(tmp_path, 3), HOUR_NS)


def test_other_files_are_no_ring_files(tmp_path: Path) -> None:
    with pytest.raises(DiagnosisError, match="no such ring file"):
        RingFile(tmp_path / "none")
    (tmp_path / "text").write_text("hello " * 1000)
    with sqlite3.connect(tmp_path / "database") as file:
        file.execute("create table t (a)")
    file.close()
    for name in ("text", "database"):
        for writable in (False, True):
            with pytest.raises(DiagnosisError, match=name):
                RingFile(tmp_path / name, writable=writable)
    with RingFile(tmp_path / "ring", writable=True):
        pass
    with sqlite3.connect(tmp_path / "ring") as file:
        file.execute("pragma user_version = 99")
    file.close()
    with pytest.raises(DiagnosisError, match="version 99"):
        RingFile(tmp_path / "ring")


@dataclass(frozen=True)
class Ring:
    """The bytes of a ring file, and the moments in it."""

    data: bytes = field(repr=False)
    moments: list[Moment] = field(repr=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ring:
    """Write a ring file with several moments of two subnets."""
    folder = tmp_path_factory.mktemp("ring")
    other = TOPOLOGY.replace("b HCA-1", "renamed")
    moments = [dumped_moment(folder, at_s) for at_s in range(1, 12)]
    moments.append(dumped_moment(folder, 12, other))
    with RingFile(folder / "ring", writable=True) as ring:
        for moment in moments:
            ring.add(moment, HOUR_NS)
    return Ring((folder / "ring").read_bytes(), moments)


def read_all(path: Path) -> list[Moment]:
    """Read all moments, one by one and at once."""
    with RingFile(path) as ring:
        for at_ns in ring.times_ns():
            list(ring.moments(at_ns, at_ns))
        return list(ring.moments())


def add_one(path: Path) -> list[Moment]:
    """Go on with a ring file, as a watch does that is started again, and read all moments."""
    with RingFile(path, writable=True) as ring:
        for last in list(ring.moments())[-1:]:
            ring.add(last, HOUR_NS)
            *before, added = ring.moments()
            assert (added.report, added.values) == (last.report, last.values)
            return before
    return []


places = st.integers(min_value=0, max_value=1 << 20)
changes = st.lists(st.tuples(places, st.binary(min_size=1, max_size=8)), min_size=1, max_size=4)


@settings(max_examples=400)
@given(changes=changes, cut=st.none() | places)
def test_damage_is_the_documented_error_or_changes_no_moment(
    whole: Ring,
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[int, bytes]],
    cut: int | None,
) -> None:
    """Oracle: the moments that were added."""
    damaged = bytearray(whole.data)
    for at, replacement in changes:
        start = at % len(damaged)
        damaged[start : start + len(replacement)] = replacement
    if cut is not None:
        del damaged[cut % len(damaged) :]
    path = tmp_path_factory.getbasetemp() / "damaged"
    for action in (read_all, add_one):
        path.write_bytes(damaged)
        path.with_name("damaged-journal").unlink(missing_ok=True)
        found: list[Moment] = []
        refused: DiagnosisError | None = None
        try:
            found = action(path)
        except DiagnosisError as error:
            refused = error
        assert refused is None or (str(path) in str(refused) and refused.hint)
        assert all(moment in whole.moments for moment in found)


@pytest.mark.parametrize("column", ["report", "loads", "subnet", "at_ns"])
def test_the_error_names_the_sweep_and_the_status_is_2(
    tmp_path: Path,
    whole: Ring,
    column: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "ring"
    path.write_bytes(whole.data)
    value = 1 if column == "at_ns" else "x" if column == "subnet" else b"x"
    with sqlite3.connect(path) as file:
        file.execute(f"update moments set {column} = ? where at_ns = 5000000000", (value,))
    file.close()
    assert main(["diagnose", "--from", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {path}: the ring file is damaged or cut off: the sweep of ")
    assert "\nhint: " in error


def test_a_damaged_row_does_not_decide_the_time_of_the_next(tmp_path: Path, whole: Ring) -> None:
    path = tmp_path / "ring"
    path.write_bytes(whole.data)
    with sqlite3.connect(path) as file:
        file.execute(f"update moments set at_ns = {2**63 - 1} where at_ns = 12000000000")
    file.close()
    with pytest.raises(DiagnosisError, match="damaged"):
        RingFile(path, writable=True)


def test_bytes_of_a_subnet_are_checked_before_they_are_decoded(tmp_path: Path, whole: Ring) -> None:
    path = tmp_path / "ring"
    path.write_bytes(whole.data)
    with sqlite3.connect(path) as file:
        file.execute("update subnets set nodes = ?", (zlib.compress(bytes(1 << 26), 9),))
    file.close()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with RingFile(path) as ring, pytest.raises(DiagnosisError, match="the sweep of"):
        list(ring.moments())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


def _rewrite(path: Path, table: str, column: str, value: bytes) -> None:
    """Change a column of the last row, and give the row the right digest."""
    with sqlite3.connect(path) as file:
        file.row_factory = sqlite3.Row
        (row,) = file.execute(f"select rowid as place, * from {table} order by rowid desc limit 1")
        values = {name: row[name] for name in row.keys()[1:-1]} | {column: value}
        file.execute(
            f"update {table} set {column} = ?, row_digest = ? where rowid = ?",
            (value, _row_digest(*values.values()), row["place"]),
        )
    file.close()


@pytest.mark.parametrize(
    ("table", "column", "text"),
    [
        ("moments", "report", b"{}"),
        ("moments", "report", b"[]"),
        ("subnets", "nodes", b"{"),
        ("subnets", "nodes", b'{"nodes": [1]}'),
    ],
)
def test_forged_rows_are_refused(
    tmp_path: Path,
    whole: Ring,
    table: str,
    column: str,
    text: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "ring"
    path.write_bytes(whole.data)
    _rewrite(path, table, column, zlib.compress(text))
    assert main(["diagnose", "--from", str(path)]) == 2
    assert f"{path}: holds a sweep that silvan has not written" in capsys.readouterr().err


@pytest.mark.slow
def test_a_forged_row_takes_limited_memory(tmp_path: Path, whole: Ring) -> None:
    path = tmp_path / "ring"
    path.write_bytes(whole.data)
    _rewrite(path, "moments", "loads", zlib.compress(bytes(RING_BYTES + 1), 9))
    with RingFile(path) as ring, pytest.raises(DiagnosisError, match="the sweep of"):
        list(ring.moments())
