"""The C interface: drivers in C and C++, compiled with the header and linked with the library."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import silvan
from tests.test_guide import ROOT

CRATE = ROOT / "crates" / "silvan-capi"
DRIVERS = ROOT / "tests" / "c_interface"
GUIDE = ROOT / "docs" / "guide" / "c-interface.md"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"]

pytestmark = [pytest.mark.needs("build-essential"), pytest.mark.slow]

SWITCH = """\
[fabric]
generator = "single-switch"
hosts = {hosts}
"""

RING = (
    SWITCH
    + """
[traffic.messaging]
overhead = "0 s"
eager-limit = "1 GiB"
[[traffic.program]]
kind = "allreduce"
algorithm = "ring"
bytes = "{bytes} B"
[run]
duration = "1 s"
"""
)


@cache
def libraries() -> Path:
    """Build the library as it is released, and return the folder that it is in."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "silvan-capi"]
    subprocess.run(command, cwd=ROOT, check=True)
    release = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    # Drivers look for the name in the library, which an installation makes, too.
    soname = release / "libsilvan.so.1"
    if not soname.is_symlink():
        soname.symlink_to("libsilvan.so")
    return release


def compiled(source: Path, folder: Path, *options: str) -> Path:
    """Compile a driver with warnings as errors."""
    is_cpp = source.suffix == ".cpp"
    compiler = ["g++", "-std=c++17"] if is_cpp else ["gcc", "-std=c11"]
    library = libraries()
    program = folder / source.stem
    link = ["-L", str(library), "-lsilvan", f"-Wl,-rpath,{library}"]
    include = ["-I", str(CRATE / "include")]
    command = [*compiler, *WARNINGS, *include, str(source), *link, *options, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def output(*command: str | Path) -> str:
    """Return what a driver prints, which must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the driver of ring all-reduces."""
    return compiled(DRIVERS / "ring.cpp", tmp_path_factory.mktemp("ring"))


def end_of_program(text: str) -> int:
    """Return when the program of a scenario ends, in picoseconds."""
    (program,) = silvan.run(silvan.Scenario.from_toml(text)).tables["programs"].to_pylist()
    end = program["end_ps"]
    assert isinstance(end, int)
    return end


@pytest.mark.parametrize("size", [64, 1_000_003, 8 << 20])
@pytest.mark.parametrize("hosts", [2, 5, 16])
def test_a_ring_takes_the_time_of_the_program_and_of_the_model(
    ring: Path, tmp_path: Path, hosts: int, size: int
) -> None:
    """To the picosecond that of the program; rounds take a multiple; the model within 2 %.

    A ring all-reduce of n ranks takes 2 (n - 1) steps of alpha, and beta for each of S / n bytes
    (R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19:1, 2005).
    """
    scenario = tmp_path / "switch.toml"
    scenario.write_text(SWITCH.format(hosts=hosts))
    ends = [int(line) for line in output(ring, scenario, str(size), "3").splitlines()]
    assert ends[0] == end_of_program(RING.format(hosts=hosts, bytes=size))
    assert ends == [ends[0], 2 * ends[0], 3 * ends[0]]
    # A part alone gives the time of a step; its last packet and the last part may be smaller.
    steps = 2 * (hosts - 1)
    part = -(-size // hosts)
    alone = int(output(ring, scenario, str(2 * part), "1", "fabric.hosts=2")) / 2
    assert ends[0] == pytest.approx(steps * alone, rel=0.02)


def test_a_ring_takes_the_time_of_the_program_on_a_fat_tree(ring: Path, tmp_path: Path) -> None:
    """With congestion control, background traffic and a setting that changes the fabric, too."""
    fabric = '[fabric]\ngenerator = "k-ary-n-tree"\nk = 4\nn = 2\n'
    traffic = '[[traffic.flow]]\nfrom = "host-0002"\nto = "host-0000"\n'
    control = '[control]\nscheme = "ib-cc"\n'
    scenario = tmp_path / "tree.toml"
    scenario.write_text(fabric + traffic + control)
    program = RING.format(hosts=0, bytes=3 << 20).split("\n\n", 1)[1]
    (end,) = output(ring, scenario, str(3 << 20), "1").split()
    assert int(end) == end_of_program(fabric + program + traffic + control)
    slower = output(ring, scenario, str(3 << 20), "1", "link.rate=2.5 Gbit/s").split()
    assert int(slower[0]) > int(end)


def test_each_error_has_a_text(tmp_path: Path) -> None:
    scenario = tmp_path / "bad.toml"
    scenario.write_text(SWITCH.format(hosts=2) + '[switch]\nbufer = "1 KiB"\n')
    lines = output(compiled(DRIVERS / "errors.c", tmp_path), scenario).splitlines()
    expected = (DRIVERS / "errors.txt").read_text().replace("FOLDER", str(tmp_path)).splitlines()
    assert [re.sub(r"0x[0-9a-f]+", "ADDRESS", line) for line in lines] == expected


@pytest.mark.needs("valgrind")
def test_drivers_leak_nothing_and_touch_nothing_else(ring: Path, tmp_path: Path) -> None:
    """Under valgrind: no invalid access, no use of what was not set, no block that is lost."""
    scenario = tmp_path / "switch.toml"
    scenario.write_text(SWITCH.format(hosts=4))
    options = [
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
    ]
    plain = output(ring, scenario, "100000", "2")
    assert output("valgrind", *options, ring, scenario, "100000", "2") == plain
    errors = compiled(DRIVERS / "errors.c", tmp_path)
    assert output("valgrind", *options, errors, scenario)


def example() -> tuple[str, str]:
    """Return the guide's example, and what it says that this prints."""
    page = GUIDE.read_text()
    (source,) = re.findall(r"```c\n(.*?)```", page, re.DOTALL)
    (printed,) = re.findall(r"prints\n\n```text\n(.*?)```", page, re.DOTALL)
    return source, printed


@pytest.mark.needs("pkgconf")
def test_the_guide_s_example_is_installed_compiled_and_run(tmp_path: Path) -> None:
    """Follow the guide: `make install-libsilvan`, then pkg-config."""
    source, printed = example()
    libraries()
    prefix = tmp_path / "usr"
    subprocess.run(
        ["make", "--no-print-directory", "install-libsilvan", f"PREFIX={prefix}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    installed = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    assert installed == {
        "include/silvan.h",
        "lib/libsilvan.so",
        "lib/libsilvan.so.1",
        "lib/libsilvan.so.1.0.0",
        "lib/libsilvan.a",
        "lib/pkgconfig/silvan.pc",
    }
    relay = tmp_path / "relay.c"
    relay.write_text(source)
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}

    def flags(*options: str) -> list[str]:
        command = ["pkg-config", *options, "silvan"]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.split()

    assert flags("--modversion") == [silvan.__version__]
    shared = [*flags("--cflags", "--libs"), f"-Wl,-rpath,{prefix / 'lib'}"]
    static = [
        word.replace("-lsilvan", "-l:libsilvan.a")
        for word in flags("--static", "--cflags", "--libs")
    ]
    for linked in (shared, static):
        program = tmp_path / "relay"
        command = ["gcc", "-std=c11", *WARNINGS, str(relay), *linked, "-o", str(program)]
        subprocess.run(command, check=True)
        assert output(program) == printed
