"""The size and the structure of the project, as ``python/tools/house.py`` counts them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.test_documents import load_tool

tool = load_tool("house")

BEFORE = {
    "crates/silvan-low/src/lib.rs": "//! Bytes.\npub mod value;\npub use value::Value;\n",
    "crates/silvan-low/src/value.rs": """pub struct Value;

#[cfg(test)]
mod tests {
    use crate::c;
}
""",
    "crates/silvan-top/src/lib.rs": "mod a;\nmod b;\npub mod c;\npub use a::A;\n",
    # A name that the crate re-exports is found in its file.
    "crates/silvan-top/src/a.rs": "use silvan_low::Value;\nuse crate::{b::B, c};\npub struct A;\n",
    "crates/silvan-top/src/b.rs": "use super::A;\npub struct B;\n",
    "crates/silvan-top/src/c/mod.rs": "mod d;\nuse d::g;\npub fn f() { g() }\n",
    "crates/silvan-top/src/c/d.rs": "// Why.\npub fn g() -> crate::A { todo!() }\n",
    "crates/silvan-top/tests/t.rs": "use silvan_top::A;\n",
    "python/silvan/__init__.py": '"""Front."""\nfrom silvan import one\n',
    "python/silvan/one.py": """from silvan.pack import two


def f():
    # Late.
    import silvan.three
""",
    "python/silvan/three.py": "from silvan import _silvan\n",
    "python/silvan/pack/__init__.py": "",
    "python/silvan/pack/two.py": "from silvan.one import f\n",
    "tests/test_one.py": "import silvan\n",
}
"""Two crates and a package with a cycle each, small enough to count by hand."""

AFTER = BEFORE | {
    "crates/silvan-top/src/b.rs": "pub struct B;\n",
    "python/silvan/pack/two.py": "X = 1\n",
    "python/silvan/three.py": None,
}


@pytest.fixture(scope="module")
def revisions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository with two revisions."""
    folder = tmp_path_factory.mktemp("house")

    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True)

    git("init")
    for name, files in (("before", BEFORE), ("after", AFTER)):
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink()
            else:
                file.write_text(text)
        git("add", "--all")
        git("commit", "--message", name)
        git("tag", name)
    return folder


def figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, str], list[str]]:
    """Print both revisions, and read the figures and the lines below them."""
    assert tool.main(["before", "after", "--arrows"], folder) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert title.split() == ["before", "after"]
    table = {line[:44].strip(): line[44:].split() for line in lines if ": " not in line}
    return {name: " ".join(cells) for name, cells in table.items()}, lines[len(table) :]


def test_two_revisions_stand_beside_each_other(
    revisions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Oracle: the files above, counted by hand."""
    found, lines = figures(revisions, capsys)
    assert found == {
        "code of crates/silvan-low": "4 4",
        "code of crates/silvan-top": "13 12",
        "code of python/silvan": "5 4",
        "code of python/silvan/pack": "1 1",
        "code of tests": "0 0",
        "lines of code": "23 21",
        "lines of comments": "4 4",
        "lines of tests": "5 5",
        "compiled engines": "- -",
        # a -> b -> a before; c -> d -> a -> c in both.
        "files in the largest cycle": "4 3",
        "files in the largest cycle of Python": "2 0",
        "Python modules at the top": "3 2",
        # Folders of sources, and Python modules beside a package.
        "rooms": "7 6",
        "arrows": "7 5",
        "arrows that point up": "2 1",
        "cycles of rooms": "2 1",
        "Python rooms": "4 3",
        "arrows of Python": "4 2",
        "arrows of Python that point up": "1 0",
        "cycles of Python rooms": "1 0",
    }
    assert "arrow: crates/silvan-top/src -> crates/silvan-low/src" in lines
    assert "cycle of rooms: crates/silvan-top/src, crates/silvan-top/src/c" in lines


@pytest.mark.slow
def test_this_checkout_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([]) == 0
    found = capsys.readouterr().out
    assert "code of python/silvan/results" in found
    assert "largest cycle of python: " in found


def test_run_loops_of_a_library_are_its_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oracle: the lines that nm prints for two run loops, one of them of a divided fabric."""
    lines = [
        "0000 t silvan_engine::engine::Engine<S,C,W,F>::run_to",
        "0001 t silvan_engine::partition::Partitioned<S,C,W,F>::run_to::h0123456789abcdef",
        "0002 t silvan_engine::partition::Partitioned<S,C,W,F>::run_to::{{closure}}",
        "0003 t silvan_sim::session::Session::run_to",
    ]
    done = subprocess.CompletedProcess([], 0, "\n".join(lines), "")
    monkeypatch.setattr(tool.subprocess, "run", lambda *_, **__: done)
    assert tool.compiled_engines(tmp_path / "a.so") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b", "c"], "at most two revisions are compared"),
        (["before", "after", "--libraries", "a.so"], "give one library for each revision"),
    ],
)
def test_bad_words_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        tool.main(words)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_an_unknown_revision_is_refused(revisions: Path) -> None:
    with pytest.raises(SystemExit, match=r"error: .*nowhere"):
        tool.main(["nowhere"], revisions)
