"""The hooks of a scheme in Python, from ``crates/silvan-cc/src/hooks/list.rs``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from silvan import _silvan


class Value(Enum):
    """Return value of a function."""

    NONE = "none"
    FLAG = "flag"
    TIME = "time"
    CHOICE = "choice"


@dataclass(frozen=True)
class Argument:
    """An argument after the state: a whole number, or an array of records with columns."""

    name: str
    columns: tuple[str, ...]
    output_rows: int

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """Type of a record."""
        return np.dtype([(column, np.int64) for column in self.columns])


@dataclass(frozen=True)
class Hook:
    """A function that a scheme may have."""

    name: str
    about: str
    arguments: tuple[Argument, ...]
    value: Value
    most: int

    @property
    def names(self) -> list[str]:
        """Names of all arguments."""
        return ["state", *(argument.name for argument in self.arguments)]

    @property
    def valid(self) -> str:
        """Valid values, in words."""
        return {
            Value.NONE: "nothing",
            Value.FLAG: "True or False",
            Value.TIME: "a time from 0 to 2**63 - 1 ps, or silvan.NEVER",
            Value.CHOICE: f"a whole number from 0 to {self.most}, or -1 for no choice",
        }[self.value]

    def unpack(self, words: Sequence[int]) -> list[Any]:
        """Make the arguments after the state from the numbers of a call."""
        arguments: list[Any] = []
        after = len(self.arguments)
        for word, argument in zip(words, self.arguments, strict=False):
            if not argument.columns:
                arguments.append(word)
                continue
            length = word * len(argument.columns)
            numbers = np.array(words[after : after + length], dtype=np.int64)
            arguments.append(numbers.view(argument.dtype).view(np.recarray))
            after += length
        return arguments


def _described() -> dict[str, Hook]:
    hooks = {}
    for name, about, arguments, kind, most in _silvan.scheme_hooks():
        plain = re.sub(r"\[(`[^`]*`|[^]]*)\](\([^)]*\))?", r"\1", textwrap.dedent(about).strip())
        plain = re.sub(r"`\w+::(\w+)`", r"`\1`", plain)
        listed = tuple(Argument(name, tuple(columns), rows) for name, columns, rows in arguments)
        hooks[name] = Hook(name, plain, listed, Value(kind), most)
    return hooks


HOOKS = _described()


def parameters_text() -> str:
    """Document all hooks as the parameters of :class:`silvan.Callbacks`, one after the other."""
    parts = []
    for hook in HOOKS.values():
        lines = [f"``({', '.join(hook.names)})``: {hook.about}"]
        for argument in hook.arguments:
            if argument.columns:
                rows = f"{argument.output_rows} records to fill in" if argument.output_rows else ""
                columns = ", ".join(f"``{column}``" for column in argument.columns)
                lines.append(f"``{argument.name}``: {rows or 'records'} with {columns}.")
        if hook.value is Value.CHOICE:
            lines.append(f"Its value is {hook.valid}.")
        text = textwrap.indent("\n".join(lines), " " * 8)
        parts.append(f"    {hook.name} : callable, optional\n{text}")
    return "\n".join(parts)
