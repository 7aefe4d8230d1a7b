"""The stepping interface: closed forms, programs of a second kind, and misuse."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import silvan

SWITCH: dict[str, Any] = {
    "fabric": {"generator": "single-switch", "hosts": 4},
    "link": {"rate": "100 Gbit/s", "length": "2 m"},
    "packet": {"mtu": "4 KiB"},
}


def network(**tables: object) -> silvan.Network:
    return silvan.Network(silvan.Scenario(**{**SWITCH, **tables}))


def test_an_unloaded_message_takes_the_closed_form() -> None:
    net = network()
    net.send(0, 1, 8)
    [short] = net.run_until()
    net = network()
    net.send(0, 1, 8 + 4096 * 50)
    [long] = net.run_until()
    # 50 full packets more, one after the other at the link's rate.
    per_byte = Fraction(8 * 10**12, 100 * 10**9)
    overhead = silvan.Scenario(**SWITCH).packet.header.bytes
    assert long.time - short.time == 50 * (4096 + overhead) * per_byte


def test_a_relay_ends_when_a_program_of_the_same_messages_does(tmp_path: Path) -> None:
    sizes = [1, 4096, 100_000, 1_000_000]
    lines = ["num_ranks 4"]
    for rank in range(4):
        lines.append(f"rank {rank} {{")
        if rank > 0:
            lines.append(f"r: recv {sizes[rank - 1]}b from {rank - 1} tag {rank - 1}")
        size = sizes[rank]
        lines.append(f"s: send {size}b to {(rank + 1) % 4} tag {rank}")
        if rank > 0:
            lines.append("s requires r")
        if rank == 0:
            lines.append(f"r: recv {sizes[3]}b from 3 tag 3")
        lines.append("}")
    goal = tmp_path / "relay.goal"
    goal.write_text("\n".join(lines) + "\n", "ascii")
    program = {
        "name": "relay",
        "kind": "goal",
        "file": str(goal),
    }
    messaging = {"eager-limit": "1 GiB", "overhead": "0 s"}
    scenario = silvan.Scenario(
        **SWITCH, traffic={"program": [program], "messaging": messaging}, run={"duration": "10 ms"}
    )
    end = silvan.run(scenario).programs["end_ps"].to_pylist()[0]
    net = network()
    net.send(0, 1, sizes[0], tag=0)
    times = []
    for event in net.run_until():
        times.append(event.time)
        if event.tag < 3:
            net.send(event.dst, (event.tag + 2) % 4, sizes[event.tag + 1], tag=event.tag + 1)
    assert times[-1] == end


def test_events_come_in_the_order_of_their_instants_and_bytes_arrive() -> None:
    net = network()
    sent = 0
    for step in range(40):
        for src in range(4):
            size = (step * 977 + src * 131) % 20_000
            net.send(src, (src + 1 + step % 3) % 4, size, tag=(step, src))
            sent += size
        net.at((step + 1) * 1_000_000, tag=None)
    events = list(net.run_until())
    assert [event.time for event in events] == sorted(event.time for event in events)
    arrivals = [event for event in events if event.src]
    assert sum(event.bytes for event in arrivals) == sent
    assert sum(net.host_counters(host)["delivered_bytes"] for host in range(4)) == sent
    assert {event.time for event in events if not event.src} == {
        (step + 1) * 1_000_000 for step in range(40)
    }
    assert net.pending == 0


def test_cutting_a_run_into_steps_changes_no_event() -> None:
    def requests(net: silvan.Network) -> None:
        for number in range(30):
            net.send(number % 3, 3, 10_000 + number, tag=number)

    whole, cut = network(), network()
    requests(whole)
    requests(cut)
    expected = list(whole.run_until("1 ms"))
    found: list[silvan.Event] = []
    for end in range(777, 10**9, 7_777_777):
        found += cut.run_until(end)
        assert cut.now == end
    found += cut.run_until("1 ms")
    assert found == expected
    assert whole.now == cut.now == 10**9


def test_an_event_at_the_end_belongs_to_the_next_call() -> None:
    net = network()
    net.at("1 us", tag="alarm")
    assert list(net.run_until("1 us")) == []
    [event] = net.run_until("2 us")
    assert (event.time, event.tag, event.src, event.sent) == (1_000_000, "alarm", "", 0)


def test_a_loop_that_ends_early_goes_on_later() -> None:
    net = network()
    for size in (100, 200_000):
        net.send(0, 1, size, tag=size)
    first = next(net.run_until("1 ms"))
    assert first.tag == 100
    assert net.now == first.time
    [second] = net.run_until("1 ms")
    assert second.tag == 200_000


def test_the_scenarios_own_load_and_control_are_at_work() -> None:
    incast = {"incast": [{"to": "host-0003", "from": ["host-0001", "host-0002"]}]}
    quiet, busy = network(), network(traffic=incast, control={"scheme": "ib-cc"})
    times = []
    for net in (quiet, busy):
        list(net.run_until("100 us"))
        net.send(0, 3, 100_000)
        times += [event.time for event in net.run_until("10 ms")]
    assert times[1] > times[0]
    assert busy.host_counters("host-0003")["fecn_received"] > 0
    assert busy.port_counters("switch-00", 4)["xmit_wait_ps"] >= 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: net.send("host-0009", 0, 1), "did you mean"),
        (lambda net: net.send(4, 0, 1), "4 hosts, numbered from 0"),
        (lambda net: net.send(0, 1, -1), "is not a message's size in bytes"),
        (lambda net: net.send(0, 1, 2**48 + 1), "at most 281474976710656"),
        (lambda net: net.send(0, 1, True), "is not a message's size in bytes"),
        (lambda net: net.at("5 parsecs"), "5 parsecs"),
        (lambda net: net.at(1.5), "is not an instant in picoseconds"),
        (lambda net: list(net.run_until(2**62)), "clock"),
        (lambda net: net.port_counters("switch-00", 99), "has no port 99"),
        (lambda net: net.port_counters("nowhere", 1), "no host or switch"),
    ],
)
def test_misuse_is_refused_and_changes_nothing(
    call: Callable[[silvan.Network], object], message: str
) -> None:
    net = network()
    with pytest.raises(silvan.SilvanError, match=message):
        call(net)
    net.send(0, 1, 8)
    assert len(list(net.run_until())) == 1


def test_the_past_is_refused() -> None:
    net = network()
    list(net.run_until("1 us"))
    for call in (net.at, net.run_until):
        with pytest.raises(silvan.SimulationError, match="has passed"):
            call(999_999)


def test_another_thread_is_refused() -> None:
    net = network()
    raised: list[BaseException] = []

    def use() -> None:
        try:
            net.send(0, 1, 8)
        except silvan.SilvanError as error:
            raised.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "another thread" in str(raised[0])


def test_a_scheme_in_python_is_refused(tmp_path: Path) -> None:
    scheme = tmp_path / "scheme.py"
    scheme.write_text("def make(setup):\n    raise AssertionError\n", "ascii")
    scenario = silvan.Scenario(
        **SWITCH, control={"scheme": "python", "python": {"file": str(scheme)}}
    )
    with pytest.raises(silvan.ScenarioError, match=r"needs silvan\.run"):
        silvan.Network(scenario)


def test_the_page_shows_what_its_blocks_print(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[1] / "docs" / "guide" / "stepping.md"
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    assert [language for language, _ in blocks] == ["python", "text"] * 2
    for (_, code), (_, printed) in zip(blocks[::2], blocks[1::2], strict=True):
        exec(compile(code, str(page), "exec"), {})
        assert capsys.readouterr().out == printed
