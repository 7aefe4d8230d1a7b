"""Needs of tests besides Python, and the result if one is missing.

``@pytest.mark.needs("opensm", "root")`` names the needs of a test: ``root``, ``network``, or a
Debian package of ``requirements/debian.txt``. ``@pytest.mark.slow`` marks a test that takes more
than some seconds. ``make test-fast`` runs the tests that have neither marker.

If a need is missing, its tests are not run and the summary lists the need. In continuous
integration (``CI`` is set) these tests fail instead.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

LIST = Path(__file__).resolve().parents[1] / "requirements" / "debian.txt"

# Debian installs programs for administrators in folders that are not in every user's path.
PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])

_NETWORK_PROBE = ("pypi.org", 443)

# Property of a test's report: a need that this machine lacks.
_MISSING = "missing need"


def _packages() -> dict[str, str]:
    """Return the Debian packages that tests need, each with one of its programs."""
    lines = LIST.read_text("utf-8").splitlines()
    words = (line.split() for line in lines if line.strip() and not line.startswith("#"))
    return dict(words)


def _has_network() -> bool:
    try:
        socket.create_connection(_NETWORK_PROBE, timeout=5).close()
    except OSError:
        return False
    return True


def _is_installed(program: str) -> Callable[[], bool]:
    if program.startswith("/"):
        return Path(program).exists
    return lambda: shutil.which(program, path=PATH) is not None


@cache
def known() -> dict[str, tuple[Callable[[], bool], str]]:
    """Return all needs: how to see whether each is met, and how to meet it."""
    needs: dict[str, tuple[Callable[[], bool], str]] = {
        "root": (lambda: os.geteuid() == 0, "run as root"),
        "network": (_has_network, "connect this machine to a package registry"),
    }
    for package, program in _packages().items():
        needs[package] = (_is_installed(program), f"sudo apt-get install {package}")
    return needs


@cache
def is_met(need: str) -> bool:
    """Return whether this machine meets a need."""
    return known()[need][0]()


def needs_of(item: pytest.Item) -> list[str]:
    """Return the needs of a test, each once; an unknown need is an error of the test suite."""
    markers = list(item.iter_markers("needs"))
    names = list(dict.fromkeys(str(name) for marker in markers for name in marker.args))
    unknown = [name for name in names if name not in known()]
    if unknown or (markers and not names) or any(marker.kwargs for marker in markers):
        raise pytest.UsageError(
            f"{item.nodeid}: unknown need {', '.join(unknown) or '(none given)'}; "
            f"known: {', '.join(known())}"
        )
    return names


def is_ci() -> bool:
    """Return whether the tests run in continuous integration, where nothing may be missing."""
    return bool(os.environ.get("CI"))


class Needs:
    """The pytest plugin: checks the needs of tests and lists those that are missing."""

    def __init__(self) -> None:
        self._tests_without: dict[str, int] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Check the arguments of all markers, also of tests that will not run."""
        for item in items:
            needs_of(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail or leave out a test that needs what is missing."""
        missing = [name for name in needs_of(item) if not is_met(name)]
        if not missing:
            return
        text = "; ".join(f"needs {name} ({known()[name][1]})" for name in missing)
        if is_ci():
            pytest.fail(text, pytrace=False)
        item.user_properties.extend((_MISSING, name) for name in missing)
        pytest.skip(text)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the tests that were not run, also those of other processes (pytest-xdist)."""
        if report.when == "setup":
            for key, name in report.user_properties:
                if key == _MISSING:
                    self._tests_without[str(name)] = self._tests_without.get(str(name), 0) + 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print one line for each missing need."""
        for line in summary(self._tests_without.items()):
            terminalreporter.write_line(line, yellow=True)


def summary(counts: Iterable[tuple[str, int]]) -> list[str]:
    """Return one line for each missing need.

    Examples
    --------
    >>> summary([("opensm", 2)])
    ['not run: 2 tests need opensm: sudo apt-get install opensm']
    """
    return [
        f"not run: {count} test{'s' * (count != 1)} need{'s' * (count == 1)} {name}: "
        f"{known()[name][1]}"
        for name, count in counts
    ]
