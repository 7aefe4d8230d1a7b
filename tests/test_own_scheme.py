"""Schemes of one's own: the guide shows what is compiled, and both doors lead to one result."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np
import pytest

import silvan
from silvan.toml_text import TomlValue
from tests.test_guide import ROOT, blocks

GUIDE = ROOT / "docs" / "guide" / "own-scheme.md"
SCHEMES = ROOT / "crates" / "silvan-schemes" / "src"

INCAST = silvan.Scenario(
    fabric={"generator": "single-switch", "hosts": 6},
    link={"speed": "EDR"},
    traffic={
        "incast": [{"to": "host-0000", "from": [f"host-000{n}" for n in range(1, 5)]}],
        "flow": [{"from": "host-0001", "to": "host-0005"}],
    },
    probe={"interval": "100 us"},
    run={"duration": "2 ms", "warm-up": "1 ms"},
)


def test_the_guide_lists_the_file_that_is_compiled() -> None:
    listed = blocks(GUIDE, "rust")
    assert len(listed) >= 8
    source = (SCHEMES / "half.rs").read_text()
    for block in listed:
        assert textwrap.dedent(block) in source
    # Together they are all of it but the first lines.
    assert sum(map(len, listed)) > 0.95 * len(source.replace("\n\n", "\n"))
    assert 'half::Half = "half"' in (SCHEMES / "lib.rs").read_text()


def test_schemes_of_one_file_change_what_happens() -> None:
    """Oracle: without control a victim beside an incast gets only its share of the port."""

    def victim_bytes(scheme: str) -> int:
        result = silvan.run(INCAST.override({"control.scheme": scheme}))
        flow = result.classes.to_pylist()[1]
        return int(flow["delivered_bytes"])

    without = victim_bytes("none")
    assert victim_bytes("half") > 2 * without
    assert victim_bytes("dcqcn") > 1.2 * without


def half_in_python() -> silvan.Callbacks:
    """Take the guide's program up to its scenario."""
    (program,) = blocks(GUIDE, "python")
    names: dict[str, object] = {}
    exec(compile(program.split("scenario =")[0], str(GUIDE), "exec"), names)
    half = names["half"]
    assert isinstance(half, silvan.Callbacks)
    return half


@pytest.mark.parametrize(
    "traffic",
    [
        {"permutation": [{"pattern": "shift", "shift": 1}], "incast": [{"to": "host-0000"}]},
        {"uniform": [{"load": 0.6}], "incast": [{"to": "host-0000", "load": 0.3}]},
    ],
)
def test_python_and_rust_give_the_same_run(traffic: dict[str, TomlValue]) -> None:
    """Oracle: the same scheme in Rust, where it does not matter how often a host is asked."""
    scenario = silvan.Scenario(
        fabric={"generator": "k-ary-n-tree", "k": 2, "n": 3},
        traffic=traffic,
        control={"scheme": "half", "feedback": {"carrier": "ack-per-packet"}},
        run={"duration": "2 ms"},
    )
    built_in = silvan.run(scenario, seed=3)
    mine = silvan.run(
        scenario.override({"control.scheme": "none"}), seed=3, control=half_in_python()
    )
    for table in ("hosts", "classes", "host_series"):
        assert mine.tables[table].equals(built_in.tables[table]), table
    assert sum(built_in.hosts["becn_received"].to_pylist()) > 0


def test_runs_do_not_touch_each_other() -> None:
    half = half_in_python()
    scenario = INCAST.override({"control.feedback.carrier": "ack-per-packet"})
    first, second = (silvan.run(scenario, control=half) for _ in range(2))
    assert first.hosts.equals(second.hosts)
    assert half.state[..., 0].min() == 1


def test_host_calls_arrive() -> None:
    """Oracle: a host that may start a packet every 10 us and no sooner."""

    def host_release(state, now, host):  # type: ignore[no-untyped-def]
        return int(state[host])

    def on_send(state, now, source, destination, sl, wire_time, payload):  # type: ignore[no-untyped-def]
        state[source] = now + 10_000_000

    slow = silvan.Callbacks(np.zeros(6), host_release=host_release, on_send=on_send)
    result = silvan.run(INCAST, control=slow)
    # One millisecond after the warm-up, and one packet in 10 us.
    assert result.hosts["injected_bytes"].to_pylist() == [0, *[2048 * 100] * 4, 0]


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"on_arrival": lambda state: 0}, "there is no call 'on_arrival' of a scheme"),
        ({"release": lambda state, now: 0}, "release takes 2 arguments, not 5"),
        (
            {"host_release": lambda state, now, host: now.missing},
            "numba cannot compile host_release",
        ),
    ],
)
def test_functions_that_cannot_be_are_refused(
    functions: dict[str, Callable[..., object]], message: str
) -> None:
    with pytest.raises(silvan.SilvanError, match=message) as raised:
        silvan.Callbacks([0.0], **functions)
    assert raised.value.hint
