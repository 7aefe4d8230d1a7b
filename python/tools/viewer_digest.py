"""Name the sources of the viewer by a digest, which shows that the stored build is theirs."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "viewer"
DIGEST = ROOT / "python" / "silvan" / "viewer" / "assets" / "sources.sha256"
BUILT = ("viewer.js", "viewer.css")


def sources() -> list[Path]:
    """List the files that decide what is built."""
    settings = ("package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")
    return [*(SOURCES / name for name in settings), *sorted((SOURCES / "src").rglob("*.*"))]


def digest() -> str:
    """Name sources and built files."""
    total = hashlib.sha256()
    for path in [*sources(), *(DIGEST.parent / name for name in BUILT)]:
        total.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def main() -> int:
    """Write the digest with --write; else compare it."""
    if "--write" in sys.argv[1:]:
        DIGEST.write_text(digest() + "\n", encoding="utf-8")
        return 0
    if DIGEST.read_text("utf-8").strip() != digest():
        print("the built viewer is not that of viewer/: run make viewer", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
