"""A scheme is one file and one line, as the guide says, and no other source names a scheme."""

from __future__ import annotations

import re
from pathlib import Path

import silvan
from silvan._silvan import schemes
from silvan.comparing.baselines import chosen, fitting
from silvan.comparing.tuning.settings import search_of
from tests.extended_sources import scheme_file, scheme_line
from tests.test_guide import ROOT

SCHEMES = ROOT / "crates" / "silvan-cc" / "src" / "schemes"
LIST = SCHEMES / "mod.rs"
LINE = re.compile(r'^ +(\w+)::(\w+) = "([\w-]+)", ".*\.";$', re.MULTILINE)
CHAIN = re.compile(r'^ +(\w+): \w+::\w+, \w+::\w+\s+= "([\w+-]+)"', re.MULTILINE)

# Sources that may name a scheme, and which.
ALLOWED = {
    # The live fabric and the DCMS change the settings of InfiniBand's scheme only.
    "crates/silvan-emulator/src/agent/congestion.rs": {"ib-cc"},
    "crates/silvan-emulator/src/agent/congestion/wire.rs": {"ib-cc"},
    "crates/silvan-cc/src/dcms/controller.rs": {"ib-cc"},
    "crates/silvan-emulator/src/plane/mod.rs": {"ib-cc", "none"},
    "crates/silvan-sim/src/assemble.rs": {"ib-cc"},
    "crates/silvan-model/src/meter.rs": {"ib-cc"},
    "crates/silvan-scenario/src/checks/dcms.rs": {"ib-cc"},
    "crates/silvan-cc/src/dcms/section.rs": {"ib-cc"},
    # A subnet's congestion control is InfiniBand's.
    "python/silvan/live/twin/scenario.py": {"ib-cc"},
    "python/silvan/comparing/remedies.py": {"ib-cc"},
    # Links with PFC have no credits, which these schemes read and delay.
    "crates/silvan-scenario/src/checks/pfc.rs": {"ib-cc", "pft", "dcqcn"},
    # No control is the scheme of programs without another load, and has separate engines.
    "crates/silvan-cc/src/schemes/register.rs": {"none"},
    "crates/silvan-instances/src/lib.rs": {"none"},
    # Plans compare a fabric with and without the control that OpenSM configures.
    "python/silvan/planning/whatif.py": {"ib-cc"},
    "python/silvan/comparing/tuning/opensm_conf.py": {"ib-cc"},
    # The live fabric is always InfiniBand's, and its page says whether its control is off.
    "python/silvan/viewer/samples.py": {"ib-cc"},
    "python/silvan/comparing/tuning/problem.py": {"ib-cc"},
    "python/silvan/comparing/tuning/space.py": {"ib-cc", "hpcc"},
    "python/silvan/comparing/tuning/tune.py": {"ib-cc"},
    "python/silvan/comparing/tuning/settings.py": {"hpcc"},
    # Tools of one scheme: its response functions, and a throttled interface alone.
    "crates/silvan-python/src/response.rs": {"ecn"},
    "python/silvan/schemes/response.py": {"ecn"},
    "python/silvan/cli/inspect.py": {"ecn"},
    "crates/silvan-python/src/pft.rs": {"pft"},
    "crates/silvan-python/src/lib.rs": {"pft"},
    # The file of a scheme in Python is read where files are read, and run where Python is.
    # Help texts of options have examples.
    "crates/silvan-scenario/src/checks/python.rs": {"python"},
    "crates/silvan-scenario/src/scenario.rs": {"python"},
    "crates/silvan-python/src/scenario.rs": {"python"},
    "python/silvan/schemes/scheme_file.py": {"python"},
    "python/silvan/cli/options.py": {"python", "dcqcn", "ecn", "ib-cc", "pft"},
    # A chain states the settings of both its schemes.
    "crates/silvan-cc/src/schemes/pft/scheme.rs": {"ib-cc", "ib-cc+pft"},
    "crates/silvan-cc/src/schemes/reps.rs": {"nscc", "swift", "nscc+reps", "swift+reps"},
    # The facts of a fabric are those without a scheme.
    "crates/silvan-scenario/src/variants.rs": {"none"},
    "python/silvan/comparing/baselines.py": {"python"},
    "python/silvan/execution/scheme_check.py": {"ib-cc"},
    # A plug-in scheme is stored as a scheme in Python.
    "python/silvan/plugins/expansion.py": {"python"},
    # A change of a setting at run time is one of these settings.
    "crates/silvan-cc/src/hooks/mod.rs": {"ib-cc"},
    # Benchmarks of schemes with timers per flow, and by acknowledgements.
    "python/silvan/bench/simulator.py": {"dcqcn", "nscc"},
    # Meanings of columns in the reference of tables.
    "crates/silvan-sim/src/tables.rs": {"srp"},
    "crates/silvan-sim/src/limits.rs": {"ib-cc", "ecn", "dcqcn"},
    # Examples in documentation.
    "crates/silvan-cc/src/lib.rs": {"ib-cc"},
    "crates/silvan-cc/src/hooks/list.rs": {"ib-cc", "ecn"},
    "python/silvan/inputs/toml_text.py": {"ib-cc"},
}


def registered() -> list[tuple[str, str, str]]:
    """Read module, type and name of every scheme in the list."""
    return [(match[1], match[2], match[3]) for match in LINE.finditer(LIST.read_text())]


def mention(module: str | None, kind: str, name: str) -> re.Pattern[str]:
    """Match what names a scheme: its module, its type as that of a scheme, its keys, its name."""
    name = re.escape(name)
    patterns = [
        rf"\b(?:SchemeName|AnySwitch|AnySource)::{kind}\b",
        rf"\bcontrol\.{name}\b",
    ]
    # HPC Challenge has modules and keys of the same name as a scheme.
    if name == "hpcc":
        return re.compile("|".join([*patterns, r"\bschemes::hpcc\b"]))
    if module is not None:
        patterns += [rf"\b{module}::", rf"\bparameters(?:\(\))?\.{module}\b"]
    # These are words of the language, too.
    if name not in {"none", "python"}:
        patterns.append(rf"""["']{name}["']""")
    if name not in {"none", "python", "half"}:
        patterns.append(rf"\b{module or name}\b")
    return re.compile("|".join(patterns))


def product() -> list[Path]:
    """List the sources of the product without tests and examples."""
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/silvan/**/*.py")]
    left_out = re.compile(r"/tests(\.rs|/)|^python/silvan/examples/")
    return [path for path in sources if not left_out.search(path.relative_to(ROOT).as_posix())]


def code(path: Path) -> str:
    """Read a source without the tests at its end."""
    return path.read_text().split("#[cfg(test)]")[0]


def test_the_commands_list_what_is_registered() -> None:
    names = [name for _, _, name in registered()]
    names += [match[2] for match in CHAIN.finditer(LIST.read_text())]
    assert [name for name, _ in schemes()] == names
    assert len(names) >= 8


def test_no_other_source_names_a_scheme() -> None:
    rows: list[tuple[str | None, str, str]] = [*registered()]
    rows += [(None, match[1], match[2]) for match in CHAIN.finditer(LIST.read_text())]
    found: dict[str, set[str]] = {}
    for path in product():
        place, text = path.relative_to(ROOT).as_posix(), code(path)
        for module, kind, name in rows:
            home = (SCHEMES / f"{module}.rs", SCHEMES / f"{module}")
            if path in (LIST, home[0]) or home[1] in path.parents:
                continue
            # Most sources have none of its words, which is known much sooner.
            if not any(word in text for word in (module, kind, name) if word):
                continue
            if mention(module, kind, name).search(text):
                found.setdefault(place, set()).add(name)
    surplus = {place: names - ALLOWED.get(place, set()) for place, names in found.items()}
    assert not {place: names for place, names in surplus.items() if names}
    # Every allowed place is still needed.
    assert {place: names - found.get(place, set()) for place, names in ALLOWED.items()} == {
        place: set() for place in ALLOWED
    }


def test_the_arena_tunes_what_the_file_declares() -> None:
    """Oracle: the ranges in the listing of the page."""
    scenario = silvan.Scenario()
    (half,) = chosen(scenario, fitting(scenario), ["half"])
    search = search_of(scenario.override(half.overrides))
    assert search is not None
    found = [(one.key, one.low, one.high, one.unit, one.log) for one in search.space.parameters]
    assert found == [
        ("control.half.threshold", 1 / 8, 8, "x 10000 B", True),
        ("control.half.step", 0.0001, 0.1, "", True),
    ]
    assert search.start == {"control.half.threshold": 1, "control.half.step": 0.001}


def test_the_page_lists_the_file_and_the_line_that_are_compiled() -> None:
    def lines(text: str) -> list[str]:
        return [line for line in text.splitlines() if line]

    assert lines(scheme_file()) == lines(code(SCHEMES / "half.rs"))
    assert scheme_line() in LIST.read_text()
