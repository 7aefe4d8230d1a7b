"""Numbers as people read them."""

from __future__ import annotations

import math


def significant(value: float | str) -> str:
    """Write a number with four significant digits; text stays as it is.

    >>> significant(13.3456), significant("off"), significant(float("nan"))
    ('13.35', 'off', '-')
    """
    if isinstance(value, str):
        return value
    return "-" if math.isnan(value) else f"{value:.4g}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun.

    >>> counted(1, "host"), counted(2, "switch", "switches"), counted(1000, "host")
    ('1 host', '2 switches', '1,000 hosts')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def duration(seconds: float) -> str:
    """Write a time span.

    >>> duration(0.456), duration(42), duration(90), duration(7300), duration(float("nan"))
    ('0.46 s', '42 s', '2 min', '2 h 2 min', '-')
    """
    if math.isnan(seconds):
        return "-"
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
