"""Write the numbers and images of finished reproductions into their pages and the README.

``reproduction_page.py OUT`` reads OUT/PAPER/reproduction.json of every paper that is there. Other
text of the pages is not changed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from marked import replaced

from silvan.reproduce import find_paper, papers

ROOT = Path(__file__).resolve().parents[2]
TOOL = "reproduction_page"
NOT_RUN = "not run"

# The README's rows of Table II by target.
_TABLE2 = {
    "table2.nohot.cc_off": "no hotspots, CC off: all hosts",
    "table2.nohot.cc_on": "no hotspots, CC on: all hosts",
    "table2.hot.cc_off.hotspots": "8 hotspots, CC off: hotspots",
    "table2.hot.cc_off.nonhotspots": "8 hotspots, CC off: other hosts",
    "table2.hot.cc_on.hotspots": "8 hotspots, CC on: hotspots",
    "table2.hot.cc_on.nonhotspots": "8 hotspots, CC on: other hosts",
    "table2.total.cc_off": "total, CC off",
    "table2.total.cc_on": "total, CC on",
}


def numbers(reproduction: dict[str, Any]) -> str:
    """Write the targets of all experiments as Markdown tables, and what it cost."""
    targets = [row for one in reproduction["experiments"] for row in one["targets"]]
    evaluated = {row["id"] for row in targets}
    left_out = [name for name in find_paper(reproduction["paper"]).targets if name not in evaluated]
    rows = [_number_row(row) for row in targets if row["paper"] is not None]
    if rows:
        head = "| target | paper | measured (seeds) | difference | steady state |"
        rows = ["", head, "|---|---|---|---|---|", *rows]
    return "\n".join(
        [
            *_cost(reproduction),
            *rows,
            "",
            "| shape | within tolerance | steady state within tolerance | found |",
            "|---|---|---|---|",
            *(_shape_row(row) for row in targets if row["paper"] is None),
            *(f"| `{name}` | {NOT_RUN} | {NOT_RUN} | |" for name in left_out),
            "",
            *_notes(targets),
            *_unmeasured(reproduction["paper"]),
        ]
    )


def _cost(reproduction: dict[str, Any]) -> Iterator[str]:
    runs = reproduction["runs"]
    hops = sum(run["packet_hops"] for run in runs)
    wall_s = sum(run["wall_s"] for run in runs)
    wall = f"{wall_s / 60:.0f} minutes" if wall_s >= 120 else f"{wall_s:.0f} seconds"
    yield (
        f"{len(runs)} runs of silvan {reproduction['version']}, {hops / 1e9:.1f} G packet-hops, "
        f"{wall} of wall time, added up. Bold is not within the tolerance; an empty steady state "
        "is as measured."
    )


def _number_row(row: dict[str, Any]) -> str:
    spread = "" if row["spread"] is None else f" ± {row['spread']:.2g}"
    star = "*" if row["calibrated"] else ""
    measured, steady = f"{row['measured']:.4g}", f"{row['steady']:.4g}"
    cells = (
        f"`{row['id']}`{star}",
        f"{row['paper']:.6g}",
        f"{measured}{spread} ({len(row['values'])})",
        _bold_if(f"{100 * row['rel_diff']:+.1f} %", wrong=not row["within_tolerance"]),
        "" if steady == measured else _bold_if(steady, wrong=not row["within_tolerance_steady"]),
    )
    return f"| {' | '.join(cells)} |"


def _shape_row(row: dict[str, Any]) -> str:
    found = f"Rule: {row['rule']}. Found: {row['found']}."
    if row["within_tolerance"] != row["within_tolerance_steady"]:
        found += f" Steady state: {row['found_steady']}."
    verdicts = (_yes_or_no(row["within_tolerance"]), _yes_or_no(row["within_tolerance_steady"]))
    return f"| `{row['id']}` | {' | '.join((*verdicts, found))} |"


def _notes(targets: list[dict[str, Any]]) -> Iterator[str]:
    """Each note once, with all of its targets."""
    for note in dict.fromkeys(row["note"] for row in targets if row.get("note")):
        names = ", ".join(f"`{row['id']}`" for row in targets if row.get("note") == note)
        yield f"- {names}: {note}."


def _bold_if(text: str, *, wrong: bool) -> str:
    return f"**{text}**" if wrong else text


def _unmeasured(paper: str) -> Iterator[str]:
    stated = find_paper(paper).unmeasured
    if stated:
        yield from ("", "| stated, not measured | why |", "|---|---|")
        yield from (f"| `{one.id}`: {one.what} | {one.why} |" for one in stated)


def _yes_or_no(value: bool) -> str:  # noqa: FBT001 - there is nothing else to say
    return "yes" if value else "**no**"


def table2(reproduction: dict[str, Any]) -> str:
    """Write Table II of gran2012 for the README."""
    targets = {row["id"]: row for one in reproduction["experiments"] for row in one["targets"]}
    lines = [
        "| 648-host fat tree | paper | silvan, 0 to 100 ms (seeds) | silvan, last 30 ms |",
        "|---|---|---|---|",
    ]
    for name, words in _TABLE2.items():
        row = targets[name]
        spread = "" if row["spread"] is None else f" ± {row['spread']:.3f}"
        measured = f"{row['measured']:.3f}{spread} ({len(row['values'])})"
        lines.append(f"| {words} | {row['paper']:.3f} | {measured} | {row['steady']:.3f} |")
    return "\n".join(lines)


def image_name(paper: str, figure: str) -> str:
    """Name the image of a figure in docs/images."""
    return "table2.png" if figure == "table2" else f"{paper}-{figure}.png"


def write_page(paper: str, folder: Path, root: Path = ROOT) -> list[Path]:
    """Write a paper's reproduction into the documents; only existing images are replaced."""
    reproduction = json.loads((folder / "reproduction.json").read_text("utf-8"))
    texts = {root / "docs" / "reproductions" / f"{paper}.md": numbers(reproduction)}
    if paper == "gran2012":
        texts[root / "README.md"] = table2(reproduction)
    for page, text in texts.items():
        page.write_text(replaced(page.read_text("utf-8"), text, TOOL), encoding="utf-8")
    written = list(texts)
    for figure in sorted(folder.glob("*.png")):
        image = root / "docs" / "images" / image_name(paper, figure.stem)
        if image.is_file():
            shutil.copyfile(figure, image)
            written.append(image)
    return written


def main(out: str) -> int:
    """Write the pages of all papers that were reproduced into a folder."""
    done = [paper for paper in papers() if (Path(out) / paper / "reproduction.json").is_file()]
    if not done:
        print(f"{out}: no reproduction.json of any paper; run `make check-papers` first")
        return 1
    for paper in done:
        for path in write_page(paper, Path(out) / paper):
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
