"""The manager's command where there is no subnet: configurations, refusals, the unit of systemd."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Command

ROOT = Path(__file__).resolve().parents[1]


def test_the_example_is_a_configuration(tmp_path: Path, command: Command) -> None:
    outcome = command("dcms", "--example")
    assert outcome.status == 0
    path = tmp_path / "dcms.toml"
    path.write_text(outcome.stdout.replace("/var/lib/silvan-dcms", str(tmp_path / "state")))
    # It is read, the folder made; what is missing is the port.
    refused = command("dcms", path)
    assert refused.status == 2
    assert "hint: " in refused.stderr
    assert re.search("libibumad|cannot be opened", refused.stderr)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "state" / "journal").exists()


def test_a_name_is_an_address_of_the_metrics(tmp_path: Path, command: Command) -> None:
    config = tmp_path / "dcms.toml"
    config.write_text('[metrics]\nlisten = "localhost:0"\n[state]\nfolder = "state"\n')
    outcome = command("dcms", config)
    # All that is missing is the port of InfiniBand.
    assert outcome.status == 2
    assert re.search("libibumad|cannot be opened", outcome.stderr)


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
def test_the_unit_has_few_rights() -> None:
    unit = ROOT / "examples" / "silvan-dcms.service"
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)]
    # The threshold is in tenths.
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout.splitlines()[-1]
