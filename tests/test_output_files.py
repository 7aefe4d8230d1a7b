"""Files that commands write: links stay, devices stay, and a file is whole or as it was before."""

from __future__ import annotations

import os
import resource
import stat
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import silvan
from silvan.cli import main
from silvan.errors import OutputError
from silvan.folders import write_bytes, write_text
from silvan.viewer.page import page_html
from tests.conftest import ddr_scenario
from tests.gate import PATIENCE_S

SCENARIO = ddr_scenario(
    fabric={"generator": "single-switch", "hosts": 4},
    traffic={"incast": [{"to": "host-0000"}]},
    run={"duration": "100 us"},
    probe={"ports": True},
)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a small run."""
    return silvan.run(SCENARIO).write(tmp_path_factory.mktemp("files") / "run")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Write its scenario."""
    file = tmp_path / "incast.toml"
    file.write_text(SCENARIO.to_toml())
    return file


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    """Let no file grow beyond a size, as a full disk does not."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_a_link_names_is_written(tmp_path: Path) -> None:
    """Links to a file, to nothing yet, and to such a link in another folder."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "old.txt").write_text("old")
    links = {"first": "inner/old.txt", "second": "inner/new.txt", "third": "second"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
        write_text(tmp_path / name, name)
    assert {name: str((tmp_path / name).readlink()) for name in links} == links
    assert (inner / "old.txt").read_text() == "first"
    assert (inner / "new.txt").read_text() == "third"
    assert sorted(path.name for path in inner.iterdir()) == ["new.txt", "old.txt"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputError, match="loop: cannot write"):
        write_text(tmp_path / "loop", "text")
    assert (tmp_path / "loop").is_symlink()


def test_a_link_to_the_folder_of_a_result_stays(result: Path, tmp_path: Path) -> None:
    read = silvan.Result.read(result)
    (tmp_path / "link").symlink_to("folder")
    for _ in range(2):
        read.write(tmp_path / "link")
        assert str((tmp_path / "link").readlink()) == "folder"
        assert silvan.Result.read(tmp_path / "folder").ports == read.ports
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link"]


def test_a_pipe_receives_what_is_written(tmp_path: Path) -> None:
    """More than a pipe holds at once, to a reader; without one, an error in place of a wait."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="pipe: cannot write"):
        write_bytes(pipe, b"no reader")
    data = os.urandom(1 << 18)
    received: list[bytes] = []
    # Opened for both, so that the writer finds a reader, however late the thread starts.
    handle = os.open(pipe, os.O_RDWR)
    reader = threading.Thread(target=lambda: received.append(_read(handle, len(data))))
    reader.start()
    write_bytes(pipe, data)
    reader.join()
    os.close(handle)
    assert received == [data]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def _read(handle: int, size: int) -> bytes:
    parts: list[bytes] = []
    while sum(map(len, parts)) < size:
        parts.append(os.read(handle, size))
    return b"".join(parts)


@pytest.mark.parametrize("option", ["--out", "--perfetto"])
def test_view_leaves_pipes_and_links(
    result: Path, tmp_path: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["view", str(result), option, str(tmp_path / "pipe")]) == 2
    assert "pipe: cannot write" in capsys.readouterr().err
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)
    (tmp_path / "link").symlink_to("page")
    assert main(["view", str(result), option, str(tmp_path / "link")]) == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "page").read_text().startswith(("<!doctype html>", "{"))


def test_page_of_a_link_is_that_of_a_file(result: Path, tmp_path: Path) -> None:
    (tmp_path / "link.html").symlink_to("page.html")
    assert main(["view", str(result), "--out", str(tmp_path / "link.html")]) == 0
    assert (tmp_path / "page.html").read_text() == page_html([silvan.Result.read(result)])


def test_pcap_replaces_captures_only(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = scenario.read_text()
    words = ["run", str(scenario), "--pcap", "switch-00:1"]
    assert main([*words, str(scenario)]) == 2
    assert "incast.toml: exists, and is no capture file" in capsys.readouterr().err
    assert scenario.read_text() == text
    assert main([*words, str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
    capture = tmp_path / "port.pcap"
    capture.touch()
    written = []
    for _ in range(2):
        assert main([*words, str(capture)]) == 0
        written.append(capture.read_bytes())
    assert written[0] == written[1]
    assert len(written[0]) > 1000


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--pcap", "switch-99:1", "port.pcap"], '--pcap: there is no port "switch-99:1"'),
        (["--trace", "host-0001,host-99"], '--trace: there is no host named "host-99"'),
    ],
)
def test_option_that_names_nothing_of_the_fabric_is_named(
    scenario: Path, words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(scenario), *words]) == 2
    assert f"error: {named}" in capsys.readouterr().err


def test_pcap_on_a_full_disk_leaves_the_file_before(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", str(scenario), "--pcap", "switch-00:1"]
    with _largest_file(10_000):
        assert main([*words, str(tmp_path / "port.pcap")]) == 2
    error = capsys.readouterr().err
    assert "port.pcap: cannot write: file too large" in error
    assert "standard output" not in error
    assert list(tmp_path.iterdir()) == [scenario]
    assert main([*words, str(tmp_path / "port.pcap")]) == 0
    before = (tmp_path / "port.pcap").read_bytes()
    assert len(before) > 10_000
    with _largest_file(10_000):
        assert main([*words, str(tmp_path / "port.pcap")]) == 2
    assert (tmp_path / "port.pcap").read_bytes() == before


@pytest.mark.parametrize("option", ["--out", "--perfetto"])
def test_view_writes_into_a_device(result: Path, tmp_path: Path, option: str) -> None:
    """A terminal is a device that anybody may make."""
    assert main(["view", str(result), option, str(tmp_path / "page")]) == 0
    written = (tmp_path / "page").read_bytes()
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    read: list[bytes] = []

    def take() -> None:
        while sum(map(len, read)) < len(written):
            read.append(os.read(ours, 1 << 16))

    taker = threading.Thread(target=take, daemon=True)
    taker.start()
    device = os.ttyname(theirs)
    assert main(["view", str(result), option, device]) == 0
    taker.join(PATIENCE_S)
    assert b"".join(read) == written
    assert stat.S_ISCHR(os.lstat(device).st_mode)
    os.close(theirs)
    os.close(ours)


@pytest.mark.parametrize("command", ["run", "sweep", "compare"])
def test_folders_need_no_name_in_utf8(scenario: Path, tmp_path: Path, command: str) -> None:
    """Linux takes names of any bytes; oracle: the same files as in a folder with a plain name."""
    words = {
        "run": ["run", str(scenario)],
        "sweep": ["sweep", str(scenario), "--grid", "packet.mtu=1 KiB,2 KiB", "--tables"],
        "compare": ["compare", str(scenario), "--schemes", "none,ib-cc"],
    }[command]
    written = []
    for name in (b"plain", b"caf\xe9"):
        folder = tmp_path / os.fsdecode(name)
        page = tmp_path / os.fsdecode(name + b".html")
        assert main([*words, "--out", str(folder)]) == 0
        assert main(["view", str(folder), "--out", str(page)]) == 0
        assert page.stat().st_size > 100_000
        written.append({path.relative_to(folder) for path in folder.rglob("*")})
    assert written[0] == written[1]
    assert any(path.suffix == ".parquet" for path in written[0])
