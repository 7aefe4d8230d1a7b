"""The command that starts an MPI program on the hosts of a live fabric."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Annotated, Any

import typer

from silvan.errors import EmulationError

_LAYERS = {
    "pml": "ucx",
    "btl": "^vader,tcp,openib,ofi,sm",
    "pml_ucx_tls": "any",
    "pml_ucx_devices": "any",
}
"""Parameters with which Open MPI sends by UCX alone, which else refuses devices unknown to it."""


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
    sockname = os.environ.get("IBSIM_SOCKNAME")
    if sockname is None or shutil.which(launcher) is None:
        what = "no live fabric is attached" if sockname is None else f"{launcher} is not installed"
        hint = "silvan emulate --example two-tier -- silvan mpirun -n 4 PROGRAM"
        raise EmulationError(what, hint if sockname is None else "apt-get install openmpi-bin")
    names = _hosts(sockname, hosts)
    places = [name for name in names for _ in range(per_host)]
    variables = {
        "UCX_TLS": "rc_v,self",
        "MPIR_CVAR_NOLOCAL": "1",
        "MPIR_CVAR_CH4_NETMOD": "ucx",
        **os.environ,
        "SIM_HOSTS": ",".join(places),
        "SIM_HOST_NAMES": "1",
    }
    words = [launcher, "-n", str(ranks or len(places)), *_options(launcher), *command]
    os.execvpe(words[0], words, variables)


def _hosts(sockname: str, wanted: str | None) -> list[str]:
    from silvan.live.emulation import control

    nodes: list[dict[str, Any]] = control(sockname, "fabric")["nodes"]
    known = [node["name"] for node in nodes if node["is_host"]]
    if wanted is None:
        return known
    names = wanted.split(",")
    for name in names:
        if name not in known:
            raise typer.BadParameter(f"{name}: ibhosts lists the hosts", param_hint="--hosts")
    return names


def _options(launcher: str) -> list[str]:
    about = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False)
    if "Open MPI" not in about.stdout:
        return ["-launcher", "fork"]
    layers = [word for name, value in _LAYERS.items() for word in ("--mca", name, value)]
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [*as_root, "--oversubscribe", "--bind-to", "none", *layers]
