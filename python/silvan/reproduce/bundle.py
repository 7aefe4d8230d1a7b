"""A reproduction as one archive, for the artifact appendix of a paper."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import shlex
import tarfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath

from silvan import _silvan
from silvan.execution.cache import build_id
from silvan.folders import written_file
from silvan.reproduce.reproduction import Outcome, RunCost, all_costs
from silvan.results.result import Result

_PACKAGES = ("numpy", "pyarrow", "matplotlib")

_README = """\
# {paper}, reproduced with silvan {version}

Made by:

    {command}

| path | contents |
|---|---|
| {figures}/report.html | the report, for a browser: targets, curves, figures and runs |
| {figures}/reproduction.json | the same for programs |
| {figures} | figures as PNG and SVG{numbers} |
| scenarios | the effective scenario of each run, by its hash |
| runs | the tables of each run as Parquet, and its manifest |
| versions.json | versions of silvan, Python and packages, and the command |
| SHA256SUMS | hashes of all files |

Names of a part of the paper have its prefix: report-fig9.html.

Check the files, and run everything again, which gives equal tables on another machine, too:

    sha256sum --check SHA256SUMS
    pip install 'silvan[figures]=={version}'
    {command} --out again

The same build of silvan, {build}, draws the figures from the runs of this archive:

    {command} --out .
"""


def write_bundle(
    outcomes: Sequence[Outcome], folder: Path, files: Sequence[Path], words: Sequence[str]
) -> Path:
    """Write the archive of a reproduction beside its folder; equal contents make equal archives."""
    paper = folder.name
    costs = sorted(all_costs(outcomes), key=lambda one: one.key)
    contents: dict[str, bytes | Path] = {f"{paper}/{path.name}": path for path in files}
    for outcome in outcomes:
        contents.update({f"{paper}/{path.name}": path for path in outcome.figures})
    for cost in costs:
        contents.update(_run(cost))
    contents["versions.json"] = _json(
        {
            "silvan": _silvan.version(),
            "build": build_id(),
            "command": shlex.join(words),
            "python": platform.python_version(),
            "system": platform.platform(),
            **{name: _version(name) for name in _PACKAGES},
        }
    )
    text = _README.format(
        paper=paper,
        figures=paper,
        numbers=", with numbers as CSV" if any(name.endswith(".csv") for name in contents) else "",
        version=_silvan.version(),
        build=build_id(),
        command=shlex.join(words),
    )
    contents["README.md"] = text.encode()
    sums = [f"{_digest(data)}  {name}\n" for name, data in sorted(contents.items())]
    contents["SHA256SUMS"] = "".join(sums).encode()
    name = f"{paper}{files[0].stem.removeprefix('reproduction')}"
    archive = folder.with_name(f"{name}.tar.gz")
    with (
        written_file(archive) as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, data in sorted(contents.items()):
            entry = tarfile.TarInfo(str(PurePosixPath(name, path)))
            entry.size = data.stat().st_size if isinstance(data, Path) else len(data)
            entry.mode = 0o644
            with _opened(data) as content:
                tar.addfile(entry, content)
    return archive


def _run(cost: RunCost) -> dict[str, bytes | Path]:
    # A command with --out on the unpacked archive finds the runs here.
    place = PurePosixPath("runs", cost.folder.parent.name, cost.folder.name)
    found: dict[str, bytes | Path] = {
        str(place / path.name): path for path in cost.folder.iterdir() if path.is_file()
    }
    scenario = Result.read(cost.folder).scenario.to_toml()
    return {f"scenarios/{cost.scenario_hash}.toml": scenario.encode(), **found}


def _opened(data: bytes | Path) -> io.BytesIO | io.BufferedReader:
    return data.open("rb") if isinstance(data, Path) else io.BytesIO(data)


def _digest(data: bytes | Path) -> str:
    with _opened(data) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
