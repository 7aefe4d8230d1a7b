"""The live page of moments that another loop makes, served in a separate thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from silvan.errors import SilvanError
from silvan.live.moments import Moment

_END_S = 2.0

if TYPE_CHECKING:
    from silvan.viewer.dcms_log import EventSource
    from silvan.viewer.diagnosis import LiveDiagnosis


class LivePage:
    """Serves the page from the first moment on."""

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
        self._loop = asyncio.new_event_loop()
        self._serving: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def add(self, moment: Moment) -> None:
        """Show a moment."""
        if self._failed:
            raise self._failed[0]
        if self._page is None:
            from silvan.viewer.diagnosis import LiveDiagnosis

            self._page = LiveDiagnosis(moment, self._title, self._events)
            self._serving = self._loop.create_task(self._serve_page(self._page))
            self._thread.start()
        else:
            self._page.add(moment)

    def end(self) -> None:
        """Tell the pages that are open that the command ends."""
        if self._serving is not None:
            self._loop.call_soon_threadsafe(self._serving.cancel)
            self._thread.join(_END_S)
        if not self._thread.is_alive():
            self._loop.close()

    def _serve(self) -> None:
        assert self._serving is not None
        try:
            self._loop.run_until_complete(self._serving)
        except BaseException as error:
            self._failed.append(error)

    async def _serve_page(self, page: LiveDiagnosis) -> None:
        from silvan.viewer.live import LiveServer

        host, port = self._address
        async with LiveServer(page, host=host, port=port) as server:
            self._announce(server.address)
            await server.serve()


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
