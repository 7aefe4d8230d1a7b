"""Write a reproduction's numbers into its page, from the JSON file that the reproduction left."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from silvan.reproduce import load_targets

BEGIN = "<!-- numbers: written by python/tools/reproduction_page.py -->"
END = "<!-- end of numbers -->"
NOT_RUN = "not run"


def numbers(reproduction: dict[str, Any]) -> str:
    """Write the targets of all experiments as Markdown tables, and what it cost."""
    targets = [row for one in reproduction["experiments"] for row in one["targets"]]
    evaluated = {row["id"] for row in targets}
    left_out = [name for name in load_targets(reproduction["paper"]) if name not in evaluated]
    return "\n".join(
        [
            *_cost(reproduction),
            "",
            "| target | paper | measured | difference | within | late | late within |",
            "|---|---|---|---|---|---|---|",
            *(_number_row(row) for row in targets if row["paper"] is not None),
            "",
            "| shape | within | late within | found |",
            "|---|---|---|---|",
            *(_shape_row(row) for row in targets if row["paper"] is None),
            *(f"| `{name}` | {NOT_RUN} | {NOT_RUN} | |" for name in left_out),
            "",
            *_notes(targets),
        ]
    )


def _cost(reproduction: dict[str, Any]) -> Iterator[str]:
    runs = reproduction["runs"]
    hops = sum(run["packet_hops"] for run in runs)
    wall_s = sum(run["wall_s"] for run in runs)
    yield (
        f"{len(runs)} runs of silvan {reproduction['version']}, {hops / 1e9:.1f} G packet-hops, "
        f"{wall_s / 60:.0f} minutes of wall time, added up."
    )


def _number_row(row: dict[str, Any]) -> str:
    spread = "" if row["spread"] is None else f" ± {row['spread']:.2g}"
    star = "*" if row["calibrated"] else ""
    cells = (
        f"`{row['id']}`{star}",
        f"{row['paper']:.10g}",
        f"{row['measured']:.4g}{spread}",
        f"{100 * row['rel_diff']:+.1f} %",
        _yes_or_no(row["within"]),
        f"{row['late']:.4g}",
        _yes_or_no(row["within_late"]),
    )
    return f"| {' | '.join(cells)} |"


def _shape_row(row: dict[str, Any]) -> str:
    cells = (
        f"`{row['id']}`",
        _yes_or_no(row["within"]),
        _yes_or_no(row["within_late"]),
        f"Rule: {row['rule']}. Found: {row['found']}. Late: {row['found_late']}.",
    )
    return f"| {' | '.join(cells)} |"


def _notes(targets: list[dict[str, Any]]) -> Iterator[str]:
    for row in targets:
        if row.get("note"):
            yield f"- `{row['id']}`: {row['note']}."


def _yes_or_no(value: bool) -> str:  # noqa: FBT001 - there is nothing else to say
    return "yes" if value else "**no**"


def replaced(page: str, text: str) -> str:
    r"""Put text between the marks of a page.

    Examples
    --------
    >>> replaced(f"before\n{BEGIN}\nold\n{END}\nafter", "new").splitlines()[2]
    'new'
    """
    before, found, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise ValueError(f"the page has no place for numbers, between {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main(reproduction: str, page: str) -> int:
    """Write the numbers of a reproduction into a page."""
    text = numbers(json.loads(Path(reproduction).read_text("utf-8")))
    target = Path(page)
    target.write_text(replaced(target.read_text("utf-8"), text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
