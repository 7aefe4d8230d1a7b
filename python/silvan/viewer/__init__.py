"""The browser page of a result: its data, and the file that holds everything."""

from silvan.viewer.page import write_page
from silvan.viewer.perfetto import write_trace

__all__ = ["write_page", "write_trace"]
