"""Schemes in a Python file that a scenario names: ``control.scheme = "python"``."""

from __future__ import annotations

import ast
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from silvan.errors import SchemeError, SilvanError, describe, shown
from silvan.schemes.foreign_code import foreign_code

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario
    from silvan.schemes.callbacks import Callbacks

_TEXTS_KEPT = 16
_MODULE = "silvan_scheme"
_CARRIER = "CARRIER"
_BY_ACKNOWLEDGEMENT = "ack-per-packet"


@dataclass(frozen=True, slots=True)
class SchemeSetup:
    """Facts of a run for the function of a scheme file.

    Attributes
    ----------
    scenario : Scenario
        The whole scenario.
    seed : int
        Seed of the run.
    hosts : int
        Hosts of the fabric; the functions get them by their numbers from 0.
    port_vls : int
        Output Port VLs of the fabric; the functions get them by their numbers from 0.
    parameters : Mapping
        The table ``control.python.parameters``; of a plug-in, its keys as numbers, by field.
    """

    scenario: Scenario
    seed: int
    hosts: int
    port_vls: int
    parameters: Mapping[str, float]


def scheme_of(scenario: Scenario, seed: int) -> Callbacks | None:
    """Make the scheme of a scenario, if it is in a Python file that runs once per process."""
    scheme = scenario._native.python_scheme()
    if scheme is None:
        return None
    source, name, wanted, parameters = scheme
    try:
        with foreign_code():
            function = _run(source, name).get(wanted)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # sys.exit must not end the caller either.
        raise _located(error, name) from error
    if not callable(function):
        raise SchemeError(
            f"there is no function {wanted!r}",
            name,
            hint=f"write def {wanted}(setup), or name another one as control.python.function",
        )
    facts = scenario.describe()
    lanes = int(scenario.to_dict()["vl"]["data-vls"])
    setup = SchemeSetup(scenario, seed, facts["hosts"], facts["ports"] * lanes, parameters)
    try:
        with foreign_code():
            made = function(setup)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _located(error, name) from error
    return _checked(made, name, wanted)


def _checked(made: object, name: str, function: str) -> Callbacks:
    from silvan.schemes.callbacks import Callbacks

    if isinstance(made, Callbacks):
        return made
    raise SchemeError(
        f"{function} gives {type(made).__name__}, not silvan.Callbacks",
        name,
        hint="end it with return silvan.Callbacks(state, ...)",
    )


def needed_carrier(text: str) -> str | None:
    """Find out which carrier of feedback the scheme in a file needs, without running the file.

    Examples
    --------
    >>> needed_carrier('CARRIER = "ack-per-message"')
    'ack-per-message'
    >>> needed_carrier("silvan.Callbacks(state, on_ack=on_ack)")
    'ack-per-packet'
    >>> needed_carrier("silvan.Callbacks(state, release=release)")
    """
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for statement in module.body:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Constant(str(value))) if name == _CARRIER:
                return value
    calls = (node for node in ast.walk(module) if isinstance(node, ast.Call))
    has_on_ack = any(word.arg == "on_ack" for call in calls for word in call.keywords)
    return _BY_ACKNOWLEDGEMENT if has_on_ack else None


@lru_cache(_TEXTS_KEPT)
def _run(source: str, name: str) -> dict[str, Any]:
    code: CodeType = compile(source, name, "exec")
    module = ModuleType(_MODULE)
    module.__file__ = name
    # Dataclasses look up the module of their class.
    sys.modules[_MODULE] = module
    exec(code, vars(module))
    return vars(module)


def _located(error: BaseException, name: str) -> SchemeError:
    if isinstance(error, SchemeError):
        return error
    if isinstance(error, SyntaxError) and error.filename == name:
        return SchemeError(shown(error.msg), name, error.lineno, "the file has to be Python")
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == name]
    line = lines[-1] if lines else None
    if isinstance(error, SilvanError):
        return SchemeError(error.message, name, line, error.hint)
    hint = "the file is run before the simulation; correct it"
    if isinstance(error, KeyError) and lines:
        hint = "parameters are in the table control.python.parameters"
    return SchemeError(describe(error), name, line, hint)
