"""All commands, and what becomes of their errors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated

import typer

from silvan.cli import (
    bench,
    check_response,
    compare,
    dcms,
    demo,
    emulate,
    example,
    gpcnet,
    inspect,
    reproduce,
    run,
    sweep,
    trees,
)
from silvan.cli.printer import fail, is_stdout, note, put
from silvan.errors import (
    EvaluationError,
    ScenarioError,
    ScenarioWarning,
    SchemeError,
    SilvanError,
    SimulationError,
)


class Status(IntEnum):
    """What the exit status means."""

    FINE = 0
    RUN_FAILED = 1
    COULD_NOT_RUN = 2
    INTERRUPTED = 130


app = typer.Typer(
    name="silvan",
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Simulate, emulate and manage congestion in lossless networks (InfiniBand), "
    "packet by packet.",
)
app.command("example")(example.example)
app.command("run")(run.run)
app.command("sweep")(sweep.sweep)
app.command("trees")(trees.trees)
app.command("compare")(compare.compare)
app.command("gpcnet")(gpcnet.gpcnet)
app.command("validate")(inspect.validate)
app.command("show")(inspect.show)
app.command("schema")(inspect.schema)
app.command("check-response")(check_response.check_response)
app.command("bench")(bench.bench)
app.command("emulate")(emulate.emulate)
app.command("shell")(emulate.shell)
app.add_typer(emulate.ctl, name="ctl")
app.command("route")(emulate.route)
app.command("dcms")(dcms.dcms)
app.add_typer(demo.demo, name="demo")
app.command("reproduce")(reproduce.reproduce)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the signature is Typer's
    if wanted:
        from silvan import version

        put(f"silvan {version()}")
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
    """Say what helps with any mistake in a scenario, where the error itself knows no better."""
    if isinstance(error, ScenarioError):
        return "silvan schema describes every key with its unit and its default"
    return None


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    """Print a warning in one line; those that are about silvan's code say where they come from."""
    del file, line
    place = "" if issubclass(category, ScenarioWarning) else f"{filename}:{lineno}: "
    note(f"warning: {place}{message}")


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and turn its errors into one line each.

    Parameters
    ----------
    arguments : sequence of str
        The words after the program's name.

    Returns
    -------
    int
        The exit status.
    """
    command = typer.main.get_command(app)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status = command.main(list(arguments), prog_name="silvan", standalone_mode=False)
    except SilvanError as error:
        fail(str(error), error.hint or _advice(error))
        failed = isinstance(error, SimulationError | EvaluationError) or (
            isinstance(error, SchemeError) and error.time_ps is not None
        )
        return Status.RUN_FAILED if failed else Status.COULD_NOT_RUN
    except OSError as error:
        if is_stdout(error):
            raise
        reason = (error.strerror or str(error)).lower()
        fail(f"{error.filename}: {reason}" if error.filename else reason, None)
        return Status.COULD_NOT_RUN
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "silvan"
        fail(error.format_message(), f"see {path} --help")
        return Status.COULD_NOT_RUN
    if status == Status.INTERRUPTED:
        note("stopped; results that were finished are kept")
    return int(status or Status.FINE)
