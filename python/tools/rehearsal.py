"""Try the files of a release as users do: from a local index, in an empty environment."""

from __future__ import annotations

import argparse
import functools
import hashlib
import html
import http.server
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import venv
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import versions

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "target" / "release-files"
PLUGIN = ROOT / "tests" / "plugin_package"
FIRST_STEPS = ROOT / "docs" / "guide" / "first-steps.md"
C_GUIDE = ROOT / "docs" / "guide" / "c-interface.md"
PLUGIN_GUIDE = ROOT / "docs" / "extending" / "plug-in.md"
_BLOCK = re.compile(r"^[^\S\n]*```(\w*)\n(.*?)^[^\S\n]*```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """List the blocks of a page in one language."""
    return [text for name, text in _BLOCK.findall(page.read_text("utf-8")) if name == language]


def steps(page: Path) -> Iterator[list[str]]:
    """List the commands of silvan in the blocks of a page."""
    for text in blocks(page, ""):
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["silvan"]:
                yield words


def check_sums(files: Path) -> None:
    """Compare each file with the sums; no file lacks one."""
    listed = {}
    for line in (files / "SHA256SUMS").read_text("utf-8").splitlines():
        digest, _, name = line.partition("  ")
        listed[name] = digest
    for path in files.iterdir():
        if path.name == "SHA256SUMS" or path.suffix == ".asc":
            continue
        with path.open("rb") as file:
            if listed.pop(path.name, None) != hashlib.file_digest(file, "sha256").hexdigest():
                raise SystemExit(f"error: {path.name} is not what SHA256SUMS says")
    if listed:
        raise SystemExit(f"error: missing: {', '.join(listed)}")


def write_index(folder: Path, packages: Sequence[Path]) -> None:
    """Write a simple repository (PEP 503) of packages."""
    for path in packages:
        project = re.sub(r"[-_.]+", "-", re.split(r"-\d", path.name)[0]).lower()
        place = folder / "simple" / project
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, place)
    for place in (folder / "simple").iterdir():
        links = "".join(
            f'<a href="{html.escape(path.name)}">{html.escape(path.name)}</a>\n'
            for path in sorted(place.iterdir())
        )
        (place / "index.html").write_text(f"<!DOCTYPE html>\n{links}", "utf-8")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback while the block runs."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple/"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is its
        """Print nothing."""


class Rehearsal:
    """An empty environment in a folder away from the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "venv", with_pip=True)
        self.programs = folder / "venv" / "bin"
        self.environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_CACHE_DIR": "1",
        }

    def run(self, *words: str | Path, cwd: Path | None = None, hidden: bool = False) -> str:
        """Run a command, which must succeed; return what it prints."""
        if not hidden:
            print("$", shlex.join(map(str, words)), flush=True)
        done = subprocess.run(
            [str(word) for word in words],
            cwd=cwd or self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"error: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def install(self, index: str, *words: str | Path) -> None:
        """Install packages from an index alone."""
        pip = ("-m", "pip", "install", "--quiet", "--index-url", index)
        self.run(self.programs / "python", *pip, *words)

    def check_version(self, version: str) -> None:
        """Compare what is installed."""
        found = self.run("silvan", "--version").strip()
        if found != f"silvan {version}":
            raise SystemExit(f"error: {found} is installed, not {version}")


def install(rehearsal: Rehearsal, index: str, version: str) -> None:
    """Install silvan from the index, an extra, and the example of a plug-in package."""
    rehearsal.install(index, f"silvan=={version}")
    rehearsal.check_version(version)
    rehearsal.install(index, f"silvan[figures]=={version}")
    plugin = rehearsal.folder / "plugin_package"
    shutil.copytree(PLUGIN, plugin, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    rehearsal.install(index, plugin)


def first_steps(rehearsal: Rehearsal) -> None:
    """Run the commands of the page."""
    folder = rehearsal.folder / "first-steps"
    folder.mkdir()
    for words in steps(FIRST_STEPS):
        rehearsal.run(*words, cwd=folder)


def plug_ins(rehearsal: Rehearsal) -> None:
    """List the plug-ins of the example package, and run a scenario of its page."""
    listed = rehearsal.run("silvan", "plug-ins")
    for name in ("halving", "row", "shift", "spread", "transfers"):
        if name not in listed:
            raise SystemExit(f"error: the plug-in {name} is not listed:\n{listed}")
    scenario = next(text for text in blocks(PLUGIN_GUIDE, "toml") if text.startswith("# scenario"))
    # A scheme in Python needs numba, an extra; other plug-ins need nothing.
    (rehearsal.folder / "plugged.toml").write_text(scenario.partition("[control]")[0], "utf-8")
    rehearsal.run("silvan", "run", "plugged.toml")


def c_example(rehearsal: Rehearsal, files: Path) -> None:
    """Compile the program of the C interface's page with the library; compare what it prints."""
    (archive,) = files.glob("libsilvan-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(rehearsal.folder, filter="data")
    library = rehearsal.folder / archive.name.removesuffix(".tar.gz")
    source = rehearsal.folder / "relay.c"
    source.write_text(blocks(C_GUIDE, "c")[0], "utf-8")
    lib = library / "lib"
    rehearsal.environment["PKG_CONFIG_PATH"] = str(lib / "pkgconfig")
    options = rehearsal.run("pkg-config", "--cflags", "--libs", "silvan").split()
    strict = ("-std=c11", "-Wall", "-Werror")
    rehearsal.run("gcc", *strict, source, *options, f"-Wl,-rpath,{lib}", "-o", "relay")
    printed = rehearsal.run(rehearsal.folder / "relay")
    if printed != (wanted := blocks(C_GUIDE, "text")[0]):
        raise SystemExit(f"error: relay prints\n{printed}instead of\n{wanted}")


def from_source(folder: Path, index: str, version: str) -> None:
    """Install the source distribution, as an index without a fitting wheel does."""
    folder.mkdir()
    rehearsal = Rehearsal(folder)
    cargo = Path(shutil.which("cargo") or "").parent
    rehearsal.environment["PATH"] += f":{cargo}"
    rehearsal.environment["CARGO_HOME"] = os.environ.get("CARGO_HOME", f"{Path.home()}/.cargo")
    rehearsal.environment["RUSTUP_HOME"] = os.environ.get("RUSTUP_HOME", f"{Path.home()}/.rustup")
    if target := os.environ.get("CARGO_TARGET_DIR"):
        rehearsal.environment["CARGO_TARGET_DIR"] = target
    rehearsal.install(index, "--no-binary", "silvan", f"silvan[figures]=={version}")
    rehearsal.check_version(version)
    first_steps(rehearsal)


def main(arguments: Sequence[str] | None = None) -> int:
    """Rehearse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=Path, default=FILES, help="what make release has built")
    parser.add_argument("--source", action="store_true", help="install the sdist, too: minutes")
    chosen = parser.parse_args(arguments)
    version = versions.version()
    check_sums(chosen.files)
    (wheel,) = chosen.files.glob("silvan-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        bills = [name for name in archive.namelist() if "/sboms/" in name]
    print(f"{wheel.name}: {len(bills)} bills of materials inside")
    with tempfile.TemporaryDirectory(prefix="silvan-rehearsal-") as name:
        folder = Path(name)
        needed = folder / "needed"
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:"]
        download += ["--dest", str(needed), f"{wheel}[figures]", "setuptools>=77", "wheel"]
        download += ["maturin>=1.9.4,<2"] if chosen.source else []
        subprocess.run(download, check=True)
        own = [path for path in chosen.files.iterdir() if path.name.startswith("silvan-")]
        packages = [path for path in own if path.name.endswith((".whl", ".tar.gz"))]
        packages += [path for path in needed.iterdir() if not path.name.startswith("silvan-")]
        write_index(folder / "index", packages)
        rehearsal = Rehearsal(folder)
        with served(folder / "index") as index:
            install(rehearsal, index, version)
            if chosen.source:
                from_source(folder / "source", index, version)
        first_steps(rehearsal)
        plug_ins(rehearsal)
        c_example(rehearsal, chosen.files)
    print(f"the rehearsal of silvan {version} has passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
