"""Hooks of MkDocs: pages that are generated or stand outside of ``docs``, and links to the code."""

from __future__ import annotations

import ast
import os
import posixpath
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ROOT / "target" / "site-pages"

EXAMPLE = "view-example.html"
"""A page of ``silvan view`` to try."""

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "action/README.md": "action.md",
    "fuzz/README.md": "fuzz.md",
}
"""Documents outside of ``docs`` by their names in the site."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_IMAGE = re.compile(r'<img [^>]*?src="([^"]+)"')
_FENCE = re.compile(r"^(```.*?^```[^\S\n]*$)", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Offer other versions only where mike builds the page, because mike writes their list."""
    if "MIKE_DOCS_VERSION" not in os.environ:
        config.extra.pop("version", None)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in ``docs``."""
    from mkdocs.structure.files import File

    for name, target in PAGES.items():
        text = (ROOT / name).read_text("utf-8")
        folder = posixpath.dirname(name)

        def moved(link: str, folder: str = folder) -> str:
            return posixpath.relpath(posixpath.join(folder, link), "docs")

        text = _with_links(text, moved)
        files.append(File.generated(config, target, content=text))
    files.append(File.generated(config, "api.md", content=_api()))
    for path in sorted(GENERATED.rglob("*")):
        if path.is_file():
            uri = path.relative_to(GENERATED).as_posix()
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links that leave ``docs`` lead to the page in the site, or to nothing."""
    del config, files
    folder = posixpath.dirname(page.file.src_uri)
    # The page exists in the site only; elsewhere its name is text.
    address = posixpath.relpath(EXAMPLE, folder or ".")
    markdown = markdown.replace(f"`{EXAMPLE}`", f"[{EXAMPLE}]({address})")

    def target(link: str) -> str | None:
        whole = posixpath.normpath(posixpath.join("docs", folder, link))
        if whole in PAGES:
            return posixpath.relpath(PAGES[whole], folder or ".")
        inside = posixpath.relpath(whole, "docs")
        if inside.endswith(".ipynb") and not inside.startswith(f"{folder}/"):
            link = link.removesuffix(".ipynb") + ".md"
        # The repository may be anywhere: a link to the code becomes text.
        return None if inside.startswith("../") else link

    return _with_links(markdown, target)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Load images when they are near, and remove the roles of Sphinx from docstrings."""
    del config
    folder = posixpath.dirname(page.file.src_uri)

    def lazy(match: re.Match[str]) -> str:
        image = files.get_file_from_path(posixpath.normpath(posixpath.join(folder, match[1])))
        size = _size(image.content_bytes) if image else ""
        return f'<img loading="lazy"{size} {match[0].removeprefix("<img ")}'

    html = _IMAGE.sub(lazy, html)
    return re.sub(r":(?:class|func|meth|mod|attr):(?=<code>)", "", html)


def _size(image: bytes) -> str:
    """Write the size of a PNG or GIF, without which a browser takes every image to be near."""
    if image.startswith(b"\x89PNG"):
        width, height = struct.unpack(">II", image[16:24])
    elif image.startswith(b"GIF8"):
        width, height = struct.unpack("<HH", image[6:10])
    else:
        return ""
    return f' width="{width}" height="{height}"'


def _with_links(text: str, change: Any) -> str:
    def replace(match: re.Match[str]) -> str:
        mark, words, link = match.groups()
        path, hash_, anchor = link.partition("#")
        if not path or re.match(r"[a-z]+:", link):
            return match[0]
        changed = change(path)
        return words if changed is None else f"{mark}[{words}]({changed}{hash_}{anchor})"

    parts = _FENCE.split(text)
    return "".join(
        part if index % 2 else _LINK.sub(replace, part) for index, part in enumerate(parts)
    )


def _api() -> str:
    tree = ast.parse((ROOT / "python" / "silvan" / "__init__.py").read_text("utf-8"))
    homes = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == "_HOME"
    )
    lines = ["# Python", "", "Everything here is imported from `silvan`."]
    for name, module in sorted(homes.items()):
        if not module.endswith("._silvan"):
            lines += ["", f"::: {module}.{name}"]
    lines += ["", "## `result.plot`", "", "::: silvan.figures.result_plots.ResultPlots"]
    return "\n".join(lines) + "\n"
