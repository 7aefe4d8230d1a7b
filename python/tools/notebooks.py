"""Run each notebook of ``docs/notebooks`` and write it as a page of the site, with its outputs."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"

_LONGEST_S = 120


def notebooks() -> list[Path]:
    """List the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> Any:
    """Read a notebook, and check that it is a valid one without outputs."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.get("outputs") or cell.get("execution_count"):
            raise ValueError(f"{path.name}: cell {cell.id} has outputs: store it without")
    return notebook


def run(path: Path) -> Any:
    """Run a notebook in an empty folder, and return it with its outputs."""
    notebook = read(path)
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(prefix="silvan-notebook-") as folder:
        work = Path(folder, "work")
        work.mkdir()
        # Sockets in the file system: other users cannot reach the kernel.
        manager = AsyncKernelManager(
            kernel_name="python3", transport="ipc", ip=str(Path(folder, "kernel"))
        )
        client = NotebookClient(
            notebook, km=manager, timeout=_LONGEST_S, resources={"metadata": {"path": work}}
        )
        client.execute(env=os.environ | {"PATH": programs})
    return notebook


def write(notebook: Any, name: str, folder: Path) -> None:
    """Write a notebook that has been run as Markdown, and its figures next to it."""
    names = {"unique_key": name, "output_files_dir": f"{name}_files"}
    text, resources = MarkdownExporter().from_notebook_node(notebook, resources=names)
    link = f"\n[The notebook]({name}.ipynb) with these cells can be opened in Jupyter.\n"
    (folder / f"{name}.md").write_text(text + link, encoding="utf-8")
    for path, data in resources["outputs"].items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(data)


def main() -> int:
    """Run notebooks, by default all, and write them into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("notebooks", type=Path, nargs="*", metavar="NOTEBOOK.ipynb")
    arguments = parser.parse_args()
    folder: Path = arguments.folder / "notebooks"
    folder.mkdir(parents=True, exist_ok=True)
    for path in arguments.notebooks or notebooks():
        start = time.monotonic()
        write(run(path), path.stem, folder)
        print(f"{path.name}: {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
