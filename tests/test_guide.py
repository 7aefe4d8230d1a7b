"""All commands of README and the user guide run from an empty folder, page by page.

The blocks of a page run in order, in one folder. Files come from ``silvan example`` only. A block
of ``text`` has lines that the block before it prints. A block that is not run has its reason here.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import silvan
from silvan.example_files import example, examples
from silvan.live.emulation import Emulation
from tests.conftest import Command

pytestmark = pytest.mark.usefixtures("inline_pool")

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]
SCHEDULES = sorted((ROOT / "python" / "silvan" / "examples").rglob("*.goal"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_FABRIC = "needs OpenSM and InfiniBand's tools: tests/emulator runs such commands"
_MANAGER = "needs a fabric and its tools: tests/emulator/test_dcms*.py run the manager"
_LIBRARY = "needs a compiler: tests/test_c_interface.py installs, compiles and runs it"
_OUTPUT = "what a command prints"

# By page and start of the first line. Blocks in Rust are part of a crate, whose tests compile them.
NOT_RUN = {
    ("README.md", "pip install ."): "builds the package; the continuous integration builds a wheel",
    ("README.md", "make run"): "sets up the project; the continuous integration does both",
    ("benchmarks.md", "python -m silvan.bench"): "takes minutes and measures",
    ("c-interface.md", "make libsilvan"): _LIBRARY,
    ("c-interface.md", "cc relay.c"): _LIBRARY,
    ("c-interface.md", "/* relay.c */"): _LIBRARY,
    ("c-interface.md", "202 ns: host 1"): _OUTPUT,
    ("comparing.md", "silvan compare --arena --yes"): "takes hours: tests/test_arena.py reduces it",
    ("comparing.md", 'name = "my-arena"'): "an arena, no scenario: tests/test_arena_choices.py",
    ("dcms.md", "silvan dcms --example > dcms.toml"): _MANAGER,
    ("dcms.md", "silvan example dcms-live"): _MANAGER,
    ("dcms.md", "silvan dcms dcms.toml --log json"): _MANAGER,
    ("dcms.md", "Dry run of"): _OUTPUT,
    ("dcms.md", "[state]"): "a part of a configuration: tests/emulator/test_dcms_lease.py",
    ("dcms.md", "silvan dcms --example --emulated"): _MANAGER,
    ("dcms.md", "export IBSIM_SOCKNAME=lab"): _MANAGER,
    ("diagnose.md", "silvan diagnose "): "needs a subnet: tests/emulator/test_diagnose.py",
    ("diagnose.md", "host,job"): "a file of jobs: tests/test_diagnose.py",
    ("diagnose.md", "silvan emulate"): "needs a fabric's tools: tests/emulator/test_diagnose.py",
    ("diagnose.md", "Congestion: "): _OUTPUT,
    ("diagnose.md", "counters()"): "needs a network: tests/emulator/test_diagnose.py",
    ("emulator.md", "apt-get install"): "changes the system",
    ("emulator.md", "docker build"): "needs Docker's daemon and images from the network",
    ("emulator.md", "silvan emulate incast.toml "): _FABRIC,
    ("emulator.md", "silvan example incast"): _FABRIC,
    ("emulator.md", "silvan ctl status"): _FABRIC,
    ("emulator.md", "# Port counters"): _OUTPUT,
    ("emulator.md", "silvan route"): "needs OpenSM: tests/emulator/test_route.py",
    ("exporter.md", "silvan exporter "): "needs a subnet: tests/emulator/test_exporter.py",
    ("exporter.md", "scrape_configs"): "a part of Prometheus's configuration",
    ("first-steps.md", "error:"): _OUTPUT,
    ("from-other-simulators.md", "./htsim_roce"): "needs csg-htsim",
    ("from-other-simulators.md", "./booksim"): "needs BookSim 2",
    ("from-other-simulators.md", "3\n"): "a file of flows: tests/test_flow_file.py runs the page",
    ("scenarios.md", "silvan schema >"): "redirects the output",
    ("add-a-scheme.md", "half::Half"): "a line of a list in Rust",
    ("add-a-scheme.md", "error:"): _OUTPUT,
    (
        "add-a-scheme.md",
        "silvan compare --arena",
    ): "takes minutes: tests/test_added_scheme.py reduces it",
    ("programs.md", "error:"): _OUTPUT,
    ("stepping.md", "202 ns: host"): "what a block prints: tests/test_network.py compares",
    ("stepping.md", "client 1 has"): "what a block prints: tests/test_network.py compares",
    ("programs.md", "silvan example gpcnet"): "takes minutes: tests/test_gpcnet.py",
    ("real-fabrics.md", "ibnetdiscover"): "needs a network; or what silvan prints about its output",
    ("real-fabrics.md", "cat dump_lfts.txt"): "joins files of a network",
    ("reproducing.md", "silvan reproduce"): "takes minutes: tests/test_reproduce.py",
    ("reproducing.md", "[project.entry-points"): "a section of another project",
    ("verbs.md", "apt-get install"): "changes the system: tests/emulator/test_verbs.py",
    (
        "verbs.md",
        "silvan emulate --example two-tier --time auto",
    ): "needs MPI: tests/emulator/test_verbs.py",
    ("viewing.md", "silvan emulate incast.toml"): "serves until Ctrl-C: tests/viewer/test_live.py",
    ("viewing.md", "silvan dcms --example"): "serves until Ctrl-C: tests/viewer/test_live.py",
    ("twin.md", "silvan emulate"): "needs a fabric's tools: tests/emulator/test_twin.py",
    ("twin.md", "Twin: "): _OUTPUT,
    ("twin.md", "│ as it is"): _OUTPUT,
    ("what-if.md", "silvan whatif"): "needs OpenSM: tests/emulator/test_whatif.py",
    ("what-if.md", "storage: 1,000"): _OUTPUT,
    ("what-if.md", "as is, ftree"): _OUTPUT,
    ("tuning.md", "silvan tune storage.toml --trials 40"): "takes a minute: tests/test_tuning.py",
    ("tuning.md", "silvan tune storage.toml --trials 8"): "tests/test_tuning.py searches more",
    ("tuning.md", "silvan emulate"): _FABRIC,
    ("tuning.md", "gran2012-table2"): _OUTPUT,
    ("tuning.md", "scenario = "): "a file of silvan fit: tests/test_fit.py",
    ("tuning.md", "silvan fit gran2012"): "takes an hour",
    ("tuning.md", "trial 37"): _OUTPUT,
    ("tuning.md", "maximize"): "a formula",
    ("sweeps.md", "dask scheduler"): "needs a cluster: tests/test_sweep_cluster.py has one",
}

# Blocks that later blocks of their page read as files, by page and start of the first line.
FILES = {
    ("traffic.md", "from,to,bytes"): "flows.csv",
    ("real-fabrics.md", "0x2c90200423e71"): "roots.txt",
    ("real-fabrics.md", "0x100004"): "compute.txt",
}


def all_blocks(page: Path) -> list[tuple[str, str]]:
    """List the language and the text of each block."""
    return BLOCK.findall(page.read_text())


def blocks(page: Path, language: str) -> list[str]:
    """List the blocks in one language."""
    return [text for name, text in all_blocks(page) if name == language]


def entry(page: Path, text: str, entries: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """Find the entry for a block."""
    starts = (key for key in entries if key[0] == page.name and text.startswith(key[1]))
    return next(starts, None)


def reason(page: Path, text: str) -> tuple[str, str] | None:
    """Find the entry for a block that is not run."""
    return entry(page, text, NOT_RUN)


def without_name(text: str) -> str:
    """Return a file without a comment at its start."""
    return re.sub(r"\A((#|//).*\n)+", "", text).strip()


def run_shell(text: str, folder: Path, command: Command) -> str:
    """Run the lines of a block, each of which calls silvan, and return what they print."""
    printed = ""
    for line in text.splitlines():
        words = shlex.split(line.removeprefix(".venv/bin/"), comments=True)
        assert words[0] == "silvan", f"{line}: give the reason why this is not run"
        outcome = command(*words[1:], cwd=folder)
        assert outcome.status == 0, f"{line}: {outcome.stderr}"
        printed += outcome.stdout
    return printed


def run_python(text: str, page: Path) -> str:
    """Run a program, and return what it prints."""
    with redirect_stdout(StringIO()) as printed:
        exec(compile(text, str(page), "exec"), {})
    return printed.getvalue()


def check_output(shown: str, printed: str) -> None:
    """Check that lines are printed in their order; `...` stands for any lines."""
    lines = iter([line.strip() for line in printed.splitlines()])
    for line in shown.splitlines():
        if line.strip() != "...":
            assert line.strip() in lines, f"{line!r} is not printed, or not here: {printed}"


def is_part(document: object, whole: object) -> bool:
    """Decide whether each key of a document is in another one, with the same value."""
    if isinstance(document, dict) and isinstance(whole, dict):
        return all(key in whole and is_part(value, whole[key]) for key, value in document.items())
    return document == whole


def check_toml(text: str, folder: Path, command: Command) -> None:
    """Check that a block is what an example says, or a scenario or section that is valid."""
    files = [one.path for one in examples() if one.path.suffix == ".toml"]
    if without_name(text) in {without_name(path.read_text()) for path in files}:
        return
    document = tomllib.loads(text)
    parts = [tomllib.loads(path.read_text()) for path in files]
    if any(is_part(document, part) for part in parts):
        return
    path = folder / "block.toml"
    path.write_text(text)
    if set(document) == {"fault"}:
        incast = silvan.Scenario.from_file(example("incast").path)
        with Emulation(incast, sockname=f"test-guide-{os.getpid()}", faults=path, paused=True):
            return
    outcome = command("validate", path, cwd=folder)
    assert outcome.status == 0, f"{text}\n{outcome.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = ""
    for language, text in all_blocks(page):
        if language == "rust" or reason(page, text):
            continue
        if file := entry(page, text, FILES):
            (tmp_path / FILES[file]).write_text(text)
        elif language == "toml":
            check_toml(text, tmp_path, command)
        elif language == "python":
            printed = run_python(text, page)
        elif language == "text":
            check_output(text, printed)
        elif text.strip() in {without_name(path.read_text()) for path in SCHEDULES}:
            continue
        else:
            assert language in ("", "sh"), f"{page.name}: a block in {language!r} needs a reason"
            printed = run_shell(text, tmp_path, command)


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_a_page_ends_with_the_next_pages(page: Path) -> None:
    if page.name not in ("README.md", "glossary.md"):
        last = page.read_text().rstrip().splitlines()[-1]
        assert re.match(r"Next: .*\]\([^)]+\.md\)", last), last


@pytest.mark.parametrize("shown", ["b\n", "a\n...\nd\n", "...\nc\n", "b\nd\n"])
def test_lines_in_their_order_are_an_output(shown: str) -> None:
    check_output(shown, "a\n b \nc\nd\n")


@pytest.mark.parametrize("shown", ["e\n", "b\na\n", "b\n...\nb\n"])
def test_other_lines_are_no_output(shown: str) -> None:
    with pytest.raises(AssertionError, match="is not printed"):
        check_output(shown, "a\nb\nc\nd\n")


def test_every_reason_belongs_to_a_block() -> None:
    texts = [(page, text) for page in PAGES for _, text in all_blocks(page)]
    for entries in (NOT_RUN, FILES):
        assert {entry(*one, entries) for one in texts} - {None} == set(entries)


def test_no_block_in_python_is_left_out() -> None:
    left_out = [
        text
        for page in PAGES
        for language, text in all_blocks(page)
        if language in ("python", "toml")
        if reason(page, text)
    ]
    assert left_out == []
