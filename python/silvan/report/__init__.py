"""Self-contained HTML reports: one file, no network, no scripts."""

from silvan.report.html import write_report

__all__ = ["write_report"]
