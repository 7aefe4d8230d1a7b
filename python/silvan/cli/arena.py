"""Execution and output of `silvan compare --arena`."""

from __future__ import annotations

import hashlib
import os
import re
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from silvan.cli.options import added_scheme, require_size, wall_time
from silvan.cli.printer import note, put_json, put_table
from silvan.cli.searches import begin_on
from silvan.inputs.wording import duration

if TYPE_CHECKING:
    from rich.table import Table

    from silvan.comparing.arena import Arena, ArenaProgress, ArenaResult, Estimate

OPTIONS = (
    *("--quick", "--cases", "--links", "--trials", "--plan"),
    *("--scheduler", "--workers", "--run-timeout"),
)

_LONGEST_NAME = 100


def compare_arena(
    file: Path | None,
    schemes: Sequence[str],
    *,
    seeds: int | None,
    assignments: list[str] | None,
    scheme: str | None,
    listed: str | None,
    out: Path,
    quick: bool,
    cases: str | None,
    links: str | None,
    trials: int | None,
    plan: bool,
    scheduler: str,
    workers: int | None,
    run_timeout: str | None,
    is_wanted: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Run an arena, print where each scheme loses, and write page and numbers."""
    from silvan import _silvan
    from silvan.comparing.arena import arena_runs, plan_arena, read_arena, run_arena
    from silvan.execution.progress_bar import progress_bar
    from silvan.folders import Origin, claim_figures, exclusive, require_origin
    from silvan.viewer.arena import given_values, untuned_cases, write_arena

    if quick and trials is not None:
        raise typer.BadParameter(
            "--quick runs published settings alone, which no trial changes", param_hint="--trials"
        )
    overrides, added = added_scheme(scheme, assignments)

    def wanted(*, reduced: bool) -> Arena:
        arena = read_arena(file, quick=reduced)
        kinds = _names(links) if links is not None else []
        if cases is not None:
            arena = arena.only(_names(cases), kinds)
        elif kinds:
            arena = arena.on_links(kinds)
        arena = arena.override(overrides)
        if seeds is not None:
            arena = _with_seeds(arena, seeds)
        return arena if trials is None else replace(arena, trials=trials)

    arena = wanted(reduced=quick)
    if arena.sets_control:
        note(given_values(arena))
    for line in untuned_cases(arena):
        note(f"{line} Name it in --cases, too, to tune them.")
    begin_on(scheduler)
    limit_s = None if run_timeout is None else wall_time("--run-timeout", run_timeout)
    begin = ["silvan", "compare", *([str(file)] if file else []), "--arena"]
    words = ["--quick"] if quick else []
    words += [] if listed is None else ["--schemes", ",".join(_names(listed))]
    words += [word for one in assignments or [] for word in ("--set", one)]
    words += ["--seeds", str(seeds)] if seeds is not None else []
    words += ["--trials", str(trials)] if trials is not None else []
    chosen = [
        word
        for option, listed in (("--cases", cases), ("--links", links))
        for word in ([option, ",".join(_names(listed))] if listed else [])
    ]
    root = out / f"arena-{arena.name}"
    folder = root / _selection([*words, *chosen])
    origin = Origin(arena.name, arena.hash, _silvan.version())
    if not plan:
        require_origin(folder, origin, overwrite=overwrite, what="arena")
        sizes = arena_runs(arena, schemes, added=added)
        if size := require_size(sizes, is_wanted=is_wanted, workers=workers):
            note(size)
    with progress_bar(arena.name) as update, _reported_when_stopped() as latest:

        def report(state: ArenaProgress) -> None:
            latest[:] = [state]
            part = state.done / max(state.total, 1)
            update(part, f"{state.step}: {state.done} of {state.total}")

        if plan:
            planned = plan_arena(
                arena,
                wanted(reduced=True),
                root / "runs",
                schemes,
                added=added,
                scheduler=scheduler,
                workers=workers,
                run_timeout_s=limit_s,
                report=report,
            )
        else:
            result = run_arena(
                arena,
                root / "runs",
                schemes,
                added=added,
                scheduler=scheduler,
                workers=workers,
                run_timeout_s=limit_s,
                report=report,
            )
    if plan:
        _put_plan(arena, planned, workers, as_json=as_json)
        return
    _put_left_out(result)
    claim_figures(folder, "arena*.*", origin, overwrite=overwrite, what="arena")
    with exclusive(folder, "arena"):
        files = write_arena(result, folder, [*begin, *words], chosen)
        drawn = _draw(result, folder)
    if as_json:
        put_json([one.to_dict() for one in result.entries])
    else:
        put_table(_table(result))
    note(f"{_count(result.made, 'run')} made in {result.wall_s:.0f} s; kept in {root / 'runs'}")
    note(f"wrote {files[0]}, and all numbers as CSV and JSON")
    note(f"wrote {' and '.join(map(str, drawn))}, and the same as SVG")
    failed = [one for one in result.entries if one.failure]
    for one in failed:
        note(f"error: {one.case}, {one.label}: {one.failure}")
    if failed:
        note("hint: what is finished is kept, and the same command tries these runs again")
        raise typer.Exit(1)


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",")]


@contextmanager
def _reported_when_stopped() -> Iterator[list[ArenaProgress]]:
    latest: list[ArenaProgress] = []
    try:
        yield latest
    except KeyboardInterrupt:
        for state in latest:
            note(f"{state.step}: {state.done} of {_count(state.total, 'run')} done")
        raise


def _selection(words: Sequence[str]) -> str:
    name = "-".join(word.removeprefix("--") for word in words)
    plain = re.sub(r"[^\w.,=-]", "_", name)
    if plain == name and len(plain) <= _LONGEST_NAME:
        return plain
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[:_LONGEST_NAME]}-{digest}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _put_left_out(result: ArenaResult) -> None:
    of: dict[str, list[str]] = {}
    for case, absent in result.absent.items():
        for scheme in absent:
            of.setdefault(scheme, []).append(case)
    by_link = {
        link: [one.name for one in result.arena.cases if one.link == link]
        for link in result.arena.links
    }
    for scheme, cases in of.items():
        listed: list[str] = []
        for link, names in by_link.items():
            missed = [name for name in names if name in cases]
            whole = missed == names and len(names) > 1
            listed += [f"all on links with {link}"] if whole else missed
        note(f"{scheme} takes no part in {_count(len(cases), 'case')}: {', '.join(listed)}")
    if of:
        note("the page says why")


def _draw(result: ArenaResult, folder: Path) -> list[Path]:
    from silvan.comparing.arena.definition import LINKS
    from silvan.comparing.arena.figure import draw_arena
    from silvan.viewer.arena import link_title, losses

    for link in LINKS:
        for stale in folder.glob(f"arena-{link}.*"):
            stale.unlink()
    drawn = []
    for link in result.arena.links:
        files = draw_arena(
            [(label, shares) for label, shares, _ in losses(result, link)],
            [one.name for one in result.arena.cases if one.link == link],
            title=f"{result.arena.name}: {link_title(link)}",
            folder=folder,
            stem=f"arena-{link}",
        )
        drawn.append(files[0])
    return drawn


def _put_plan(
    arena: Arena, planned: Sequence[Estimate], workers: int | None, *, as_json: bool
) -> None:
    if as_json:
        put_json([{**asdict(one), "processor_s": one.processor_s} for one in planned])
        return
    for column in ("scheme", "case"):
        put_table(_plan_table(arena, planned, column))
    total_s = sum(one.processor_s for one in planned)
    cores = workers or os.cpu_count() or 1
    known = sum(one.is_measured for one in planned)
    note(
        f"{_count(sum(one.points for one in planned), 'run')}, {duration(total_s)} of processor "
        f"time: {duration(total_s / cores)} on {cores} core{'s' * (cores > 1)}"
    )
    note(
        f"measured in {known} of {len(planned)} pairs of case and scheme; the others by the "
        "reduced case, times what the full one takes of it without control"
    )


def _plan_table(arena: Arena, planned: Sequence[Estimate], column: str) -> Table:
    from rich.table import Table

    table = Table(title=f"{arena.name}: what it takes, by {column}")
    table.add_column(column, no_wrap=True)
    headings = ("runs", "of these\ntrials", "M packet-hops/s\nmedian", "a run, s\nmean", "hours")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    groups: dict[str, list[Estimate]] = {}
    for one in planned:
        groups.setdefault(getattr(one, column), []).append(one)
    hours = {name: sum(one.processor_s for one in of) / 3600 for name, of in groups.items()}
    for name in sorted(groups, key=lambda name: -hours[name]):
        of = groups[name]
        points = sum(one.points for one in of)
        table.add_row(
            name,
            str(points),
            str(sum(one.trials for one in of)),
            f"{statistics.median(one.hops_per_s for one in of) / 1e6:.2f}",
            f"{hours[name] * 3600 / points:.2f}",
            f"{hours[name]:.3f}",
        )
    return table


def _with_seeds(arena: Arena, seeds: int) -> Arena:
    from silvan.errors import SilvanError
    from silvan.sweeping.plan import require_few

    require_few(seeds * len(arena.cases))
    chosen = tuple(range(arena.seeds[0], arena.seeds[0] + seeds))
    both = set(chosen) & set(arena.tuning_seeds)
    if both:
        raise SilvanError(
            f"--seeds {seeds}: seed {min(both)} is one that settings are tuned with",
            f"give at most {min(both) - chosen[0]}",
        )
    return replace(arena, seeds=chosen)


def _table(result: ArenaResult) -> Table:
    from rich.table import Table

    from silvan.comparing.arena.judge import BEST, common_cases, mean_share
    from silvan.viewer.arena import link_title, losses

    arena = result.arena
    kinds = " and ".join(link_title(link) for link in arena.links)
    seeds = "one seed" if len(arena.seeds) == 1 else f"{len(arena.seeds)} seeds"
    table = Table(
        title=f"{arena.name}: {_count(len(arena.cases), 'case')} on links with {kinds}, {seeds}",
        caption="Share of the best: value of a scheme's objective in a case over that of the best "
        "scheme; 0 if a run failed or has no value. Common cases: those that all schemes on such "
        "links take part in.",
    )
    table.add_column("scheme", no_wrap=True)
    table.add_column("links", no_wrap=True)
    for heading in (
        "cases",
        "share of the\nbest, mean",
        "in common\ncases, mean",
        f"at least {BEST:g}\nof the best in",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("smallest", justify="right", no_wrap=True)
    table.add_column("loses most in", no_wrap=True)
    found = {link: losses(result, link) for link in arena.links}
    common = {link: common_cases([of for _, of, _ in rows]) for link, rows in found.items()}
    rows = [
        (link, *row)
        for link, of_link in found.items()
        for row in sorted(of_link, key=lambda row: -mean_share(row[1], common[link]))
    ]
    for link, label, shares, worst in rows:
        values = list(shares.values())
        table.add_row(
            label,
            link,
            str(len(values)),
            f"{statistics.fmean(values):.2f}",
            f"{mean_share(shares, common[link]):.2f}",
            str(sum(value >= BEST for value in values)),
            f"{min(shares.values()):.2f}",
            worst,
        )
    return table
