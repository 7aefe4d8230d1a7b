"""Install a wheel into an empty environment without a compiler, and run an example."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

LARGEST_MB = 15
MOST_INSTALLED_MB = 300
SLOWEST_S = 60
NEEDED = (
    "silvan/_silvan.abi3.so",
    "silvan/py.typed",
    "silvan/examples/incast.toml",
    "silvan/examples/programs/trace.goal",
    "silvan_papers/studies/gran2012/table2.toml",
    "silvan_papers/targets/gran2012.toml",
    "silvan/viewer/assets/viewer.js",
    "silvan/viewer/assets/viewer.css",
)
LEFT_OUT = ("silvan/bench/",)
MANUAL_PAGE = "data/share/man/man1/silvan-run.1"
UNWANTED = ("matplotlib", "PIL", "distributed", "numba")


def problems(wheel: Path) -> Iterator[str]:
    """Find errors in the file of a wheel."""
    size_mb = wheel.stat().st_size / 1e6
    if size_mb > LARGEST_MB:
        yield f"{size_mb:.1f} MB: at most {LARGEST_MB} MB are allowed"
    if "-abi3-" not in wheel.name:
        yield "the wheel is for one version of Python only; abi3 is for all"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        yield from (f"{name} is missing" for name in NEEDED if name not in names)
        yield from (
            f"{folder} is in it"
            for folder in LEFT_OUT
            if any(name.startswith(folder) for name in names)
        )
        if not any(name.endswith(MANUAL_PAGE) for name in names):
            yield f"{MANUAL_PAGE} is missing"


def installed_mb(folder: Path) -> float:
    """Return the space that the files of a folder take, as ``du`` counts it."""
    files = (path for path in folder.rglob("*") if not path.is_symlink())
    return sum(path.lstat().st_blocks * 512 for path in files) / 2**20


def install_and_run(wheel: Path, folder: Path) -> dict[str, float]:
    """Install a wheel into an empty environment, run an example there, and return measures."""
    environment = folder / "venv"
    venv.create(environment, with_pip=True)
    empty_mb = installed_mb(environment)
    programs = environment / "bin"
    # Variables for a package index stay, but none that could find the tree or a compiler.
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "SSL_", "HTTP", "http", "NO_PROXY", "no_proxy"))
    }
    clean = kept | {"PATH": str(programs), "HOME": str(folder), "LC_ALL": "C.UTF-8"}

    def call(*words: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [programs / words[0], *words[1:]],
            cwd=folder,
            env=clean,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode != status:
            line = " ".join(map(str, words))
            raise SystemExit(f"{line}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    start = time.monotonic()
    call("python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel)
    installed = time.monotonic()
    call("silvan", "example", "incast")
    report = json.loads(call("silvan", "run", "incast.toml", "--out", "out", "--json").stdout)
    ran = time.monotonic()
    if not report:
        raise SystemExit("silvan run printed no result")
    refused = call("silvan", "plot", report["runs"][0]["folder"], status=2)
    if "silvan[figures]" not in refused.stderr:
        raise SystemExit(f"silvan plot did not name the extra:\n{refused.stderr}")
    packages = next(environment.glob("lib/python*/site-packages"))
    found = [name for name in UNWANTED if (packages / name).exists()]
    if found:
        raise SystemExit(f"{', '.join(found)}: no run needs this, but it is installed")
    return {
        "install_s": installed - start,
        "example_and_run_s": ran - installed,
        "empty_mb": empty_mb,
        "installed_mb": installed_mb(environment),
    }


def main() -> int:
    """Check a wheel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    wheel: Path = parser.parse_args().wheel.resolve()
    wrong = list(problems(wheel))
    for problem in wrong:
        print(f"{wheel.name}: {problem}", file=sys.stderr)
    if wrong:
        return 1
    with tempfile.TemporaryDirectory(prefix="silvan-wheel-") as folder:
        measures = install_and_run(wheel, Path(folder))
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    print(
        f"installed in {measures['install_s']:.0f} s; "
        f"example and run in {measures['example_and_run_s']:.1f} s; "
        f"{measures['installed_mb'] - measures['empty_mb']:.0f} MB "
        f"next to {measures['empty_mb']:.0f} MB of an empty environment"
    )
    if measures["installed_mb"] - measures["empty_mb"] > MOST_INSTALLED_MB:
        print(f"more than {MOST_INSTALLED_MB} MB are installed", file=sys.stderr)
        return 1
    if measures["install_s"] + measures["example_and_run_s"] > SLOWEST_S:
        print(f"this took longer than {SLOWEST_S} s", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
