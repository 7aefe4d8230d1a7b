"""Open the pages of the built site in Chromium, on a desk and on a phone, and print faults."""

from __future__ import annotations

import argparse
import functools
import gzip
import http.server
import io
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urljoin, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "target" / "site"
CHROMIUM = "/usr/bin/chromium"
MOST_BYTES = 1_000_000
COMPRESSED = (".css", ".html", ".js", ".json", ".svg")
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}


class _Names(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and (link := values.get("href")):
            self.links.append(link)
        for key in ("id", "name"):
            if anchor := values.get(key):
                self.anchors.add(anchor)


def names(path: Path) -> _Names:
    """Read the links and anchors of a page."""
    found = _Names()
    found.feed(path.read_text("utf-8"))
    return found


def broken_links(site: Path) -> Iterator[str]:
    """List links within the site whose page or anchor does not exist."""
    pages = {path: names(path) for path in sorted(site.rglob("*.html"))}
    for path, found in pages.items():
        place = path.relative_to(site).as_posix()
        for link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = unquote(urlsplit(urljoin(f"/{place}", link)).path).lstrip("/")
            file = site / target
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file():
                yield f"{place}: {link}: no such page"
                continue
            anchor = unquote(parts.fragment)
            # A page with scripts reads KEY=VALUE itself.
            if anchor and "=" not in anchor and file in pages and anchor not in pages[file].anchors:
                yield f"{place}: {link}: no such anchor"


def errors(kind: str, text: str) -> Iterator[str]:
    """Yield what the console says, if it is an error: a file that is missing, for example."""
    if kind == "error":
        yield f"the console has: {text}"


def open_page(browser: Browser, address: str, size: dict[str, int]) -> Iterator[str]:
    """Open a page, and list what is wrong with it."""
    page: Page = browser.new_page(viewport=size)  # type: ignore[arg-type]
    complaints: list[str] = []
    requests: list[Request] = []
    page.on("pageerror", lambda error: complaints.append(f"a script fails: {error}"))
    page.on("console", lambda line: complaints.extend(errors(line.type, line.text)))
    page.on("requestfinished", lambda request: requests.append(request))
    page.goto(address, wait_until="networkidle")
    yield from complaints
    loaded = sum(request.sizes()["responseBodySize"] for request in requests)
    if loaded > MOST_BYTES:
        yield f"the first load has {loaded:,} bytes"
    width = page.evaluate("document.documentElement.scrollWidth")
    if width > size["width"]:
        yield f"{width} pixels wide on a screen of {size['width']}"
    for one in Axe().run(page, options=RULES).response["violations"]:
        if one["impact"] in ("serious", "critical"):
            yield f"{one['id']}: {one['help']}: {one['nodes'][0]['target']}"
    page.close()


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve the site on the loopback."""
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def send_head(self) -> io.BytesIO | BinaryIO | None:
        path = Path(self.translate_path(self.path))
        if path.suffix not in COMPRESSED or not path.is_file():
            return super().send_head()
        body = gzip.compress(path.read_bytes())
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return io.BytesIO(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is its
        """Print nothing."""


def problems(site: Path, pages: Sequence[str]) -> Iterator[str]:
    """List what is wrong with the links of a site, and with some of its pages."""
    yield from broken_links(site)
    with served(site) as root, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name in pages:
            for size in (DESK, PHONE):
                for line in open_page(browser, f"{root}{name}", size):
                    yield f"{name}, {size['width']} pixels: {line}"
        browser.close()


def main() -> int:
    """Check the site."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", help="some of them; default: all")
    parser.add_argument("--site", type=Path, default=SITE)
    chosen = parser.parse_args()
    site: Path = chosen.site
    every = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    pages = chosen.pages or every
    found = 0
    for line in problems(site, pages):
        print(line, file=sys.stderr, flush=True)
        found += 1
    print(f"{len(pages)} pages opened, {found} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
