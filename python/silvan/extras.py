"""Optional dependencies, by the extra of the package that installs them."""

from __future__ import annotations

from importlib.util import find_spec

from silvan.errors import MissingExtraError

EXTRAS = {
    "cluster": ("distributed", "dask_jobqueue"),
    "figures": ("matplotlib", "PIL"),
    "live": ("websockets",),
    "schemes": ("numba",),
    "twin": ("scipy",),
    "tune": ("optuna",),
}


def require_extra(extra: str, purpose: str) -> None:
    """Check that an extra is installed; ``purpose`` is the subject of the error, in the plural."""
    missing = [module for module in EXTRAS[extra] if not _is_installed(module)]
    if missing:
        raise MissingExtraError(
            f"{purpose} need {', '.join(missing)}, which is not installed",
            hint=f"pip install 'silvan[{extra}]'",
        )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
