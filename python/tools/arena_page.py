"""Write what the arena has brought into its documents.

``arena_page.py OUT`` reads OUT/arena-arena, which `silvan compare --arena --out OUT` has written.
It writes docs/arena.md, the summary in docs/comparison.md, and the heat maps. Other text of the
pages is not changed.
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

ROOT = Path(__file__).resolve().parents[2]
TOOL = "arena_page"
BEST = 0.95
"""Share of the best from which on a scheme counts as one of the best."""

# Name, heading, decimal places.
QUANTITIES = (
    ("victims_gbps", "victims, Gbit/s", 2),
    ("programs_ms", "programs end, ms", 3),
    ("flows_ms", "flows end, ms", 2),
    ("slowdown_p50", "slowdown, median", 2),
    ("slowdown_p99", "slowdown, 99 %", 2),
    ("hotspot_utilisation", "hotspot link", 2),
    ("fairness", "fairness", 2),
    ("latency_p999_us", "latency 99.9 %, µs", 1),
    ("queued_mb", "most queued, MB", 3),
    ("dissolved_ms", "cleared after, ms", 1),
    ("recovered_ms", "recovered after, ms", 1),
    ("messages", "messages", 3),
)
_LINKS = {"credits": "credits (InfiniBand)", "pfc": "PFC (Ethernet)"}


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
    trials = facts["tuning"]["trials"]
    tuning = ", ".join(map(str, facts["tuning"]["seeds"]))
    lines = [
        f"`{facts['command']}`, silvan {facts['version']}: {runs:,} runs, {hours:.1f} hours of "
        f"processor time. Seeds {', '.join(map(str, facts['seeds']))}; {trials} trials for each "
        f"scheme and group of cases, on seeds {tuning}.",
    ]
    for link in dict.fromkeys(one["link"] for one in facts["cases"]):
        lines += ["", f"### {_title(link)}", "", *_shares(facts, link)]
        lines += ["", f"![Heat map, {_LINKS[link]}](images/arena-{link}.png)"]
    return "\n".join(lines)


def _title(link: str) -> str:
    return f"Links with {_LINKS[link]}"


def _shares(facts: dict[str, Any], link: str) -> Iterator[str]:
    entries = [one for one in facts["entries"] if one["link"] == link]
    kinds = list(dict.fromkeys(one["settings"] for one in entries))
    columns = [
        f"{text}{', tuned' if kind == 'tuned' else ''}"
        for kind in kinds
        for text in ("mean", f"≥ {BEST:g}", "smallest", "in")
    ]
    yield f"| scheme | cases | {' | '.join(columns)} |"
    yield f"|---|{'---|' * (len(columns) + 1)}"
    rows = []
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
        of = {kind: {**own["published"], **shares} for kind, shares in own.items()}
        best = max(statistics.fmean(shares.values()) for shares in of.values())
        cells = [cell for kind in kinds for cell in _of(of[kind] if own[kind] else {})]
        rows.append((-best, f"| `{scheme}` | {len(own['published'])} | {' | '.join(cells)} |"))
    yield from (text for _, text in sorted(rows))


def _of(shares: dict[str, float]) -> list[str]:
    if not shares:
        return [""] * 4
    worst = min(shares, key=lambda case: shares[case])
    return [
        f"{statistics.fmean(shares.values()):.2f}",
        str(sum(share >= BEST for share in shares.values())),
        f"{shares[worst]:.2f}",
        f"`{worst}`",
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
        lines += ["", "```", case["command"], "```", ""]
        lines += _table([one for one in facts["entries"] if one["case"] == case["name"]])
        lines += ["", *_absent(case["left_out"])] if case["left_out"] else []
    return "\n".join(lines[1:])


def _absent(left_out: dict[str, str]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for name, why in left_out.items():
        by_reason.setdefault(why, []).append(f"`{name}`")
    for why, names in by_reason.items():
        yield f"- Takes no part, as {why}: {', '.join(names)}."


def _table(entries: Sequence[dict[str, Any]]) -> Iterator[str]:
    shown = [one for one in QUANTITIES if any(row[one[0]] is not None for row in entries)]
    headings = ["scheme", "reached", "of the best", *(heading for _, heading, _ in shown)]
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    for row in sorted(entries, key=lambda one: -one["share_of_best"]):
        name = f"`{row['scheme']}`{', tuned' if row['settings'] == 'tuned' else ''}"
        cells = [name, _reached(row), f"{row['share_of_best']:.2f}"]
        cells += [_cell(row[quantity], digits) for quantity, _, digits in shown]
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


def cost(folder: Path) -> tuple[int, float]:
    """Count the runs of an arena, and the hours of processor time that they took."""
    (build,) = (one for one in (folder / "runs").iterdir() if one.is_dir())
    times = [json.loads(one.read_text("utf-8"))["processor_s"] for one in build.glob("*.json")]
    return len(times), sum(times) / 3600


def main(out: str) -> int:
    """Write the pages and copy the heat maps."""
    folder = Path(out) / "arena-arena"
    if not (folder / "arena.json").is_file():
        print(f"{folder}: no arena.json; run `silvan compare --arena --out {out}` first")
        return 1
    facts = json.loads((folder / "arena.json").read_text("utf-8"))
    docs = ROOT / "docs"
    for name, text in {
        "arena.md": cases(facts),
        "comparison.md": summary(facts, cost(folder)),
    }.items():
        page = docs / name
        page.write_text(replaced(page.read_text("utf-8"), text, TOOL), encoding="utf-8")
        print(f"wrote docs/{name}")
    for image in sorted(folder.glob("arena-*.png")):
        shutil.copyfile(image, docs / "images" / image.name)
        print(f"wrote docs/images/{image.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
