"""Readers of files in Python, and changed files for them, which ``fuzz.py`` runs."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
import shutil
import sqlite3
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tests" / "files_of_versions"
MOST_FINDS = 5
SEED = 1
_WORDS = (*b'0 -1 1e999 null [] {} "" true \xff'.split(), b"9" * 30, b"[" * 99)
_NUMBERS = (0, -1, 1, 2**63, -(10**30), 0.5, float("nan"), float("inf"))
_VALUES: tuple[Any, ...] = (*_NUMBERS, None, True, "", "x", "0", "\ud800", [], [[]], {}, {"a": 1})

Files = dict[str, bytes]
"""Content of the files of an input, by name."""


def _newest() -> Path:
    return max(path for path in FILES.iterdir() if path.is_dir())


def changed(data: bytes, draw: random.Random) -> bytes:
    """Change some places of bytes: other bytes, words of JSON, pieces that move or go."""
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        at = draw.randrange(len(out) + 1)
        length = draw.choice((1, 1, 2, 4, 16, 64))
        match draw.randrange(6):
            case 0:
                out[at : at + length] = draw.randbytes(length)
            case 1:
                out[at : at + length] = draw.choice(_WORDS)
            case 2:
                del out[at : at + length]
            case 3:
                other = draw.randrange(len(out) + 1)
                out[at:at] = out[other : other + length]
            case 4:
                for place in range(at, min(at + 1, len(out))):
                    out[place] ^= 1 << draw.randrange(8)
            case _:
                del out[at:]
    return bytes(out)


def changed_json(data: bytes, draw: random.Random) -> bytes:
    """Change values of JSON: another type, a number out of range, a key that is missing."""
    tree = json.loads(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        places = list(_places(tree))
        if not places:
            break
        container, key = draw.choice(places)
        if draw.random() < 0.2:
            del container[key]
        else:
            container[key] = draw.choice(_VALUES)
    return json.dumps(tree).encode("utf-8", "surrogatepass")


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(tree, dict | list):
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        for key in keys:
            yield tree, key
            yield from _places(tree[key])


def _folder_files(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


class Reader:
    """A reader, the files that inputs are made of, and the function that changes them."""

    def __init__(
        self,
        files: Files,
        read: Callable[[Path], None],
        change: Callable[[Files, random.Random], Files] | None = None,
    ) -> None:
        self.files = files
        self.read = read
        self.change = change or _change_one


def _change_one(files: Files, draw: random.Random) -> Files:
    name = draw.choice(sorted(files))
    data = files[name]
    is_json = name.endswith(".json") and draw.random() < 0.7
    return files | {name: changed_json(data, draw) if is_json else changed(data, draw)}


def _ring() -> Reader:
    from silvan.cli import main
    from silvan.live.ring import RingFile

    def read(folder: Path) -> None:
        path = folder / "ring"
        main(["diagnose", "--from", str(path)])
        with RingFile(path, writable=True) as ring:
            ring.times_ns()

    return Reader({"ring": (_newest() / "ring").read_bytes()}, read, _change_ring)


def _change_ring(files: Files, draw: random.Random) -> Files:
    data = files["ring"]
    if draw.random() < 0.5:
        return {"ring": changed(data, draw)}
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "ring"
        path.write_bytes(data)
        table, column = draw.choice(
            (
                ("moments", "report"),
                ("moments", "loads"),
                ("subnets", "nodes"),
                ("subnets", "routes"),
            )
        )
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
            row = list(draw.choice(file.execute(f"select rowid, * from {table}").fetchall()))
            names = [one[1] for one in file.execute(f"pragma table_info({table})")]
            at = names.index(column) + 1
            row[at] = _changed_cell(row[at], column, draw)
            row[-1] = _digest(row[1:-1])
            sets = ", ".join(f"{name} = ?" for name in names)
            file.execute(f"update {table} set {sets} where rowid = ?", (*row[1:], row[0]))
        return {"ring": path.read_bytes()}


def _changed_cell(cell: bytes, column: str, draw: random.Random) -> bytes:
    if column == "routes":
        return changed(cell, draw)
    inner = zlib.decompress(cell)
    if column == "loads" or draw.random() < 0.2:
        return zlib.compress(changed(inner, draw))
    return zlib.compress(changed_json(inner, draw))


def _digest(values: list[int | str | bytes]) -> bytes:
    found = hashlib.sha256()
    for value in values:
        data = value if isinstance(value, bytes) else str(value).encode()
        found.update(f"{type(value).__name__} {len(data)} ".encode() + data)
    return found.digest()


def _result() -> Reader:
    from silvan.cli import main

    def read(folder: Path) -> None:
        main(["view", str(folder), "--out", str(folder / "page.html")])

    return Reader(_folder_files(_newest() / "result"), read)


_SWEEP = """\
[fabric]
generator = "single-switch"
hosts = 2
[traffic]
flow = [{ from = "host-0000", to = "host-0001" }]
[run]
duration = "20 us"
"""


def _sweep() -> Reader:
    from silvan import Scenario, sweep
    from silvan.cli import main

    with tempfile.TemporaryDirectory() as place:
        scenario = Scenario.from_toml(_SWEEP)
        out = Path(place) / "out"
        sweep(scenario, {"packet.mtu": ["2 KiB", "4 KiB"]}, workers=1, out=out)
        files = _folder_files(out)

    def read(folder: Path) -> None:
        main(["view", str(folder), "--out", str(folder / "page.html")])

    return Reader(files, read)


_EVENT = b"""\
{"time":"2026-11-28T12:00:00Z","event":"started","act":true}
{"time":"2026-11-28T12:00:01Z","event":"decision","reason":"victim-found","action":"lower","dry-run":false,\
"port":{"switch":"S2","port":23},"victim":{"switch":"S1","port":1}}
{"time":"2026-11-28T12:00:09Z","event":"low-ended","port":{"switch":"S2","port":23},"victims-lost-bytes":2e9}
"""


def _manager() -> Reader:
    from silvan.cli import main
    from silvan.viewer.dcms_log import DcmsLines

    def read(folder: Path) -> None:
        (folder / "lock").touch()
        config = folder / "dcms.toml"
        config.write_text('[state]\nfolder = "."\n', "utf-8")
        main(["dcms", str(config), "--status"])
        main(["dcms", "--report", str(folder / "log")])
        lines = DcmsLines()
        lines.add((folder / "log").read_bytes())
        lines.take()

    kept = {name: (_newest() / name).read_bytes() for name in ("status", "journal")}
    return Reader({**kept, "log": _EVENT}, read, _change_manager)


def _change_manager(files: Files, draw: random.Random) -> Files:
    name = draw.choice(sorted(files))
    if name == "journal" or draw.random() < 0.3:
        return files | {name: changed(files[name], draw)}
    lines = files[name].splitlines()
    at = draw.randrange(len(lines))
    lines[at] = changed_json(lines[at], draw)
    return files | {name: b"\n".join(lines) + b"\n"}


_ARENA = b"""\
name = "small"
seeds = [1, 2]
links = ["credits", "pfc"]
[tuning]
trials = 2
[[case]]
name = "one"
title = "One case"
file = "incast.toml"
group = "16G"
tune = true
objective = "maximize other_receivers_gbps * min(1, hotspot_utilisation / 0.95)"
pfc = { "packet.header" = "82 B" }
quick = { "run.duration" = "20 us" }
"""
_FIT = b"""\
scenario = "incast.toml"
[parameters."switch.buffer"]
range = "16..128 x 1 KiB"
start = 64
[parameters.cct-slope]
range = "0.2..2"
start = 1.0
[cases]
off = { "control.scheme" = "none" }
on = { "control.scheme" = "ib-cc" }
[[target]]
id = "gain"
measure = "on.other_receivers_gbps / off.other_receivers_gbps"
value = 9.1
tol = 0.15
group = "one"
[[target]]
id = "hot"
measure = "on.hotspots_gbps"
value = 13.3
tol = 0.03
held-out = true
"""


def _texts() -> Reader:
    from silvan.comparing.arena.definition import read_arena
    from silvan.comparing.tuning.problem import read_problem
    from silvan.errors import SilvanError
    from silvan.live.host_jobs import read_jobs

    def read(folder: Path) -> None:
        (folder / "incast.toml").write_text(_SWEEP, "utf-8")
        readers: dict[str, Callable[[Path], object]] = {
            "arena.toml": read_arena,
            "fit.toml": read_problem,
            **dict.fromkeys(_JOBS, read_jobs),
        }
        for name, reader in readers.items():
            with contextlib.suppress(SilvanError):
                reader(folder / name)

    return Reader({"arena.toml": _ARENA, "fit.toml": _FIT, **_JOBS}, read)


_JOBS = {
    "lines": b"host,job\nnode-1,4711\nnode-2,4711\n",
    "squeue": b"JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
    b"4711 all a job me R 1:00 3 node-[1-2,07]\n",
    "scontrol": b"JobId=4711 JobName=one\n   JobState=RUNNING NodeList=node-[1-2],x[01-03]\n",
}

READERS: dict[str, Callable[[], Reader]] = {
    "manager": _manager,
    "result": _result,
    "ring": _ring,
    "sweep": _sweep,
    "texts": _texts,
}


def fuzz(name: str, seconds: float, finds: Path) -> tuple[int, int]:
    """Give changed files to a reader; return the numbers of inputs and of finds."""
    from silvan.errors import SilvanError

    reader = READERS[name]()
    draw = random.Random(SEED)
    end = time.process_time() + seconds
    runs = 0
    causes: set[str] = set()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "input"
        while time.process_time() < end and len(causes) < MOST_FINDS:
            files = reader.change(reader.files, draw)
            runs += 1
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for file, data in files.items():
                (folder / file).write_bytes(data)
            silent = io.StringIO()
            try:
                with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
                    reader.read(folder)
            except SilvanError:
                continue
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                cause = f"{type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}"
                if cause not in causes:
                    causes.add(cause)
                    shutil.copytree(folder, finds / str(len(causes)), dirs_exist_ok=True)
                    traceback.print_exc()
    return runs, len(causes)
