"""Releases: versions that agree, a changelog from fragments, what keeps a commit from being one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from tests.test_documents import load_tool

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT, BUILD = PYPROJECT["project"], PYPROJECT["build-system"]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    return load_tool("release")


def changelog() -> ModuleType:
    return load_tool("changelog")


def versions() -> ModuleType:
    return load_tool("versions")


def test_all_files_state_one_version() -> None:
    assert list(versions().problems()) == []


def test_a_new_version_is_written_everywhere(tmp_path: Path) -> None:
    tool = versions()
    files = ["Cargo.toml", *tool.LOCKS, *(place.file for place in tool.LOCATIONS)]
    for file in files:
        target = tmp_path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, target)
    cargo = tmp_path / "Cargo.toml"
    now = tool.version()
    text = cargo.read_text()
    cargo.write_text(text.replace(f'version = "{now}"\nedition', 'version = "7.8.9"\nedition'))
    wrong = list(tool.problems(tmp_path))
    assert len(wrong) == len(files) - 1
    tool.write(tmp_path)
    assert list(tool.problems(tmp_path)) == []
    for file in files:
        before, after = ((root / file).read_text() for root in (ROOT, tmp_path))
        assert after.replace("7.8.9", now) == before


CHANGELOG = "# Changelog\n\nThe format.\n\n## 1.0.0 (2026-12-01)\n\nThe first version.\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a folder with a changelog and two fragments."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    changes = tmp_path / "changes"
    changes.mkdir()
    (changes / "README.md").write_text("about fragments\n")
    (changes / "export.added.md").write_text("`silvan export`\nwrites dot.\n")
    (changes / "rates.fixed.md").write_text("Rates of FDR.\n")
    return tmp_path


def test_fragments_become_a_section(project: Path) -> None:
    tool = changelog()
    assert list(tool.problems(project)) == []
    tool.collect(project, "1.1.0", "2027-01-02")
    assert (project / "CHANGELOG.md").read_text() == (
        "# Changelog\n\nThe format.\n\n## 1.1.0 (2027-01-02)\n\n### Added\n\n"
        "- `silvan export` writes dot.\n\n### Fixed\n\n- Rates of FDR.\n\n"
        "## 1.0.0 (2026-12-01)\n\nThe first version.\n"
    )
    assert tool.released(project) == ("1.1.0", "2027-01-02")
    assert [path.name for path in (project / "changes").iterdir()] == ["README.md"]


def test_a_section_without_a_date_gets_it(project: Path) -> None:
    tool = changelog()
    path = project / "CHANGELOG.md"
    path.write_text(CHANGELOG.replace("2026-12-01", "unreleased"))
    assert tool.released(project) == ("1.0.0", None)
    tool.collect(project, "1.0.0", "2026-12-01")
    items = "### Added\n\n- `silvan export` writes dot.\n\n### Fixed\n\n- Rates of FDR.\n"
    assert path.read_text() == f"{CHANGELOG}\n{items}"
    assert tool.fragments(project) == []
    path.write_text(CHANGELOG.replace("2026-12-01", "unreleased"))
    tool.collect(project, "1.0.0", "2026-12-01")
    assert path.read_text() == CHANGELOG
    with pytest.raises(SystemExit, match=r"1\.0\.0 already"):
        tool.collect(project, "1.0.0", "2026-12-02")


@pytest.mark.parametrize("name", ["export.md", "export.new.md", "export.added.txt"])
def test_a_fragment_with_a_wrong_name_is_named(project: Path, name: str) -> None:
    (project / "changes" / name).write_text("text\n")
    (wrong,) = changelog().problems(project)
    assert wrong.startswith(f"changes/{name}: ")


def test_fragments_of_this_checkout_are_well_formed() -> None:
    assert list(changelog().problems(ROOT)) == []


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a small checkout that can be released as the version of this one."""
    version = versions().version()
    for file in ["Cargo.toml", *versions().LOCKS, *(one.file for one in versions().LOCATIONS)]:
        target = tmp_path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, target)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG.replace("1.0.0", version))
    (tmp_path / "changes").mkdir()
    pages = tmp_path / "docs" / "reproductions"
    pages.mkdir(parents=True)
    (pages / "mine.md").write_text(f"7 runs of silvan {version}, 1 G\n")
    (tmp_path / "docs" / "arena.md").write_text(f"made with silvan {version}: 9 runs\n")
    kept = tmp_path / "tests" / "files_of_versions" / version
    kept.mkdir(parents=True)
    (kept / "journal").write_text("")
    (tmp_path / ".gitignore").write_text("/target\n")
    (tmp_path / "crates").mkdir()
    (tmp_path / "crates" / "lib.rs").write_text("")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    site = tmp_path / "target" / "site"
    site.mkdir(parents=True)
    (site / "index.html").write_text("")
    note(tmp_path, "checked", "checked-papers")
    return tmp_path


def note(folder: Path, *names: str) -> None:
    """Note that checks have passed on the newest commit."""
    for name in names:
        (folder / "target" / name).write_text(git(folder, "rev-parse", "HEAD") + "\n")


def test_a_checked_commit_can_be_released(release: ModuleType, checkout: Path) -> None:
    assert list(release.problems(checkout, versions().version())) == []


def commit(folder: Path, *passed: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "two")
    note(folder, *passed)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("CITATION.cff", "version: 0.0.1\n", r"CITATION\.cff: 0\.0\.1, .*: make versions"),
        ("CHANGELOG.md", "# Changelog\n\n## VERSION (unreleased)\n", "no dated .*: make changelog"),
        ("changes/one.added.md", "text\n", "has fragments: make changelog"),
        (
            "docs/reproductions/mine.md",
            "7 runs of silvan 0.9.0, 1 G\n",
            r"mine\.md .* 0\.9\.0: make",
        ),
        ("docs/arena.md", "made with silvan 0.9.0: 9 runs\n", r"arena\.md has numbers of 0\.9\.0"),
    ],
)
def test_a_file_against_a_release_is_named(
    release: ModuleType, checkout: Path, file: str, text: str, words: str
) -> None:
    version = versions().version()
    (checkout / file).write_text(text.replace("VERSION", version))
    commit(checkout, "checked", "checked-papers")
    (wrong,) = release.problems(checkout, version)
    assert re.search(words, wrong), wrong


def test_what_is_against_a_release_is_listed_at_once(
    release: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line says what to do."""
    version = versions().version()
    shutil.rmtree(checkout / "target" / "site")
    shutil.rmtree(checkout / "tests")
    (checkout / "CITATION.cff").write_text("version: 0.0.1\n")
    (checkout / "CHANGELOG.md").write_text(f"# Changelog\n\n## {version} (unreleased)\n")
    (checkout / "changes" / "one.added.md").write_text("text\n")
    (checkout / "docs" / "arena.md").write_text("made with silvan 0.9.0: 9 runs\n")
    (checkout / "crates" / "lib.rs").write_text("// changed\n")
    commit(checkout)
    git(checkout, "tag", f"v{version}")
    (checkout / "new.txt").write_text("new\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release, "ROOT", checkout)
        assert release.main([version, "--check"]) == 1
    *wrong, last = capsys.readouterr().err.splitlines()
    assert len(wrong) == 10
    assert last == "10 to do, then repeat the command"
    found = iter(wrong)
    for words in (
        "the checkout has changes",
        f"the tag v{version} exists",
        "the checks have not passed",
        "CITATION.cff: 0.0.1",
        "CHANGELOG.md has no dated section",
        "changes/ has fragments",
        f"no files of {version}",
        "the papers have not been compared",
        "docs/arena.md has numbers of 0.9.0",
        "the site is not built",
    ):
        what, colon, to_do = next(found).removeprefix("error: ").rpartition(": ")
        assert words in what
        assert colon
        assert to_do
    (wrong_version,) = release.problems(checkout, "one")
    assert "write one such as" in wrong_version


def test_a_person_dates_and_tags_what_was_checked(release: ModuleType, checkout: Path) -> None:
    """The changelog's date needs no other run of the checks; other changes do."""
    version = versions().version()
    path = checkout / "CHANGELOG.md"
    dated = path.read_text()
    path.write_text(f"# Changelog\n\n## {version} (unreleased)\n")
    (checkout / "changes" / "one.added.md").write_text("text\n")
    commit(checkout, "checked", "checked-papers")
    wrong = list(release.problems(checkout, version))
    assert [line.rpartition(": ")[2] for line in wrong] == [f"make changelog VERSION={version}"] * 2
    path.write_text(dated)
    (checkout / "changes" / "one.added.md").unlink()
    commit(checkout)
    assert list(release.problems(checkout, version)) == []
    (checkout / "README.md").write_text("new\n")
    commit(checkout)
    (unchecked,) = release.problems(checkout, version)
    assert unchecked.endswith(": .ci/run")
    note(checkout, "checked")
    (checkout / "crates" / "lib.rs").write_text("// changed\n")
    commit(checkout, "checked")
    (unchecked,) = release.problems(checkout, version)
    assert unchecked.endswith(": .ci/nightly")


def test_sums_and_index_hold_each_file(release: ModuleType, tmp_path: Path) -> None:
    """Oracle: sha256sum; the names that pip asks an index for (PEP 503)."""
    rehearsal = load_tool("rehearsal")
    files = tmp_path / "files"
    files.mkdir()
    (files / "silvan-1.0.0-cp311-abi3-any.whl").write_bytes(b"wheel")
    (files / "ruamel_yaml.clib-2.0-py3-none-any.whl").write_bytes(b"other")
    release.write_sums(files)
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(check, cwd=files, check=True)
    rehearsal.check_sums(files)
    rehearsal.write_index(tmp_path / "index", sorted(files.glob("*.whl")))
    with rehearsal.served(tmp_path / "index") as index:
        page = urlopen(f"{index}silvan/").read().decode()
        assert urlopen(f"{index}ruamel-yaml-clib/").status == 200
    assert "silvan-1.0.0-cp311-abi3-any.whl</a>" in page
    (files / "silvan-1.0.0-cp311-abi3-any.whl").write_bytes(b"another")
    with pytest.raises(SystemExit, match="is not what SHA256SUMS says"):
        rehearsal.check_sums(files)


def test_wheels_that_differ_say_where(tmp_path: Path) -> None:
    tool = load_tool("same_wheel")

    def wheel(name: str, text: str, year: int = 2026) -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo("a.py", (year, 1, 1, 0, 0, 0)), text)
        return path

    first = wheel("one.whl", "1")
    assert list(tool.differences(first, wheel("two.whl", "1"))) == []
    assert list(tool.differences(first, wheel("three.whl", "2"))) == ["a.py: contents"]
    assert list(tool.differences(first, wheel("four.whl", "1", 2027))) == ["a.py: time"]


@pytest.mark.slow
def test_the_sdist_has_what_its_build_reads(tmp_path: Path) -> None:
    """Oracle: maturin, which reads the layout of a project before it compiles."""
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run([maturin, "sdist", "--out", tmp_path], cwd=ROOT, check=True)
    (archive,) = tmp_path.glob("silvan-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    folder = tmp_path / archive.name.removesuffix(".tar.gz")
    command = [str(maturin), "pep517", "write-dist-info", "--interpreter", sys.executable]
    command += ["--metadata-directory", str(tmp_path / "info")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    data = PYPROJECT["tool"]["maturin"]["data"]
    for path in (ROOT / data).rglob("*.1"):
        assert (folder / path.relative_to(ROOT)).is_file()


def test_the_rehearsal_finds_what_the_pages_show() -> None:
    tool = load_tool("rehearsal")
    steps = list(tool.steps(tool.FIRST_STEPS))
    assert ["silvan", "example", "incast"] in steps
    assert ["silvan", "run", "incast.toml"] in steps
    assert tool.blocks(tool.C_GUIDE, "c")[0].startswith("/* relay.c */")


def test_the_archive_of_the_c_library_can_be_unpacked_anywhere() -> None:
    command = ["make", "-n", "install-libsilvan", "PREFIX=", "DESTDIR=/stage"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "s|@PREFIX@|${pcfiledir}/../..|" in done.stdout


def wanted() -> Iterator[tuple[str, str]]:
    """List the packages that silvan needs, with the oldest version of each."""
    for text in PROJECT["dependencies"]:
        name, _, oldest = text.partition(">=")
        yield name, oldest


def test_the_recipe_of_conda_needs_what_the_package_needs() -> None:
    recipe = yaml.safe_load((ROOT / "recipes" / "conda" / "recipe.yaml").read_text("utf-8"))
    run = [f"python {PROJECT['requires-python']}"]
    run += [f"{name} >={oldest}" for name, oldest in wanted()]
    assert recipe["requirements"]["run"] == run
    (backend,) = BUILD["requires"]
    assert backend.replace("maturin", "maturin ") in recipe["requirements"]["host"]


def test_the_package_of_spack_needs_what_the_package_needs() -> None:
    recipes = ROOT / "recipes" / "spack" / "spack_repo" / "silvan"
    assert yaml.safe_load((recipes / "repo.yaml").read_text("utf-8"))["repo"]["api"] == "v2.0"
    texts = {path.parent.name: path.read_text("utf-8") for path in recipes.rglob("package.py")}
    for text in texts.values():
        compile(text, "package.py", "exec")
        # Packages of Spack 1.0 and later import their build system.
        assert "from spack_repo.builtin.build_systems.python import PythonPackage" in text
    text = texts["py_silvan"]
    extras = [one for some in PROJECT["optional-dependencies"].values() for one in some]
    pairs = [one.split(">=") for one in extras]
    for name, oldest in [*wanted(), *pairs]:
        assert f'depends_on("py-{name}@{oldest}:' in text, name
    for extra in PROJECT["optional-dependencies"]:
        assert f'variant("{extra}"' in text
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]
    assert f'depends_on("rust@{cargo["rust-version"]}:"' in text


def test_descriptions_agree() -> None:
    """Oracle: CITATION.cff and pyproject.toml."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    zenodo: dict[str, Any] = json.loads((ROOT / ".zenodo.json").read_text("utf-8"))
    codemeta: dict[str, Any] = json.loads((ROOT / "codemeta.json").read_text("utf-8"))
    assert zenodo["title"] == citation["title"]
    assert zenodo["keywords"] == codemeta["keywords"] == citation["keywords"]
    names = [one["name"] for one in citation["authors"]]
    assert [one["name"] for one in zenodo["creators"]] == names
    assert codemeta["description"] == PROJECT["description"]
    assert [one.rpartition("/")[2] for one in codemeta["license"]] == citation["license"]
