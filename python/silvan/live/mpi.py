"""Start of MPI programs on the hosts of a live fabric."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

from silvan.errors import EmulationError
from silvan.live.emulation import control

_LAYERS = {
    "pml": "ucx",
    "btl": "^vader,tcp,openib,ofi,sm",
    "pml_ucx_tls": "any",
    "pml_ucx_devices": "any",
}
"""Parameters with which Open MPI sends by UCX alone, which else refuses devices unknown to it."""
_VARIABLES = {
    "UCX_TLS": "rc_v,self",
    "MPIR_CVAR_NOLOCAL": "1",
    "MPIR_CVAR_CH4_NETMOD": "ucx",
}


def known_hosts(sockname: str) -> list[str]:
    """List the names of a live fabric's hosts."""
    nodes: list[dict[str, Any]] = control(sockname, "fabric")["nodes"]
    return [node["name"] for node in nodes if node["is_host"]]


def launch(
    sockname: str,
    command: Sequence[str],
    *,
    ranks: int | None = None,
    per_host: int = 1,
    hosts: Iterable[str] | None = None,
    launcher: str = "mpirun",
) -> tuple[list[str], dict[str, str]]:
    """Give the words that start an MPI program, and the variables that they need.

    Ranks take the hosts in turn, ``per_host`` of them each time. Variables that the caller's
    environment sets stay as they are.

    Raises
    ------
    EmulationError
        The launcher is not installed, or the fabric is not there.
    """
    if shutil.which(launcher) is None:
        raise EmulationError(f"{launcher} is not installed", "apt-get install openmpi-bin")
    names = known_hosts(sockname) if hosts is None else list(hosts)
    places = [name for name in names for _ in range(per_host)]
    variables = {name: value for name, value in _VARIABLES.items() if name not in os.environ}
    variables |= {"SIM_HOSTS": ",".join(places), "SIM_HOST_NAMES": "1"}
    words = [launcher, "-n", str(ranks or len(places)), *_options(launcher), *command]
    return words, variables


def _options(launcher: str) -> list[str]:
    about = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False)
    if "Open MPI" not in about.stdout:
        return ["-launcher", "fork"]
    layers = [word for name, value in _LAYERS.items() for word in ("--mca", name, value)]
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [*as_root, "--oversubscribe", "--bind-to", "none", *layers]
