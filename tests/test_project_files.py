"""The files around the code agree with it: workflows, citation, toolchain, licences, image."""

from __future__ import annotations

import re
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_documents import load_tool

ROOT = Path(__file__).resolve().parents[1]
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def load(path: Path) -> dict[Any, Any]:
    return dict(yaml.safe_load(path.read_text("utf-8")))


def steps(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_what_exists(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        script = step.get("run", "")
        for target in re.findall(r"\bmake ([a-z][a-z-]*)$", script, re.MULTILINE):
            assert f"\n{target}:" in makefile
        for file in re.findall(r"(?:python/tools|\.ci)/\S+", script):
            assert (ROOT / file).is_file()
        if "uses" in step:
            name = step["uses"]
            assert (ROOT / name / "action.yml").is_file() or re.fullmatch(
                r"[\w-]+/[\w/-]+@(v\d+|stable)", name
            )


def test_every_tier_runs_in_a_workflow() -> None:
    scripts = [step.get("run", "") for path in WORKFLOWS for step in steps(load(path))]
    assert "make test-fast" in scripts
    assert ".ci/run" in scripts
    assert "make audit-python" in scripts
    assert "make rehearsal PROFILE=release SOURCE=1" in scripts
    run = (ROOT / ".ci" / "run").read_text("utf-8")
    assert re.findall(r"^make (\S+)", run, re.MULTILINE) == ["test", "lint", "check-rows", "wheel"]


def test_issue_forms_are_whole() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = load(path)
        if path.name == "config.yml":
            continue
        assert {"name", "description", "body"} <= set(form)
        ids = [part["id"] for part in form["body"]]
        assert len(ids) == len(set(ids))
        assert all(part["attributes"]["label"] for part in form["body"])


def test_the_citation_is_of_this_version() -> None:
    citation = load(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["version"] == CARGO["workspace"]["package"]["version"]
    assert " OR ".join(citation["license"]) == CARGO["workspace"]["package"]["license"]


def test_the_toolchain_file_makes_rustup_download_no_compiler() -> None:
    toolchain = tomllib.loads((ROOT / "rust-toolchain.toml").read_text("utf-8"))["toolchain"]
    assert set(toolchain) == {"components"}


def test_a_wheel_with_benchmarks_is_refused(tmp_path: Path) -> None:
    tool = load_tool("check_wheel")
    for folder in ("inputs", "bench"):
        wheel = tmp_path / f"silvan-{folder}-abi3-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"silvan/{folder}/__init__.py", "")
        found = [line for line in tool.problems(wheel) if "is missing" not in line]
        assert found == ([] if folder == "inputs" else ["silvan/bench/ is in it"])


def test_our_own_licence_is_allowed() -> None:
    deny = tomllib.loads((ROOT / "deny.toml").read_text("utf-8"))
    ours = CARGO["workspace"]["package"]["license"].split(" OR ")
    assert set(ours) <= set(deny["licenses"]["allow"])


def test_the_image_has_the_live_fabrics_programs() -> None:
    listed = (ROOT / "requirements" / "debian.txt").read_text("utf-8")
    image = (ROOT / "Dockerfile").read_text("utf-8").split("\nFROM ")[-1]
    for package in ("opensm", "infiniband-diags", "ibsim-utils"):
        assert re.search(rf"\b{package}\b", image)
        assert f"\n{package} " in listed
    assert re.findall(r"requirements/\S+", (ROOT / "Dockerfile").read_text("utf-8"))
