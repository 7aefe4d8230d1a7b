"""The limits of flows in a page: CCTI, or the part of the link's rate, at each sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from silvan.results.result import Result

MOST_LIMITS = 400_000

NO_HOST = 2**32 - 1
"""Destination of a limit of a whole service level."""


def limit_tables(
    result: Result, times: npt.NDArray[np.float64], *, most: int = MOST_LIMITS
) -> dict[str, pa.Table]:
    """Return flows with limits, and their limits at a page's samples.

    ``limited_flows`` has ``source``, ``destination``, ``sl``, and ``rows`` in ``flow_limits``. That
    has, flow by flow, ``sample`` and ``ccti`` or ``rate_percent``, in 32 bits, because 64 would
    make a page of DCQCN a third larger.
    """
    table = result.tables["flow_limits"]
    at = np.searchsorted(times, table["time_ps"].to_numpy())
    inside = at < len(times)
    inside[inside] = times[at[inside]] == table["time_ps"].to_numpy()[inside]
    table, at = table.filter(pa.array(inside)), at[inside].astype(np.uint32)
    source = table["source"].to_numpy().astype(np.uint32)
    destination = table["destination"].fill_null(NO_HOST).to_numpy().astype(np.uint32)
    sl = table["sl"].to_numpy().astype(np.uint8)
    rate = table["rate"].to_numpy()
    order = np.lexsort((at, sl, destination, source))
    keys = np.stack([source, destination, sl])[:, order]
    is_first = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(order)]
    flow = np.cumsum(is_first) - 1
    rows = np.bincount(flow)
    below = np.bincount(flow, weights=1 - rate[order]).astype(np.float64)
    chosen = _strictest(below, rows, most)
    kept = order[chosen[flow]]
    limits: dict[str, npt.NDArray[np.generic]] = {"sample": at[kept]}
    if len(times) <= np.iinfo(np.uint16).max:
        limits["sample"] = at[kept].astype(np.uint16)
    ccti = table["ccti"].to_numpy()
    if ccti.any():
        limits["ccti"] = ccti[kept].astype(np.uint16)
    else:
        limits["rate_percent"] = (100 * rate[kept]).astype(np.float32)
    firsts = order[is_first][chosen]
    flows = {
        "source": source[firsts],
        "destination": destination[firsts],
        "sl": sl[firsts],
        "rows": rows[chosen].astype(np.uint32),
    }
    return {"limited_flows": pa.table(flows), "flow_limits": pa.table(limits)}


def count_limited_flows(result: Result) -> int:
    """Count the limited flows, by source, destination and service level."""
    flows = result.tables["flow_limits"].select(["source", "destination", "sl"])
    return int(flows.group_by(flows.column_names).aggregate([]).num_rows)


def _strictest(
    strictness: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], most: int
) -> npt.NDArray[np.bool_]:
    chosen = np.zeros(len(rows), np.bool_)
    ranked = np.argsort(-strictness, kind="stable")
    chosen[ranked[np.cumsum(rows[ranked]) <= most]] = True
    return chosen
