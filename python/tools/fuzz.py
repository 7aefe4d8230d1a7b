"""Fuzz the readers of files and datagrams.

Those in Rust run under libFuzzer, and those in Python get seeded changes. The stable compiler
instruments the code: RUSTC_BOOTSTRAP lets it take the flags of cargo-fuzz. Needs a C++ compiler.
What is found lies in ``target/fuzz/finds``, and the status is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import fuzz_files

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ROOT / "fuzz" / "targets"
PACKED = ROOT / "fuzz" / "corpus.tar.xz"
OUT = ROOT / "target" / "fuzz"
CORPUS = OUT / "corpus"
FINDS = OUT / "finds"
SAMPLES = "crates/silvan-fabric/tests/samples"
SEEDS: dict[str, tuple[str, ...]] = {
    "journal": ("tests/files_of_versions/*/journal",),
    "faults": ("crates/silvan-scenario/tests/scenario/faults.toml",),
    "settings": ("crates/silvan-dcms/src/example.toml",),
    "scenario": ("crates/silvan-scenario/tests/scenario/*.toml", "examples/*.toml"),
    "topology": (f"{SAMPLES}/ibnetdiscover*", f"{SAMPLES}/ibsim.net", f"{SAMPLES}/worn.txt"),
    "routes": (f"{SAMPLES}/dump_*", f"{SAMPLES}/opensm*"),
}
"""Files of the repository that a corpus begins with."""
WITH_ENGINE = {"emulator", "goal"}
FLAGS = (
    "--cfg fuzzing -Cdebug-assertions -Ccodegen-units=4 -Zsanitizer=address -Cpasses=sancov-module "
    "-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters "
    "-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares "
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0"
)
DATAGRAM_BYTES = 256
MOST_KEPT = 400
"""Inputs of a target that the packed corpus has at most, the smallest first."""
LONGEST_KEPT = 4096
MEMORY_MIB = 4096
SLOWEST_S = 60
INTERRUPTED = 72
"""Status of libFuzzer after SIGINT."""
_COVERED = re.compile(r"^#\d+\s.*?\bcov: (\d+)", re.MULTILINE)
_RUNS = re.compile(r"^stat::number_of_executed_units: (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run of a target."""

    target: str
    runs: int
    coverage: int | None
    finds: int

    def row(self) -> str:
        """Return it as a row of a table."""
        edges = "" if self.coverage is None else f"{self.coverage:,}"
        return f"{self.target:12} {self.runs:>12,} {edges:>8} {self.finds:>6}"


def targets() -> list[str]:
    """List all targets."""
    return sorted(path.stem for path in TARGETS.glob("*.rs")) + sorted(fuzz_files.READERS)


def host() -> str:
    """Return the triple that the compiler compiles for."""
    told = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return next(line[6:] for line in told.splitlines() if line.startswith("host: "))


def build(names: Sequence[str]) -> Path:
    """Compile targets; return the folder of the programs."""
    folder = ROOT / "fuzz" / "target"
    environment = os.environ | {
        "RUSTC_BOOTSTRAP": "1",
        "RUSTFLAGS": FLAGS,
        "CARGO_TARGET_DIR": str(folder),
        "CARGO_INCREMENTAL": "0",
    }
    words = ["cargo", "build", "--quiet", "--release", "--locked", "--target", host()]
    if WITH_ENGINE & set(names):
        words += ["--features", "engine"]
    for name in names:
        words += ["--bin", name]
    subprocess.run(words, cwd=ROOT / "fuzz", env=environment, check=True)
    return folder / host() / "release"


def unpack() -> None:
    """Lay the corpus that the repository has."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    if PACKED.is_file():
        with tarfile.open(PACKED) as tar:
            tar.extractall(CORPUS, filter="data")


def seed(name: str) -> Path:
    """Return the folder of a target's corpus, with the seeds in it."""
    folder = CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    # Datagrams of fixed length refuse shorter inputs, and libFuzzer begins with the shortest.
    (folder / "zeros").write_bytes(bytes(DATAGRAM_BYTES))
    for pattern in SEEDS.get(name, ()):
        for path in sorted(ROOT.glob(pattern)):
            shutil.copy2(path, folder)
    return folder


def fuzz(programs: Path, name: str, seconds: int) -> Outcome:
    """Run a target of libFuzzer."""
    folder = seed(name)
    finds = FINDS / name
    shutil.rmtree(finds, ignore_errors=True)
    finds.mkdir(parents=True)
    words = [
        str(programs / name),
        str(folder),
        f"-artifact_prefix={finds}/",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-timeout={SLOWEST_S}",
        f"-report_slow_units={SLOWEST_S}",
        "-print_final_stats=1",
    ]
    # Leaks of an aborted unwinding are none.
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0", "RUST_BACKTRACE": "1"}
    log = OUT / f"{name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(words, env=environment, stderr=file, stdout=file)
        while process.poll() is None and processor_time(process.pid) < seconds:
            time.sleep(0.2)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        status = process.wait()
    told = log.read_text("utf-8", "replace")
    found = sum(1 for _ in finds.iterdir())
    if status != INTERRUPTED and not found:
        raise SystemExit(f"error: {name}: status {status}: see {log}")
    if found:
        print("\n".join(told.splitlines()[-40:]), file=sys.stderr)
    runs = _RUNS.findall(told)
    covered = _COVERED.findall(told)
    return Outcome(name, int(runs[-1]) if runs else 0, int(covered[-1]) if covered else 0, found)


def processor_time(process: int) -> float:
    """Return the processor time of a child in seconds: other work on the machine takes none."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fuzz_reader(name: str, seconds: int) -> Outcome:
    """Run a target in Python."""
    finds = FINDS / name
    shutil.rmtree(finds, ignore_errors=True)
    finds.mkdir(parents=True)
    runs, found = fuzz_files.fuzz(name, seconds, finds)
    return Outcome(name, runs, None, found)


def smallest(programs: Path, name: str, folder: Path) -> Iterator[Path]:
    """Merge a corpus; list the inputs that are kept."""
    merged = folder / name
    merged.mkdir(parents=True)
    words = [str(programs / name), "-merge=1", "-rss_limit_mb=0", str(merged), str(CORPUS / name)]
    subprocess.run(words, env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}, check=True)
    files = sorted(merged.iterdir(), key=lambda path: (path.stat().st_size, path.name))
    kept = [path for path in files if path.stat().st_size <= LONGEST_KEPT]
    yield from kept[:MOST_KEPT]


def pack(programs: Path, names: Sequence[str]) -> None:
    """Write the smallest corpus with the same coverage; targets without a run keep theirs."""
    with tempfile.TemporaryDirectory() as place:
        kept = {name: list(smallest(programs, name, Path(place))) for name in names}
        for folder in sorted(CORPUS.iterdir()):
            if folder.name not in kept and (TARGETS / f"{folder.name}.rs").is_file():
                kept[folder.name] = sorted(folder.iterdir())[:MOST_KEPT]
        with tarfile.open(PACKED, "w:xz") as tar:
            for name, paths in sorted(kept.items()):
                for path in sorted(paths, key=lambda path: path.name):
                    tar.add(path, f"{name}/{path.name}", filter=_plain)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mtime = 0
    return entry


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="some of them; default: all")
    parser.add_argument("--seconds", type=int, default=60, help="processor time of each target")
    parser.add_argument("--keep", action="store_true", help="write fuzz/corpus.tar.xz")
    chosen = parser.parse_args(arguments)
    names = chosen.targets or targets()
    if unknown := set(names) - set(targets()):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    in_rust = [name for name in names if name not in fuzz_files.READERS]
    programs = build(in_rust) if in_rust else Path()
    unpack()
    print(f"{'target':12} {'runs':>12} {'edges':>8} {'finds':>6}", flush=True)
    finds = 0
    for name in names:
        outcome = (
            fuzz_reader(name, chosen.seconds)
            if name in fuzz_files.READERS
            else fuzz(programs, name, chosen.seconds)
        )
        print(outcome.row(), flush=True)
        finds += outcome.finds
    if chosen.keep:
        pack(programs, in_rust)
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
