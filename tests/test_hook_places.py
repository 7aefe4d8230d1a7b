"""A hook has two places, its declaration and the engine's call: docs/extending/hook.md."""

from __future__ import annotations

import re
from functools import cache

import pytest

from silvan.schemes.hook_table import HOOKS
from tests.test_guide import ROOT

LIST = ROOT / "crates" / "silvan-cc" / "src" / "hooks" / "list.rs"
ENGINE = ROOT / "crates" / "silvan-engine" / "src"
IMPLEMENTS = re.compile(r"impl\b[^{]*\b(SwitchControl|SourceControl) for ")
NAMED = {"on_ack": {"python/silvan/schemes/scheme_file.py"}}
"""Files that a hook decides something in: that of a scheme with it has acknowledgements."""
CALL = r"\b(source|switch)\s*\.{}\("


@cache
def sources() -> dict[str, str]:
    """Read all files of the product, without their tests and comments."""
    files = [*ROOT.glob("crates/*/src/**/*.rs"), *(ROOT / "python" / "silvan").rglob("*.py")]
    texts = {}
    for file in files:
        text = file.read_text().split("#[cfg(test)]")[0]
        text = re.sub(r"//.*|#.*", "", text) if file.suffix == ".rs" else text
        if file.name != "tests.rs" and not {"tests", "examples"} & set(file.parts):
            texts[str(file.relative_to(ROOT))] = text
    return texts


@cache
def words() -> dict[str, frozenset[str]]:
    """Return the words of each file."""
    return {file: frozenset(re.findall(r"\w+", text)) for file, text in sources().items()}


def needed(hook: str) -> list[str]:
    """Return a hook's name, and that of the method that says whether it is needed."""
    declared = re.search(rf"\bfn {hook}\([^{{]*?\bif (needs_\w+) ", LIST.read_text())
    return [hook, declared[1]] if declared else [hook]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_declared_once_and_called_by_the_engine(hook: str) -> None:
    """Oracle: the sources."""
    assert len(re.findall(rf"\bfn {hook}\(", LIST.read_text())) == 1
    for name in needed(hook):
        call = re.compile(CALL.format(name))
        naming = [file for file, found in words().items() if name in found]
        calling = [file for file in naming if call.search(sources()[file])]
        assert calling
        assert all((ROOT / file).is_relative_to(ENGINE) for file in calling), calling


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook != "release"])
def test_no_other_file_names_a_hook(hook: str) -> None:
    """Oracle: the sources; other traits have a method `release`, too."""
    for name in needed(hook):
        naming = {
            file
            for file, text in sources().items()
            if name in words()[file] and not IMPLEMENTS.search(text)
        }
        others = {file for file in naming if not (ROOT / file).is_relative_to(ENGINE)}
        assert others == {str(LIST.relative_to(ROOT)), *NAMED.get(name, ())}
