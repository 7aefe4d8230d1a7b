"""Write the reference pages and manual pages that are generated from the code, or check them."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import reproduced
import typer

import silvan
from silvan import _silvan
from silvan.cli.app import app
from silvan.cli.manual import manual_pages
from silvan.results.measures import CLEARED, GROUPS, Measure

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
SHARE = ROOT / "packaging" / "data" / "share"
MANUAL = SHARE / "man" / "man1"
COMPLETIONS = {
    "bash": "bash-completion/completions/silvan",
    "zsh": "zsh/site-functions/_silvan",
}


def cli_page() -> str:
    """Describe every command, its arguments and its options."""
    group: Any = typer.main.get_command(app)
    lines = [
        "# Command line",
        "",
        "Generated from the code by `make reference`; do not edit.",
        "",
        "Data goes to stdout, log and progress to stderr. Exit status: 0 fine; 1 a run failed,",
        "such as a fabric stalled by a credit loop; 2 bad input, or a run could not start; 130",
        "stopped by Ctrl-C or SIGTERM, with finished runs kept.",
    ]
    for name, command in _commands(group):
        lines += ["", f"## silvan {name}", "", *_paragraphs(command.help)]
        if not hasattr(command, "commands"):
            lines += ["", *_usage(name, command)]
    return "\n".join(lines) + "\n"


def _commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield prefix + name, command
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix}{name} ")


def _usage(name: str, command: Any) -> list[str]:
    usage = [f"silvan {name}"]
    rows = []
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            shown = parameter.metavar or parameter.name.upper()
            usage.append(shown)
        else:
            value = "" if parameter.is_flag else f" {_metavar(parameter)}"
            shown = "/".join(parameter.opts) + value
        # Brackets are no links.
        text = parameter.help.replace("[", r"\[")
        rows.append(f"| `{shown}` | {text} | {_default(parameter)} |")
    usage.append("[OPTIONS]")
    lines = ["```", " ".join(usage), "```"]
    if rows:
        lines += ["", "| argument or option | meaning | default |", "|---|---|---|", *rows]
    return lines


def _paragraphs(text: str | None) -> list[str]:
    return [line.strip() for line in (text or "").splitlines()]


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or "N")


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return "required"
    if value is None or value is False or value == "" or callable(value):
        return ""
    return f"`{value}`"


def schema_page() -> str:
    """Give the JSON schema of scenario files."""
    return json.dumps(silvan.schema(), indent=2) + "\n"


def counters_page() -> str:
    """Describe every counter of a port."""
    lines = [
        "# Counters of a port",
        "",
        "Generated from the code by `make reference`; do not edit.",
        "",
        "In result tables a counter is a column, in bytes, packets or picoseconds. Management",
        "datagrams carry bytes as words of 4 B without the VCRC of each packet, times as ticks.",
        "Fields of 64 bits wrap around, smaller ones stop at their largest value. The metrics are",
        "those of `silvan dcms`, in bytes, packets or ticks.",
        "",
        "[How to add a port counter](../extending/port-counter.md)",
        "",
        _silvan.port_counters(),
    ]
    return "\n".join(lines)


def measures_page() -> str:
    """Define every measure of a run."""
    lines = [
        "# Measures of a run",
        "",
        "Generated from the code by `make reference`; do not edit.",
        "",
        "A measure is a number that describes a run. Its name, unit and definition are the same in",
        "`silvan run --json`, in the columns of a sweep, in comparisons, the arena and reports, in",
        "formulas of `silvan tune` and `silvan fit`, and in `result.measures` of Python. A measure",
        "that a run does not have is missing. Tables show an infinite measure as `never`, JSON as",
        "null. `silvan compare --json` writes it as `never`, and null for a measure that a run",
        "does not have.",
    ]
    for group in GROUPS:
        lines += ["", f"## {group.title}", ""]
        if group.basis:
            lines += [group.basis, ""]
        lines += ["| measure | unit | definition |", "|---|---|---|"]
        lines += [_measure_line(one) for one in group.measures]
    lines += ["", "## Next to the run without control", ""]
    lines += ["| measure | unit | definition |", "|---|---|---|", _measure_line(CLEARED)]
    return "\n".join(lines) + "\n"


def _measure_line(measure: Measure) -> str:
    return f"| `{measure.name}` | {measure.unit} | {measure.definition} |"


def pages() -> dict[Path, str]:
    """Make all pages."""
    reference = {
        "cli.md": cli_page(),
        "counters.md": counters_page(),
        "measures.md": measures_page(),
        "scenario.md": silvan.reference(),
        "scenario.schema.json": schema_page(),
        "tables.md": _silvan.table_reference(),
    }
    return {
        **{REFERENCE / name: text for name, text in reference.items()},
        **{MANUAL / name: text for name, text in manual_pages().items()},
        **{SHARE / place: completion(shell) for shell, place in COMPLETIONS.items()},
        ROOT / "docs" / "reproductions" / "README.md": reproduced.page(),
        reproduced.README: reproduced.readme(),
    }


def completion(shell: str) -> str:
    """Return the script by which a shell completes the words of ``silvan``."""
    environment = {**os.environ, "_SILVAN_COMPLETE": f"source_{shell}"}
    command = [sys.executable, "-m", "silvan"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    script = done.stdout.strip()
    if shell == "zsh":
        # zsh loads the file as a function at the first completion, which it has to answer, too.
        script = script.replace(
            "\ncompdef ",
            "\nif [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then\n"
            "  _silvan_completion\nfi\n\ncompdef ",
        )
    return f"{script}\n"


def main() -> int:
    """Write the pages, or compare them with ``--check``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell which pages are stale")
    check = parser.parse_args().check
    stale = []
    wanted = pages()
    for path in sorted(set(MANUAL.glob("*")) - set(wanted)):
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            path.unlink()
    for path, text in wanted.items():
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if check and stale:
        print(f"stale: {', '.join(stale)}; run make reference", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
