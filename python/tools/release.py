"""Make a release, and publish nothing: check, build, sum up, and print the commands that publish.

``--check`` stops after the checks. ``make rehearsal`` tries what is built.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import changelog
import versions

ROOT = Path(__file__).resolve().parents[2]
OUT = Path("target/release-files")
CHECKED = Path("target/checked")
"""Written by .ci/run: the commit whose checks passed."""
PAPERS = Path("target/checked-papers")
"""Written by .ci/nightly: the commit of the compared papers."""
SOURCES = ("Cargo.lock", "crates", "python/silvan_papers")
"""Sources that can change the numbers of papers."""
UNDATED = ("CHANGELOG.md", "changes")
"""Files that dating a checked commit's changelog changes."""
PAGES = {
    "docs/reproductions/*.md": (
        re.compile(r"runs of silvan (\S+),"),
        "make check-papers, make pages",
    ),
    "docs/arena.md": (re.compile(r"with silvan (\S+):"), "its first command, arena_page.py"),
}
"""Pages with measured numbers: how each states the version, and what measures again."""
_VERSION = re.compile(r"\d+\.\d+\.\d+(rc\d+)?")
IMAGE = "silvan"
KEPT = Path("tests/files_of_versions")


def git(root: Path, *words: str) -> str:
    """Return what git prints."""
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def problems(root: Path, version: str) -> Iterator[str]:
    """Say what keeps a commit from being released as a version."""
    if not _VERSION.fullmatch(version):
        yield f"{version} is no version: write one such as 1.1.0"
        return
    yield from _state(root, version)
    if versions.version(root) != version:
        yield f"Cargo.toml has {versions.version(root)}: write {version}, then make versions"
    for line in versions.problems(root):
        yield f"{line}: make versions"
    yield from changelog.problems(root)
    first, date = changelog.released(root)
    if first != version or date is None:
        yield f"CHANGELOG.md has no dated section of {version}: make changelog VERSION={version}"
    if changelog.fragments(root):
        yield f"changes/ has fragments: make changelog VERSION={version}"
    if not (root / KEPT / version / "journal").is_file():
        yield f"{KEPT} has no files of {version}: python python/tools/files_of_version.py"
    yield from _papers(root, version)
    if not (root / "target" / "site" / "index.html").is_file():
        yield "the site is not built: make site"


def _state(root: Path, version: str) -> Iterator[str]:
    if git(root, "status", "--porcelain"):
        yield "the checkout has changes: commit or remove them"
    if git(root, "tag", "--list", f"v{version}"):
        yield f"the tag v{version} exists: release the next version, or remove it"
    if not _passed(root, CHECKED, ".", *(f":(exclude){path}" for path in UNDATED)):
        yield "the checks have not passed on this commit: .ci/run"


def _passed(root: Path, note: Path, *paths: str) -> bool:
    """Return true if these paths are as in the commit that a note names."""
    path = root / note
    commit = path.read_text("utf-8").strip() if path.is_file() else ""
    same = ["git", "diff", "--quiet", commit, "HEAD", "--", *paths]
    return bool(commit) and not subprocess.run(same, cwd=root, capture_output=True).returncode


def _papers(root: Path, version: str) -> Iterator[str]:
    if not _passed(root, PAPERS, *SOURCES):
        yield "the papers have not been compared since the sources changed: .ci/nightly"
    for pattern, (stated, what) in PAGES.items():
        for page in sorted(root.glob(pattern)):
            for found in stated.findall(page.read_text("utf-8")):
                if found != version:
                    yield f"{page.relative_to(root)} has numbers of {found}: {what}"


def build(root: Path, version: str, out: Path) -> None:
    """Build sdist, wheel, C library, image, bill of materials and sums into a folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    # A stated time makes builds reproducible.
    os.environ["SOURCE_DATE_EPOCH"] = git(root, "show", "--no-patch", "--format=%ct", "HEAD")
    profile = os.environ.get("PROFILE", "dist")
    _run(root, "make", "--no-print-directory", "wheel", f"PROFILE={profile}")
    for path in (root / "target" / "wheels").iterdir():
        shutil.copy2(path, out)
    _c_library(root, version, out)
    bill = out / f"silvan-{version}.cdx.json"
    _run(root, sys.executable, "python/tools/bill_of_materials.py", str(bill))
    _image(root, version)
    write_sums(out)


def _c_library(root: Path, version: str, out: Path) -> None:
    name = f"libsilvan-{version}-{os.uname().machine}-{sys.platform}"
    stage = root / "target" / name
    shutil.rmtree(stage, ignore_errors=True)
    _run(root, "make", "--no-print-directory", "install-libsilvan", "PREFIX=", f"DESTDIR={stage}")
    # Debug information is most of the archive.
    for library in ("libsilvan.a", f"libsilvan.so.{version}"):
        _run(stage / "lib", "strip", "-S", library)
    for licence in root.glob("LICENSE-*"):
        shutil.copy2(licence, stage)
    _pack(stage, out / f"{name}.tar.gz", name)


def _pack(folder: Path, archive: Path, name: str) -> None:
    """Without owners, with the time of the commit."""
    moment = int(os.environ["SOURCE_DATE_EPOCH"])

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = moment
        return entry

    plain_archive = archive.with_suffix("")
    with tarfile.open(plain_archive, "w") as tar:
        for path in [folder, *sorted(folder.rglob("*"))]:
            tar.add(path, Path(name, path.relative_to(folder)), recursive=False, filter=plain)
    _run(folder, "gzip", "--no-name", "--best", str(plain_archive.absolute()))


def _image(root: Path, version: str) -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True).returncode:
        print("image: not built, no Docker daemon answers", file=sys.stderr)
        return
    _run(root, docker, "build", "--tag", f"{IMAGE}:{version}", ".")
    _run(root, "recipes/container/smoke-test", f"{IMAGE}:{version}")


def write_sums(out: Path) -> None:
    """Write the SHA-256 of each file, for ``sha256sum --check``."""
    lines = []
    for path in sorted(out.iterdir()):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    (out / "SHA256SUMS").write_text("".join(lines), "utf-8")


def _run(folder: Path, *command: str) -> None:
    print(" ".join(command), flush=True)
    subprocess.run(command, cwd=folder, check=True)


def publishing(version: str, out: Path) -> list[tuple[str, str]]:
    """List what a person runs to publish each part."""
    return [
        ("sign the sums", f"gpg --armor --detach-sign {out}/SHA256SUMS"),
        ("the tag", f"git push origin v{version}"),
        ("the index", f"twine upload {out}/silvan-{version}*.whl {out}/silvan-{version}.tar.gz"),
        ("the release's page", f"gh release create v{version} --verify-tag {out}/*"),
        ("the image", f"docker push {IMAGE}:{version}"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, build, tag; print how to publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--check", action="store_true", help="only check")
    parser.add_argument(
        "--rehearse", action="store_true", help="build without checks, and do not tag"
    )
    chosen = parser.parse_args(arguments)
    if not chosen.rehearse:
        found = list(problems(ROOT, chosen.version))
        for line in found:
            print(f"error: {line}", file=sys.stderr)
        if found:
            print(f"{len(found)} to do, then repeat the command", file=sys.stderr)
            return 1
    if chosen.check:
        print(f"{chosen.version} can be released")
        return 0
    build(ROOT, chosen.version, ROOT / OUT)
    if chosen.rehearse:
        return 0
    git(ROOT, "tag", "--annotate", f"v{chosen.version}", "--message", f"silvan {chosen.version}")
    print(f"\n{OUT} has the files, and the tag v{chosen.version} is made. To publish:")
    for what, command in publishing(chosen.version, OUT):
        print(f"  {command}  # {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
