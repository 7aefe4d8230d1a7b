"""Files of an arena: a page, and all numbers as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from silvan import _silvan
from silvan.comparing.arena.definition import Arena, Case
from silvan.comparing.arena.judge import Entry, common_cases, mean_share
from silvan.comparing.arena.run import PUBLISHED, ArenaResult
from silvan.comparing.comparison import compared
from silvan.execution.cache import build_id
from silvan.folders import write_text
from silvan.inputs.toml_text import literal
from silvan.viewer.report import Report, ReportRun, Section, Table, write_report

_LINK_TITLES = {"credits": "credits (InfiniBand)", "pfc": "PFC (Ethernet)"}

PAGE, ROWS, FACTS = "arena.html", "arena.csv", "arena.json"

_INTERVAL = "half of the 95 % confidence interval"

_NOTES = (
    "Share of the best: value of a scheme's objective in a case over that of the best scheme; 0 "
    "if a run failed or has no value. Means are over the cases that all schemes on such links "
    "take part in.",
    "Means over the seeds; ± is half of the 95 % confidence interval of the objective, by "
    "Student's t.",
)


def write_arena(
    result: ArenaResult, folder: Path, command: Sequence[str], chosen: Sequence[str] = ()
) -> list[Path]:
    """Write the page of an arena, and its numbers."""
    facts = {
        "arena": result.arena.name,
        "version": _silvan.version(),
        "build": build_id(),
        "command": shlex.join([*command, *chosen]),
        "set": dict(result.arena.given),
        "seeds": list(result.arena.seeds),
        "tuning": {"trials": result.arena.trials, "seeds": list(result.arena.tuning_seeds)},
        "tuned_settings": result.settings,
        "cases": [
            {
                "name": one.name,
                "title": one.title,
                "note": one.note,
                "link": one.link,
                "objective": str(one.objective),
                "command": _of_case(result, one, command),
                "left_out": result.absent[one.name],
            }
            for one in result.arena.cases
        ],
        "entries": [one.to_dict() for one in result.entries],
    }
    write_text(folder / FACTS, json.dumps(facts, indent=1, allow_nan=False) + "\n")
    write_text(folder / ROWS, _csv(result.entries))
    write_report(_report(result, command, chosen), folder / PAGE)
    return [folder / PAGE, folder / ROWS, folder / FACTS]


def given_values(arena: Arena) -> str:
    """Describe the settings of all scenarios of an arena in addition to its definition."""
    values = ", ".join(f"{key} = {literal(value)}" for key, value in arena.given.items())
    also = " Settings that are called published have it, too." if arena.sets_control else ""
    return f"Set in all scenarios, unless a scheme's own settings state the key: {values}.{also}"


def untuned_cases(arena: Arena) -> list[str]:
    """Say which cases have published settings only, as the case to tune them on is left out."""
    return [
        f"Settings for {', '.join(names)} are published ones only: they would be tuned on {case}, "
        "which is left out."
        for case, names in arena.untuned.items()
    ]


def losses(result: ArenaResult, link: str) -> list[tuple[str, dict[str, float], str]]:
    """List schemes with settings, share of the best by case, and worst case."""
    entries = [one for one in result.entries if one.link == link]
    rows = []
    for label in dict.fromkeys(one.label for one in entries):
        own = [one for one in entries if one.label == label]
        same = [one for one in entries if one.baseline.name == own[0].baseline.name]
        published = {one.case: one.share for one in same if one.settings == PUBLISHED}
        shares = {**published, **{one.case: one.share for one in own}}
        rows.append((label, shares, largest_loss(shares)))
    return rows


def largest_loss(shares: Mapping[str, float]) -> str:
    """Return the case with the smallest share, or nothing if every share is 1.00.

    >>> largest_loss({"incast": 0.9, "forest": 1.0}), largest_loss({"incast": 0.999})
    ('incast', '')
    """
    worst = min(shares, key=lambda case: shares[case])
    return worst if f"{shares[worst]:.2f}" != "1.00" else ""


def link_title(link: str) -> str:
    """Write a kind of links for people."""
    return _LINK_TITLES[link]


def _csv(entries: Sequence[Entry]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["case", "link", "scheme", "settings", "quantity", "mean", "ci95", "seeds"])
    for one in entries:
        row: dict[str, Any] = one.to_dict()
        halves = {**row["confidence_intervals"], "objective": row["objective_interval"]}
        for quantity in ("objective", "share_of_best", *one.numbers):
            if row[quantity] is not None:
                half = halves.get(quantity)
                key = [one.case, one.link, one.baseline.name, one.settings, quantity]
                writer.writerow([*key, row[quantity], "" if half is None else half, one.seeds])
    return text.getvalue()


def _report(result: ArenaResult, command: Sequence[str], chosen: Sequence[str]) -> Report:
    runs: list[ReportRun] = []
    sections = [_summary(result, [*command, *chosen])]
    for case in result.arena.cases:
        entries = [one for one in result.entries if one.case == case.name]
        places: list[list[int]] = []
        for one in entries:
            places.append([len(runs)])
            first = one.runs[0]
            runs.append(
                ReportRun(
                    label=f"{case.name}, {one.label}, seed {first.seed}",
                    seed=first.seed,
                    hash=first.hash,
                    scenario=first.text,
                    name=case.name,
                )
            )
        sections.append(
            Section(
                case.name,
                case.title,
                _of_case(result, case, command),
                notes=[
                    f"Links: {link_title(case.link)}.",
                    f"To be reached: {case.objective}.",
                    *([case.note] if case.note else []),
                    *(f"{one.label}: {one.failure}" for one in entries if one.failure),
                    *takes_no_part(result.absent[case.name]),
                ],
                tables=[_table(entries, places)],
            )
        )
    return Report(
        title=f"{result.arena.name}: schemes in all cases",
        made_by=f"silvan {_silvan.version()}, build {build_id()}",
        sections=sections,
        runs=runs,
        notes=_notes(result),
    )


def _of_case(result: ArenaResult, case: Case, command: Sequence[str]) -> str:
    needed = [one.name for one in (result.arena.tuned_on(case.group), case) if one is not None]
    return shlex.join([*command, "--cases", ",".join(dict.fromkeys(needed))])


def _notes(result: ArenaResult) -> list[str]:
    seeds = len(result.arena.seeds)
    notes = [f"Each run with {seeds} seed{'s' * (seeds > 1)}.", *_NOTES]
    if result.arena.given:
        notes.append(given_values(result.arena))
    notes += untuned_cases(result.arena)
    if any(result.arena.tuned_on(group) for group in result.arena.groups):
        notes.append(
            f"Tuned settings are the best of {result.arena.trials} for each scheme and group of "
            f"cases, on seeds {', '.join(map(str, result.arena.tuning_seeds))}; a scheme without "
            "tuned settings in a case has no parameters that are searched, or none were better."
        )
    return notes


def _summary(result: ArenaResult, command: Sequence[str]) -> Section:
    settings = [
        [group, scheme, key, str(value)]
        for group, schemes in result.settings.items()
        for scheme, values in schemes.items()
        for key, value in values.items()
    ]
    tables = [_shares(result, link) for link in result.arena.links]
    if len(tables) > 1:
        tables.append(_by_links(result))
    if settings:
        tables.append(Table("Tuned settings", ["group", "scheme", "key", "value"], settings))
    return Section("summary", "Losses of each scheme", shlex.join(command), tables=tables)


def _shares(result: ArenaResult, link: str) -> Table:
    names = [one.name for one in result.arena.cases if one.link == link]
    found = losses(result, link)
    common = common_cases([shares for _, shares, _ in found])
    rows: list[list[str | float | None]] = [
        [
            label,
            mean_share(shares, common),
            *map(shares.get, names),
            min(shares.values()),
            worst,
        ]
        for label, shares, worst in sorted(found, key=lambda row: -mean_share(row[1], common))
    ]
    title = f"Share of the best, {link_title(link)}"
    mean = f"mean of {len(common)}" if common else "mean"
    return Table(title, ["scheme", mean, *names, "smallest", "loses most in"], rows)


def _by_links(result: ArenaResult) -> Table:
    reached = {
        (one.case, one.label): (one.objective, one.objective_interval) for one in result.entries
    }
    known = {one.name for one in result.arena.cases}
    rows: list[list[str | float | None]] = []
    for one in result.entries:
        other = f"{one.case}-pfc"
        if one.link != "credits" or other not in known:
            continue
        pair = (reached[one.case, one.label], reached.get((other, one.label), (math.nan,) * 2))
        rows.append([one.case, one.label, *(_cell(value) for half in pair for value in half)])
    titles = [link_title(link) for link in ("credits", "pfc")]
    columns = [text for title in titles for text in (title, f"{title}, {_INTERVAL}")]
    return Table(
        "Objectives by kind of links",
        ["case", "scheme", *columns],
        rows,
        deviations={2: 3, 4: 5},
        file_only=[3, 5],
    )


def takes_no_part(absent: Mapping[str, str]) -> list[str]:
    """Say which schemes the links leave out, a line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for name, why in absent.items():
        by_reason.setdefault(why, []).append(name)
    return [f"Takes no part, as {why}: {', '.join(names)}." for why, names in by_reason.items()]


def _table(entries: Sequence[Entry], runs: Sequence[Sequence[int]]) -> Table:
    shown = compared([entry.to_dict() for entry in entries])
    columns = [
        "scheme",
        "to be reached",
        f"to be reached, {_INTERVAL}",
        "share of the best",
        *(one.title for one in shown),
        "state: switch, B per port and lane",
        "host, B",
        "B per flow",
        "M packet-hops/s",
    ]
    rows: list[list[str | float | None]] = []
    for one in entries:
        cost = one.baseline.cost
        rows.append(
            [
                one.label,
                _cell(one.objective),
                _cell(one.objective_interval),
                one.share,
                *(_cell(one.numbers[measure.name]) for measure in shown),
                cost.switch_bytes,
                cost.host_bytes,
                cost.flow_bytes,
                _cell(one.hops_per_s / 1e6),
            ]
        )
    return Table("Schemes", columns, rows, runs, deviations={1: 2}, file_only=[2])


def _cell(value: float) -> str | float | None:
    if math.isnan(value):
        return None
    return "never" if math.isinf(value) else value
