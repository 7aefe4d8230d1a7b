"""The live page of moments that another loop makes, served in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from silvan.errors import SilvanError
from silvan.moments import Moment

if TYPE_CHECKING:
    from silvan.viewer.dcms_log import EventSource
    from silvan.viewer.diagnosis import LiveDiagnosis


class LivePage:
    """Serves the page from the first moment on.

    Parameters
    ----------
    address : tuple of str and int
        Where.
    title : str
        Title of the page.
    announce : callable
        Called with the address of the page when it can be opened.
    events : EventSource, optional
        What a DCMS does.
    """

    def __init__(
        self,
        address: tuple[str, int],
        title: str,
        announce: Callable[[str], None],
        events: EventSource | None = None,
    ) -> None:
        self._address = address
        self._title = title
        self._announce = announce
        self._events = events
        self._page: LiveDiagnosis | None = None
        self._failed: list[BaseException] = []

    def add(self, moment: Moment) -> None:
        """Show a moment.

        Raises
        ------
        OSError
            The address cannot be served.
        """
        if self._failed:
            raise self._failed[0]
        if self._page is None:
            from silvan.viewer.diagnosis import LiveDiagnosis

            self._page = LiveDiagnosis(moment, self._title, self._events)
            threading.Thread(target=self._serve, args=(self._page,), daemon=True).start()
        else:
            self._page.add(moment)

    def _serve(self, page: LiveDiagnosis) -> None:
        from silvan.viewer.live import serve_live

        try:
            serve_live(page, *self._address, self._announce)
        except BaseException as error:
            self._failed.append(error)


def require_address(address: tuple[str, int]) -> None:
    """Raise a :class:`SilvanError` unless a page can be served at an address."""
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server(address, family=family).close()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SilvanError(
            f"--bind: no page can be served at {host}:{port}: {reason}",
            hint="choose another address, such as 127.0.0.1:0",
        ) from None
