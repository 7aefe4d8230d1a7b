"""The programs that tests call: found, installed by root, or asked for in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_documents import load_tool

tool = load_tool("system_packages")


def test_the_list_names_what_the_tests_call() -> None:
    assert tool.packages(tool.LIST.read_text())["chromium"] == "chromium"


def test_nothing_is_done_where_all_is_there() -> None:
    def refuse(line: str) -> int:
        raise AssertionError(line)

    assert tool.provide({"coreutils": "ls"}, is_root=True, run=refuse) == (0, None)


def test_others_than_root_are_told_the_line() -> None:
    status, words = tool.provide(
        {"coreutils": "ls", "no-such-package": "no-such-command"}, is_root=False, run=lambda _: 0
    )
    assert status == 1
    assert words is not None
    assert "the tests need no-such-package; install with: sudo apt-get install" in words
    assert "coreutils" not in words


def test_rust_tests_are_left_out_only_where_their_program_is_missing() -> None:
    wanted = {"tshark": "no-such-command", "ibsim-utils": "ls", "opensm": "no-such-command"}
    assert tool.rust_options(wanted, is_ci=False) == ["--skip", "tshark::"]
    assert tool.rust_options(wanted, is_ci=True) == []


def test_the_rust_tests_that_call_programs_are_listed() -> None:
    crates = tool.LIST.parents[1] / "crates"
    programs = tool.packages(tool.LIST.read_text())
    calling = {
        (package, f"{path.stem}::")
        for path in crates.glob("*/tests/**/*.rs")
        for package in tool.RUST_TESTS
        if f'Command::new("{programs[package]}")' in path.read_text("utf-8")
    }
    assert calling == set(tool.RUST_TESTS.items())
    # Build scripts call cargo.
    sources = (path for path in crates.rglob("*.rs") if path.name != "build.rs")
    others = (path for path in sources if "Command::new(" in path.read_text("utf-8"))
    assert {f"{path.stem}::" for path in others} == set(tool.RUST_TESTS.values())


@pytest.mark.parametrize("works", [True, False])
def test_root_installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, works: bool) -> None:
    monkeypatch.setattr(tool, "_FOLDERS", str(tmp_path))
    monkeypatch.setattr(tool.shutil, "which", which(tmp_path))
    asked = []

    def install(line: str) -> int:
        asked.append(line)
        if works:
            (tmp_path / "wanted").touch()
        return 0 if works else 100

    status, words = tool.provide({"package": "wanted"}, is_root=True, run=install)
    assert asked == [f"apt-get update && {tool.install_line(['package'])}"]
    assert (status == 0) is works
    assert (words is None) is works


def which(folder: Path):  # type: ignore[no-untyped-def]
    """Look commands up in one folder; apt-get is always there."""

    def look(command: str, path: str | None = None) -> str | None:
        del path
        return command if command == "apt-get" or (folder / command).exists() else None

    return look
