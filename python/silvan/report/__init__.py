"""Self-contained HTML reports: one file, no network, no scripts."""

from silvan.extras import require_extra

require_extra("figures", "reports")

from silvan.report.html import write_report  # noqa: E402 - its modules need the extra

__all__ = ["write_report"]
