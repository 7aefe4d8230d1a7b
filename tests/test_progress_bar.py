"""Progress bars: what a terminal and a notebook show, and nothing elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from types import ModuleType

import pytest

import silvan
from tests.conftest import INCAST

PROGRAM = f"""\
import silvan
silvan.run(silvan.Scenario.from_toml({INCAST!r}), progress=True)
"""


class Handle:
    """Replaceable output of a notebook."""

    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, html: str) -> None:
        self.shown.append(html)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in for IPython in a notebook; give the list of what it shows."""
    shown: list[str] = []
    shell = type("ZMQInteractiveShell", (), {})()
    ipython, module = ModuleType("IPython"), ModuleType("IPython.display")

    def display(html: str, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(html)
        return Handle(shown)

    vars(ipython)["get_ipython"] = lambda: shell
    vars(module).update(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return shown


def test_a_notebook_shows_one_element_that_is_updated(notebook: list[str]) -> None:
    silvan.run(silvan.Scenario.from_toml(INCAST), progress=True)
    assert notebook[0] == 'incast <progress value="0.0000" max="1"></progress> '
    assert notebook[-1] == 'incast <progress value="1.0000" max="1"></progress> 0.20 of 0.2 ms'


def test_a_notebook_shows_the_points_of_a_sweep(notebook: list[str]) -> None:
    scenario = silvan.Scenario.from_toml(INCAST)
    silvan.sweep(scenario, {"switch.latency": ["100 ns", "200 ns"]}, workers=1, progress=True)
    texts = [html.rpartition("</progress> ")[2] for html in notebook]
    assert texts == ["", "0 of 2 points", "1 of 2 points", "2 of 2 points"]


def test_without_a_terminal_nothing_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    silvan.run(silvan.Scenario.from_toml(INCAST), progress=True)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_a_bar_on_standard_error() -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stderr=follower,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as process:
        os.close(follower)
        # Read while it runs: a terminal that is full would stop it. Linux ends this by an error.
        shown = b""
        with suppress(OSError):
            while part := os.read(leader, 4096):
                shown += part
        assert process.stdout
        printed = process.stdout.read()
    os.close(leader)
    assert (process.returncode, printed) == (0, b"")
    assert b"incast" in shown
    assert b"0.20 of 0.2 ms" in shown


def test_anything_else_is_refused() -> None:
    with pytest.raises(silvan.SilvanError, match="progress: 'yes' is of type str"):
        silvan.run(silvan.Scenario.from_toml(INCAST), progress="yes")  # type: ignore[arg-type]
