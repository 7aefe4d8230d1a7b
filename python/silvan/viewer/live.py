"""The server of the live page: HTTP with a token in the address, samples over a WebSocket."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from itertools import accumulate
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

import pyarrow as pa
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.protocol import State

from silvan.viewer.page import live_html

SAMPLES = "samples"

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# A slow page misses samples, so that they do not pile up.
_MOST_UNREAD = 4 << 20
_MOST_OWED = 64 << 20
_MOST_PAGES = 16
_REST_S = 1.0

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
# asyncio reports answers to ended clients.
logging.getLogger("asyncio").addFilter(lambda record: record.msg != _GONE)
_GONE = "socket.send() raised exception."
# Seconds of samples after the last page has closed, so that a reload lacks none.
_LINGER_S = 30.0
_ENDED = 1001
_NOT_ALLOWED = 1008


class LiveSource(Protocol):
    """Contents of a live page; a change of ``version`` requires a new page."""

    @property
    def name(self) -> str:
        """Title of the page."""

    @property
    def version(self) -> str:
        """Digest whose change makes a new page necessary."""

    @property
    def most_messages(self) -> int:
        """Messages that a page gets when it is opened."""

    def facts(self) -> dict[str, Any]:
        """Return what the page says of the fabric."""

    def tables(self) -> dict[str, pa.Table]:
        """Return nodes and ports."""

    def rest(self) -> bool:
        """Note that no page is open; return true to discard sent messages."""

    def updates(self) -> list[bytes]:
        """Return the messages since the last call."""


class LiveServer:
    """Serves the page of a live fabric, inside a running event loop."""

    def __init__(
        self,
        source: LiveSource,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        interval_s: float = 0.1,
        linger_s: float = _LINGER_S,
    ) -> None:
        self._source = source
        self._host = host
        self._port = port
        self._interval_s = interval_s
        self._linger_s = linger_s
        self._token = secrets.token_urlsafe(16)
        self._pages: set[ServerConnection] = set()
        self._watched = asyncio.Event()
        self._left_s: float | None = None
        self._server: Server | None = None
        self._sent: deque[bytes] = deque(maxlen=source.most_messages)
        self._version = source.version
        self._html = self._made()

    def _made(self) -> bytes:
        source = self._source
        return live_html(source.name, source.facts(), source.tables(), {"path": SAMPLES}).encode()

    @property
    def address(self) -> str:
        """Address of the page for a browser."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/{self._token}/"

    async def serve(self) -> None:
        """Send samples until the fabric ends, which raises an :class:`EmulationError`."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._pages and (
                self._left_s is None or loop.time() - self._left_s > self._linger_s
            ):
                self._watched.clear()
                # Events before a page is opened are no part of a sample.
                if await asyncio.to_thread(self._source.rest):
                    self._sent.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._watched.wait(), _REST_S)
                continue
            due = loop.time() + self._interval_s
            for data in await asyncio.to_thread(self._source.updates):
                self._send(data)
            await asyncio.sleep(max(0.0, due - loop.time()))

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._connected,
            self._host,
            self._port,
            process_request=self._respond,
            compression=None,
            max_size=1024,
            open_timeout=5,
            server_header=None,
            logger=_LOG,
        )
        self._port = next(iter(self._server.sockets)).getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.close(code=_ENDED, reason="the server has ended")
            await self._server.wait_closed()

    def _follow(self) -> None:
        if self._version != self._source.version:
            self._version, self._html = self._source.version, self._made()
            self._sent.clear()

    def _send(self, data: bytes) -> None:
        self._follow()
        self._sent.append(data)
        for page in self._pages:
            unread = page.transport.get_write_buffer_size()
            if unread > _MOST_OWED:
                page.transport.abort()
            elif unread < _MOST_UNREAD and _is_open(page):
                page.protocol.send_binary(data)
                page.send_data()

    def _newest(self) -> list[bytes]:
        sizes = accumulate(len(data) for data in reversed(self._sent))
        count = sum(size <= _MOST_OWED // 2 for size in sizes)
        return list(self._sent)[len(self._sent) - count :]

    async def _connected(self, page: ServerConnection) -> None:
        if len(self._pages) >= _MOST_PAGES:
            await page.close(_NOT_ALLOWED, f"{_MOST_PAGES} pages are open")
            return
        for data in self._newest():
            page.protocol.send_binary(data)
        page.send_data()
        self._pages.add(page)
        self._watched.set()
        try:
            with suppress(ConnectionClosed):
                await page.recv()
                await page.close(_NOT_ALLOWED, "the page is read-only")
        finally:
            self._pages.discard(page)
            self._left_s = asyncio.get_running_loop().time()

    def _respond(self, _page: ServerConnection, request: Request) -> Response | None:
        path = request.path.partition("?")[0]
        token, slash, name = path.removeprefix("/").partition("/")
        is_known = hmac.compare_digest(_bytes(token), _bytes(self._token))
        host = _only(request.headers, "Host")
        if not is_known or host is None or not self._is_own_host(host):
            return _text(
                HTTPStatus.FORBIDDEN, "the command that serves the page prints its address\n"
            )
        if not slash:
            moved = _text(HTTPStatus.PERMANENT_REDIRECT, "the address ends in a slash\n")
            moved.headers["Location"] = f"/{self._token}/"
            return moved
        if name == "":
            self._follow()
            return _response(HTTPStatus.OK, "text/html; charset=utf-8", self._html)
        if name != SAMPLES:
            return _text(HTTPStatus.NOT_FOUND, "there is no such page\n")
        # Browsers name the page that opens a connection; others must not read along.
        if _only(request.headers, "Origin") != f"http://{host}":
            return _text(HTTPStatus.FORBIDDEN, "another page opened the connection\n")
        return None

    def _is_own_host(self, host: str) -> bool:
        """Refuse names of this machine from another site (DNS rebinding)."""
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        return self._host not in _LOOPBACK or name in _LOOPBACK


def _is_open(page: ServerConnection) -> bool:
    return page.state is State.OPEN and not page.transport.is_closing()


def _only(headers: Headers, name: str) -> str | None:
    values = headers.get_all(name)
    return values[0] if len(values) == 1 else None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _response(status: HTTPStatus, kind: str, body: bytes) -> Response:
    headers = Headers(
        {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Connection": "close",
            # The token stays in the address.
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": "frame-ancestors 'none'",
        }
    )
    return Response(status.value, status.phrase, headers, body)


def _text(status: HTTPStatus, text: str) -> Response:
    return _response(status, "text/plain; charset=utf-8", text.encode())


def serve_live(source: LiveSource, host: str, port: int, show: Callable[[str], None]) -> None:
    """Serve the page of a fabric until the fabric ends or Ctrl-C. Port 0 is a free one."""

    async def served() -> None:
        async with LiveServer(source, host=host, port=port) as server:
            show(server.address)
            await server.serve()

    asyncio.run(served())
