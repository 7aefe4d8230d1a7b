"""The browser page of a result: its data, and the file that holds everything."""

from silvan.viewer.page import write_page

__all__ = ["write_page"]
