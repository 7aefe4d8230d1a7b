"""Effects of names on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from silvan.cli.printer import note, put, put_table

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
