"""Real programs attached to an emulated fabric, for as long as a block lasts."""

from silvan.live.live_programs import (
    LogLines,
    attached,
    environment,
    has_opensm,
    opensm,
    opensm_log,
    opensm_variables,
    opensm_words,
    wait_for,
)

__all__ = [
    "LogLines",
    "attached",
    "environment",
    "has_opensm",
    "opensm",
    "opensm_log",
    "opensm_variables",
    "opensm_words",
    "wait_for",
]
