"""The manager's command where there is no subnet: configurations, refusals, the unit of systemd."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silvan.cli.dcms import status_table
from silvan.live.dcms_state import NO_RECORD
from tests.conftest import Command

ROOT = Path(__file__).resolve().parents[1]
NO_PORT = "error: this machine has no InfiniBand port: "


def test_the_example_is_a_configuration(tmp_path: Path, command: Command) -> None:
    outcome = command("dcms", "--example")
    assert outcome.status == 0
    path = tmp_path / "dcms.toml"
    path.write_text(outcome.stdout.replace("/var/lib/silvan-dcms", str(tmp_path / "state")))
    # The file was read and the folder made; only the port is missing.
    refused = command("dcms", path)
    assert refused.status == 2
    assert "hint: " in refused.stderr
    assert refused.stderr.startswith(NO_PORT)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "state" / "journal").exists()


def test_a_name_is_an_address_of_the_metrics(tmp_path: Path, command: Command) -> None:
    config = tmp_path / "dcms.toml"
    config.write_text('[metrics]\nlisten = "localhost:0"\n[state]\nfolder = "state"\n')
    outcome = command("dcms", config)
    # All that is missing is the port of InfiniBand.
    assert outcome.status == 2
    assert outcome.stderr.startswith(NO_PORT)


def test_the_emulated_example_scales_with_time(command: Command) -> None:
    whole = command("dcms", "--example", "--emulated").stdout
    tenth = command("dcms", "--example", "--emulated", "--time-scale", "0.1").stdout
    for key, one, other in (
        ("tick", '"4 ns"', '"40 ns"'),
        ("congestion-threshold", "44000000", "4400000"),
        ("rate-reduction-threshold", "150700000", "15070000"),
        ("utilization-change-threshold", "100000000", "10000000"),
    ):
        assert re.search(rf"^{key} = {one} ", whole, re.M)
        assert re.search(rf"^{key} = {other} ", tenth, re.M)
    assert re.search(r"^require-sm = false ", whole, re.M)
    unused = command("dcms", "--emulated")
    assert unused.status == 2
    assert "--example" in unused.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[dcms]\nintervall = "1 s"\n',
            r'dcms.toml:2: dcms.intervall: unknown key\nhint: .*"interval"',
        ),
        ("[dcms\n", r"dcms.toml:1: .*\nhint: "),
        ("", r"dcms.toml:1: .*configuration is empty\nhint: .*--example"),
        (
            "[dcms]\ncongestion-threshold = 0\n",
            r"dcms.toml:2: dcms.congestion-threshold: T_C is 0 ticks.*\nhint: ",
        ),
        ('[dcms]\ntick = "0 ns"\n', r"dcms.toml:2: dcms.tick: the tick is zero\nhint: "),
        ("[dcms]\n\nrescan = 0\n", r"dcms.toml:3: dcms.rescan: .* is zero\nhint: "),
        ("[dcms]\nmax-low-switches = 0\n", r"dcms.toml:2: dcms.max-low-switches: .*\nhint: "),
        (
            "[datagrams]\nin-flight = 100000000\n",
            r"dcms.toml:2: datagrams.in-flight: 100000000 requests .*1 to 4096.*\nhint: ",
        ),
        ('[metrics]\nlisten = "localhost"\n', r'dcms.toml:2: .*"localhost" has no port.*\nhint: '),
        ('[metrics]\nlisten = "0.0.0.0:9"\n', r"dcms.toml:2: .*other machines\nhint: .*public"),
        (
            '[marking]\ncc-key-file = "key"\n',
            r"dcms.toml:2: .*be used by others.*\nhint: .*chmod",
        ),
    ],
)
def test_bad_configurations_are_refused(
    tmp_path: Path, command: Command, text: str, expected: str
) -> None:
    (tmp_path / "key").write_text("0x1234567890\n")
    (tmp_path / "key").chmod(0o644)
    (tmp_path / "dcms.toml").write_text(text)
    outcome = command("dcms", tmp_path / "dcms.toml")
    assert outcome.status == 2
    assert re.search(expected, outcome.stderr)
    assert len(outcome.stderr.strip().splitlines()) == 2
    assert "1234567890" not in outcome.stderr


def test_a_configuration_must_be_given_and_be_there(tmp_path: Path, command: Command) -> None:
    missing = command("dcms")
    assert missing.status == 2
    assert "--example" in missing.stderr
    gone = command("dcms", tmp_path / "no-such.toml")
    assert gone.status == 2
    assert "no such file" in gone.stderr
    (tmp_path / "latin.toml").write_bytes(b"\xff")
    assert "UTF-8" in command("dcms", tmp_path / "latin.toml").stderr


def test_a_dry_run_restores_nothing(tmp_path: Path, command: Command) -> None:
    config = tmp_path / "dcms.toml"
    config.write_text('[state]\nfolder = "state"\n')
    refused = command("dcms", config, "--restore", "--dry-run")
    assert refused.status == 2
    assert "--dry-run" in refused.stderr
    assert not (tmp_path / "state").exists()


def test_a_folder_of_somebody_elses_is_refused(tmp_path: Path, command: Command) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    config = tmp_path / "dcms.toml"
    config.write_text('[state]\nfolder = "state"\n')
    outcome = command("dcms", config)
    assert outcome.status == 2
    assert "can be entered by others" in outcome.stderr
    assert list(folder.iterdir()) == []


def test_the_unit_of_the_exporter_calls_the_command_as_it_is(command: Command) -> None:
    unit = (ROOT / "examples" / "silvan-exporter.service").read_text()
    (call,) = re.findall(r"^ExecStart=\S+/silvan exporter (.*)$", unit, re.MULTILINE)
    options = command("exporter", "--help").stdout
    for option in re.findall(r"--\w+", call):
        assert option in options


def test_the_unit_calls_the_command_as_it_is(command: Command) -> None:
    unit = (ROOT / "examples" / "silvan-dcms.service").read_text()
    calls = re.findall(r"^Exec\w+=\S+/silvan (dcms .*)$", unit, re.MULTILINE)
    assert len(calls) == 2
    options = command("dcms", "--help").stdout
    for call in calls:
        for option in re.findall(r"--\w+", call):
            assert option in options
    assert any("--restore" in call for call in calls)


@pytest.mark.needs("systemd")
@pytest.mark.parametrize("service", ["dcms", "exporter"])
def test_the_unit_has_few_rights(service: str) -> None:
    unit = ROOT / "examples" / f"silvan-{service}.service"
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)]
    # The threshold is in tenths.
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout.splitlines()[-1]


def event(second: int, kind: str, **values: object) -> str:
    return json.dumps({"time": f"2026-01-31T14:00:{second:02}.000Z", "event": kind, **values})


def decision(second: int, reason: str, action: str, **values: object) -> str:
    port = {"switch": "S2", "guid": "0x2", "port": 23, "far-end": "D"}
    given = {"port": port, "reason": reason, "action": action, "dry-run": True, **values}
    return event(second, "decision", **given)


def low_ended(second: int, lost_bytes: float) -> str:
    port = {"switch": "S2", "guid": "0x2", "port": 23, "far-end": "D"}
    return event(second, "low-ended", port=port, **{"victims-lost-bytes": lost_bytes})


def test_a_report_sums_up_a_dry_run(tmp_path: Path, command: Command) -> None:
    """Oracle: the sums by hand."""
    victims = [{"switch": "S1", "guid": "0x1", "port": port} for port in (15, 16)]
    log = tmp_path / "dcms.log"
    lines = [
        event(0, "started", act=False, pending=0),
        decision(10, "victim-found", "lower", victim=victims[0]),
        decision(11, "victim-found", "nothing", victim=victims[1]),
        "a line of another program",
        "[" * 100_000,
        decision(16, "time-limit", "restore", **{"victims-lost-bytes": 4e9}),
        decision(20, "victim-found", "lower", victim=victims[0]),
        event(22, "sm-lost", seconds=30.0),
        low_ended(22, 1.5e9),
        decision(30, "victim-found", "lower", victim=victims[0]),
        # A line that is cut off.
        event(34, "swept", ports=1)[:-20],
        event(34, "swept", ports=1),
        low_ended(35, 2.5e9),
        event(35, "stopped", pending=0),
    ]
    log.write_text("\n".join(lines))
    outcome = command("dcms", "--report", log, "--json")
    assert outcome.status == 0
    assert "3 lines are no events" in outcome.stderr
    report = json.loads(outcome.stdout)
    assert report["dry_run"] is True
    assert report["last_s"] - report["first_s"] == 35
    assert report["reasons"] == {"victim-found": 4, "time-limit": 1}
    low_s, lost_bytes = 6 + 2 + 5, 4e9 + 1.5e9 + 2.5e9
    assert report["ports"] == [
        {
            "port": "S2:23",
            "far_end": "D",
            "lowered": 3,
            "low_s": low_s,
            "lost_bytes": lost_bytes,
            "known_s": low_s,
            "unknown": 0,
            "is_low": False,
            "victims": ["S1:15", "S1:16"],
        }
    ]
    shown = command("dcms", "--report", log).stdout
    assert "Dry run of" in shown
    rate = f"{lost_bytes * 8e-9 / low_s:.3g} Gbit"
    assert re.search(rf"S2:23 +D +3 times +13.0 s +S1:15, S1:16 +8 GB +{rate}", shown)


def test_a_report_does_not_count_what_the_log_does_not_show_as_nothing(
    tmp_path: Path, command: Command
) -> None:
    """Oracle: the definition: what victims lost is known at the end of each time."""
    victim = {"switch": "S1", "guid": "0x1", "port": 15}
    log = tmp_path / "dcms.log"
    lines = [
        event(0, "started", act=True, pending=0),
        decision(10, "victim-found", "lower", victim=victim),
        event(14, "swept", ports=1),
    ]

    def report() -> tuple[dict[str, float], str]:
        log.write_text("\n".join(lines))
        (port,) = json.loads(command("dcms", "--report", log, "--json").stdout)["ports"]
        return port, command("dcms", "--report", log).stdout

    # The manager still runs, or was killed just now.
    port, shown = report()
    assert (port["low_s"], port["known_s"], port["lost_bytes"]) == (4, 0, 0)
    assert (port["lowered"], port["unknown"], port["is_low"]) == (1, 1, True)
    assert re.search(r"S2:23 +D +1 time +4.0 s +S1:15 +not known yet *$", shown, re.MULTILINE)
    assert "GB" not in shown
    # The manager was killed, and another one has started.
    lines.append(event(20, "started", act=True, pending=1))
    port, shown = report()
    assert (port["low_s"], port["unknown"], port["is_low"]) == (4, 1, False)
    assert re.search(r"4.0 s +S1:15 +not known *$", shown, re.MULTILINE)
    lines.append(decision(30, "victim-found", "lower", victim=victim))
    lines.append(decision(36, "time-limit", "restore", **{"victims-lost-bytes": 3e9}))
    port, shown = report()
    assert (port["low_s"], port["known_s"], port["lost_bytes"]) == (10, 6, 3e9)
    # 3 GB in the 6 s for which that is known.
    assert re.search(r"2 times +10.0 s +S1:15 +3 GB; 1 time not known +4 Gbit", shown)


def test_a_report_needs_a_log(tmp_path: Path, command: Command) -> None:
    log = tmp_path / "other.log"
    log.write_text("no event\n{}\n")
    outcome = command("dcms", "--report", log)
    assert outcome.status == 2
    assert "no event of silvan dcms is in it\nhint: " in outcome.stderr
    assert command("dcms", "--report", tmp_path / "none").status == 2
    assert "--json" in command("dcms", "--json").stderr


def test_the_status_names_a_folder_that_no_manager_has_used(
    tmp_path: Path, command: Command
) -> None:
    config = tmp_path / "dcms.toml"
    config.write_text('[state]\nfolder = "state"\n')
    outcome = command("dcms", config, "--status")
    assert outcome.status == 2
    assert f"{tmp_path / 'state'}: no silvan dcms has run" in outcome.stderr
    # A manager that could not start has locked the folder, and written nothing.
    assert command("dcms", config).status == 2
    outcome = command("dcms", config, "--status")
    assert (outcome.status, outcome.stdout.split()) == (1, ["manager", "not", "running"])


@pytest.mark.parametrize(
    "status",
    [
        b"",
        b"{",
        b"[1]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"pid": 1, "time": "now"}',
        b'{"pid": 1, "time": 1e400, "act": true}',
    ],
)
def test_a_damaged_status_is_an_error_with_place_and_hint(
    tmp_path: Path, command: Command, status: bytes
) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    (folder / "lock").touch()
    (folder / "status").write_bytes(status)
    config = tmp_path / "dcms.toml"
    config.write_text('[state]\nfolder = "state"\n')
    outcome = command("dcms", config, "--status")
    assert outcome.status == 2
    assert outcome.stderr.startswith(f"error: {folder / 'status'}: the file is damaged\nhint: ")


@settings(max_examples=20)
@given(status=st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_value_of_a_status_is_a_table_or_an_error(status: object) -> None:
    known: dict[str, object] = {
        "pid": 1,
        "time": 1.0,
        "act": True,
        "unanswered": 0,
        "ports": 1,
        "switches": 1,
    }
    known |= {"sweep-s": 0.1, "sweeps": 1, "subnet-manager": "found", "silent": [], "low": []}
    known |= {"pending": [], "decisions": {}}
    for key in known:
        with suppress(*NO_RECORD, OSError):
            status_table({"running": True} | known | {key: status})
