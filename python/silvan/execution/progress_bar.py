"""A progress bar on a terminal or in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

Update = Callable[[float, str], object]

_NOTEBOOK_SHELL = "ZMQInteractiveShell"


@contextmanager
def progress_bar(label: str) -> Iterator[Update]:
    """Show a progress bar during the block, in a notebook or on standard error."""
    if _in_notebook():
        yield _notebook_bar(label)
    elif sys.stderr.isatty():
        with _terminal_bar(label) as update:
            yield update
    else:
        yield lambda _part, _text: None


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == _NOTEBOOK_SHELL


def _notebook_bar(label: str) -> Update:
    from IPython.display import HTML, display

    def html(part: float, text: str) -> Any:
        return HTML(
            f'{escape(label)} <progress value="{part:.4f}" max="1"></progress> {escape(text)}'
        )

    handle = display(html(0.0, ""), display_id=True)
    return lambda part, text: handle.update(html(part, text))


@contextmanager
def _terminal_bar(label: str) -> Iterator[Update]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[text]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(label, total=1.0, text="")
        yield lambda part, text: bars.update(task, completed=part, text=text)
