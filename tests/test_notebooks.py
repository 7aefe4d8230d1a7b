"""The notebooks run from an empty folder, and end in a figure.

Their cells check their own numbers against formulas: an assertion that fails stops the notebook.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gate import PATIENCE_S
from tests.test_guide import ROOT

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run_notebook(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a notebook as `make site` does."""
    tool = ROOT / "python" / "tools" / "notebooks.py"
    command: list[str | Path] = [sys.executable, tool, folder, path]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def one_cell(path: Path, source: str, outputs: list[Any]) -> Path:
    """Write a notebook with one cell."""
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "cell",
        "metadata": {},
        "outputs": outputs,
        "source": source,
    }
    path.write_text(
        json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    return path


def test_all_notebooks_are_in_the_site_and_the_guide() -> None:
    assert len(NOTEBOOKS) >= 5
    site = (ROOT / "mkdocs.yml").read_text()
    guide = (ROOT / "docs" / "guide" / "README.md").read_text()
    for path in NOTEBOOKS:
        assert f"notebooks/{path.stem}.md" in site
        assert f"(../notebooks/{path.name})" in guide


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_ends_in_a_figure(path: Path, tmp_path: Path) -> None:
    assert "assert " in path.read_text()
    done = run_notebook(path, tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "notebooks" / f"{path.stem}.md").read_text()
    # Scenarios and results show themselves as tables.
    assert "<table" in page
    last_code = page.rindex("```python")
    (figure,) = re.findall(r"!\[png\]\((.+)\)", page[last_code:])
    picture = (tmp_path / "notebooks" / figure).read_bytes()
    assert picture.startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_cell_that_fails_fails_the_notebook(tmp_path: Path) -> None:
    done = run_notebook(one_cell(tmp_path / "wrong.ipynb", "assert 1 + 1 == 3", []), tmp_path)
    assert done.returncode != 0
    assert "AssertionError" in done.stderr
    assert not (tmp_path / "notebooks" / "wrong.md").exists()


def test_stored_outputs_are_refused(tmp_path: Path) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": "2\n"}
    done = run_notebook(one_cell(tmp_path / "kept.ipynb", "print(2)", [output]), tmp_path)
    assert done.returncode != 0
    assert "has outputs" in done.stderr
