"""The command that starts an MPI program on the hosts of a live fabric."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from silvan.errors import EmulationError


def mpirun(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND ...", help="MPI program and its arguments.")
    ],
    ranks: Annotated[
        int | None,
        typer.Option(
            "-n",
            min=1,
            help="Number of ranks; by default one for each host.",
            show_default=False,
        ),
    ] = None,
    per_host: Annotated[
        int, typer.Option(min=1, help="Consecutive ranks on a host, before the next host's.")
    ] = 1,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="Hosts that the ranks take in turn; by default all, as ibhosts lists them.",
            show_default=False,
        ),
    ] = None,
    launcher: Annotated[
        str, typer.Option(metavar="PROGRAM", help="The launcher of Open MPI or MPICH.")
    ] = "mpirun",
) -> None:
    """Run an MPI program in a live fabric, a rank per host in turn.

    Works in a shell or command of silvan emulate. Ranks use the fabric's network alone, and see
    the names of their hosts.
    """
    from silvan.live.mpi import known_hosts, launch

    sockname = os.environ.get("IBSIM_SOCKNAME")
    if sockname is None:
        hint = "silvan emulate --example two-tier -- silvan mpirun -n 4 PROGRAM"
        raise EmulationError("no live fabric is attached", hint)
    names = None if hosts is None else hosts.split(",")
    unknown = set(names or []) - set(known_hosts(sockname))
    if unknown:
        what = f"{', '.join(sorted(unknown))}: ibhosts lists the hosts"
        raise typer.BadParameter(what, param_hint="--hosts")
    words, variables = launch(
        sockname,
        command,
        ranks=ranks,
        per_host=per_host,
        hosts=names,
        launcher=launcher,
    )
    os.execvpe(words[0], words, {**os.environ, **variables})
