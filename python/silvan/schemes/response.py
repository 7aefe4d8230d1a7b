"""Response functions: how a source's rate answers marks, checked before anything is simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from silvan import _silvan
from silvan.errors import SilvanError
from silvan.inputs.toml_text import TomlValue

if TYPE_CHECKING:
    from silvan.inputs.scenario import Scenario

MIN_RATE = 1 / 256
"""Rmin over Rmax: the lowest rate of an 8-bit inter-packet delay."""

# A usable function stays in range, relieves congestion, and equalises flows.
_REQUIRED = ("range", "condition 1", "condition 2")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Result of a response function for a condition.

    Attributes
    ----------
    condition : str
        Its short name: ``range``, ``condition 1`` to ``condition 3`` or ``equation (2)``.
    meaning : str
        Consequence if the condition holds.
    holds : bool
        True if it holds at every rate checked.
    rate : float
        Rate at which the condition holds worst, or fails most, as a fraction of Rmax.
    value : float
        Value of the function there: a rate as a fraction of Rmax, or a time in packet times.
    bound : float
        Bound that the value is compared with.
    """

    condition: str
    meaning: str
    holds: bool
    rate: float
    value: float
    bound: float

    @property
    def is_required(self) -> bool:
        """True if a function must meet the condition to be usable."""
        return self.condition in _REQUIRED

    def to_dict(self) -> dict[str, Any]:
        """Give the finding as plain values, for JSON; what is no finite number as text."""

        def plain(number: float) -> float | str:
            return number if abs(number) < float("inf") else str(number)

        return {
            "condition": self.condition,
            "meaning": self.meaning,
            "required": self.is_required,
            "holds": self.holds,
            "rate": plain(self.rate),
            "value": plain(self.value),
            "bound": plain(self.bound),
        }


class Response:
    """A pair of functions that raise and lower the rate of a flow.

    Rates are fractions of Rmax, the rate of the host's link. Times are packet times: the time of
    one packet of MTU size at Rmax.

    Parameters
    ----------
    increase : callable
        Gives the rate after an acknowledgement without a mark.
    decrease : callable
        Gives the rate after an acknowledgement with a mark.
    min_rate : float
        Rmin, the smallest rate.

    Notes
    -----
    The conditions are those of J. R. Santos, Y. Turner and G. Janakiraman, "End-to-end congestion
    control for InfiniBand", INFOCOM 2003, section V.

    Examples
    --------
    A step up of the same size for every acknowledgement favours fast flows, which get more of
    them:

    >>> import silvan
    >>> smallest = 1 / 256
    >>> constant_step = silvan.Response(
    ...     increase=lambda rate: min(rate + smallest, 1.0),
    ...     decrease=lambda rate: max(rate / 2, smallest),
    ... )
    >>> [finding.condition for finding in constant_step.check() if not finding.holds]
    ['condition 2', 'condition 3', 'equation (2)']
    >>> silvan.Response.fimd().is_sound()
    True
    """

    def __init__(
        self,
        increase: Callable[[float], float],
        decrease: Callable[[float], float],
        min_rate: float = MIN_RATE,
    ) -> None:
        self._native = _checked(lambda: _silvan.Response.given(increase, decrease, min_rate))

    @classmethod
    def _of(cls, native: Callable[[], _silvan.Response]) -> Self:
        response = cls.__new__(cls)
        response._native = _checked(native)
        return response

    @classmethod
    def aimd(cls, factor: float = 2.0, min_rate: float = MIN_RATE) -> Self:
        """Make additive increase, multiplicative decrease; a mark divides by ``factor``."""
        return cls._of(lambda: _silvan.Response.aimd(factor, min_rate))

    @classmethod
    def fimd(cls, factor: float = 2.0, min_rate: float = MIN_RATE) -> Self:
        """Make fast increase, multiplicative decrease; a mark divides by ``factor``."""
        return cls._of(lambda: _silvan.Response.fimd(factor, min_rate))

    @classmethod
    def lipd(cls, min_rate: float = MIN_RATE) -> Self:
        """Make linear inter-packet delay; a mark adds one packet time between packets."""
        return cls._of(lambda: _silvan.Response.lipd(min_rate))

    @classmethod
    def of_scenario(cls, scenario: Scenario) -> Self | None:
        """Return the response function that a scenario names.

        None where there is none to check: the scheme is not ``ecn``, rates stay fixed, or the
        scenario has lookup tables of its own.
        """
        control = scenario.to_dict()["control"]
        section = control["ecn"]
        smallest = MIN_RATE if section["rates"] == "discrete" else section["min-rate"]
        response = section["response"] if "ecn" in _silvan.scheme_tables(control["scheme"]) else ""
        if response == "lipd":
            return cls.lipd(smallest)
        if response in ("aimd", "fimd"):
            make = cls.aimd if response == "aimd" else cls.fimd
            return make(section["decrease-factor"], smallest)
        return None

    def increase(self, rate: float) -> float:
        """Give the rate after an acknowledgement without a mark."""
        return self._native.increase(rate)

    def decrease(self, rate: float) -> float:
        """Give the rate after an acknowledgement with a mark."""
        return self._native.decrease(rate)

    def rate_after(self, elapsed: float) -> float | None:
        """Give the rate that many packet times after Rmin, without marks.

        None for functions without a closed form.
        """
        return self._native.rate_after(elapsed)

    def time_to(self, rate: float) -> float | None:
        """Give how many packet times the rate takes from Rmin to this one, without marks.

        None for functions without a closed form.
        """
        return self._native.time_to(rate)

    def check(self) -> list[Diagnosis]:
        """Put the function to every design condition.

        Returns
        -------
        list of Diagnosis
            Range, the three conditions, and equation (2), in this order.
        """
        return [Diagnosis(*found) for found in self._native.check()]

    def is_sound(self) -> bool:
        """Tell whether the function keeps to its range, relieves congestion and is fair."""
        return all(finding.holds for finding in self.check() if finding.is_required)

    def tables(self) -> dict[str, TomlValue]:
        """Compute lookup tables for the 256 rates of InfiniBand's inter-packet delay.

        Returns
        -------
        dict
            Keys of the section ``control.ecn`` of a scenario, so that the function can be
            simulated: ``response``, ``increase-table`` and ``decrease-table``.
        """
        increase, decrease = self._native.tables()
        return {
            "response": "given",
            "increase-table": [list(step) for step in increase],
            "decrease-table": list(decrease),
        }


def _checked(make: Callable[[], _silvan.Response]) -> _silvan.Response:
    try:
        return make()
    except ValueError as error:
        raise SilvanError(str(error)) from None
