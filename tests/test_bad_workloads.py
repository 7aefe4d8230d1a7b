"""Workloads and fabrics that cannot be: the command prints place, reason and hint of each error.

`crates/silvan-scenario/tests/scenario` has more of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import silvan
from silvan.errors import SimulationError
from tests.conftest import Command

SWITCH = '[fabric]\ngenerator = "single-switch"\nhosts = 4\n'
ALLREDUCE = SWITCH + '[[traffic.program]]\nkind = "allreduce"\nbytes = "1 KiB"\n'
GOAL = SWITCH + "[[traffic.program]]\nkind = \"goal\"\ntrace = '''\n"
FLOWS = SWITCH + "[[traffic.flows]]\n"
ADAPTIVE = """\
[fabric]
generator = "dragonfly"
switches-per-group = 4
hosts-per-switch = 2
global-per-switch = 2
path-choice = "ugal-l"
[vl]
data-vls = 1
"""

CASES = {
    "a collective over no hosts": (
        ALLREDUCE + "hosts = 0\n",
        "bad.toml:7: traffic.program.0.hosts: 0 hosts requested, 4 are not used by other programs\n"
        'hint: ask for 1 to that many; "all" of another program uses every host\n',
    ),
    "a distribution that falls": (
        FLOWS + 'load = 0.5\nsizes = { file = "cdf.txt" }\n',
        "cdf.txt:3: the distribution falls from 70 to 50 percent",
    ),
    "two distributions of sizes": (
        FLOWS + 'load = 0.5\nsizes = { fixed = "1 KiB", file = "cdf.txt" }\n',
        "bad.toml:6: traffic.flows.0.sizes: two distributions of sizes; "
        'the second is "file"\nhint: leave one of them, or write two entries\n',
    ),
    "tables that do not fit in memory": (
        '[fabric]\ngenerator = "hyper-x"\n'
        "sizes = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]\nhosts-per-switch = 1\n",
        "fabric.routing: 131072 switches would need tables for 131072 hosts; "
        "at most 8589934592 entries are supported",
    ),
    "more flows on their way than fit in memory": (
        FLOWS + 'outstanding = 4_000_000_000\nsizes = "hadoop"\n',
        "bad.toml:5: traffic.flows.0.outstanding: 4000000000 flows on their way at each of 4 "
        "hosts; at most 33554432 together are supported\nhint: write e.g. 4\n",
    ),
    "zero flows": (
        FLOWS + 'load = 0.5\ncount = 0\nsizes = "hadoop"\n',
        "bad.toml:6: traffic.flows.0.count: zero flows send nothing\n"
        'hint: write 1 or more, or "unlimited"\n',
    ),
    "a flow to its own sender": (
        FLOWS + 'load = 0.5\nsizes = "hadoop"\nfrom = ["host-0001"]\nto = ["host-0001"]\n',
        "bad.toml:8: traffic.flows.0.to: host 1 would send to itself\n",
    ),
    "zero iterations": (
        ALLREDUCE + "iterations = 0\n",
        "bad.toml:7: traffic.program.0.iterations: zero iterations do nothing\n"
        'hint: write 1 or more, or "unlimited"\n',
    ),
    "lanes that do not suffice": (
        ADAPTIVE,
        "bad.toml:6: fabric.path-choice: "
        "the routes can deadlock, their channels depend on each other in a cycle: "
        "group-00-switch-00:7 (lane 0) -> ",
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if "memory" in name else [], id=name)
        for name in CASES
    ],
)
def test_what_cannot_be_is_refused_with_place_and_hint(
    name: str, tmp_path: Path, command: Command
) -> None:
    """The command ends with code 2."""
    text, expected = CASES[name]
    (tmp_path / "cdf.txt").write_text("0 0\n1000 0.7\n2000 0.5\n3000 1\n")
    path = tmp_path / "bad.toml"
    path.write_text(text)
    done = command("run", str(path))
    assert done.status == 2
    assert expected in done.stderr
    if name == "lanes that do not suffice":
        assert "\nhint: set vl.data-vls to 4, or " in done.stderr
        path.write_text(text.replace("data-vls = 1", "data-vls = 4"))
        silvan.Scenario.from_file(path)


def test_programs_that_end_at_the_start_have_rates_of_zero() -> None:
    """Nothing divides by the time of such a run."""
    text = GOAL + "num_ranks 1\nrank 0 {\n}\n'''\n"
    result = silvan.run(silvan.Scenario.from_toml(text))
    assert result.summary["simulated_ps"] == 0
    assert result.measures["total_gbps"] == 0.0


def test_a_receive_without_a_send_is_named(tmp_path: Path) -> None:
    """A schedule may be completed by others at run time, so that it ends the run."""
    text = GOAL + "num_ranks 2\nrank 0 {\n}\nrank 1 {\nrecv 8b from 0\n}\n'''\n"
    with pytest.raises(
        SimulationError, match=r"rank 1, line 5: no rank sends what is to be received from rank 0"
    ):
        silvan.run(silvan.Scenario.from_toml(text))
