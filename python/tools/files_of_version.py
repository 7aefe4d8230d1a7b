"""Write small files of this version for tests/files_of_versions, which later ones read."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import silvan
from silvan.live.ring import RingFile

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "files_of_versions"
HOUR_NS = 3600 * 10**9
SCENARIO = {
    "name": "kept",
    "fabric": {"generator": "leaf-spine", "leaf-hosts": [2, 2], "spine-cables": [1, 1]},
    "traffic": {"incast": [{"to": "host-0000"}]},
    "control": {"scheme": "ib-cc"},
    "run": {"duration": "20 us"},
}
SETTING = {"valid": False, "threshold": 15, "packet-size": 3, "marking-rate": 0}


def journal() -> str:
    """Write a journal of the manager with one change, each record after its checksum."""
    change = {
        "switch": "0x0002c90000000001",
        "port": 23,
        "before": SETTING,
        "after": {**SETTING, "valid": True},
        "rate": 128,
        "since": 7,
    }
    records = [json.dumps(one, separators=(",", ":")) for one in (_HEADER, change)]
    return "".join(f"{hashlib.sha256(one.encode()).hexdigest()[:16]} {one}\n" for one in records)


_HEADER = {"version": 2, "changes": 1}
PORT = {"switch": "S2", "guid": "0x0002c90000000001", "port": 23, "far-end": "D"}
VICTIM = {"switch": "S1", "guid": "0x0002c90000000002", "port": 1, "far-end": "S2:1"}
STATUS = {
    **{"pid": 7, "time": 12, "act": True, "interval-s": 1.0, "switches": 2, "ports": 3},
    **{"sweeps": 5, "unanswered": 0, "sweep-s": 0.01, "subnet-manager": "found", "silent": []},
    "low": [{"port": PORT, "victims": [VICTIM], "low-for-s": 2.0, "victims-lost-bytes": 2e9}],
    "pending": [
        {key: PORT[key] for key in ("switch", "guid", "port")}
        | {"before": 128, "now": 0, "since": 7}
    ],
    "decisions": {"victim-found": 1},
}
"""Status file of a manager; a test of silvan-dcms compares its keys."""


def write(folder: Path) -> None:
    """Write the files into a new folder."""
    from tests.subnet_dumps import dumped_moment

    folder.mkdir()
    scenario = silvan.Scenario(**SCENARIO)  # type: ignore[arg-type] # tables by their names
    (folder / "scenario.toml").write_text(scenario.to_toml(), "utf-8")
    silvan.run(scenario, seed=1).write(folder / "result")
    (folder / "journal").write_text(journal(), "utf-8")
    (folder / "status").write_text(json.dumps(STATUS, separators=(",", ":")), "utf-8")
    with (
        tempfile.TemporaryDirectory() as dumps,
        RingFile(folder / "ring", writable=True) as ring,
    ):
        for second in (1, 2):
            ring.add(dumped_moment(Path(dumps), second), HOUR_NS)


def main() -> int:
    """Write the folder of this version."""
    sys.path.insert(0, str(ROOT))
    folder = FOLDER / silvan.__version__
    if folder.exists():
        print(f"error: {folder} exists, and never changes", file=sys.stderr)
        return 1
    write(folder)
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
