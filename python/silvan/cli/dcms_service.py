"""The congestion manager as a service: signals, reloads, its page."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from silvan.cli.printer import note, put
from silvan.errors import ManagerError, ScenarioError, SilvanError
from silvan.inputs.input_files import CONFIGURATION_BYTES, read_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from silvan._silvan import Manager
    from silvan.cli.live_page import LivePage
    from silvan.viewer.managed import ManagedMoments

_NAP_S = 0.1
_RETRY_S = 2.0


class LogFormat(StrEnum):
    """How events are written."""

    TEXT = "text"
    JSON = "json"


def configuration(config: Path) -> str:
    """Read the configuration file of a manager."""
    hint = "silvan dcms --example prints a configuration"
    return read_text(config, CONFIGURATION_BYTES, "configuration", hint)


class LiveView:
    """The live page of a manager.

    Parameters
    ----------
    address : tuple of str and int
        Where it is served.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        from silvan.cli.attached import attached_clock
        from silvan.cli.live_page import LivePage, require_address
        from silvan.extras import require_extra

        require_extra("live", "live pages")
        from silvan.viewer.managed import ManagedMoments

        require_address(address)
        self._moments: ManagedMoments = ManagedMoments(attached_clock())
        self._page: LivePage = LivePage(
            address, "Managed subnet", _put_address, self._moments.events
        )

    def follow(self, manager: Manager) -> None:
        """Show what is new."""
        for moment in self._moments.take(manager):
            self._page.add(moment)

    def end(self) -> None:
        """Tell the pages that are open that the manager ends."""
        self._page.end()


def _put_address(address: str) -> None:
    put(address)
    sys.stdout.flush()


class Service:
    """A manager that signals end, or start again with the current configuration file.

    Parameters
    ----------
    config : Path
        The file.
    opened : callable
        Starts a manager with the text of a configuration.
    log : LogFormat
        How what is reloaded is logged.
    page : LiveView, optional
        The page that shows what the manager does.
    can_reload : bool
        Whether SIGHUP has the configuration reloaded; otherwise it ends the manager.
    """

    def __init__(
        self,
        config: Path,
        opened: Callable[[str], Manager],
        log: LogFormat,
        page: LiveView | None,
        *,
        can_reload: bool,
    ) -> None:
        self._config = config
        self._opened = opened
        self._log = log
        self._page = page
        self._can_reload = can_reload
        self._is_ending = self._is_reloading = False
        # The configuration in effect.
        self._text = ""
        # Whether all changes of the manager that was stopped last are restored and its journal
        # states that.
        self._is_clean = True
        self.has_started = False

    def run(self) -> bool:
        """Run until the end, and return whether no change is left to be restored."""
        kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = [signal.signal(kind, self._take) for kind in kinds]
        try:
            return self._run()
        finally:
            if self._page is not None:
                self._page.end()
            for kind, handler in zip(kinds, before, strict=True):
                signal.signal(kind, handler)

    def _take(self, kind: int, _frame: object) -> None:
        if kind == signal.SIGHUP and self._can_reload:
            self._is_reloading = True
        else:
            self._is_ending = True

    def _run(self) -> bool:
        self._text = configuration(self._config)
        manager = self._opened(self._text)
        self.has_started = True
        while manager.is_running():
            if self._is_ending:
                manager.stop()
            elif self._is_reloading:
                replaced = self._reloaded(manager)
                if replaced is None:
                    return self._is_clean
                manager = replaced
            self._show(manager)
            time.sleep(_NAP_S)
        return manager.join() == 0

    def _show(self, manager: Manager) -> None:
        """Show what is new; a manager goes on without a page that cannot be served any more."""
        if self._page is None:
            return
        try:
            self._page.follow(manager)
        except (OSError, SilvanError) as error:
            self._page = None
            self._log_event(
                "page-failed", "error", f"the page is not served any more: {error}", why=str(error)
            )

    def _reloaded(self, manager: Manager) -> Manager | None:
        """Replace a manager if the file can be used; ``None`` if the service ends meanwhile."""
        self._is_reloading = False
        new = self._checked()
        if new is None:
            return manager
        manager.stop()
        while manager.is_running():
            time.sleep(_NAP_S)
        # What it could not restore is in its journal, which the next one reads.
        try:
            self._is_clean = manager.join() == 0
        except ManagerError as error:
            self._is_clean = False
            self._log_error("failed", "the manager has failed", error)
        return self._restarted(new)

    def _checked(self) -> str | None:
        """Read the file again; ``None`` if it cannot be used."""
        from silvan import _silvan

        try:
            text = configuration(self._config)
            _silvan.Manager.check(text, str(self._config))
        except SilvanError as error:
            self._refuse(error)
            return None
        return text

    def _restarted(self, new: str | None) -> Manager | None:
        """Start a manager with a new configuration, with the old one if that fails.

        Where neither starts, tries again until one does; ``None`` if the service ends meanwhile.
        """
        logged = ""
        while not self._is_ending:
            if self._is_reloading:
                self._is_reloading = False
                new = self._checked()
            if new is not None:
                try:
                    self._require_folder(new)
                    manager = self._opened(new)
                except (SilvanError, OSError) as error:
                    self._refuse(error)
                    new = None
                else:
                    self._text = new
                    self._log_event("reloaded", "info", f"{self._config} is reloaded")
                    return manager
            try:
                return self._opened(self._text)
            except (SilvanError, OSError) as error:
                if str(error) != logged:
                    logged = str(error)
                    self._log_error("not-started", "no manager runs, further tries follow", error)
            self._wait(_RETRY_S)
        return None

    def _require_folder(self, new: str) -> None:
        """Refuse another state folder while the old one lists changes: none would restore them."""
        from silvan import _silvan

        if self._is_clean:
            return
        old_folder, new_folder = (
            os.path.realpath(_silvan.Manager.check(text, str(self._config)))
            for text in (self._text, new)
        )
        if old_folder != new_folder:
            raise ScenarioError(
                f"state.folder: the journal in {old_folder} lists changes that are not restored",
                str(self._config),
                hint="reload again when silvan dcms --status shows none, or keep the folder",
                key="state.folder",
            )

    def _wait(self, seconds: float) -> None:
        """Wait, at most until a signal."""
        until = time.monotonic() + seconds
        while not self._is_ending and not self._is_reloading and time.monotonic() < until:
            time.sleep(_NAP_S)

    def _refuse(self, error: Exception) -> None:
        what = "the configuration is kept, because the new one cannot be used"
        self._log_error("not-reloaded", what, error)

    def _log_error(self, event: str, what: str, error: Exception) -> None:
        hint = error.hint if isinstance(error, SilvanError) else None
        if hint is None:
            self._log_event(event, "error", f"{what}: {error}", why=str(error))
        else:
            text = f"{what}: {error} (hint: {hint})"
            self._log_event(event, "error", text, why=str(error), hint=hint)

    def _log_event(self, event: str, level: str, text: str, **values: str) -> None:
        """Log in the format of the manager."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._log is LogFormat.JSON:
            line = {"time": now, "level": level, "event": event, "file": str(self._config)}
            note(json.dumps({**line, **values}))
        else:
            note(f"{now} {level}: {text}")
