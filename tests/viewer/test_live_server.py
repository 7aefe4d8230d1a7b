"""The server of a live page survives all actions of its clients, without output."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

import silvan
from silvan.cli import main
from silvan.live.emulation import ControlChannel, Emulation
from silvan.viewer import live
from silvan.viewer.live import LiveServer
from silvan.viewer.samples import LiveFabric
from tests.emulator.conftest import LINE
from tests.gate import PATIENCE_S
from tests.viewer.test_csv_live import Replayed

HANDSHAKE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==\r\n"
)
CLOSE = 0x88
"""First byte of a frame that closes; no message of the source below has it."""

FRAMES = {
    "a page that goes": b"\x88\x82abcd\x62\x8b",
    "text": b"\x81\x82abcd\x09\x0b",
    "binary": b"\x82\x82abcd\x09\x0b",
    "no mask": b"\x81\x02hi",
    "a reserved bit": b"\xf1\x80abcd",
    "a code that is none": b"\x88\x82abcd\x61\x62",
    "more than is read": b"\x82\xff" + b"\x7f" * 8 + b"abcd",
}

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Ticking(Replayed):
    """A fabric that always has news."""

    news = b"news"

    def updates(self) -> list[bytes]:
        """Return a message."""
        return [self.news]


def run_alone(test: Coroutine[Any, Any, None]) -> None:
    """Run in a separate thread: Playwright keeps an event loop in that of the tests."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, test).result()


def serving(
    test: Callable[[LiveServer], Coroutine[Any, Any, None]],
    source: Replayed | None = None,
    interval_s: float = 0.001,
) -> None:
    """Run a test while a server runs, which must not end before the test does."""

    async def run() -> None:
        async with LiveServer(source or Ticking(), interval_s=interval_s) as server:
            task = asyncio.create_task(server.serve())
            await asyncio.wait_for(test(server), PATIENCE_S)
            assert not task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # The command does not set up logging; pytest does.
    root = logging.getLogger()
    kept, root.handlers = root.handlers, []
    try:
        run_alone(run())
    finally:
        root.handlers = kept


async def answer(server: LiveServer, data: bytes) -> bytes:
    """Send anything to a server, and return what it says until it closes the connection."""
    parts = urlsplit(server.address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(data)
    with closing(writer):
        return await reader.read()


async def raw_page(server: LiveServer) -> Streams:
    """Open a connection for samples, and read the answer."""
    parts = urlsplit(server.address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    origin = f"Host: {parts.netloc}\r\nOrigin: http://{parts.netloc}\r\n"
    writer.write(f"GET {parts.path}samples HTTP/1.1\r\n{origin}{HANDSHAKE}\r\n".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return reader, writer


def page(server: LiveServer) -> connect:
    """Open a connection for samples as a browser does, which sends no pings.

    A page that a test does not read gets no pong either: it is behind the samples.
    """
    parts = urlsplit(server.address)
    samples = f"ws://{parts.netloc}{parts.path}samples"
    return connect(samples, origin=Origin(f"http://{parts.netloc}"), ping_interval=None)


async def follows(one: ClientConnection) -> None:
    """Make sure that a page gets what is sent from now on, not only what was on its way."""
    answered = asyncio.ensure_future(await one.ping())
    after = 0
    while after < 20:
        assert await one.recv() == Ticking.news
        after += answered.done()


@pytest.mark.parametrize("kind", FRAMES)
def test_a_page_that_closes_harms_no_other(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    async def test(server: LiveServer) -> None:
        async with page(server) as other:
            reader, writer = await raw_page(server)
            writer.write(FRAMES[kind])
            # The client goes on to hold its connection after the server has begun to close it.
            while (byte := await reader.read(1)) and byte[0] != CLOSE:
                pass
            await follows(other)
            writer.transport.abort()
            await follows(other)

    serving(test)
    assert capfd.readouterr().err == ""


def test_a_connection_that_breaks_harms_no_other(capfd: pytest.CaptureFixture[str]) -> None:
    async def test(server: LiveServer) -> None:
        async with page(server) as other:
            for _ in range(20):
                _, writer = await raw_page(server)
                writer.transport.abort()
                _, half = await raw_page(server)
                half.write_eof()
                await follows(other)
                half.transport.abort()

    serving(test)
    assert capfd.readouterr().err == ""


def test_answers_to_who_has_gone_leave_no_word(capfd: pytest.CaptureFixture[str]) -> None:
    """Oracle: asyncio itself, which complains of the sixth."""

    async def test(server: LiveServer) -> None:
        _, writer = await raw_page(server)
        writer.transport.abort()
        for _ in range(10):
            writer.transport.write(b"pong")

    serving(test)
    assert capfd.readouterr().err == ""


def test_more_pages_than_fit_are_told_so() -> None:
    """All pages are read at once: the server cuts off who answers none of its pings."""

    async def test(server: LiveServer) -> None:
        async with AsyncExitStack() as pages:
            opened = [await pages.enter_async_context(page(server)) for _ in range(16)]
            async with page(server) as more:
                await more.wait_closed()
                assert (more.close_code, more.close_reason) == (1008, "16 pages are open")
            await asyncio.gather(*map(follows, opened))
        async with page(server) as next_one:
            await follows(next_one)

    serving(test, interval_s=0.02)


def test_who_asks_and_never_reads_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pongs pile up for a client that reads nothing; its connection ends before memory does."""
    monkeypatch.setattr(live, "_MOST_UNREAD", 1 << 10)
    monkeypatch.setattr(live, "_MOST_OWED", 1 << 16)

    async def test(server: LiveServer) -> None:
        async with page(server) as other:
            reader, writer = await raw_page(server)
            reader._transport.pause_reading()  # type: ignore[attr-defined]

            async def ping_for_ever() -> None:
                while True:
                    writer.write(b"\x89\xfdabcd" + b"x" * 125)
                    await writer.drain()

            with pytest.raises(ConnectionError):
                await ping_for_ever()
            await follows(other)

    serving(test)


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        ("//[bad/", "Host: {own}", 403),
        ("http://[::1/x", "Host: {own}", 403),
        ("{path}", "Host: [::1", 403),
        ("{path}", "Host: [bad]:1", 403),
        ("{path}", "Host: ", 403),
        ("{path}", "", 403),
        ("{path}", "Host: {own}\r\nHost: silvan.example", 403),
        ("{path}samples", "Host: {own}\r\nOrigin: http://{own}\r\nOrigin: http://{own}", 403),
        ("{path}", "Host: {own}", 200),
    ],
)
def test_malformed_requests_are_refused_without_a_word(
    request_line: str, headers: str, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    async def test(server: LiveServer) -> None:
        parts = urlsplit(server.address)
        text = f"GET {request_line} HTTP/1.1\r\n{headers}\r\n{HANDSHAKE}\r\n"
        if not headers:
            text = text.replace("\r\n\r\n", "\r\n", 1)
        text = text.format(path=parts.path, own=parts.netloc)
        assert (await answer(server, text.encode())).startswith(f"HTTP/1.1 {status} ".encode())

    serving(test)
    assert capfd.readouterr().err == ""


def test_what_is_no_request_is_closed_without_a_word(capfd: pytest.CaptureFixture[str]) -> None:
    async def test(server: LiveServer) -> None:
        for data in (
            b"\x16\x03\x01\x00\xff" * 20 + b"\r\n",
            b"GET /\x00 HTTP/1.1\r\n\r\n",
            b"GET /\xe9\xff/ HTTP/1.1\r\n\r\n",
        ):
            assert b" 200 " not in await answer(server, data)
        async with page(server) as other:
            await follows(other)

    serving(test)
    assert capfd.readouterr().err == ""


def test_address_without_its_last_slash_leads_to_the_page() -> None:
    """Without the slash the page would look for its samples next to itself, not below."""

    async def test(server: LiveServer) -> None:
        parts = urlsplit(server.address)
        request = f"GET {parts.path[:-1]} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
        moved = (await answer(server, request.encode())).decode()
        assert moved.startswith("HTTP/1.1 308 ")
        assert f"\r\nLocation: {parts.path}\r\n" in moved

    serving(test)


def test_a_server_without_pages_ends_with_its_fabric() -> None:
    scenario = silvan.Scenario.from_toml(LINE)
    with (
        Emulation(scenario, sockname=f"test-idle-{os.getpid()}") as emulation,
        closing(LiveFabric(ControlChannel(emulation.sockname))) as fabric,
    ):

        async def served() -> None:
            async with LiveServer(fabric) as server:
                task = asyncio.create_task(server.serve())
                await asyncio.to_thread(emulation.stop)
                await asyncio.wait_for(task, PATIENCE_S)

        with pytest.raises(silvan.EmulationError, match="has ended") as ended:
            run_alone(served())
    assert "silvan emulate" in (ended.value.hint or "")


@pytest.mark.parametrize("is_taken", [True, False])
def test_an_address_that_cannot_be_served_is_refused_with_a_hint(
    is_taken: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A port in use, and an address of a network for documents (RFC 5737)."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bind = f"127.0.0.1:{taken.getsockname()[1]}" if is_taken else "192.0.2.1:0"
        assert main(["view", "--live", "--sockname", "none", "--bind", bind]) == 2
    error = capsys.readouterr().err
    assert f"--bind: no page can be served at {bind}: " in error
    assert "hint: choose another address" in error
