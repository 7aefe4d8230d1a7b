"""The command that shows finished runs and live fabrics in a browser."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.cli.options import AsJson, Bind, SockName, address_of
from silvan.cli.printer import note, put, put_json
from silvan.errors import SilvanError
from silvan.folders import require_own_kind

if TYPE_CHECKING:
    from silvan.results.result import Result
    from silvan.viewer.report import Report

SOCKNAME = "sim"

BIND = "127.0.0.1:0"

MOST_RUNS = 12


def view(
    results: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RESULT [RESULT2]]",
            help="The folder of a finished run, of several seeds, of a sweep, a comparison or a "
            "reproduction. Two runs are shown side by side.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write the page to a file instead of opening it in a browser.",
            show_default=False,
        ),
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Write a trace of one run for ui.perfetto.dev and chrome://tracing instead: "
            "programs, ranks, flows, trees, queues.",
            show_default=False,
        ),
    ] = None,
    dcms_log: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --live: show the decisions and changes of silvan dcms as events, from the "
            "log that --log json writes.",
            show_default=False,
        ),
    ] = None,
    sockname: SockName = SOCKNAME,
    bind: Bind = BIND,
    *,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Show a fabric of silvan emulate while it runs, named with --sockname."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show runs or a live fabric in a browser: map, trees, time.

    The page of finished runs is one file that needs neither server nor network. Its content depends
    on the records of the run: silvan run --record view records everything. With --live, this
    process serves the page until Ctrl-C, at an address that holds a token; the page changes nothing
    in the fabric. For a sweep, a comparison or a reproduction, the page shows tables and curves,
    the paper's numbers next to measured numbers, and the runs behind each point.
    """
    if live:
        if results or out or perfetto:
            raise SilvanError("--live: shows a running fabric, and no results or files")
        _serve_live(sockname, bind, dcms_log, as_json=as_json)
        return
    for option, value, default in (("--bind", bind, BIND), ("--sockname", sockname, SOCKNAME)):
        if value != default:
            raise SilvanError(
                f"{option} {value}: finished runs need no server and no fabric", hint="add --live"
            )
    if dcms_log is not None:
        raise SilvanError(
            "--dcms-log: events of finished runs are in their results", hint="add --live"
        )
    if not results:
        raise SilvanError("no result given", hint="name the folder of a run, or use --live")
    _require_own_files(out, perfetto)
    if perfetto is not None:
        _write_trace(results, perfetto, with_page=out is not None, as_json=as_json)
        return
    report = _report(results)
    if report is not None:
        path = _write_report(report, out or _own_file(results[0].resolve().name))
        count = len(report.runs)
    else:
        runs = _read(results)
        count = len(runs)
        path = _write_page(runs, out or _own_file(runs[0].scenario.name))
    if as_json:
        put_json({"file": str(path), "bytes": _size(path), "runs": count})
    elif out is None:
        _open(path)
    else:
        put(str(path))


def _require_own_files(page: Path | None, trace: Path | None) -> None:
    if page is not None:
        from silvan.viewer.page import PAGE_START

        require_own_kind(page, PAGE_START.encode(), "page of silvan")
    if trace is not None:
        from silvan.viewer.perfetto import TRACE_START

        require_own_kind(trace, TRACE_START.encode(), "trace of silvan")


def _serve_live(sockname: str, bind: str, dcms_log: Path | None, *, as_json: bool) -> None:
    from contextlib import ExitStack, closing, suppress

    from silvan.cli.live_page import require_address
    from silvan.extras import require_extra
    from silvan.live.emulation import ControlChannel

    require_extra("live", "live pages")
    from silvan.viewer.dcms_log import DcmsLog
    from silvan.viewer.live import serve_live
    from silvan.viewer.samples import LiveFabric

    host, port = address_of(bind, "--bind")
    require_address((host, port))

    def show(address: str) -> None:
        import webbrowser

        if as_json:
            put_json({"address": address})
            return
        put(address)
        if not webbrowser.open(address):
            note("no browser found; open the address yourself")

    with ExitStack() as stack, suppress(KeyboardInterrupt):
        log = stack.enter_context(closing(DcmsLog(dcms_log))) if dcms_log is not None else None
        fabric = stack.enter_context(closing(LiveFabric(ControlChannel(sockname), log)))
        serve_live(fabric, host, port, show)


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def _own_file(name: str) -> Path:
    return Path(tempfile.mkdtemp(prefix="silvan-view-")) / f"{name}.html"


def _write_page(runs: list[Result], path: Path) -> Path:
    from silvan.viewer import write_page

    lacking = Counter(
        f"{one.scenario.name}: {missing}" for one in runs for missing in _missing(one)
    )
    for text, count in lacking.items():
        note(text if count == 1 else f"{text} ({count} runs)")
    return write_page(runs, path)


def _write_report(report: Report, path: Path) -> Path:
    from silvan.viewer.report import write_report

    return write_report(report, path)


def _report(folders: list[Path]) -> Report | None:
    from silvan.folders import MANIFEST as RUN
    from silvan.sweeping.store import MANIFEST as SWEEP
    from silvan.viewer.comparison import COMPARISON, comparison_report
    from silvan.viewer.reproduction import REPRODUCTIONS, reproduction_report
    from silvan.viewer.sweep import sweep_report

    if len(folders) != 1:
        return None
    (folder,) = folders
    if (folder / SWEEP).is_file():
        return sweep_report(folder)
    if (folder / COMPARISON).is_file():
        return comparison_report(folder / COMPARISON)
    found = sorted(folder.glob(REPRODUCTIONS), key=lambda path: (len(path.name), path.name))
    if not found and not (folder / RUN).is_file():
        found = [*folder.glob(f"*/{REPRODUCTIONS}"), *folder.glob(f"*/{COMPARISON}")]
        if len({path.parent for path in found}) > 1:
            names = ", ".join(sorted({path.parent.name for path in found}))
            raise SilvanError(
                f"{folder}: holds several {_kinds(found)}: {names}",
                hint=f"name one of them, such as {min(found).parent}",
            )
        found.sort(key=lambda path: (len(path.name), path.name))
    if not found:
        return None
    if found[0].name == COMPARISON:
        return comparison_report(found[0])
    return reproduction_report(found[0])


def _kinds(found: list[Path]) -> str:
    from silvan.viewer.comparison import COMPARISON

    comparisons = sum(path.name == COMPARISON for path in found)
    if not comparisons:
        return "reproductions"
    return "comparisons" if comparisons == len(found) else "comparisons and reproductions"


def _write_trace(folders: list[Path], path: Path, *, with_page: bool, as_json: bool) -> None:
    from silvan.results.result import Result
    from silvan.viewer import write_trace

    if with_page:
        raise SilvanError(
            "--perfetto and --out: a call writes a trace or a page", hint="call it once for each"
        )
    from silvan.folders import run_folders

    runs = run_folders(folders)
    if len(runs) > 1:
        raise SilvanError(
            f"--perfetto: {len(runs)} runs, and a trace is of 1",
            hint=f"name the folder of one run, such as {runs[0]}",
        )
    write_trace(Result.read(runs[0]), path)
    if as_json:
        put_json({"file": str(path), "bytes": _size(path), "runs": 1})
    else:
        put(str(path))


def _read(folders: list[Path]) -> list[Result]:
    from silvan.results.result import Result

    if len(folders) > 2:
        raise SilvanError(
            f"{len(folders)} results: 1 or 2 can be compared",
            hint="name a folder that holds the others",
        )
    from silvan.folders import run_folders

    found = run_folders(folders)
    if len(found) > MOST_RUNS:
        raise SilvanError(
            f"{len(found)} runs: at most {MOST_RUNS} fit on a page",
            hint=f"name some of them, such as {found[0]}",
        )
    return [Result.read(folder) for folder in found]


def _missing(result: Result) -> list[str]:
    words = {
        "port_series": "no samples of ports, so no utilisation and no queues over time",
        "forest": "no congestion trees",
    }
    again = "silvan run --record view records them"
    return [f"{text}; {again}" for name, text in words.items() if name not in result.tables]


def _open(path: Path) -> None:
    import webbrowser

    put(str(path))
    if not webbrowser.open(path.as_uri()):
        note("no browser found; open the file yourself")
