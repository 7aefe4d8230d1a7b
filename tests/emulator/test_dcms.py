"""The manager as a separate process on an emulated fabric: acts, restores, is killed."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from silvan.viewer.dcms_log import DcmsLog
from tests.conftest import DDR_TOML
from tests.emulator.conftest import REAL_TOOLS, Fabric, Serve
from tests.emulator.test_opensm import opensm
from tests.gate import PATIENCE_S

pytestmark = REAL_TOOLS

# Simulated time is slowed down so that the processor keeps up, and the tick is longer as much.
SCALE = 0.05
INTERVAL_MS = 500
TICK_NS = 4 / SCALE
TICKS = INTERVAL_MS * 1e6 / TICK_NS

TESTBED = f"""\
name = "testbed"
[fabric]
generator = "two-switch-testbed"
routing = "min-hop"
{DDR_TOML}
[control]
scheme = "ib-cc"
[control.ib-cc.adapter]
ccti-timer = 75
trigger-threshold = 0
cct = {{ shape = "linear", slope = 1.0 }}
[control.ib-cc.switch]
marking-rate = 128
packet-size = 0
"""

# T_C and T_W are the same parts of an interval as in the paper's study.
CONFIG = f"""\
[dcms]
interval = "{INTERVAL_MS} ms"
tick = "{TICK_NS:.0f} ns"
congestion-threshold = {0.14 * TICKS:.0f}
rate-reduction-threshold = {0.48 * TICKS:.0f}
utilization-change-threshold = 4000000
low-duration = "3 s"
[counters]
tick = "{TICK_NS:.0f} ns"
[state]
folder = "state"
[metrics]
listen = "127.0.0.1:0"
"""

FLOWS = {"B-D": ("B", "D"), "X-Y": ("X", "Y"), "C-D": ("C", "D"), "A-D": ("A", "D")}


@dataclass
class Manager:
    """A running ``silvan dcms``, and what it has logged."""

    process: subprocess.Popen[str]
    events: list[dict[str, Any]] = field(default_factory=list)
    other: str = ""

    def __post_init__(self) -> None:
        self.listener = Thread(target=self.listen)
        self.listener.start()

    def listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("{"):
                self.events.append(json.loads(line))
            else:
                self.other += line

    def seen(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["event"] == event]

    def ended(self) -> int:
        """Wait for its end, and give its status; all that it has logged is then in the events."""
        status = self.process.wait(PATIENCE_S)
        self.listener.join()
        return status

    def kill(self) -> None:
        self.process.kill()
        self.ended()


def configure(fabric: Fabric, more: str = "") -> Path:
    path = fabric.folder / "dcms.toml"
    path.write_text(CONFIG + more)
    return path


def stay_low(config: Path) -> None:
    """Let a rate be low for longer than a test takes."""
    config.write_text(config.read_text().replace('low-duration = "3 s"', 'low-duration = "1000 s"'))


@contextmanager
def managed(
    fabric: Fabric, config: Path, *options: str, tracer: Sequence[str] = ()
) -> Iterator[Manager]:
    """Let a manager run until the block ends, maybe under another program."""
    program: list[str | Path] = [sys.executable, "-m", "silvan", "dcms", config, "--log", "json"]
    with fabric.popen(*tracer, *program, *options) as process:
        manager = Manager(process)
        try:
            yield manager
        finally:
            manager.kill()


def stop(manager: Manager, kind: signal.Signals = signal.SIGTERM) -> int:
    manager.process.send_signal(kind)
    return manager.ended()


def start_flows(fabric: Fabric) -> None:
    for name, (sender, receiver) in FLOWS.items():
        fabric.emulation.control("start", **{"from": sender}, to=receiver, name=name)


def rate(fabric: Fabric, flow: str) -> float:
    flows = {one["flow"]: one for one in fabric.emulation.control("flows")}
    return float(flows[flow]["receive_gbps"])


def marking(fabric: Fabric) -> str:
    """Read the Marking_Rate of S2's port to D by ibccquery; empty if the port has none."""
    ports = fabric.tool("ibccquery", "SP", str(fabric.lids()["S2"]), "0").split("Valid:")
    lines = ports[24].splitlines()
    valid = int(lines[0].strip("."), 16)
    (value,) = (line.split(".")[-1] for line in lines if "Marking_Rate" in line)
    return value if valid else ""


def until(fabric: Fabric, condition: Callable[[], Any]) -> Any:
    return fabric.wait(condition)


def test_experiment_2_with_real_datagrams_and_opensm(serve: Serve) -> None:
    fabric = serve(TESTBED, blank=True, time_scale=SCALE)
    config = configure(fabric)
    with opensm(fabric, "Y"), ExitStack() as stack:
        start_flows(fabric)
        # The victim has a third of its rate, as the paper says.
        until(fabric, lambda: 2.2 < rate(fabric, "X-Y") < 3.1)
        manager = stack.enter_context(managed(fabric, config, "--act"))
        until(fabric, lambda: manager.seen("lowered"))
        (lowered, *_) = manager.seen("lowered")
        assert (lowered["port"]["switch"], lowered["port"]["port"]) == ("S2", 23)
        assert (lowered["before"], lowered["now"]) == (128, 0)
        (decision, *_) = manager.seen("decision")
        assert decision["reason"] == "victim-found"
        assert decision["victim"]["switch"] == "S1"
        assert decision["victim"]["port"] == 15
        assert decision["counters"]["xmit-time-cong"] > 0.14 * TICKS
        # The live page shows both as events.
        log = fabric.folder / "shown.log"
        log.touch()
        with closing(DcmsLog(log)) as shown:
            log.write_text(f"{json.dumps(decision)}\n{json.dumps(lowered)}\n")
            assert shown.take() == [
                "S2:23: victim-found, lower",
                "S2:23: Marking_Rate 128 lowered to 0",
            ]
        until(fabric, lambda: rate(fabric, "X-Y") > 7.0)
        # At the time limit the rate is restored, and the victim suffers again.
        until(fabric, lambda: manager.seen("restored"))
        until(fabric, lambda: len(manager.seen("lowered")) > 1)
        (served,) = manager.seen("metrics-served")
        place = f"http://{served['address']}/metrics"
        with urllib.request.urlopen(place, timeout=PATIENCE_S) as page:
            text = page.read().decode()
        assert 'silvan_dcms_decisions_total{reason="victim-found"}' in text
        assert 'infiniband_switch_port_transmit_wait_total{guid="0x' in text
        assert stop(manager) == 0
        assert manager.events[-1] == manager.events[-1] | {"event": "stopped", "pending": 0}
        assert marking(fabric) == ""
    assert '"changes":0}' in (fabric.folder / "state" / "journal").read_text()


def test_a_dry_run_shows_its_state_and_what_victims_lose(serve: Serve) -> None:
    """Oracle: the rates of the flows. X-Y shares its cable of 32 Gbit/s with one flow to D."""
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    silvan = [sys.executable, "-m", "silvan", "dcms"]
    start_flows(fabric)
    until(fabric, lambda: 2.2 < rate(fabric, "X-Y") < 3.1)
    with managed(fabric, config) as manager:
        until(fabric, lambda: manager.seen("decision"))
        status = json.loads(fabric.tool(*silvan, config, "--status", "--json"))
        assert (status["running"], status["act"]) == (True, False)
        assert status["pid"] == manager.process.pid
        assert status["subnet-manager"] == "not-required"
        assert status["switches"] == 2
        (low,) = until(
            fabric,
            lambda: json.loads(fabric.tool(*silvan, config, "--status", "--json"))["low"],
        )
        assert (low["port"]["switch"], low["port"]["port"]) == ("S2", 23)
        until(
            fabric,
            lambda: [one for one in manager.seen("decision") if "victims-lost-bytes" in one],
        )
        share = rate(fabric, "X-Y")
        assert "dry run: nothing is changed" in fabric.tool(*silvan, config, "--status")
        assert stop(manager) == 0
    assert '"running": false' in fabric.tool(*silvan, config, "--status", "--json", status=1)
    log = fabric.folder / "dcms.log"
    log.write_text("\n".join(map(json.dumps, manager.events)))
    report = json.loads(fabric.tool(*silvan, "--report", log, "--json"))
    (port,) = report["ports"]
    assert (port["port"], port["far_end"], port["victims"]) == ("S2:23", "D", ["S1:15"])
    ended = [one for one in manager.seen("decision") if "victims-lost-bytes" in one]
    lost_gbps = sum(one["victims-lost-bytes"] for one in ended) * 8e-9
    lost_gbps /= sum(one["low-for-s"] for one in ended if "low-for-s" in one)
    assert lost_gbps == pytest.approx(32 - 2 * share, rel=0.1)
    # Ports that are low at the end are in the sum, too.
    ended += manager.seen("low-ended")
    assert port["lost_bytes"] == pytest.approx(sum(one["victims-lost-bytes"] for one in ended))
    assert (port["lowered"], port["unknown"], port["is_low"]) == (len(ended), 0, False)


def test_everything_is_restored_when_opensm_dies(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    # A busy machine keeps OpenSM from answering for a while, too.
    config = configure(fabric, '[subnet]\nsm-check = "500 ms"\nsm-lost-after = "10 s"\n')
    stay_low(config)
    with ExitStack() as stack:
        with opensm(fabric, "Y"):
            start_flows(fabric)
            manager = stack.enter_context(managed(fabric, config, "--act"))
            until(fabric, lambda: manager.seen("lowered"))
            assert marking(fabric) == "0"
        until(fabric, lambda: manager.seen("restored"))
        assert manager.seen("sm-lost")
        assert marking(fabric) == ""
        with opensm(fabric, "Y"):
            until(fabric, lambda: manager.seen("sm-found"))
            until(fabric, lambda: len(manager.seen("lowered")) > 1)
            assert stop(manager) == 0
        assert marking(fabric) == ""


def test_cables_are_cut_and_mended_while_a_rate_is_low(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    with opensm(fabric, "Y"), managed(fabric, configure(fabric), "--act") as manager:
        start_flows(fabric)
        for port in ("S1:15", "D"):
            count = len(manager.seen("lowered"))
            until(fabric, lambda count=count: len(manager.seen("lowered")) > count)  # type: ignore[misc]
            fabric.emulation.control("cut", port=port)
            fabric.pass_time(0.05)
            fabric.emulation.control("restore", port=port)
        count = len(manager.seen("lowered"))
        until(fabric, lambda: len(manager.seen("lowered")) > count)
        assert manager.seen("link-flapped") or manager.seen("discovered")[1:]
        assert stop(manager) == 0
    assert manager.events[-1] == manager.events[-1] | {"event": "stopped", "pending": 0}
    assert marking(fabric) == ""


@pytest.mark.parametrize("managed_by_opensm", [False, True])
def test_the_emulated_example_manages_the_live_fabric(
    serve: Serve, *, managed_by_opensm: bool
) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    silvan = [sys.executable, "-m", "silvan", "dcms"]
    words = [*silvan, "--example", "--emulated", "--time-scale", str(SCALE)]
    config = fabric.folder / "dcms.toml"
    config.write_text(fabric.tool(*words))
    with ExitStack() as stack:
        if managed_by_opensm:
            stack.enter_context(opensm(fabric, "Y"))
        start_flows(fabric)
        manager = stack.enter_context(managed(fabric, config, "--act"))
        until(fabric, lambda: manager.seen("lowered"))
        (lowered, *_) = manager.seen("lowered")
        assert (lowered["port"]["switch"], lowered["port"]["port"]) == ("S2", 23)
        until(fabric, lambda: rate(fabric, "X-Y") > 7.0)
        assert stop(manager) == 0
        assert marking(fabric) == ""


def test_nothing_is_done_before_opensm_answers(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, '[subnet]\nsm-check = "200 ms"\n')
    start_flows(fabric)
    with managed(fabric, config, "--act", "--verbose") as manager:
        until(fabric, lambda: manager.seen("sm-awaited"))
        # Long enough for a decision.
        sweeps = len(manager.seen("swept"))
        until(fabric, lambda: len(manager.seen("swept")) > sweeps + 6)
        assert not manager.seen("decision")
        assert marking(fabric) == ""
        with opensm(fabric, "Y"):
            until(fabric, lambda: manager.seen("lowered"))
            kinds = [one["event"] for one in manager.events]
            assert kinds.index("sm-awaited") < kinds.index("sm-found") < kinds.index("decision")
            assert stop(manager) == 0
    assert marking(fabric) == ""


def test_a_full_disk_keeps_nothing_from_being_restored(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    more = "[subnet]\nrequire-sm = false\n"
    config = configure(fabric, more)
    text = config.read_text().replace('folder = "state"', 'folder = "state"\npatience = "4 s"')
    config.write_text(text)
    stay_low(config)
    start_flows(fabric)
    journal = fabric.folder / "state" / "journal"
    with managed(fabric, config, "--act") as manager:
        until(fabric, lambda: manager.seen("lowered"))
        # From now on no byte fits into a file.
        limit = resource.prlimit(manager.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(manager.process.pid, resource.RLIMIT_FSIZE, (0, limit[1]))
        assert stop(manager) == 1
        assert not manager.seen("not-restored")
        assert len(manager.seen("restored")) == 1
        assert 1 <= len(manager.seen("journal-failed")) <= 4
        assert "every Marking_Rate is restored" in manager.other
    assert marking(fabric) == ""
    assert '"port":23' in journal.read_text()
    assert restore(fabric, config) == []
    assert '"port":23' not in journal.read_text()


def test_a_wrong_key_is_named(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    lid = str(fabric.lids()["S2"])
    # Key, protect bit, lease period, violations.
    fabric.tool("ibccconfig", "CongestionKeyInfo", lid, "0x77", "1", "0", "0")
    start_flows(fabric)
    with managed(fabric, config, "--act") as manager:
        (failed, *_) = until(fabric, lambda: manager.seen("not-lowered"))
        assert failed["why"].startswith("the CC_Key is wrong")
        assert stop(manager) == 0
    assert marking(fabric) == ""


def test_a_dry_run_changes_nothing(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    start_flows(fabric)
    with managed(fabric, config) as manager:
        until(fabric, lambda: manager.seen("decision"))
        assert manager.seen("decision")[0]["dry-run"] is True
        assert marking(fabric) == ""
        assert stop(manager, signal.SIGINT) == 0
    assert not (fabric.folder / "state" / "journal").exists()


def test_a_second_instance_refuses_to_start(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    with managed(fabric, config) as manager:
        until(fabric, lambda: manager.seen("discovered"))
        with fabric.popen(sys.executable, "-m", "silvan", "dcms", config) as second:
            _, errors = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 2
        assert "another silvan dcms runs" in errors
        assert stop(manager) == 0


def test_what_a_killed_manager_has_left_is_restored(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    stay_low(config)
    start_flows(fabric)
    with managed(fabric, config, "--act") as manager:
        until(fabric, lambda: manager.seen("lowered"))
        manager.kill()
    assert marking(fabric) == "0"
    with managed(fabric, config, "--restore") as manager:
        assert manager.ended() == 0
    assert marking(fabric) == ""
    assert [one["now"] for one in manager.seen("restored")] == [128]


# System calls on the folder and the journal, by number in their thread, in the order of a run. At
# the start the folder and the old journal are opened. For each change the new file is written and
# synced, it replaces the old file, and the folder is synced.
BEFORE_THE_CHANGE = (
    ("openat", 1),
    ("openat", 2),
    ("write", 1),
    ("fsync", 1),
    ("rename", 1),
    ("fsync", 2),
)
AFTER_IT_WAS_RESTORED = (("write", 2), ("fsync", 3), ("rename", 2), ("fsync", 4))


def quick(fabric: Fabric) -> Path:
    """Configure a rate that is low for half a second, then default for as long."""
    config = configure(fabric, "[subnet]\nrequire-sm = false\n")
    config.write_text(config.read_text().replace('"3 s"', '"500 ms"'))
    return config


def restore(fabric: Fabric, config: Path) -> list[int]:
    """Restore what a killed manager has left, and give the rates that were set."""
    with managed(fabric, config, "--restore") as manager:
        assert manager.ended() == 0
    assert marking(fabric) == ""
    return [one["now"] for one in manager.seen("restored")]


@pytest.mark.needs("strace")
def test_killed_at_every_step_of_the_journal_nothing_stays_changed(serve: Serve) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = quick(fabric)
    start_flows(fabric)
    journal = fabric.folder / "state" / "journal"
    for call, number in (*BEFORE_THE_CHANGE, *AFTER_IT_WAS_RESTORED):
        journal.unlink(missing_ok=True)
        tracer = ["strace", "-f", "-qq", "-o", str(fabric.folder / "trace")]
        for path in (journal, Path(f"{journal}.new"), journal.parent):
            tracer += ["-P", str(path)]
        tracer += ["-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}"]
        with managed(fabric, config, "--act", tracer=tracer) as manager:
            assert manager.ended() != 0
        # Nothing is set before its entry is on the disk, and what is restored has been set before
        # its entry goes.
        is_lowered = (call, number) in AFTER_IT_WAS_RESTORED
        assert len(manager.seen("lowered")) == is_lowered, (call, number)
        assert not manager.seen("restored")
        assert marking(fabric) == ""
        assert restore(fabric, config) == []


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", ["lowered", "restored"])
def test_killed_at_work_nothing_stays_changed(serve: Serve, kind: str, count: int) -> None:
    fabric = serve(TESTBED, time_scale=SCALE)
    config = quick(fabric)
    start_flows(fabric)
    with managed(fabric, config, "--act") as manager:
        until(fabric, lambda: len(manager.seen(kind)) >= count)
        manager.kill()
    rate = marking(fabric)
    assert restore(fabric, config) == ([128] if rate else [])
    assert marking(fabric) == ""
