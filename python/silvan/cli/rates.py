"""Headings of measures in the tables of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def rate_columns(rows: Iterable[Mapping[str, float | None]]) -> dict[str, str]:
    """Choose the columns of a table of receive rates.

    Parameters
    ----------
    rows : iterable of Mapping
        Measures of runs by name.

    Returns
    -------
    dict
        Headings by name of the rate, for those rates that some row has.
    """
    from silvan.run_measures import MEASURES, RATES

    known = {name for row in rows for name in RATES if row.get(name) is not None}
    return {name: MEASURES[name].heading for name in RATES if name in known}
