"""REPS: paths that are used again while they deliver packets unmarked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import silvan
from silvan.comparing.baselines import fitting
from silvan.errors import ScenarioError
from tests.conftest import ddr_scenario

SCHEMES = Path(__file__).parent / "hook_schemes"
# Four ways up for four hosts of a leaf.
TREE = {"generator": "xgft", "children": [4, 2], "parents": [1, 4], "path-choice": "ecmp"}
MARKS = {"control.reps.k-min": "20 kB", "control.reps.k-max": "80 kB"}


def across(scheme: str, keys: Mapping[str, Any] = MARKS, ways: int = 4) -> silvan.Scenario:
    """Let the four hosts of one leaf send to those of the other one."""
    scenario = ddr_scenario(
        fabric={**TREE, "parents": [1, ways]},
        link={"speed": "EDR"},
        switch={"buffer": "256 KiB"},
        traffic={
            "flow": [{"from": f"host-000{i}", "to": f"host-000{i + 4}"} for i in range(4)],
        },
        run={"warm-up": "1 ms", "duration": "2 ms"},
    )
    return scenario.override(
        {"control.scheme": scheme, "control.feedback.carrier": "ack-per-packet", **keys}
    )


def received(result: silvan.Result) -> list[float]:
    """Rates of the hosts of the second leaf, as a part of their links."""
    most = 1_000 * 12_500 * 2048 / 2074
    return [one / most for one in result.hosts["delivered_bytes"].to_pylist()[4:]]


def up(result: silvan.Result) -> list[int]:
    """Bytes that each way up of the first leaf has sent."""
    return [
        row["xmit_bytes"]
        for row in result.ports.to_pylist()
        if row["node"] == "leaf-00" and not row["peer"].startswith("host-")
    ]


def test_the_ways_up_are_full_where_a_hash_leaves_some_empty() -> None:
    """
    Oracle: four flows and four ways: one each, if no two collide.

    The hash of ECMP has put two of them on one way.
    """
    ecmp, reps = (silvan.run(across(scheme)) for scheme in ("none", "reps"))
    assert sum(received(ecmp)) == pytest.approx(3, rel=0.01)
    assert sum(received(reps)) == pytest.approx(4, rel=0.001)
    assert min(up(reps)) > 0.99 * max(up(reps))


def test_ways_that_do_not_suffice_are_shared() -> None:
    """Oracle: four flows share two ways, and no way is taken more often than the other."""
    result = silvan.run(across("reps", ways=2))
    assert sum(received(result)) == pytest.approx(2, rel=0.01)
    assert min(received(result)) > 0.9 * max(received(result))
    low, high = sorted(up(result))
    assert low > 0.99 * high


def test_entropies_below_the_paths_leave_some_out() -> None:
    """Oracle: entropies 0 and 1 are two of the four ways."""
    result = silvan.run(across("reps", {**MARKS, "control.reps.entropies": 2}))
    assert [one > 0 for one in sorted(up(result))] == [False, False, True, True]
    assert sum(received(result)) == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("chain", ["nscc+reps", "swift+reps"])
def test_windows_and_paths_together(chain: str) -> None:
    """Oracle: more than a hash gives, and no flow starves."""
    result = silvan.run(across(chain, {**MARKS, "control.nscc.base-rtt": "4 us"}))
    assert sum(received(result)) > 3.6
    assert min(received(result)) > 0.85


@pytest.mark.parametrize(
    ("marks", "least", "most"),
    [
        ({}, 0.40, 0.50),
        ({"control.nscc.k-min": "4 kB", "control.nscc.k-max": "12500 B"}, 0.90, 1.0),
    ],
)
@pytest.mark.parametrize("from_ms", [3, 8])
def test_windows_below_the_marks_leave_flows_on_full_cables(
    marks: dict[str, str], least: float, most: float, from_ms: int
) -> None:
    """
    Oracle: a path is left by marks alone, so that flows rest where no queue reaches a threshold.

    Three hosts of each of three leaves send to the next leaf, over three spines. A burst to one
    host puts flows on the same cables. With NSCC's thresholds no packet is marked long after that,
    and one flow has less than half of its link, for good. Thresholds below what the windows leave
    on a full cable spread the flows again.
    """
    flows: list[dict[str, Any]] = [
        {"name": f"long-{i}", "from": f"host-{i:04}", "to": f"host-{(i + 3) % 9:04}"}
        for i in range(9)
    ]
    burst = {"to": "host-0001", "bytes": "69843 B", "start": "191 us"}
    flows += [{"from": f"host-{i:04}", **burst} for i in (0, 2, 3, 4, 5, 6, 7)]
    scenario = ddr_scenario(
        fabric={"generator": "k-ary-n-tree", "k": 3, "n": 2, "path-choice": "ecmp"},
        link={"rate": "25 Gbit/s"},
        traffic={"flow": flows},
        control={"scheme": "nscc+reps"},
        run={"warm-up": f"{from_ms} ms", "duration": f"{from_ms + 1} ms", "seed": 4},
    ).override({"control.nscc.base-rtt": "4 us", **marks})
    result = silvan.run(scenario)
    # Payload of a millisecond.
    full = 3.125e6 * 2048 / 2074
    shares = [
        row["delivered_bytes"] / full
        for row in result.classes.to_pylist()
        if row["name"].startswith("long-")
    ]
    assert least < min(shares) < most
    assert (sum(result.ports["fecn_marked"].to_pylist()) > 0) == bool(marks)


def test_a_burst_leaves_no_trace() -> None:
    """Oracle: after four flows have ended, one alone has its whole link as before."""
    scenario = across("reps").override(
        {
            "traffic.flow": [
                {"name": "after", "from": "host-0000", "to": "host-0004"},
                *({"from": f"host-000{i}", "to": "host-0005", "end": "500 us"} for i in (1, 2, 3)),
            ]
        }
    )
    rows = silvan.run(scenario).classes.to_pylist()
    (after,) = (row for row in rows if row["name"] == "after")
    assert after["delivered_bytes"] == pytest.approx(12_500e3 * 2048 / 2074, rel=0.01)


@pytest.mark.slow
def test_the_twin_in_python_takes_the_same_paths() -> None:
    """Oracle: REPS in Python, with a separate random generator."""
    threshold = {"control.reps.k-min": "20000 B", "control.reps.k-max": "20001 B"}
    scenario = across("reps", threshold, ways=2)
    twin = scenario.override(
        {"control.scheme": "python", "control.python.file": str(SCHEMES / "reps.py")}
    )
    built_in, mine = silvan.run(scenario), silvan.run(twin)
    assert mine.ports["xmit_bytes"].to_pylist() == built_in.ports["xmit_bytes"].to_pylist()
    assert mine.classes.equals(built_in.classes)
    assert len((SCHEMES / "reps.py").read_text().splitlines()) <= 60


@pytest.mark.parametrize(
    ("keys", "key", "message"),
    [
        ({"fabric.path-choice": "table"}, "control.reps.entropies", "no paths"),
        ({"control.feedback.carrier": "cnp"}, "control.feedback.carrier", "REPS learns"),
        ({"control.reps.buffer": 33}, "control.reps.buffer", "33 is not 1 to 32"),
        ({"control.reps.entropies": 70_000}, "control.reps.entropies", "not 1 to 65536"),
    ],
)
def test_what_reps_cannot_work_with_is_refused(keys: Any, key: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as caught:
        across("reps", keys)
    assert caught.value.key == key
    assert caught.value.hint


def test_baselines_have_it_where_there_are_paths() -> None:
    """Oracle: marks of both baselines from one bandwidth-delay product on, to four."""
    fabric = {key: value for key, value in TREE.items() if key != "path-choice"}
    scenario = silvan.Scenario(fabric=fabric, link={"speed": "EDR"})
    found = {one.name: one for one in fitting(scenario).every}
    assert {"reps", "nscc+reps"} <= found.keys()
    reps = scenario.override(found["reps"].overrides).to_dict()["control"]
    nscc = scenario.override(found["nscc+reps"].overrides).to_dict()["control"]
    assert reps["reps"]["k-min"] == nscc["nscc"]["k-min"]
    assert reps["reps"]["k-max"] == nscc["nscc"]["k-max"]
    switch = ddr_scenario(fabric={"generator": "single-switch", "hosts": 4})
    assert "reps" not in {one.name for one in fitting(switch).every}
