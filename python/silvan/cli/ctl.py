"""The commands that inspect and control a running emulated fabric."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Annotated, Any

import typer

from silvan.cli.options import AsJson, SockName, user_id
from silvan.cli.printer import put, put_json, put_table

_SHOWN = 12
_UNITS = {"s": "s", "gbps": "Gbit/s", "bytes": "bytes", "percent": "%"}

ctl = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Inspect and control a running emulated fabric.",
)


_SERVER_USER: ContextVar[int | None] = ContextVar("server user", default=None)


@ctl.callback()
def of_whom(
    server_user: Annotated[
        str | None,
        typer.Option(
            metavar="USER",
            envvar="SILVAN_SERVER_USER",
            help="User who runs the fabric, if it is neither you nor root.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Inspect and control a running emulated fabric."""
    if server_user is not None:
        _SERVER_USER.set(user_id(server_user, "--server-user"))


def _control(sockname: str, do: str, **arguments: Any) -> Any:
    from silvan.live.emulation import control

    return control(sockname, do, server_user=_SERVER_USER.get(), **arguments)


def _tell(sockname: str, do: str, *, as_json: bool = False, **arguments: Any) -> None:
    answer = _control(sockname, do, **arguments)
    if as_json:
        put_json(answer)
        return
    for key, value in answer.items():
        name, _, unit = key.rpartition("_")
        label, suffix = (name, f" {_UNITS[unit]}") if unit in _UNITS else (key, "")
        put(f"{label.replace('_', ' ')}: {_words(value)}{suffix}")


def _words(value: Any) -> str:
    if value is None:
        return "that of the scenario"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        shown = ", ".join(map(str, value[:_SHOWN])) or "none"
        more = len(value) - _SHOWN
        return f"{shown} and {more} more" if more > 0 else shown
    if isinstance(value, dict):
        return ", ".join(f"{count} {key.replace('_', ' ')}" for key, count in value.items())
    return str(value)


@ctl.command()
def status(sockname: SockName = "sim", *, as_json: AsJson = False) -> None:
    """Show simulated time and lag, rates, links down, and MADs."""
    _tell(sockname, "status", as_json=as_json)


def _state(flow: dict[str, Any]) -> str:
    match flow["program"]:
        case None:
            return _words(flow["running"])
        case {"state": "waiting", "start_s": start_s}:
            return f"starts at {start_s:.6g} s"
        case {"state": "done", "end_s": end_s}:
            return f"done at {end_s:.6g} s"
        case {"state": "failed", "fault": fault}:
            return f"failed: {fault}"
        case program:
            return str(program["state"])


@ctl.command()
def flows(sockname: SockName = "sim", *, as_json: AsJson = False) -> None:
    """List senders with bytes and rate, and programs with state."""
    from rich.table import Table

    answer = _control(sockname, "flows")
    if as_json:
        put_json(answer)
        return
    table = Table()
    for heading in ("flow", "runs", "delivered, MB", "receive rate, Gbit/s"):
        table.add_column(heading, justify="left" if heading == "flow" else "right")
    for flow in answer:
        table.add_row(
            flow["flow"],
            _state(flow),
            f"{flow['delivered_bytes'] / 1e6:.1f}",
            f"{flow['receive_gbps']:.3f}",
        )
    put_table(table)


@ctl.command()
def start(
    sender: Annotated[str, typer.Argument(metavar="FROM", help="Name of the sending host.")],
    receiver: Annotated[str, typer.Argument(metavar="TO", help="Name of the receiving host.")],
    rate: Annotated[
        str | None,
        typer.Option(help="Payload rate such as '8 Gbit/s'; by default the line rate."),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--bytes", help="Payload to send, such as '1 GiB'; by default unlimited."),
    ] = None,
    sl: Annotated[int, typer.Option(min=0, max=15, help="Service level.")] = 0,
    name: Annotated[str | None, typer.Option(help="Name of the flow.")] = None,
    sockname: SockName = "sim",
) -> None:
    """Start a flow, and print its name."""
    arguments: dict[str, Any] = {"from": sender, "to": receiver, "rate": rate}
    _tell(sockname, "start", **arguments, bytes=size, sl=sl, name=name)


@ctl.command()
def stop(
    flow: Annotated[
        str, typer.Argument(metavar="FLOW", help="Name of a flow, as silvan ctl flows lists it.")
    ],
    sockname: SockName = "sim",
) -> None:
    """Stop a flow, or everything else that has this name."""
    _tell(sockname, "stop", flow=flow)


@ctl.command("continue")
def go_on(
    flow: Annotated[
        str, typer.Argument(metavar="FLOW", help="Name of a flow, as silvan ctl flows lists it.")
    ],
    sockname: SockName = "sim",
) -> None:
    """Resume a stopped flow."""
    _tell(sockname, "continue", flow=flow)


@ctl.command()
def cut(
    port: Annotated[
        str, typer.Argument(metavar="PORT", help="One end of the cable: NODE:PORT, or a host.")
    ],
    sockname: SockName = "sim",
) -> None:
    """Cut a cable."""
    _tell(sockname, "cut", port=port)


@ctl.command()
def restore(
    port: Annotated[
        str, typer.Argument(metavar="PORT", help="One end of the cable: NODE:PORT, or a host.")
    ],
    sockname: SockName = "sim",
) -> None:
    """Restore a cable that was cut or degraded."""
    _tell(sockname, "restore", port=port)


@ctl.command()
def degrade(
    port: Annotated[
        str, typer.Argument(metavar="PORT", help="One end of the cable: NODE:PORT, or a host.")
    ],
    width: Annotated[
        str | None, typer.Option(help="Most lanes, such as 1x.", show_default=False)
    ] = None,
    speed: Annotated[
        str | None, typer.Option(help="Highest speed of a lane, such as SDR.", show_default=False)
    ] = None,
    sockname: SockName = "sim",
) -> None:
    """Bring a link up again at a lower width or speed."""
    _tell(sockname, "degrade", port=port, width=width, speed=speed)


@ctl.command("symbol-errors")
def symbol_errors(
    port: Annotated[
        str, typer.Argument(metavar="PORT", help="The receiving port: NODE:PORT, or a host.")
    ],
    per_second: Annotated[
        float,
        typer.Argument(metavar="RATE", min=0, help="Errors in a simulated second; 0 ends them."),
    ],
    sockname: SockName = "sim",
) -> None:
    """Make a port count symbol errors."""
    _tell(sockname, "symbol-errors", port=port, per_second=per_second)


@ctl.command()
def slow(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Name of the host.")],
    rate: Annotated[
        str | None,
        typer.Argument(
            metavar="[RATE]",
            help="Payload rate such as '1 Gbit/s'; by default that of the scenario again.",
            show_default=False,
        ),
    ] = None,
    sockname: SockName = "sim",
) -> None:
    """Limit the rate at which a host receives."""
    _tell(sockname, "slow", host=host, rate=rate)


def _percentage(text: str) -> float:
    try:
        return float(text.removesuffix("%"))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is no percentage; write e.g. 10%") from error


@ctl.command()
def lose(
    percent: Annotated[
        float,
        typer.Argument(
            metavar="PERCENT",
            parser=_percentage,
            help="Percentage of management datagrams to drop, e.g. 10%; 0 drops none.",
        ),
    ],
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed for choosing which datagrams are dropped.")
    ] = 0,
    sockname: SockName = "sim",
) -> None:
    """Lose management datagrams, requests and answers alike."""
    _tell(sockname, "lose", percent=percent, seed=seed)


@ctl.command()
def reboot(
    switch: Annotated[str, typer.Argument(metavar="SWITCH", help="Name of the switch.")],
    seconds: Annotated[
        float, typer.Option(min=0, help="Seconds until the switch is powered on again.")
    ] = 1.0,
    sockname: SockName = "sim",
) -> None:
    """Reboot a switch: it loses its LID and its tables."""
    _tell(sockname, "reboot", switch=switch, seconds=seconds)


@ctl.command()
def pause(sockname: SockName = "sim") -> None:
    """Stop simulated time; management goes on."""
    _tell(sockname, "pause")


@ctl.command()
def resume(sockname: SockName = "sim") -> None:
    """Resume simulated time."""
    _tell(sockname, "resume")


@ctl.command()
def scale(
    factor: Annotated[
        float, typer.Argument(metavar="FACTOR", min=1e-6, help="Simulated seconds per second.")
    ],
    sockname: SockName = "sim",
) -> None:
    """Change the speed of simulated time."""
    _tell(sockname, "scale", factor=factor)


@ctl.command("quit")
def end(sockname: SockName = "sim") -> None:
    """End the emulation."""
    _tell(sockname, "quit")
