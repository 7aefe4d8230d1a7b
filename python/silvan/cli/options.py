"""Arguments and options that several commands share."""

from __future__ import annotations

import pwd
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from silvan.errors import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from silvan.inputs.scenario import Scenario
    from silvan.inputs.toml_text import TomlValue
    from silvan.live.opensm_routing import GuidFiles

ScenarioPath = Annotated[
    Path, typer.Argument(metavar="SCENARIO.toml", help="The scenario file.", show_default=False)
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a key of the scenario, such as run.duration='1 ms'. May be repeated.",
        show_default=False,
    ),
]
Scheme = Annotated[
    str | None,
    typer.Option(
        "--scheme",
        metavar="NAME|FILE.py[:FUNCTION]",
        help="Congestion-control scheme in place of the scenario's: a name, such as dcqcn, or a "
        "Python file, whose FUNCTION (default: scheme) makes the scheme.",
        show_default=False,
    ),
]
Schemes = Annotated[
    str | None,
    typer.Option(
        "--schemes",
        metavar="SCHEME,SCHEME,...",
        help="Schemes to compare, separated by commas: names, such as 'ib-cc,pft', or a Python "
        "file FILE.py[:FUNCTION]. 'all' means every scheme that suits the fabric, the "
        "default; 'none' always takes part.",
        show_default=False,
    ),
]
RootGuidFile = Annotated[
    Path | None,
    typer.Option(
        "--root-guid-file",
        metavar="FILE",
        help="Node GUIDs of the root switches, one in each line, for the engines that read them: "
        "updn and ftree.",
        show_default=False,
    ),
]
CnGuidFile = Annotated[
    Path | None,
    typer.Option(
        "--cn-guid-file",
        metavar="FILE",
        help="Port GUIDs of the compute nodes, one in each line, for the engines that read them: "
        "ftree, sssp and dfsssp.",
        show_default=False,
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace results of another scenario or version in the output folder.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Start although the estimate exceeds this machine's memory, a day, or 10,000 runs.",
    ),
]
SockName = Annotated[
    str,
    typer.Option(metavar="NAME", envvar="IBSIM_SOCKNAME", help="Name of the fabric's sockets."),
]
Bind = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS:PORT", help="Address of the page with --live; port 0 is any free port."
    ),
]
WaitTick = Annotated[
    list[str] | None,
    typer.Option(
        "--tick",
        metavar="TIME|DEVICE=TIME",
        help="Length of a tick of PortXmitWait of all ports, or of the ports of a device, by name "
        "(Quantum) or DeviceID (0xd2f0, 54000); default: that of each port's device. May be "
        "repeated.",
        show_default=False,
    ),
]
LinkPercent = Annotated[
    float,
    typer.Option(
        "--link-percent",
        metavar="PERCENT",
        min=0.001,
        max=100,
        help="Largest share of a management link's data rate for requests, in percent.",
    ),
]
AdapterName = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Adapter to use; by default the first with an active port.",
        show_default=False,
    ),
]
AdapterPort = Annotated[
    int, typer.Option("--port", min=0, max=254, help="Its port; 0 is the first active one.")
]
EmulatedFabric = Annotated[
    str | None,
    typer.Option(
        "--sockname",
        metavar="NAME",
        help="Read the emulated fabric with sockets of this name.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


_LAST_PORT = 65535


def address_of(text: str, option: str) -> tuple[str, int]:
    """Read the value of an option that says at which address and port something is served."""
    from silvan.inputs.quantities import whole_number

    host, _, digits = text.rpartition(":")
    port = whole_number(digits)
    if not host or port is None or port > _LAST_PORT:
        raise typer.BadParameter(
            f"{shown(repr(text))} is not ADDRESS:PORT, such as 127.0.0.1:8080", param_hint=option
        )
    return host.strip("[]"), port


def load(
    path: Path,
    assignments: list[str] | None,
    scheme: str | None = None,
    overrides: Mapping[str, TomlValue] | None = None,
) -> Scenario:
    """Read a scenario file with ``--set`` and ``--scheme``; ``overrides`` win."""
    from silvan.cli.printer import noted_if_slow, warn
    from silvan.inputs.scenario import Scenario
    from silvan.inputs.toml_text import parse_assignments

    given = parse_assignments(assignments or [])
    given.update(scheme_keys(scheme, given))
    with noted_if_slow(f"{path}: building the fabric and checking its routes ..."):
        scenario = Scenario.from_file(path, overrides={**given, **(overrides or {})})
    warn(scenario.warnings)
    return scenario


_LONG_S = 10.0


def require_size(
    runs: Sequence[tuple[Scenario, int]], *, is_wanted: bool, workers: int | None = None
) -> str | None:
    """Refuse runs of some scenarios that are too large; describe their size if they take long."""
    from silvan.cli.printer import noted_if_slow
    from silvan.execution.estimate import estimate_all, require_room

    with noted_if_slow("estimating packet-hops, memory and time ..."):
        size = estimate_all(runs, workers)
    require_room(size, is_wanted=is_wanted)
    return f"estimate: {size}" if size.seconds >= _LONG_S else None


def changes(assignments: Sequence[str] | None, scheme: str | None) -> list[str]:
    """Return the words of a command that change what the scenario file says."""
    words = [word for assignment in assignments or () for word in ("--set", assignment)]
    return words if scheme is None else [*words, "--scheme", scheme]


_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 365 * 24 * 3600.0


def wall_time(option: str, text: str) -> float:
    """Read a time on the wall clock, in seconds."""
    from silvan.errors import shown

    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([a-z]+)", text.strip())
    if found is None or found[2] not in _SECONDS or not float(found[1]):
        raise typer.BadParameter(
            f"{text!r} is not a time above 0 with a unit of {', '.join(_SECONDS)}",
            param_hint=option,
        )
    seconds = float(found[1]) * _SECONDS[found[2]]
    if seconds > _LONGEST_S:
        raise typer.BadParameter(
            f"{shown(text)} is more than {_LONGEST_S / _SECONDS['h']:g} h", param_hint=option
        )
    return seconds


def is_scheme_file(scheme: str) -> bool:
    """Tell a Python file from the name of a scheme.

    >>> is_scheme_file("ecn+lipd"), is_scheme_file("mine.py:make"), is_scheme_file("./mine")
    (False, True, True)
    """
    file = scheme.partition(":")[0]
    return ":" in scheme or "/" in scheme or file.endswith(".py")


def chosen_schemes(listed: str | None) -> tuple[list[str], str | None]:
    """Split the value of ``--schemes`` into names and a Python file; no names means all.

    >>> chosen_schemes(None), chosen_schemes("ib-cc, mine.py")
    (([], None), (['ib-cc'], 'mine.py'))
    >>> chosen_schemes("all,mine.py"), chosen_schemes("mine.py")
    (([], 'mine.py'), (['none'], 'mine.py'))
    """
    if listed is None:
        return [], None
    words = [word.strip() for word in listed.split(",")]
    files = [word for word in words if is_scheme_file(word)]
    if len(files) > 1:
        raise typer.BadParameter("one Python file at a time can take part", param_hint="--schemes")
    names = [word for word in words if not is_scheme_file(word)]
    names = [] if "all" in names else names or ["none"]
    return names, files[0] if files else None


def scheme_keys(
    scheme: str | None, given: Mapping[str, TomlValue], option: str = "--scheme"
) -> dict[str, TomlValue]:
    """Return the keys of a scheme; those of a file name the carrier unless ``given`` does."""
    from silvan.errors import ScenarioError
    from silvan.inputs.input_files import CONFIGURATION_BYTES, read_text
    from silvan.inputs.scenario import Scenario
    from silvan.schemes.scheme_file import needed_carrier

    if scheme is None:
        return {}
    if not scheme:
        raise typer.BadParameter("names no scheme", param_hint=option)
    if not is_scheme_file(scheme):
        return {"control.scheme": scheme}
    file, colon, function = scheme.rpartition(":")
    if not (colon and function.isidentifier()):
        file, function = scheme, "scheme"
    if not file:
        raise typer.BadParameter("names no file", param_hint=option)
    if not Path(file).name.isprintable():
        raise typer.BadParameter(
            f"the name of {shown(file)} has characters that cannot be shown", param_hint=option
        )
    hint = f"name a Python file that makes a scheme, as {option} FILE.py"
    try:
        text = read_text(file, CONFIGURATION_BYTES, f"scheme of {option}", hint)
    except ScenarioError as error:
        raise ScenarioError(error.message, file, error.line, error.hint) from None
    carrier = needed_carrier(text)
    feedback = "control.feedback"
    if carrier is None or feedback in given or f"{feedback}.carrier" in given:
        needed: dict[str, TomlValue] = {}
    else:
        needed = {f"{feedback}.carrier": carrier}
        try:
            Scenario().override(needed)
        except ScenarioError as error:
            raise ScenarioError(f"CARRIER: {error.message}", file, hint=error.hint) from None
    return {
        "control.scheme": "python",
        # A path on the command line is relative to the caller.
        "control.python.file": str(Path(file).absolute()),
        "control.python.function": function,
        **needed,
    }


def added_scheme(
    scheme: str | None, assignments: Sequence[str] | None
) -> tuple[dict[str, TomlValue], dict[str, TomlValue]]:
    """Split ``--set`` words and a Python file into keys of all scenarios and of its scheme."""
    from silvan.inputs.toml_text import parse_assignments

    given = parse_assignments(assignments or [])
    if scheme is None:
        return given, {}
    own = {key: value for key, value in given.items() if f"{key}.".startswith("control.python.")}
    others = {key: value for key, value in given.items() if key not in own}
    return others, {**own, **scheme_keys(scheme, given, "--schemes")}


def tree_keys(scenario: Scenario) -> dict[str, TomlValue]:
    """Return the keys that make a scenario look for congestion trees, if it does not yet."""
    return {} if "trees" in scenario.to_dict()["probe"] else {"probe.trees": {}}


def user_id(user: str, option: str) -> int:
    """Turn a user's name or id into the id."""
    from silvan.inputs.quantities import whole_number

    try:
        number = whole_number(user)
        return pwd.getpwnam(user).pw_uid if number is None else number
    except KeyError as error:
        raise typer.BadParameter(
            f"there is no user {shown(repr(user))}", param_hint=option
        ) from error


_READS_PER_HOP = 0.1
"""Reading a packet takes a fifth of the instructions of a packet-hop, so trees take 2 %."""


def view_keys(scenario: Scenario) -> dict[str, TomlValue]:
    """Return the keys that make a scenario record all data of `silvan view`.

    By default, samples of static trees with more than 4,096 packets are omitted
    (``reads-per-hop``): in a full fabric, one reads as many packets as the run forwards meanwhile.
    """
    probe = scenario.to_dict()["probe"]
    recorded: dict[str, TomlValue] = {
        "probe.ports": True,
        "probe.classes": True,
        "probe.flow-limits": True,
        "probe.messages": True,
        "probe.latency": "host" if probe["latency"] == "host" else "host-coarse",
    }
    if "trees" not in probe:
        recorded["probe.trees"] = {"reads-per-hop": _READS_PER_HOP}
    return recorded


def guid_files(roots: Path | None, compute_nodes: Path | None) -> GuidFiles:
    """Give the files of GUIDs of two options, and refuse those that are not there."""
    from silvan.live.opensm_routing import GuidFiles

    for option, path in (("--root-guid-file", roots), ("--cn-guid-file", compute_nodes)):
        if path is not None and not path.is_file():
            reason = "it is no regular file" if path.exists() else "there is no such file"
            raise typer.BadParameter(f"{path}: {reason}", param_hint=option)
    return GuidFiles(roots, compute_nodes)
