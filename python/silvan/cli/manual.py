"""Manual pages, made from the same commands and options as ``--help``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from silvan.cli.app import app

_EXIT_STATUS = (
    ("0", "Success."),
    ("1", "A run failed, such as a fabric that is stalled by a credit loop."),
    ("2", "The input is wrong, or the command could not start."),
    ("130", "Stopped by Ctrl-C or SIGTERM; finished results are kept."),
)


def manual_pages() -> dict[str, str]:
    """Return the manual pages of silvan and of all its commands, by file name."""
    root: Any = typer.main.get_command(app)
    commands = list(_commands(root))
    pages = {"silvan.1": _page("silvan", root, commands)}
    for name, command in commands:
        pages[f"{_dashed(name)}.1"] = _page(name, command, list(_commands(command, name)))
    return pages


def _commands(group: Any, name: str = "silvan") -> Iterator[tuple[str, Any]]:
    for word, command in getattr(group, "commands", {}).items():
        yield f"{name} {word}", command
        yield from _commands(command, f"{name} {word}")


def _page(name: str, command: Any, below: list[tuple[str, Any]]) -> str:
    paragraphs = re.split(r"\n\s*\n", (command.help or "").strip())
    summary = " ".join(paragraphs[0].split())
    lines = [
        f'.TH {_dashed(name).upper()} 1 "" silvan "User Commands"',
        ".SH NAME",
        f"{_text(_dashed(name))} \\- {_text(summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_text(name)}",
        _text(_synopsis(command)),
    ]
    if paragraphs[1:]:
        lines.append(".SH DESCRIPTION")
        for paragraph in paragraphs[1:]:
            lines += [".PP", _text(" ".join(paragraph.split()))]
    for title, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        entries = [one for one in command.params if one.param_type_name == kind]
        entries = [one for one in entries if not getattr(one, "hidden", False)]
        if entries or kind == "option":
            lines.append(f".SH {title}")
        for one in entries:
            lines += [".TP", _heading(one), _text(_meaning(one))]
    lines += [".TP", r".B \-\-help", "Show the help and exit."]
    if below:
        lines.append(".SH COMMANDS")
        for other, what in below:
            first = " ".join(re.split(r"\n\s*\n", (what.help or "").strip())[0].split())
            lines += [".TP", f".BR {_text(_dashed(other))} (1)", _text(first)]
    lines.append(".SH EXIT STATUS")
    for status, meaning in _EXIT_STATUS:
        lines += [".TP", f".B {status}", _text(meaning)]
    if name != "silvan":
        parent = _dashed(name.rpartition(" ")[0])
        lines += [".SH SEE ALSO", f".BR {_text(parent)} (1)"]
    return "\n".join(lines) + "\n"


def _synopsis(command: Any) -> str:
    words = [
        one.metavar or one.name.upper()
        for one in command.params
        if one.param_type_name == "argument"
    ]
    if getattr(command, "commands", None):
        words.append("COMMAND")
    return " ".join(["[OPTIONS]", *words])


def _heading(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f".I {_text(parameter.metavar or parameter.name.upper())}"
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    value = "" if parameter.is_flag else f" {parameter.metavar or 'N'}"
    return f".B {_text(names + value)}"


def _meaning(parameter: Any) -> str:
    default = parameter.default
    is_shown = (
        parameter.param_type_name == "option"
        and parameter.show_default is not False
        and not callable(default)
        and default not in (None, False, "", ())
    )
    return (parameter.help or "") + (f" Default: {default}." if is_shown else "")


def _dashed(name: str) -> str:
    return name.replace(" ", "-")


def _text(text: str) -> str:
    protected = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return rf"\&{protected}" if protected.startswith((".", r"\(aq")) else protected
