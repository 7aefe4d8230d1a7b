"""Programs that read a fabric which ends and comes back under the same name."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from threading import Thread

import pytest

import silvan
from silvan.live.emulation import Emulation
from tests.emulator.conftest import LINE, LINKS, REAL_TOOLS, Fabric
from tests.emulator.test_dcms import Manager, managed
from tests.emulator.test_dcms_metrics import metrics
from tests.emulator.test_exporter import exporting_process
from tests.gate import PATIENCE_S

pytestmark = [REAL_TOOLS, pytest.mark.slow]


def started(sockname: str) -> Emulation:
    return Emulation(silvan.Scenario.from_toml(LINE + LINKS), sockname=sockname)


def test_the_exporter_goes_on_when_the_fabric_is_back(tmp_path: Path) -> None:
    """Oracle: the metrics of the second fabric, and what the exporter says meanwhile."""
    sockname = f"back-{os.getpid()}"
    said: list[str] = []
    with started(sockname) as first:
        fabric = Fabric(first, tmp_path)
        process, place = exporting_process(fabric)
        with process:
            listener = Thread(target=lambda: said.extend(process.stderr or ()))
            listener.start()
            try:
                fabric.wait(lambda: metrics(place).get("silvan_exporter_up") == 1)
                first.stop()
                failures = "silvan_exporter_sweep_failures_total"
                fabric.wait(lambda: metrics(place)[failures] >= 3)
                assert metrics(place)["silvan_exporter_up"] == 0
                with started(sockname):
                    fabric.wait(lambda: metrics(place)["silvan_exporter_up"] == 1)
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(PATIENCE_S) == 0
            finally:
                process.kill()
                listener.join()
    texts = [line.partition("  ")[2] for line in said]
    # The port or the clock of the fabric fails first.
    reasons = ("the InfiniBand port fails: ", f"the fabric {sockname!r} has ended")
    assert texts[0].startswith(tuple(f"no sweep: {reason}" for reason in reasons))
    assert all(text.startswith("still no sweep since ") for text in texts[1:-1])
    assert len(texts) >= 4
    waits = [float(text.rpartition("next try in ")[2].split()[0]) for text in texts[1:-1]]
    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(0.4)
    assert texts[-1].startswith("sweeps again, after ")


def test_the_manager_goes_on_when_the_fabric_is_back(tmp_path: Path) -> None:
    """Oracle: the events in their order."""
    sockname = f"managed-{os.getpid()}"
    config = tmp_path / "dcms.toml"
    config.write_text('[subnet]\nrequire-sm = false\n[state]\nfolder = "state"\n')

    def wait_for(fabric: Fabric, manager: Manager, kind: str, count: int = 1) -> None:
        fabric.wait(lambda: len(manager.seen(kind)) >= count)

    with started(sockname) as first:
        fabric = Fabric(first, tmp_path)
        with managed(fabric, config, "--act") as manager:
            wait_for(fabric, manager, "discovered")
            first.stop()
            wait_for(fabric, manager, "port-lost", 2)
            with started(sockname):
                wait_for(fabric, manager, "discovered", 2)
                manager.process.send_signal(signal.SIGTERM)
                assert manager.ended() == 0
            lost = manager.seen("port-lost")
            assert [one["still"] for one in lost] == [False] + [True] * (len(lost) - 1)
            assert lost[0]["why"].startswith("the InfiniBand port fails: ")
            assert [one["retry-in-s"] for one in lost[:2]] == [1, 2]
            kinds = [one["event"] for one in manager.events]
            assert kinds.count("port-back") == 1
            assert kinds.index("port-back") > kinds.index("port-lost")


def test_a_manager_that_is_stopped_without_a_port_ends(tmp_path: Path) -> None:
    sockname = f"stopped-{os.getpid()}"
    config = tmp_path / "dcms.toml"
    config.write_text('[subnet]\nrequire-sm = false\n[state]\nfolder = "state"\n')
    with started(sockname) as first:
        fabric = Fabric(first, tmp_path)
        with managed(fabric, config) as manager:
            fabric.wait(lambda: manager.seen("discovered"))
            first.stop()
            fabric.wait(lambda: manager.seen("port-lost"))
            manager.process.send_signal(signal.SIGTERM)
            assert manager.ended() == 0
            assert manager.events[-1]["event"] == "stopped"
