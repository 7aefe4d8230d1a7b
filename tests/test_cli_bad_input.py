"""Bad input: one line with file, line and hint, status 2, no traceback, nothing written."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import silvan
from silvan.cli import main
from silvan.folders import exclusive, write_text
from tests.conftest import INCAST, Command, Outcome, silvan_command, standard_streams
from tests.gate import PATIENCE_S

# A busy machine takes the seconds after which a line says what is being done.
ERROR = re.compile(r"\A([^\n]+ \.\.\.\n)*error: (?P<text>[^\n]+)\n(hint: (?P<hint>[^\n]+)\n)?\Z")


def refused(outcome: Outcome) -> tuple[str, str]:
    """Check that a command was refused as it should be; give the message and the hint."""
    assert outcome.status == 2
    assert outcome.stdout == ""
    match = ERROR.match(outcome.stderr)
    assert match, outcome.stderr
    assert match["hint"], outcome.stderr
    return match["text"], match["hint"]


BROKEN = {
    "a rate without a unit": ("[host]\ninjection-rate = 13.5\n", 2, "in quotes with its unit"),
    "a unit of another quantity": ('[host]\ninjection-rate = "13.5 ms"\n', 2, "Gbit/s"),
    "an unknown key": ('[switch]\nbufer = "64 KiB"\n', 2, "buffer"),
    "an unknown section": ('[swich]\nbuffer = "64 KiB"\n', 1, "switch"),
    "an unknown choice": ('[control]\nscheme = "ib_cc"\n', 2, "ib-cc"),
    "a zero-byte MTU": ('[packet]\nmtu = "0 B"\n', 2, "4 KiB is usual"),
    "a buffer smaller than a packet": ('[switch]\nbuffer = "1 KiB"\n', 2, "at least 4160 B"),
    "a hotspot outside the fabric": (
        '[traffic.nodes]\nc = 0.5\nhotspots = ["host-9999"]\n',
        3,
        "host-",
    ),
    "a receiver outside the fabric": ('[[traffic.incast]]\nto = "unknown"\n', 2, "host-0000"),
    "a truncated file": ('[fabric]\ngenerator = "sing', 2, "cut short"),
    "a table that is a value": ("switch = 3\n", 1, "[switch]"),
    "a host without a cable": (
        '[[fabric.switch]]\nname = "S1"\nports = 4\n'
        '[[fabric.host]]\nname = "A"\n[[fabric.host]]\nname = "B"\n'
        '[[fabric.cable]]\nfrom = "A:1"\nto = "S1:1"\n',
        None,
        'from "B:1"',
    ),
}


def test_output_of_ibnetdiscover_is_no_scenario(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "topology.txt"
    path.write_text('vendid=0x2c9\nSwitch\t36 "S-0002c90200423e70"\t\t# "leaf" lid 1 lmc 0\n')
    text, hint = refused(command("show", path))
    assert text == f"{path}: this is the output of ibnetdiscover, not a scenario"
    assert "fabric.file" in hint
    assert "silvan whatif" in hint


@pytest.mark.parametrize("case", BROKEN, ids=list(BROKEN))
@pytest.mark.parametrize("name", ["validate", "run"])
def test_a_broken_scenario_is_located(
    command: Command, tmp_path: Path, case: str, name: str
) -> None:
    text, line, advice = BROKEN[case]
    path = tmp_path / "broken.toml"
    path.write_text(text)
    message, hint = refused(command(name, path))
    place = str(path) if line is None else f"{path}:{line}"
    assert message.startswith(f"{place}: " if line is not None else place)
    assert advice in hint
    # No general advice is given for these errors.
    assert not hint.startswith("silvan schema")
    assert [entry.name for entry in tmp_path.iterdir()] == ["broken.toml"]


def test_a_sweep_without_values_is_refused(command: Command, incast_file: Path) -> None:
    message, hint = refused(command("sweep", incast_file))
    assert message == "nothing is varied"
    assert "--grid" in hint


def test_a_word_that_is_missing_names_the_command(command: Command, incast_file: Path) -> None:
    message, hint = refused(command("run", incast_file, "--set"))
    assert message == "Option '--set' requires an argument."
    assert hint == "see silvan run --help"


def test_a_missing_file(command: Command, tmp_path: Path) -> None:
    message, hint = refused(command("run", tmp_path / "none.toml"))
    assert "silvan example lists some" in hint
    assert (
        message == f"{tmp_path / 'none.toml'}: cannot read the scenario: no such file or directory"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["plot", "FILE"], "FILE: not a folder"),
        (["plot", "FOLDER"], "FOLDER: no readable result: it has no manifest.json"),
        (["view", "FOLDER"], "FOLDER: no readable result: it has no manifest.json"),
        (["plot", "FOLDER", "map"], "map: no such folder"),
    ],
)
def test_what_holds_no_result(
    command: Command, incast_file: Path, words: list[str], cause: str
) -> None:
    names = {"FILE": str(incast_file), "FOLDER": str(incast_file.parent)}
    message, _ = refused(command(*(names.get(word, word) for word in words)))
    for name, path in names.items():
        cause = cause.replace(name, path)
    assert message.startswith(cause)


def test_a_closed_standard_output_is_refused_before_the_run(
    incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = [sys.executable, "-m", "silvan", "run", str(incast_file), "--out", str(out)]
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *words], stderr=subprocess.PIPE, text=True, check=False
    )
    assert closed.returncode == 2
    assert closed.stderr.startswith("error: standard output is closed\nhint: ")
    assert not out.exists()


def test_a_closed_standard_error_does_not_matter(incast_file: Path) -> None:
    words = [sys.executable, "-m", "silvan", "validate", str(incast_file), "--set", "run.seed=x"]
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *words],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (closed.returncode, closed.stdout) == (2, "")


def test_a_file_system_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a file system refuses also to remove what does not exist."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(silvan.OutputError) as caught:
        write_text(tmp_path / "page.html", "text")
    assert str(caught.value) == f"{tmp_path / 'page.html'}: cannot write: read-only file system"
    assert caught.value.hint


def test_a_folder_instead_of_a_file(command: Command, tmp_path: Path) -> None:
    message, _ = refused(command("show", tmp_path))
    assert message.startswith(f"{tmp_path}: cannot read")


def test_a_named_pipe_instead_of_a_file(command: Command, tmp_path: Path) -> None:
    """Without a writer, reading it would wait."""
    os.mkfifo(tmp_path / "pipe")
    message, hint = refused(command("show", tmp_path / "pipe"))
    assert message == f"{tmp_path / 'pipe'}: cannot read the scenario: it is a named pipe"
    assert "/dev/stdin" in hint
    path = tmp_path / "trace.toml"
    path.write_text(
        '[fabric]\ngenerator = "single-switch"\nhosts = 2\n'
        '[[traffic.program]]\nkind = "goal"\nfile = "pipe"\n'
    )
    message, hint = refused(command("validate", path))
    assert message == (
        f"{path}:6: traffic.program.0.file: {tmp_path / 'pipe'} cannot be read: it is a named pipe"
    )
    assert "/dev/stdin" in hint


def test_pipes_that_are_open_are_read(tmp_path: Path) -> None:
    """Process substitution and standard input are such pipes."""
    trace = "printf 'num_ranks 2\\nrank 0 {\\n}\\nrank 1 {\\n}\\n'"
    scenario = tmp_path / "trace.toml"
    scenario.write_text(
        '[fabric]\ngenerator = "single-switch"\nhosts = 2\n'
        '[[traffic.program]]\nkind = "goal"\nfile = "/dev/stdin"\n'
    )
    for line in (
        f"cat {scenario} | sed s,/dev/stdin,/dev/fd/3, | "
        f"{sys.executable} -m silvan validate /dev/stdin 3< <({trace})",
        f"{trace} | {sys.executable} -m silvan validate <(cat {scenario})",
    ):
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_a_lock_that_cannot_be_removed_hides_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that becomes read-only refuses that, too."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def write() -> None:
        with exclusive(tmp_path, "command"):
            monkeypatch.setattr(Path, "unlink", refuse)
            raise silvan.OutputError("the folder is read-only", hint="name another one")

    with pytest.raises(silvan.OutputError, match="the folder is read-only"):
        write()
    monkeypatch.undo()
    # The file that is left locks nothing.
    with exclusive(tmp_path, "command"):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "seed"),
    [(["--seed", f"{2**63}"], 2**63), (["--seed", f"{2**63 - 2}", "--seeds", "3"], 2**63)],
)
def test_a_seed_above_the_limit(
    command: Command, incast_file: Path, words: list[str], seed: int
) -> None:
    message, hint = refused(command("run", incast_file, *words))
    assert message == f"seed {seed}: seeds are from 0 to {2**63 - 1}"
    assert hint.startswith("choose another first seed")


def test_an_assignment_that_is_wrong(command: Command, incast_file: Path) -> None:
    message, hint = refused(command("run", incast_file, "--set", "switch.bufer=64 KiB"))
    assert "--set" in message
    assert "buffer" in hint


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["run", "FILE", "--threads"], "is not a number of threads"),
        (["view", "--live", "--bind"], "is not ADDRESS:PORT"),
        (["emulate", "FILE", "--serve", "--allow-user"], "there is no user"),
        (["whatif", "FILE", "--fail"], "the fabric has no switch or cable"),
        (["view", "--live", "--sockname"], "no emulated fabric answers"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_numbers_of_any_length_are_no_failure(
    incast_file: Path, words: list[str], cause: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python refuses to read numbers of thousands of digits; the error shows some of them."""
    many = "1" * 5000
    text = {"--bind": f"127.0.0.1:{many}", "--fail": f"switch-00:{many}"}.get(words[-1], many)
    given = [str(incast_file) if word == "FILE" else word for word in words]
    assert main([*given, text]) == 2
    error = capsys.readouterr().err
    assert cause in error
    assert len(error) < 1000
    assert "None" not in error


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["runn"],
        ["run", "FILE", "--colour"],
        ["run", "FILE", "--seeds", "0"],
        ["run", "FILE", "--seed", "-1"],
        ["sweep", "FILE", "--grid", "host.sink-rat=1 Gbit/s"],
        ["sweep", "FILE", "--grid", "switch.buffer=64 KiB,1 KiB"],
        ["sweep", "FILE", "--grid", "switch.buffer=64 KiB,1 KiX"],
        ["sweep", "FILE", "--grid", "switch.buffer"],
        ["sweep", "FILE", "--grid", "run.duration=1 ms,1000 us"],
        ["sweep", "FILE", "--grid", "run.seed=1,2", "--seed", "3"],
        ["sweep", "FILE", "--seeds", "1000000"],
        ["compare", "FILE", "--seeds", "100000000"],
        ["sweep", "FILE", "--seeds", "2", "--scheduler", "lokal"],
        ["reproduce", "unknown1999"],
        ["reproduce", "gran2012", "--only", "table9"],
    ],
    ids=" ".join,
)
def test_words_that_make_no_sense(command: Command, incast_file: Path, words: list[str]) -> None:
    refused(command(*(str(incast_file) if word == "FILE" else word for word in words)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [["run", "FILE"], ["sweep", "FILE", "--seeds", "2"], ["reproduce", "gran2012"]],
    ids=" ".join,
)
def test_an_output_folder_that_is_not_writable_is_noticed_before_the_run(
    command: Command, tmp_path: Path, words: list[str]
) -> None:
    # A run of a thousand simulated seconds does not end within the time limit of the command, so
    # an answer shows that it did not start.
    long = tmp_path / "long.toml"
    long.write_text(INCAST.replace('"200 us"', '"1000 s"').replace('"50 us"', '"1 s"'))
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    outcome = command(*(str(long) if w == "FILE" else w for w in words), "--out", blocked / "out")
    message, _ = refused(outcome)
    assert message.startswith(f"{blocked / 'out'}")
    assert blocked.read_text() == "not a folder"


def test_an_output_folder_of_another_use_is_refused_before_the_run(
    command: Command, tmp_path: Path
) -> None:
    long = tmp_path / "long.toml"
    long.write_text(INCAST.replace('"200 us"', '"1000 s"').replace('"50 us"', '"1 s"'))
    taken = tmp_path / "out" / "seed-3"
    taken.mkdir(parents=True)
    (taken / "thesis.tex").write_text("years of work")
    message, _ = refused(command("run", long, "--out", tmp_path / "out"))
    assert "holds no result" in message
    assert (taken / "thesis.tex").read_text() == "years of work"


def test_a_grid_over_an_unknown_key_names_the_nearest(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    words = ("--grid", "switch.bufer=32 KiB", "--out", tmp_path / "out")
    message, hint = refused(command("sweep", incast_file, "--seeds", "2", *words))
    assert message == "grid: switch.bufer: unknown key"
    assert hint == 'did you mean "buffer"?'
    words = ("--grid", "hosts=1,2", "--out", tmp_path / "out")
    assert refused(command("sweep", incast_file, *words))[1] == "did you mean fabric.hosts?"
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "switch.latency=50 ns"], 'switch.latency was "100 ns", is now "50 ns"'),
        (["--grid", "packet.header=30 B"], "varies switch.buffer, this one packet.header, switch"),
    ],
    ids=["another scenario", "other keys"],
)
def test_a_sweep_goes_on_only_with_what_it_was(
    command: Command, incast_file: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    out = tmp_path / "out"
    same = ("sweep", incast_file, "--grid", "switch.buffer=32 KiB", "--out", out)
    assert command(*same).status == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    error, _ = refused(command(*same, *words))
    assert message in error
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    # A description is for people, and a first seed only says which points there are.
    incast_file.write_text('description = "as it was"\n' + INCAST)
    assert command(*same, "--seed", "5").status == 0


@pytest.mark.slow
def test_a_folder_of_another_build_or_use_is_refused(
    command: Command, incast_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ("sweep", incast_file, "--seeds", "2", "--out", out)
    assert command(*words).status == 0
    manifest = (out / "sweep.json").read_text()
    (out / "sweep.json").write_text(re.sub('"simulator": "', '"simulator": "0.0.', manifest))
    assert "was made by silvan 0.0." in refused(command(*words))[0]
    (out / "sweep.json").write_text("{")
    assert refused(command(*words))[0].startswith(f"{out / 'sweep.json'}: not readable")
    (out / "sweep.json").write_text(manifest)
    (out / "points.parquet").write_bytes(b"PAR1")
    assert refused(command(*words))[0].startswith(f"{out / 'points.parquet'}: not readable")
    (out / "sweep.json").unlink()
    assert "holds no sweep" in refused(command(*words))[0]
    assert (out / "points.parquet").read_bytes() == b"PAR1"


MEMORY = 5 << 30
"""Address space that a command may take."""


@pytest.fixture
def limited(command: Command) -> Iterator[Command]:
    """Run commands that fail when they take too much memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    yield command
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


GENERATED = '[fabric]\ngenerator = "{}"\n{}\n'
MOST = str(2**32 - 1)

# Excessive requests, and the error on each: the amount, or the limit.
TOO_MUCH = {
    "a sample every picosecond": (
        INCAST,
        ["--set", "probe.interval=1 ps", "--set", "run.duration=10 ms"],
        "10000000000 samples take 800000000000 bytes of memory; at most 4294967296",
    ),
    # The longest interval that divides both times gives 997 samples, of 80,398 ports.
    "samples of 40,000 hosts, by default": (
        GENERATED.format("chain", "switches = 200\nhosts-per-switch = 200")
        + '[[traffic.incast]]\nto = "host-00000"\n[probe]\nports = true\n',
        ["--set", "run.warm-up=1 us", "--set", "run.duration=997 us"],
        "997 samples take",
    ),
    "samples of all ports": (
        INCAST,
        [
            "--set",
            "probe.interval=1 ns",
            "--set",
            "run.duration=10 ms",
            "--set",
            "probe.ports=true",
        ],
        "10000000 samples take 4960000000 bytes",
    ),
    "trees every picosecond": (
        INCAST,
        ["--set", "probe.trees.interval=1 ps", "--set", "run.duration=10 ms"],
        "10000000000 samples take",
    ),
    "a billion seeds": (INCAST, ["--seeds", "1000000000"], "1000000000 runs; at most 100000"),
    "a billion seeds in the file": (
        INCAST + "[sweep]\nseeds = 1000000000\n",
        [],
        "1000000000 runs; at most 100000",
    ),
    "a grid of 186 million points": (
        INCAST + "[sweep.vary]\n" + f'"run.seed" = {list(range(571))}\n'
        f'"vl.high-limit" = {list(range(571))}\n"vl.data-vls" = {list(range(571))}\n',
        [],
        "186169411 runs; at most 100000",
    ),
    "hosts beyond 32 bits": (
        GENERATED.format("single-switch", "hosts = 1000000000000"),
        [],
        "1000000000001 nodes, a fabric has at most 4194304",
    ),
    "as many hosts as a number can say": (
        GENERATED.format("single-switch", f"hosts = {MOST}"),
        [],
        "4194304",
    ),
    "a chain without end": (
        GENERATED.format("chain", f"switches = {MOST}\nhosts-per-switch = {MOST}"),
        [],
        "4194304",
    ),
    "a torus without end": (
        GENERATED.format("torus", f"sizes = [{MOST}, {MOST}]\nhosts-per-switch = 1"),
        [],
        "astronomical",
    ),
    "a tree whose hosts overflow": (
        GENERATED.format("k-ary-n-tree", f"k = {MOST}\nn = 16"),
        [],
        "astronomical",
    ),
    "a run longer than the clock": (INCAST, ["--set", "run.duration=4320001 s"], "4320000 s"),
    "a number beyond 64 bits": (INCAST, ["--set", "run.duration=99999999999999999999 s"], "large"),
    "an integer beyond 64 bits": (INCAST, ["--set", "run.seed=99999999999999999999"], "67 bits"),
    "a seed of ten thousand digits": (INCAST, ["--set", "run.seed=" + 10_000 * "9"], "text"),
    "a date": (INCAST, ["--set", "run.seed=2026-01-01"], "number"),
    "a list of dates": (INCAST, ["--set", "run.seed=[2026-01-01]"], "type date"),
    "a list without end": (
        "[vl]\nsl-to-vl = [" + 10_000_000 * "0," + "]",
        [],
        "about 10000003 values; at most 2000000",
    ),
    "lists in lists": ("a = " + 100_000 * "[", [], "recurse"),
    "tables in tables": ("[" + 100_000 * "a." + "a]", [], "recursion"),
    "lists in lists in an assignment": (INCAST, ["--set", "a=" + 60_000 * "["], "unknown key"),
    "a key of many parts": (INCAST, ["--set", ".".join(20_000 * ["a"]) + "=1"], "20000 parts"),
    "a fabric without end": (
        "",
        ["--set", "fabric.file=/dev/zero"],
        "more than 268435456 bytes; at most 268435456",
    ),
    "tables without end": (
        INCAST,
        ["--set", "fabric.routing=lfts", "--set", "fabric.routing-file=/dev/zero"],
        "more than 1073741824 bytes; at most 1073741824",
    ),
    "a GOAL schedule without end": (
        INCAST + '[[traffic.program]]\nkind = "goal"\nfile = "/dev/zero"\n',
        [],
        "more than 268435456 bytes; at most 268435456",
    ),
    "a scheme without end": (INCAST, ["--scheme", "/dev/zero"], "more than 1048576 bytes"),
    "a name outside of the folder": (INCAST, ["--set", "name=../../evil"], "contains '/'"),
    "a name with a NUL": (INCAST, ["--set", r'name="a\u0000b"'], "contains '\\0'"),
    "a long name": (INCAST, ["--set", "name=" + 10_000 * "a"], "10000 bytes; at most 200"),
    "a hidden name": (INCAST, ["--set", "name=.."], "starts with a dot"),
    "text that is not UTF-8": (
        INCAST,
        ["--set", b"name=\xff".decode("utf-8", "surrogateescape")],
        "not UTF-8",
    ),
}


# Reading takes seconds, and is the same for all commands.
READ_ALIKE = {
    *("a list without end", "lists in lists", "tables in tables", "a key of many parts"),
    *("lists in lists in an assignment", "a fabric without end", "tables without end"),
    "a GOAL schedule without end",
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TOO_MUCH)
def test_what_is_too_much_is_refused_before_memory_is_taken(
    limited: Command, tmp_path: Path, case: str
) -> None:
    text, words, problem = TOO_MUCH[case]
    path = tmp_path / "large.toml"
    path.write_text(text)
    for name in ("run",) if case in READ_ALIKE or "--scheme" in words else ("run", "sweep"):
        message, _ = refused(limited(name, path, *words, cwd=tmp_path))
        assert problem in message
    assert [entry.name for entry in tmp_path.iterdir()] == ["large.toml"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (["run", "/dev/zero"], 64 << 20),
        (["validate", "/dev/zero"], 64 << 20),
        (["emulate", "/dev/zero"], 64 << 20),
        (["dcms", "/dev/zero"], 1 << 20),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, list) else "",
)
def test_a_file_without_end_is_refused(
    limited: Command, tmp_path: Path, words: list[str], limit: int
) -> None:
    message, hint = refused(limited(*words, cwd=tmp_path))
    assert message.endswith(f"has more than {limit} bytes")
    assert str(limit) in hint


def test_a_regular_file_is_refused_by_its_size(limited: Command, tmp_path: Path) -> None:
    sparse = tmp_path / "sparse.ibnd"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
    path = tmp_path / "sparse.toml"
    path.write_text('[fabric]\nfile = "sparse.ibnd"\n')
    message, _ = refused(limited("run", path, cwd=tmp_path))
    assert message.endswith(f"it has {1 << 40} bytes; at most {256 << 20} are read")


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "status"), [(53_687_091, 0), (53_687_092, 2)])
def test_the_limit_of_the_time_series_is_the_size_of_its_rows(
    limited: Command, tmp_path: Path, samples: int, status: int
) -> None:
    """Oracle: 20 bytes for each of four hosts and each sample, 4 GiB in all."""
    path = tmp_path / "series.toml"
    path.write_text(INCAST)
    times = ["--set", f"run.duration={samples} ns", "--set", "probe.interval=1 ns"]
    assert limited("validate", path, *times, cwd=tmp_path).status == status


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["run", "FILE"],
        ["run", "FILE", "--json"],
        ["sweep", "FILE", "--seeds", "2", "--out", "swept"],
        ["example"],
        ["show", "FILE"],
        ["export", "FILE", "--format", "ibsim"],
        ["validate", "FILE"],
        ["schema"],
        ["dcms", "--example"],
        ["run", "--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_a_full_disk_behind_stdout_is_one_line(
    incast_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(incast_file) if word == "FILE" else word for word in words]
    with Path("/dev/full").open("wb") as full, (tmp_path / "stderr").open("w+b") as errors:
        with standard_streams(full, errors):
            assert main(given) == 2
        check_one_line_about_a_full_disk((tmp_path / "stderr").read_text())


def test_a_full_disk_is_one_line_also_at_the_end_of_the_process(tmp_path: Path) -> None:
    """The interpreter flushes its streams a last time."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            silvan_command("dcms", "--example"),
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    check_one_line_about_a_full_disk(done.stderr)
    assert done.returncode == 2


def check_one_line_about_a_full_disk(stderr: str) -> None:
    *notes, last = stderr.splitlines()
    assert last == "error: cannot write to standard output: no space left on device"
    assert not any("Traceback" in line or "Exception" in line for line in notes)


def test_a_closed_pipe_behind_stdout_is_no_result(tmp_path: Path) -> None:
    """Oracle: the status that a shell gives to programs that SIGPIPE has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            silvan_command("dcms", "--example"),
            cwd=tmp_path,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "sweep"])
def test_a_scenario_without_traffic_is_warned_of(
    command: Command, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "idle.toml"
    path.write_text('name = "idle"\n[run]\nduration = "10 us"\n')
    outcome = command(name, path, "--seeds", "2", cwd=tmp_path)
    assert outcome.status == 0
    warning = "warning: idle: no host sends anything; add an entry such as [[traffic.incast]]"
    assert outcome.stderr.splitlines().count(warning) == 1
    path.write_text(INCAST)
    assert (
        "warning"
        not in command(name, path, "--seeds", "2", "--out", tmp_path / "out", cwd=tmp_path).stderr
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["exporter", "--tick"], "4 ns\udcff"),
        (["emulate", "--example", "incast", "--serve", "--sockname"], "name\udcff"),
    ],
    ids=["tick", "sockname"],
)
def test_arguments_that_are_not_utf_8_are_refused(
    command: Command, words: list[str], text: str
) -> None:
    """Python reads the byte 0xff of an argument as this surrogate."""
    message, _ = refused(command(*words, text))
    assert message == f"{text!r} is not UTF-8 text"
