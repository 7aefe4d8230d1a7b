"""All commands, and what becomes of their errors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Any

import typer

from silvan.cli import (
    compare,
    ctl,
    dcms,
    diagnose,
    emulate,
    example,
    export,
    exporter,
    fit,
    inspect,
    mpirun,
    plot,
    plug_ins,
    reproduce,
    route,
    run,
    saturate,
    sweep,
    tune,
    view,
    whatif,
)
from silvan.cli.groups import GroupedCommands
from silvan.cli.misspelt import suggestion
from silvan.cli.printer import fail, is_stdout, note, put
from silvan.cli.termination import ended_in_order
from silvan.errors import (
    EvaluationError,
    ProgramError,
    ScenarioError,
    ScenarioWarning,
    SchemeError,
    SilvanError,
    SimulationError,
)


class Status(IntEnum):
    """Exit status of the program."""

    FINE = 0
    RUN_FAILED = 1
    COULD_NOT_RUN = 2
    INTERRUPTED = 130


_KEEPING = ("sweep", "reproduce", "compare", "tune", "fit")
"""Commands that keep results on Ctrl-C. ``run`` keeps them with ``--out``."""

app = typer.Typer(
    name="silvan",
    cls=GroupedCommands,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Simulate, emulate and manage congestion in lossless networks (InfiniBand), "
    "packet by packet.",
)

_SIMULATE = "Simulate"
_COMPARE = "Compare and reproduce"
_PLAN = "Plan"
_LIVE = "Live fabric"
_SUBNET = "Real subnet"

app.command("example", rich_help_panel=_SIMULATE)(example.example)
app.command("validate", rich_help_panel=_SIMULATE)(inspect.validate)
app.command("show", rich_help_panel=_SIMULATE)(inspect.show)
app.command("export", rich_help_panel=_SIMULATE)(export.export)
app.command("schema", rich_help_panel=_SIMULATE)(inspect.schema)
app.command("plug-ins", rich_help_panel=_SIMULATE)(plug_ins.plug_ins)
app.command("run", rich_help_panel=_SIMULATE)(ended_in_order(run.run))
app.command("sweep", rich_help_panel=_SIMULATE)(ended_in_order(sweep.sweep))
app.command("plot", rich_help_panel=_SIMULATE)(plot.plot)
app.command("view", rich_help_panel=_SIMULATE)(view.view)
app.command("compare", rich_help_panel=_COMPARE)(ended_in_order(compare.compare))
app.command("reproduce", rich_help_panel=_COMPARE)(ended_in_order(reproduce.reproduce))
app.command("saturate", rich_help_panel=_PLAN)(ended_in_order(saturate.saturate))
app.command("whatif", rich_help_panel=_PLAN)(whatif.what_if)
app.command("tune", rich_help_panel=_PLAN)(ended_in_order(tune.tune))
app.command("fit", rich_help_panel=_PLAN)(ended_in_order(fit.fit))
app.command("emulate", rich_help_panel=_LIVE)(emulate.emulate)
app.command(
    "mpirun",
    rich_help_panel=_LIVE,
    context_settings={"allow_interspersed_args": False},
)(mpirun.mpirun)
app.add_typer(ctl.ctl, name="ctl", rich_help_panel=_LIVE)
app.command("route", rich_help_panel=_LIVE)(route.route)
app.command("diagnose", rich_help_panel=_SUBNET)(diagnose.diagnose)
app.command("exporter", rich_help_panel=_SUBNET)(exporter.exporter)
app.command("dcms", rich_help_panel=_SUBNET)(dcms.dcms)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the signature is Typer's
    if wanted:
        from silvan import __version__

        put(f"silvan {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Print the help when no command is given."""
    del version
    if context.invoked_subcommand is None:
        put(context.get_help())


def _advice(error: SilvanError) -> str | None:
    if isinstance(error, ScenarioError):
        return "silvan schema describes every key with its unit and its default"
    return None


def _path(command: Any, program: str, arguments: Sequence[str]) -> str:
    path = program
    for word in arguments:
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        path += f" {word}"
    return path


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    del file, line
    place = "" if issubclass(category, ScenarioWarning) else f"{filename}:{lineno}: "
    note(f"warning: {place}{message}")


def run_command(
    arguments: Sequence[str], commands: typer.Typer = app, program: str = "silvan"
) -> int:
    """Run one command and turn its errors into one line each."""
    command = typer.main.get_command(commands)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = command.main(list(arguments), prog_name=program, standalone_mode=False)
    except SilvanError as error:
        fail(str(error), error.hint or _advice(error))
        failed = isinstance(error, SimulationError | EvaluationError) or (
            isinstance(error, SchemeError) and error.time_ps is not None
        )
        failed = failed and not isinstance(error, ProgramError)
        return Status.RUN_FAILED if failed else Status.COULD_NOT_RUN
    except OSError as error:
        if is_stdout(error):
            raise
        reason = (error.strerror or str(error)).lower()
        fail(f"{error.filename}: {reason}" if error.filename else reason, None)
        return Status.COULD_NOT_RUN
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        raise
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else _path(command, program, arguments)
        # The type checker puts this before the cause.
        fail(_message(error).replace(": Value error, ", ": "), _usage_advice(error, path))
        return Status.COULD_NOT_RUN
    except UnicodeEncodeError as error:
        # Python reads arguments that are not UTF-8 with surrogates, which Rust refuses.
        if not any(error.object in argument for argument in arguments):
            raise
        fail(f"{error.object!r} is not UTF-8 text", "write it with characters of Unicode")
        return Status.COULD_NOT_RUN
    except Exception as error:
        # Libraries turn Ctrl-C into their own errors.
        if not _is_interrupt(error):
            raise
        status = Status.INTERRUPTED
    if status == Status.INTERRUPTED:
        note("stopped; results that were finished are kept" if _keeps(arguments) else "stopped")
    return int(status or Status.FINE)


def _message(error: Any) -> str:
    return str(error.message if hasattr(error, "possibilities") else error.format_message())


def _usage_advice(error: Any, path: str) -> str:
    context = getattr(error, "ctx", None)
    if hasattr(error, "possibilities") and context is not None:
        advice = suggestion(error.option_name, context.command)
        if advice:
            return f"{advice} See {path} --help"
    return f"see {path} --help"


def _keeps(arguments: Sequence[str]) -> bool:
    """Tell whether a command that Ctrl-C has stopped has kept what was finished.

    >>> _keeps(["sweep", "a.toml"]), _keeps(["run", "a.toml"]), _keeps(["run", "--out=b", "a.toml"])
    (True, False, True)
    """
    name = arguments[0] if arguments else ""
    has_folder = any(word.partition("=")[0] == "--out" for word in arguments)
    return name in _KEEPING or (name == "run" and has_folder)


def _is_interrupt(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
