"""Headings of receive rates, the same in all commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HEADINGS = {
    "hotspots_gbps": "hotspot receive rate",
    "other_receivers_gbps": "mean of other receivers",
    "total_gbps": "total delivered",
}


def rate_columns(rows: Iterable[Mapping[str, float | None]]) -> dict[str, str]:
    """Choose the columns of a table of receive rates.

    Parameters
    ----------
    rows : iterable of Mapping
        Rates by name, as :func:`silvan.measures.receive_rates_gbps` returns them.

    Returns
    -------
    dict
        Headings by name of the rate, for those rates that some row has.
    """
    known = {name for row in rows for name in _HEADINGS if row.get(name) is not None}
    columns = {name: heading for name, heading in _HEADINGS.items() if name in known}
    if "hotspots_gbps" not in known and "other_receivers_gbps" in known:
        columns["other_receivers_gbps"] = "mean of receivers"
    return columns
