"""Write the result of an arena (``silvan compare --arena``) in FOLDER into the documents."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from marked import replaced

from silvan.comparing.arena.judge import BEST, common_cases, mean_share
from silvan.comparing.comparison import COMPARED
from silvan.results.measures import OF_COMPARISONS
from silvan.viewer.arena import largest_loss, link_title

ROOT = Path(__file__).resolve().parents[2]
TOOL = "arena_page"
VIEWER = "arena-viewer.html"
DATA = "arena-data.js"

_SHOWN = {one.name for one in COMPARED}

_COSTS = {
    "message_kinds": ("messages", ""),
    "switch_bytes_per_port_vl": ("switch state", "B per port and lane"),
    "host_bytes": ("host state", "B"),
    "flow_bytes": ("host state per flow", "B"),
    "packet_hops_per_s": ("simulation speed", "packet-hops/s"),
}

_REACHED = "the case's objective; the unit is that of its measure"

Case = Mapping[str, Any]
Entry = Mapping[str, Any]

PAGE = """\
# The arena, case by case

`silvan compare --arena` runs every scheme in the same cases, on links with credits (InfiniBand) and
with PFC (Ethernet). [Schemes compared](comparison.md#in-short) has the findings, the
[guide](guide/comparing.md#the-arena) the options. The [glossary](guide/glossary.md#schemes)
explains names.

**[Open the viewer]({viewer})** for all numbers of any case and scheme, with confidence intervals,
bytes of state and tuned settings. It works offline, from `docs/{viewer}` of a checkout.

```
{command}
silvan compare --arena --trials 1 --cases NAME
```

The first command made this page with silvan {version}: {made},
{seeds}; {tuning}. The second runs one case; the viewer has the command that also tunes settings.

## Cases

The objective is a formula of [measures](reference/measures.md). The last columns have the best
scheme and its mean over the seeds, with a link to all schemes of the case.

{cases}

Values that differ by less than their confidence intervals are equally good. *Never*: the run of at
least one seed ends before the objective is reached.

## Data

[{data}]({data}) has every number, as JSON between the first `=` and the last `;`:

```python
import json
from pathlib import Path

text = Path("docs/{data}").read_text("utf-8")
arena = json.loads(text.partition("=")[2].rstrip().rstrip(";"))
```

| key | content |
|---|---|
| `about` | command, version, seeds, tuning, runs, processor hours |
| `columns` | by name the heading, unit, definition, and better direction |
| `settings` | tuned settings by group and scheme |
| `cases` | name, objective, command, note, `left_out`, `columns`, and `rows` with their values |

`NAME_ci95` is half of the 95 % confidence interval of the mean `NAME` (Student's t). Values have
{digits} significant digits, intervals 2. `null` is no value, `"never"` an infinite one; `failure`
gives the reason of a run without a result.
"""

_DIGITS = 4


def page(facts: Mapping[str, Any], made: tuple[int, float]) -> str:
    """Write the page: the cases, and the best scheme of each."""
    return PAGE.format(
        viewer=VIEWER,
        data=DATA,
        digits=_DIGITS,
        command=facts["command"],
        version=facts["version"],
        made=_made(made),
        seeds=_seeds(facts["seeds"]),
        tuning=_tuning(facts["tuning"]),
        cases="\n".join(_cases(facts)),
    )


def _made(made: tuple[int, float]) -> str:
    """Write the number of runs and their processor time.

    >>> _made((1234, 5.67)), _made((7, 0.05))
    ('1,234 runs, 5.7 hours of processor time', '7 runs, 3 minutes of processor time')
    """
    runs, hours = made
    time = f"{hours:.1f} hours" if hours >= 1 else f"{hours * 60:.0f} minutes"
    return f"{runs:,} runs, {time} of processor time"


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def _tuning(tuning: Mapping[str, Any]) -> str:
    if tuning["trials"] < 2:
        return "published settings alone"
    return (
        f"{tuning['trials']} trials for each scheme and group of cases, on "
        f"{_seeds(tuning['seeds'])}"
    )


def _cases(facts: Mapping[str, Any]) -> Iterator[str]:
    cases: Sequence[Case] = facts["cases"]
    links = list(dict.fromkeys(one["link"] for one in cases))
    yield f"| case | traffic | objective | {' | '.join(map(link_title, links))} |"
    yield f"|{'---|' * (len(links) + 3)}"
    for name in dict.fromkeys(map(plain, cases)):
        same = {one["link"]: one for one in cases if plain(one) == name}
        first = next(iter(same.values()))
        title = first["title"].removesuffix(", PFC").removesuffix(", reduced")
        best = (_best(facts, same[link]) if link in same else "" for link in links)
        yield f"| `{name}` | {title} | `{first['objective']}` | {' | '.join(best)} |"


def plain(case: Case) -> str:
    """Return the name of a case without its kind of links.

    >>> plain({"name": "incast-2-pfc", "link": "pfc"}), plain({"name": "incast-2", "link": "x"})
    ('incast-2', 'incast-2')
    """
    name: str = case["name"]
    return name.removesuffix(f"-{case['link']}")


def _best(facts: Mapping[str, Any], case: Case) -> str:
    best = max(_entries(facts, case), key=lambda one: one["share_of_best"], default=None)
    found = "none" if best is None else f"`{best['scheme']}`{_mark(best)} {_reached(best)}"
    return f"[{found}]({VIEWER}#case={case['name']})"


def _mark(entry: Entry) -> str:
    return " tuned" if entry["settings"] == "tuned" else ""


def _entries(facts: Mapping[str, Any], case: Case) -> list[Entry]:
    return [one for one in facts["entries"] if one["case"] == case["name"]]


def _reached(entry: Entry) -> str:
    """Write what is reached.

    >>> _reached({"objective": 2.71234, "failure": None})
    '2.712'
    >>> _reached({"objective": None, "failure": None})
    'not reached'
    """
    value = entry["objective"]
    if value is None:
        return "failed" if entry["failure"] else "not reached"
    return value if isinstance(value, str) else f"{_rounded(value, _DIGITS):.10g}"


def _rounded(value: Any, digits: int) -> Any:
    """Round a number to significant digits; other values stay.

    >>> _rounded(1234.56, 4), _rounded(0.00123456, 2), _rounded("never", 4), _rounded(3.0, 4)
    (1235, 0.0012, 'never', 3)
    """
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return value
    if value == 0:
        return 0
    rounded = round(float(value), digits - 1 - math.floor(math.log10(abs(value))))
    return int(rounded) if rounded == int(rounded) else rounded


def data(
    facts: Mapping[str, Any], made: tuple[int, float], notes: Mapping[str, str]
) -> dict[str, Any]:
    """Collect all numbers, rounded, with each case's columns and note."""
    columns: dict[str, dict[str, Any]] = {
        "objective": _column("reached", "", _REACHED),
        "share_of_best": _column("share of the best", "", "reached, relative to the best", "more"),
    }
    for one in OF_COMPARISONS.values():
        columns[one.name] = _column(one.heading, one.unit, one.definition, one.better)
        columns[one.name]["shown"] = one.name in _SHOWN
    for name, (heading, unit) in _COSTS.items():
        columns[name] = _column(heading, unit, "")
    return {
        "about": {
            **{key: facts[key] for key in ("command", "version", "seeds", "tuning")},
            "runs": made[0],
            "processor_hours": _rounded(made[1], 3),
        },
        "columns": columns,
        "settings": facts.get("tuned_settings", {}),
        "cases": [_case_data(facts, case, columns, notes) for case in facts["cases"]],
    }


def _column(heading: str, unit: str, definition: str, better: str = "") -> dict[str, Any]:
    return {
        "heading": heading,
        "unit": unit,
        "definition": definition,
        "better": better,
        "shown": True,
    }


def _case_data(
    facts: Mapping[str, Any],
    case: Case,
    columns: Mapping[str, Any],
    notes: Mapping[str, str],
) -> dict[str, Any]:
    entries = _entries(facts, case)
    names = [name for name in columns if any(one.get(name) is not None for one in entries)]
    halves = [name for name in names if any(_half(one, name) is not None for one in entries)]
    failed = any(one["failure"] for one in entries)
    own: list[str] = ["scheme", "settings"]
    for name in names:
        own += [name, f"{name}_ci95"] if name in halves else [name]
    own += ["failure"] if failed else []
    rows = []
    for one in entries:
        row: list[Any] = [one["scheme"], one["settings"]]
        for name in names:
            row.append(_rounded(one.get(name), _DIGITS))
            if name in halves:
                row.append(_rounded(_half(one, name), 2))
        rows.append([*row, *([one["failure"]] if failed else [])])
    kept = ("name", "title", "link", "objective", "command", "left_out")
    return {
        **{key: case[key] for key in kept},
        "note": notes.get(plain(case), ""),
        "columns": own,
        "rows": rows,
    }


def _half(entry: Entry, name: str) -> Any:
    if name == "objective":
        return entry["objective_interval"]
    return entry.get("confidence_intervals", {}).get(name)


def script(found: Mapping[str, Any]) -> str:
    """Write the data as a script with a line for each row, so that changes show by row.

    >>> print(script({"about": 1, "columns": {"x": {}}, "settings": {}, "cases": []}), end="")
    window.arena = {
    "about": 1,
    "settings": {},
    "columns": {
    "x": {}
    },
    "cases": [
    <BLANKLINE>
    ]
    };
    """
    columns = ",\n".join(f"{_json(name)}: {_json(one)}" for name, one in found["columns"].items())
    cases = []
    for one in found["cases"]:
        head = _json({key: value for key, value in one.items() if key != "rows"})
        rows = ",\n".join(map(_json, one["rows"]))
        cases.append(f'{head[:-1]}, "rows": [\n{rows}\n]}}')
    return (
        f'window.arena = {{\n"about": {_json(found["about"])},\n'
        f'"settings": {_json(found["settings"])},\n'
        f'"columns": {{\n{columns}\n}},\n"cases": [\n' + ",\n".join(cases) + "\n]\n};\n"
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))


class Shares:
    """Shares of the best by scheme and case, on links of one kind."""

    def __init__(self, facts: Mapping[str, Any], link: str) -> None:
        names = {one["name"]: plain(one) for one in facts["cases"]}
        self.published: dict[str, dict[str, float]] = {}
        found: dict[str, dict[str, float]] = {}
        for one in facts["entries"]:
            if one["link"] == link:
                of = self.published if one["settings"] == "published" else found
                of.setdefault(one["scheme"], {})[names[one["case"]]] = one["share_of_best"]
        # A case without tuned settings keeps the published ones.
        self.tuned = {name: {**self.published[name], **shares} for name, shares in found.items()}
        self.common = common_cases(list(self.published.values()))

    def mean(self, scheme: str) -> float:
        """Return the mean over the common cases with published settings."""
        return mean_share(self.published[scheme], self.common)

    def tuned_mean(self, scheme: str) -> float | None:
        """Return the mean over the common cases with tuned settings, if the scheme has any."""
        own = self.tuned.get(scheme)
        return None if own is None else mean_share(own, self.common)

    def best_mean(self, scheme: str) -> float:
        """Return the better one of both means."""
        return max(self.mean(scheme), self.tuned_mean(scheme) or 0.0)


def summary(facts: Mapping[str, Any], made: tuple[int, float]) -> str:
    """Write how all schemes did, and what follows from it."""
    links = list(dict.fromkeys(one["link"] for one in facts["cases"]))
    by_link = {link: Shares(facts, link) for link in links}
    first = by_link[links[0]]
    lines = [
        f"`{facts['command']}`, silvan {facts['version']}: {_made(made)}; "
        f"{_seeds(facts['seeds'])}; {_tuning(facts['tuning'])}.",
        "",
        "## In short",
        "",
        *(f"- {text}" for text in findings(by_link)),
        "",
        "## Means",
        "",
        f"Mean shares over the {len(first.common)} cases in which all schemes take part, the best "
        f"first. *Best in* counts the cases of a scheme with a share of at least {BEST:g}; "
        "*smallest* is its smallest share. Both are with tuned settings, if any.",
        "",
        "Empty: the scheme cannot use such links, or has no settings to tune.",
        "",
        *_means(by_link),
        "",
        "## By what a scheme needs",
        "",
        "Schemes by the messages that they send. The best has the highest mean with credits, "
        "published or tuned.",
        "",
        *_needs(facts, first),
        "",
        "## Heat maps",
        "",
    ]
    lines += [f"![Heat map, {link_title(link)}](images/arena-{link}.png)" for link in links]
    return "\n".join(lines)


def findings(by_link: Mapping[str, Shares]) -> Iterator[str]:
    """Write sentences about the results, each with its numbers."""
    for link, shares in by_link.items():
        schemes = [one for one in shares.published if one != "none"]
        ranked = sorted(schemes, key=lambda one: -shares.mean(one))[:3]
        text = ", ".join(f"`{one}` {shares.mean(one):.2f}" for one in ranked)
        yield f"**Best means with published settings, {link_title(link)}:** {text}."
    (link, shares) = next(iter(by_link.items()))
    tuned = sorted(shares.tuned, key=lambda one: -(shares.tuned_mean(one) or 0))[:3]
    if tuned:
        text = ", ".join(f"`{one}` {shares.tuned_mean(one):.2f}" for one in tuned)
        yield f"**Best means with tuned settings, {link_title(link)}:** {text}."
        gains = {one: (shares.tuned_mean(one) or 0) - shares.mean(one) for one in shares.tuned}
        most = sorted(gains, key=lambda one: -gains[one])[:3]
        text = ", ".join(f"`{one}` {gains[one]:+.2f}" for one in most)
        yield f"**Tuning changes most:** {text}."
        yield from _lost(shares)
    if "none" in shares.published:
        yield from _none(shares)
    if len(by_link) > 1:
        yield from _correlation(by_link)


def _lost(shares: Shares) -> Iterator[str]:
    changes = [
        (shares.tuned[scheme][case] - shares.published[scheme][case], scheme, case)
        for scheme in shares.tuned
        for case in shares.published[scheme]
    ]
    losses = [one for one in sorted(changes) if one[0] < -0.02][:3]
    if losses:
        text = ", ".join(f"`{scheme}` {by:+.2f} in `{case}`" for by, scheme, case in losses)
        yield f"**Settings tuned on one case can lose in another:** {text}."


def _none(shares: Shares) -> Iterator[str]:
    none = shares.mean("none")
    worse = sorted(one for one in shares.published if shares.mean(one) < none)
    text = f"**`none` has a mean of {none:.2f}.**"
    if worse:
        names = ", ".join(f"`{one}`" for one in worse)
        text += f" With published settings these have less: {names}."
    yield text
    fine = [case for case, share in shares.published["none"].items() if share >= BEST]
    if fine:
        yield (
            f"**`none` reaches at least {BEST:g} of the best** in "
            f"{', '.join(f'`{one}`' for one in fine)}."
        )


def _correlation(by_link: Mapping[str, Shares]) -> Iterator[str]:
    first, second = list(by_link.values())[:2]
    found = {}
    for case in dict.fromkeys(case for of in first.published.values() for case in of):
        both = [
            (first.published[one][case], second.published[one][case])
            for one in first.published
            if case in first.published[one] and case in second.published.get(one, {})
        ]
        if len(both) > 2 and all(len(set(column)) > 1 for column in zip(*both, strict=True)):
            found[case] = statistics.correlation(*map(ranks, zip(*both, strict=True)))
    if found:
        least = min(found, key=lambda one: found[one])
        yield (
            "**The orders of schemes with PFC and with credits** have a rank correlation "
            f"(Spearman) of {statistics.median(found.values()):.2f} in the median over the cases. "
            f"The smallest is {found[least]:.2f} in `{least}`."
        )


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal values share the mean of their ranks.

    >>> ranks([0.5, 0.1, 0.5, 0.9])
    [1.5, 0.0, 1.5, 3.0]
    """
    ordered = sorted(values)
    return [ordered.index(one) + (ordered.count(one) - 1) / 2 for one in values]


def _means(by_link: Mapping[str, Shares]) -> Iterator[str]:
    links = list(by_link)
    first = by_link[links[0]]
    has_tuned = bool(first.tuned)
    heads = ["scheme", links[0], *([f"{links[0]}, tuned"] if has_tuned else [])]
    heads += ["best in", "smallest", *links[1:]]
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for scheme in sorted(first.published, key=lambda one: -first.best_mean(one)):
        of = first.tuned.get(scheme, first.published[scheme])
        tuned = first.tuned_mean(scheme)
        worst = largest_loss(of)
        cells = [
            f"`{scheme}`",
            f"{first.mean(scheme):.2f}",
            *(["" if tuned is None else f"{tuned:.2f}"] if has_tuned else []),
            f"{sum(share >= BEST for share in of.values())}/{len(of)}",
            f"{min(of.values()):.2f}" + (f" `{worst}`" if worst else ""),
            *(
                f"{by_link[link].mean(scheme):.2f}" if scheme in by_link[link].published else ""
                for link in links[1:]
            ),
        ]
        yield f"| {' | '.join(cells)} |"


def _needs(facts: Mapping[str, Any], shares: Shares) -> Iterator[str]:
    kinds: dict[str, list[str]] = {}
    for one in facts["entries"]:
        if one["scheme"] in shares.published and one["scheme"] != "none":
            own = kinds.setdefault(one.get("message_kinds") or "not stated", [])
            if one["scheme"] not in own:
                own.append(one["scheme"])
    has_tuned = bool(shares.tuned)
    yield f"| messages | schemes | best | published |{' tuned |' * has_tuned}"
    yield f"|---|---|---|---|{'---|' * has_tuned}"
    for kind, schemes in sorted(kinds.items(), key=lambda of: -max(map(shares.best_mean, of[1]))):
        best = max(schemes, key=shares.best_mean)
        tuned = shares.tuned_mean(best)
        text = f" {'' if tuned is None else f'{tuned:.2f}'} |" * has_tuned
        yield f"| {kind} | {len(schemes)} | `{best}` | {shares.mean(best):.2f} |{text}"


def ratio(facts: Mapping[str, Any], scheme: str, case: str) -> str | None:
    """Return the rate of other receivers in a case relative to that without control.

    An arena without the case or the scheme has none.

    >>> rows = [("none", 2.0), ("pft", 5.0)]
    >>> same = {"case": "a", "settings": "published"}
    >>> entries = [{**same, "scheme": one, "other_receivers_gbps": rate} for one, rate in rows]
    >>> ratio({"entries": entries}, "pft", "a")
    '2.5'
    """
    rates = {
        one["scheme"]: one["other_receivers_gbps"]
        for one in facts["entries"]
        if (one["case"], one["settings"]) == (case, "published")
    }
    if not rates.get(scheme) or not rates.get("none"):
        return None
    value = rates[scheme] / rates["none"]
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


_VALUE = re.compile(r"<!-- arena: (\w+) ([^>]*?) -->(.*?)<!-- end -->")


def with_values(text: str, values: Mapping[str, Callable[..., str | None]]) -> str:
    """Replace the numbers between marks in running text; numbers without a new value stay.

    >>> with_values("in <!-- arena: add 1 2 -->7<!-- end --> ms", {"add": lambda a, b: a + b})
    'in <!-- arena: add 1 2 -->12<!-- end --> ms'
    """

    def new(match: re.Match[str]) -> str:
        name, words, old = match.groups()
        value = values[name](*words.split())
        return f"<!-- arena: {name} {words} -->{old if value is None else value}<!-- end -->"

    return _VALUE.sub(new, text)


def cost(runs: Path) -> tuple[int, float]:
    """Count the runs of a build, and the hours of processor time that they took."""
    times = [json.loads(one.read_text("utf-8"))["processor_s"] for one in runs.glob("*.json")]
    return len(times), sum(times) / 3600


def notes_of(definition: Path) -> dict[str, str]:
    """Read the notes of the cases of an arena."""
    cases = tomllib.loads(definition.read_text("utf-8"))["case"]
    return {one["name"]: one["note"] for one in cases if "note" in one}


def main(written: str) -> int:
    """Write the data and the pages, and copy the heat maps."""
    folder = Path(written)
    if not (folder / "arena.json").is_file():
        print(f"{folder}: no arena.json; run `silvan compare --arena` first")
        return 1
    runs = next(one for one in (folder / "runs", folder.parent / "runs") if one.is_dir())
    facts = json.loads((folder / "arena.json").read_text("utf-8"))
    made = cost(runs / facts["build"])
    docs = ROOT / "docs"
    values: dict[str, Callable[..., str | None]] = {
        "ratio": lambda scheme, case: ratio(facts, scheme, case),
        "cost": lambda what: {"runs": f"{made[0]:,}", "hours": f"{made[1]:.1f}"}[what],
    }
    notes = notes_of(ROOT / "python" / "silvan" / "comparing" / "arena" / "arena.toml")
    comparison = docs / "comparison.md"
    pages = {
        docs / DATA: script(data(facts, made, notes)),
        docs / "arena.md": page(facts, made),
        comparison: replaced(comparison.read_text("utf-8"), summary(facts, made), TOOL),
    }
    for name in ("evidence.md", "guide/comparing.md"):
        pages[docs / name] = with_values((docs / name).read_text("utf-8"), values)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    for image in sorted(folder.glob("arena-*.png")):
        shutil.copyfile(image, docs / "images" / image.name)
        print(f"wrote docs/images/{image.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
