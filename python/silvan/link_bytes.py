"""Bytes of each program on each link: the messages of a run, along the routes of its scenario."""

from silvan.results.link_bytes import link_bytes

__all__ = ["link_bytes"]
