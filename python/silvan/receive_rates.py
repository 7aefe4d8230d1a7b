"""Receive rates of hosts: which hosts count, over which time, and how fair they are."""

from silvan.results.receive_rates import (
    Window,
    class_delivered,
    delivered,
    delivered_within,
    hotspots,
    is_hotspot,
    jain_index,
    jain_index_series,
    mean_receive_rate_gbps,
    measured_ps,
    other_receivers,
    receive_rate_series_gbps,
    receives,
    sliding_rates_gbps,
)

__all__ = [
    "Window",
    "class_delivered",
    "delivered",
    "delivered_within",
    "hotspots",
    "is_hotspot",
    "jain_index",
    "jain_index_series",
    "mean_receive_rate_gbps",
    "measured_ps",
    "other_receivers",
    "receive_rate_series_gbps",
    "receives",
    "sliding_rates_gbps",
]
