"""Effects of names on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from silvan.cli.printer import fail, note, put, put_table, warn

NAME = "a\x1b[31mred\x9b2J"
SHOWN = "a\\x1b[31mred\\x9b2J"


class Terminal(io.StringIO):
    """A stream that says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_control_characters_of_names_are_shown_as_escapes(
    stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class, a host or a node description can have any name."""
    out, error = stream(), stream()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", error)
    monkeypatch.setenv("TERM", "dumb")
    table = Table()
    table.add_column("name")
    table.add_row(NAME)
    put_table(table)
    put(NAME)
    note(NAME)
    assert out.getvalue().count(SHOWN) == 2
    assert error.getvalue() == SHOWN + "\n"
    assert not set(NAME) & set("\x1b\x9b") & set(out.getvalue())


def test_messages_that_quote_a_long_line_are_clipped(capsys: pytest.CaptureFixture[str]) -> None:
    quoted = "x" * 5_000_000
    fail(f"dump:1: {quoted} is no node", f"not {quoted}")
    warn([f"dump:2: {quoted} is left out"])
    error, hint, warning = capsys.readouterr().err.splitlines()
    assert all(len(line) < 2100 for line in (error, hint, warning))
    assert error.startswith("error: dump:1: xxx")
    assert error.endswith("xxx is no node")
    assert warning.endswith("xxx is left out")
