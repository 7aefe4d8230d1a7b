"""Write ``view-example.html``, a page of ``silvan view`` to try, into the documentation site."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import silvan
from silvan.viewer import write_page

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "studies" / "gran2012" / "table2.toml"
RECORDED = {
    "run.duration": "20 ms",
    "probe.interval": "200 us",
    "probe.ports": True,
    "probe.classes": True,
    "probe.latency": "host",
    "probe.trees": {"interval": "200 us"},
}
NAME = "view-example.html"
TITLE = "Eight congestion trees in a fabric of 648 hosts"


def main() -> int:
    """Simulate, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    result = silvan.run(silvan.Scenario.from_file(SCENARIO, overrides=RECORDED))
    path = write_page([result], folder / NAME, title=TITLE)
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
