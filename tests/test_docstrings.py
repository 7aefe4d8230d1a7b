"""The examples in docstrings print what they show."""

from __future__ import annotations

import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = re.compile(r"^ *>>> ", re.MULTILINE)


def modules_with_examples() -> Iterator[str]:
    """List modules by their text: pytest's own search imports all of them in each process."""
    for package in ("python/silvan", "python/silvan_papers", "tests"):
        folder = ROOT / package
        for path in sorted(folder.rglob("*.py")):
            if EXAMPLE.search(path.read_text("utf-8")):
                words = path.relative_to(folder.parent).with_suffix("").parts
                yield ".".join(words).removesuffix(".__init__")


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_print_what_they_show(name: str) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert tried > 0
    assert failed == 0
