"""Figures, all in one style. They need the extra ``figures``."""

from silvan.extras import require_extra

require_extra("figures", "figures")
