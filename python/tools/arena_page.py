"""Write what the arena has brought into its documents.

``arena_page.py FOLDER`` reads what `silvan compare --arena` has written: FOLDER is out/arena-arena,
or out/arena-arena/trials-1 of published settings alone, whose runs are next to it.
It writes docs/arena.md, the summary in docs/comparison.md, whose other text is not changed, and the
heat maps.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from marked import replaced

from silvan.comparing.arena.judge import BEST, common_cases, mean_share
from silvan.comparing.comparison import compared
from silvan.viewer.arena import largest_loss, link_title, takes_no_part

ROOT = Path(__file__).resolve().parents[2]
TOOL = "arena_page"


INTRODUCTION = """\
# The arena, case by case

All numbers behind [Schemes compared](comparison.md). The [guide](guide/comparing.md#the-arena)
explains cases and columns, the [glossary](guide/glossary.md) the abbreviations. *Reached* is the
mean over the seeds of what is to be reached, ± half of its 95 % confidence interval; *of the
best* is its part of the best one in the table. Other columns are means over the seeds; *never* is
not within the run of at least one seed. `tuned` marks rows with tuned settings; a scheme without
such a row has no parameters that are searched, or none were better than the published ones. Below a
table is who takes no part, and why; a data VL is a virtual lane (VL) for data. The command of a
case makes its table again, to the last digit, and what its settings are tuned on with it: add
`--trials 1` for published settings alone, which takes a hundredth of the time in small cases.
"""


def summary(facts: dict[str, Any], made: tuple[int, float]) -> str:
    """Write how all schemes did in all cases, with each kind of links.

    Parameters
    ----------
    facts : dict
        What arena.json has.
    made : tuple of int and float
        Number of runs, and the hours of processor time that they took.
    """
    runs, hours = made
    lines = [
        f"`{facts['command']}`, silvan {facts['version']}: {runs:,} runs, {hours:.1f} hours of "
        f"processor time. Seeds {', '.join(map(str, facts['seeds']))}; {_tuning(facts['tuning'])}.",
    ]
    lines += [
        "",
        "Schemes are in the order of their better mean over the cases that all take part in. *Of "
        "all* is that over all of their own cases. Tuned settings are the published ones where no "
        "trial was better.",
    ]
    for link in dict.fromkeys(one["link"] for one in facts["cases"]):
        lines += ["", f"### Links with {link_title(link)}", "", *_shares(facts, link)]
        lines += ["", f"![Heat map, {link_title(link)}](images/arena-{link}.png)"]
    return "\n".join(lines)


def _tuning(tuning: dict[str, Any]) -> str:
    if tuning["trials"] < 2:
        return "published settings"
    seeds = ", ".join(map(str, tuning["seeds"]))
    return f"{tuning['trials']} trials for each scheme and group of cases, on seeds {seeds}"


def _shares(facts: dict[str, Any], link: str) -> Iterator[str]:
    entries = [one for one in facts["entries"] if one["link"] == link]
    kinds = list(dict.fromkeys(one["settings"] for one in entries))
    by_scheme: dict[str, dict[str, dict[str, float]]] = {}
    for scheme in dict.fromkeys(one["scheme"] for one in entries):
        own = {
            kind: {
                one["case"]: one["share_of_best"]
                for one in entries
                if (one["scheme"], one["settings"]) == (scheme, kind)
            }
            for kind in kinds
        }
        # A case without tuned settings keeps the published ones.
        by_scheme[scheme] = {
            kind: {**own["published"], **shares} if shares else {} for kind, shares in own.items()
        }
    common = common_cases([of["published"] for of in by_scheme.values()])
    columns = [
        f"{text}{', tuned' if kind == 'tuned' else ''}"
        for kind in kinds
        for text in (f"mean of {len(common)}", "of all", f"≥ {BEST:g}", "smallest", "in")
    ]
    yield f"| scheme | cases | {' | '.join(columns)} |"
    yield f"|---|{'---|' * (len(columns) + 1)}"
    rows = []
    for scheme, of in by_scheme.items():
        best = max(mean_share(shares, common) for shares in of.values() if shares)
        cells = [cell for kind in kinds for cell in _of(of[kind], common)]
        rows.append((-best, f"| `{scheme}` | {len(of['published'])} | {' | '.join(cells)} |"))
    yield from (text for _, text in sorted(rows))


def _of(shares: dict[str, float], common: Sequence[str]) -> list[str]:
    if not shares:
        return [""] * 5
    worst = largest_loss(shares)
    return [
        f"{mean_share(shares, common):.2f}",
        f"{statistics.fmean(shares.values()):.2f}",
        str(sum(share >= BEST for share in shares.values())),
        f"{min(shares.values()):.2f}",
        f"`{worst}`" if worst else "",
    ]


def cases(facts: dict[str, Any]) -> str:
    """Write a table for each case, with what its links leave out."""
    lines: list[str] = []
    for case in facts["cases"]:
        lines += [
            "",
            f"## {case['name']}",
            "",
            f"{case['title']}. To be reached: {case['objective']}.",
        ]
        lines += ["", case["note"]] if case["note"] else []
        lines += ["", "```", case["command"], "```", ""]
        lines += _table([one for one in facts["entries"] if one["case"] == case["name"]])
        lines += [f"\n{one}" for one in takes_no_part(case["left_out"])]
    return "\n".join(lines[1:])


def _table(entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    shown = compared(entries)
    headings = [
        "scheme",
        "reached",
        "of the best",
        *(one.title for one in shown),
    ]
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in sorted(entries, key=lambda one: -one["share_of_best"]):
        name = f"`{row['scheme']}`{', tuned' if row['settings'] == 'tuned' else ''}"
        cells = [name, _reached(row), f"{row['share_of_best']:.2f}"]
        cells += [_cell(row[one.name], one.digits) for one in shown]
        yield f"| {' | '.join(cells)} |"


def _reached(row: dict[str, Any]) -> str:
    """Write what is reached, with half of its confidence interval.

    Examples
    --------
    >>> _reached({"objective": 2.71234, "objective_interval": 0.0123, "failure": None})
    '2.712 ± 0.012'
    >>> _reached({"objective": None, "objective_interval": None, "failure": None})
    'not reached'
    """
    if row["objective"] is None:
        return "failed" if row["failure"] else "not reached"
    half = row["objective_interval"]
    if isinstance(row["objective"], str) or not isinstance(half, float):
        return _cell(row["objective"], 3)
    return f"{row['objective']:.4g}" + (f" ± {half:.2g}" if half else "")


def _cell(value: float | str | None, digits: int) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:.{digits}f}"


def cost(runs: Path) -> tuple[int, float]:
    """Count the runs of a build, and the hours of processor time that they took."""
    times = [json.loads(one.read_text("utf-8"))["processor_s"] for one in runs.glob("*.json")]
    return len(times), sum(times) / 3600


def main(written: str) -> int:
    """Write the pages and copy the heat maps."""
    folder = Path(written)
    if not (folder / "arena.json").is_file():
        print(f"{folder}: no arena.json; run `silvan compare --arena` first")
        return 1
    runs = next(one for one in (folder / "runs", folder.parent / "runs") if one.is_dir())
    facts = json.loads((folder / "arena.json").read_text("utf-8"))
    docs = ROOT / "docs"
    comparison = docs / "comparison.md"
    text = summary(facts, cost(runs / facts["build"]))
    for page, whole in {
        docs / "arena.md": f"{INTRODUCTION}\n{cases(facts)}\n",
        comparison: replaced(comparison.read_text("utf-8"), text, TOOL),
    }.items():
        page.write_text(whole, encoding="utf-8")
        print(f"wrote docs/{page.name}")
    for image in sorted(folder.glob("arena-*.png")):
        shutil.copyfile(image, docs / "images" / image.name)
        print(f"wrote docs/images/{image.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
