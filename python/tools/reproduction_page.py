"""Write the numbers and images of OUT/PAPER/reproduction.json into pages and README."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from marked import replaced

from silvan.reproduce import find_paper, papers

ROOT = Path(__file__).resolve().parents[2]
TOOL = "reproduction_page"
NOT_RUN = "not run"
GRID_COLUMNS = 4
SMALLEST_SPREAD = 0.001
"""Standard deviation, relative to the mean, from which on a row shows it."""

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
    numbered = [row for row in targets if row["paper"] is not None]
    seeds = statistics.mode([len(row["values"]) for row in numbered]) if numbered else 0
    rows = [_number_row(row, seeds) for row in numbered]
    if grid := _grid(numbered):
        rows = ["", *grid]
    elif rows:
        head = "| target | paper | measured (seeds) | difference | steady state |"
        rows = ["", head, "|---|---|---|---|---|", *rows]
    return "\n".join(
        [
            *_cost(reproduction, seeds),
            *rows,
            "",
            "| shape | within tolerance | steady state | rule, and what it missed |",
            "|---|---|---|---|",
            *(_shape_row(row) for row in targets if row["paper"] is None),
            *(f"| `{name}` | {NOT_RUN} | | |" for name in left_out),
            "",
            *_notes(targets),
            *_unmeasured(reproduction["paper"]),
        ]
    )


def _cost(reproduction: dict[str, Any], seeds: int) -> Iterator[str]:
    runs = reproduction["runs"]
    hops = sum(run["packet_hops"] for run in runs)
    wall_s = sum(run["wall_s"] for run in runs)
    wall = f"{wall_s / 60:.0f} minutes" if wall_s >= 120 else f"{wall_s:.0f} seconds"
    yield (
        f"{len(runs)} runs of silvan {reproduction['version']}, {hops / 1e9:.1f} G packet-hops, "
        f"{wall} of wall time. Bold is out of tolerance; an empty steady state is as measured."
    )
    if seeds:
        yield (
            f"Values have {seeds} {'seed' if seeds == 1 else 'seeds'}, or those in parentheses; "
            f"± from {SMALLEST_SPREAD:.1%} on."
        )


def _number_row(row: dict[str, Any], seeds: int) -> str:
    is_spread = (row["spread"] or 0) >= SMALLEST_SPREAD * abs(row["measured"])
    spread = f" ± {row['spread']:.2g}" if is_spread and row["spread"] else ""
    count = "" if len(row["values"]) == seeds else f" ({len(row['values'])})"
    star = "*" if row["calibrated"] else ""
    measured, steady = f"{row['measured']:.4g}", f"{row['steady']:.4g}"
    cells = (
        f"`{row['id']}`{star}",
        f"{row['paper']:.6g}",
        f"{measured}{spread}{count}",
        _bold_if(f"{100 * row['rel_diff']:+.1f} %", wrong=not row["within_tolerance"]),
        "" if steady == measured else _bold_if(steady, wrong=not row["within_tolerance_steady"]),
    )
    return f"| {' | '.join(cells)} |"


def _grid(rows: list[dict[str, Any]]) -> list[str]:
    """Write targets named PAPER.ROW.COLUMN as one table, if each row has each column.

    A cell has the paper's number and the measured one.
    """
    names = [row["id"].rpartition(".") for row in rows]
    heads = list(dict.fromkeys(name for name, _, _ in names))
    columns = list(dict.fromkeys(column for _, _, column in names))
    if len(columns) < GRID_COLUMNS or len(rows) != len(heads) * len(columns):
        return []
    cells = {row["id"]: _grid_cell(row) for row in rows}
    return [
        "Cells have the paper's number, then the measured one.",
        "",
        f"| target | {' | '.join(columns)} |",
        f"|{'---|' * (len(columns) + 1)}",
        *(
            f"| `{head}` | {' | '.join(cells[f'{head}.{column}'] for column in columns)} |"
            for head in heads
        ),
    ]


def _grid_cell(row: dict[str, Any]) -> str:
    star = "*" if row["calibrated"] else ""
    measured = _bold_if(f"{row['measured']:.4g}", wrong=not row["within_tolerance"])
    return f"{row['paper']:.6g}{star}, {measured}"


def _shape_row(row: dict[str, Any]) -> str:
    found = f"{row['rule']}."
    if not (row["within_tolerance"] and row["within_tolerance_steady"]):
        found += f" Found: {row['found']}."
    if row["within_tolerance"] != row["within_tolerance_steady"]:
        found += f" Steady state: {row['found_steady']}."
    verdict, steady = map(_yes_or_no, (row["within_tolerance"], row["within_tolerance_steady"]))
    return f"| `{row['id']}` | {verdict} | {'' if steady == verdict else steady} | {found} |"


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
        spread = f" ± {row['spread']:.3f}" if (row["spread"] or 0) >= SMALLEST_SPREAD else ""
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
