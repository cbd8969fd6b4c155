"""Many requests over few connections, for load: a client whose own time hardly counts.

A general client takes about a millisecond for a request, more than the server. Here callbacks write
requests that are bytes already and read answers by httptools, as the server does.
"""

import asyncio
import contextlib
import math
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self
from urllib.parse import urlsplit

import httptools

_PATIENCE = 60.0  # seconds for an answer: the server's own limit is half of that
_WITHOUT = 10.0  # seconds without a connection after which the server counts as gone
_PAUSE = 0.2  # seconds between two attempts to connect again
_TICK = 0.5  # seconds between two looks at the time
# Timers of event loops are exact to a millisecond, and requests are due in between: what is due
# within the first of these is waited for by naps of the second, about the shortest there are.
# Without naps the sender would keep a core to itself, which it may share with the server.
_SOON, _NAP = 0.0015, 5e-5


class Target(NamedTuple):
    """Where requests go.

    Parameters
    ----------
    host : str
        Its name or address.
    port : int
        Its port.
    head : bytes
        The headers of each request that are always the same.
    path : str
        What stands before the path of a request.
    tls : SSLContext or None
        How the server proves who it is.
    """

    host: str
    port: int
    head: bytes
    path: str
    tls: ssl.SSLContext | None

    @classmethod
    def of(cls, url: str, token: str | None = None, ca: Path | None = None) -> Self:
        """Return the target of a URL.

        Parameters
        ----------
        url : str
            ``http://host:port`` or ``https://host:port``, with a path if the server is below one.
        token : str, optional
            Sent with each request.
        ca : path, optional
            The certificate that the server's is signed by; else those that the system trusts.

        Returns
        -------
        Target
            The target.

        Examples
        --------
        >>> target = Target.of("http://127.0.0.1:8000/churn/")
        >>> target.host, target.port, target.path, target.tls
        ('127.0.0.1', 8000, '/churn', None)
        """
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise ValueError(f"{url!r} is not the URL of a server: write http://127.0.0.1:8000.")
        if parts.username or parts.query or parts.fragment or not url.isascii():
            raise ValueError(f"the URL {url!r} may have a host, a port and a path only.")
        tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ValueError("the token has characters that no token has.")
        said = f"Authorization: Bearer {token}\r\n" if token else ""
        where = parts.netloc
        head = f"Host: {where}\r\nContent-Type: application/json\r\n{said}Content-Length: ".encode()
        port = port or (443 if tls else 80)
        return cls(parts.hostname, port, head, parts.path.rstrip("/"), tls)

    def request(self, path: str, body: bytes) -> bytes:
        """Return the bytes of a request."""
        line = f"POST {self.path}{path} HTTP/1.1\r\n".encode()
        return b"%b%b%d\r\n\r\n%b" % (line, self.head, len(body), body)


class Request(NamedTuple):
    """A request.

    Parameters
    ----------
    path : str
        Its path.
    body : bytes
        Its JSON.
    due : float
        When it is due, by `time.perf_counter`: from here on its latency counts.
    about : object
        What the source knows it by.
    """

    path: str
    body: bytes
    due: float
    about: Any = None


class Source(Protocol):
    """What makes requests and takes their answers."""

    def next(self, now: float) -> Request | float | None:
        """Return a request that is due, or when the next will be, or None if none is left.

        None may be taken back: it is asked for again after each answer.
        """

    def answered(self, request: Request, answer: "Answer") -> None:
        """Take an answer."""


class Answer(NamedTuple):
    """An answer.

    Parameters
    ----------
    status : int or str
        The status; if there was no answer, "lost", "timeout" or "not HTTP".
    body : bytes
        Its JSON.
    waited : float
        Seconds from when the request was due to when it was sent.
    seconds : float
        Seconds from when the request was due to the answer.
    """

    status: int | str
    body: bytes
    waited: float
    seconds: float


class Sender:
    """Sends the requests of a source, each when it is due and a connection is free.

    Parameters
    ----------
    target : Target
        Where they go, and nowhere else: a redirect is an answer like others.
    source : Source
        Where they come from.
    connections : int
        Requests that may wait for answers at the same time.
    tick : callable, optional
        Called twice a second.

    Attributes
    ----------
    gone : str or None
        The sentence why the server counts as gone, if it does.
    """

    def __init__(
        self,
        target: Target,
        source: Source,
        connections: int,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self.target, self.source, self.connections, self.tick = target, source, connections, tick
        self.gone: str | None = None
        self._free: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.Handle | None = None
        self._busy = 0
        self._over = False
        self._heard = math.inf

    def run(self) -> None:
        """Send everything."""
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            runner.run(self.send())

    async def send(self) -> None:
        """Send everything, inside an event loop."""
        self._loop = asyncio.get_running_loop()
        self._done = self._loop.create_future()
        try:
            await self._connect_all()
            self._heard = time.perf_counter()
            self._look()
            self._pump()
            await self._done
        finally:
            self._over = True
            for task in self._tasks:
                task.cancel()
            for connection in [*self._open]:
                connection.transport.abort()

    def stop(self) -> None:
        """Send no more, and wait for no answers; a signal handler may call it."""
        self._over = True

    # Connections -------------------------------------------------------------------------------

    async def _connect_all(self) -> None:
        where = f"{self.target.host}:{self.target.port}"
        try:
            for _ in range(self.connections):
                await self._connect()
        except ssl.SSLCertVerificationError as error:
            raise ConnectionError(
                f"the certificate of {where} is not trusted ({error.verify_message}): if it is "
                "your own, give it by `ca=...`."
            ) from error
        except OSError as error:
            why = error.strerror or error
            raise ConnectionError(f"no server answers at {where} ({why}).") from error

    async def _connect(self) -> None:
        target = self.target
        _, made = await self._loop.create_connection(
            lambda: _Connection(self), target.host, target.port, ssl=target.tls
        )
        self._open.add(made)
        self._free.append(made)

    def lost(self, connection: "_Connection", reason: str) -> None:
        """Take note of a connection that was closed, and open another."""
        self._open.discard(connection)
        if connection in self._free:
            self._free.remove(connection)
        if connection.request is not None:
            self._answered(connection, reason, b"")
        if not self._over:
            task = self._loop.create_task(self._reconnect())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reconnect(self) -> None:
        while not self._over:
            try:
                await self._connect()
            except OSError as error:
                if time.perf_counter() - self._heard > _WITHOUT:
                    self.gone = f"the server is gone: {error.strerror or error}."
                    self._end()
                await asyncio.sleep(_PAUSE)
            else:
                self._heard = time.perf_counter()
                self._pump()
                return

    def _look(self) -> None:
        """Look at the time: give up answers that never come, and end if it was asked for."""
        now = time.perf_counter()
        for connection in [*self._open]:
            if connection.request is not None and now - connection.sent > _PATIENCE:
                connection.reason = "timeout"
                connection.transport.abort()
        try:
            self.tick()
        except Exception as error:  # noqa: BLE001
            self._fail(error)
        if self._over:
            self._end()
        elif not self._done.done():
            self._loop.call_later(_TICK, self._look)

    def _end(self) -> None:
        if not self._done.done():
            self._done.set_result(None)

    # Requests ----------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Send what is due, as far as connections are free; come back when more is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._free and not self._over:
            now = time.perf_counter()
            try:
                found = self.source.next(now)
            except Exception as error:  # noqa: BLE001
                self._fail(error)
                return
            if isinstance(found, Request):
                self._busy += 1
                self._free.pop().send(found)
            elif found is None:
                if not self._busy:
                    self._end()
                return
            else:
                wait = found - now
                if wait < _SOON:
                    time.sleep(min(wait, _NAP))
                    self._timer = self._loop.call_soon(self._pump)
                elif wait < math.inf:
                    self._timer = self._loop.call_later(wait - _SOON / 2, self._pump)
                return

    def received(self, connection: "_Connection", status: int, body: bytes) -> None:
        """Take the answer of a connection."""
        self._heard = time.perf_counter()
        self._answered(connection, status, body)
        if connection.transport.is_closing():
            return
        self._free.append(connection)
        self._pump()

    def _answered(self, connection: "_Connection", status: int | str, body: bytes) -> None:
        request, connection.request = connection.request, None
        assert request is not None
        self._busy -= 1
        waited, seconds = connection.sent - request.due, time.perf_counter() - request.due
        try:
            self.source.answered(request, Answer(status, body, waited, seconds))
        except Exception as error:  # noqa: BLE001
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End with an error of the source: in a callback, it would only be logged."""
        self._over = True
        if not self._done.done():
            self._done.set_exception(error)


class _Connection(asyncio.Protocol):
    """A connection that has one request at a time."""

    transport: asyncio.Transport
    sent = 0.0
    request: Request | None = None
    reason = "lost"

    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self.parser = httptools.HttpResponseParser(self)
        self.parts: list[bytes] = []

    def send(self, request: Request) -> None:
        self.request, self.sent = request, time.perf_counter()
        self.transport.write(self.sender.target.request(request.path, request.body))

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.sender.lost(self, self.reason)

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.reason = "not HTTP"
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        self.parts.append(body)

    def on_message_complete(self) -> None:
        body, self.parts = b"".join(self.parts), []
        if self.request is None:  # an answer that nobody asked for, such as 408 to an idle client
            return
        if not self.parser.should_keep_alive():
            self.transport.close()
        self.sender.received(self, self.parser.get_status_code(), body)


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    with contextlib.suppress(ImportError):  # there is none for Windows
        import uvloop  # noqa: PLC0415

        return uvloop.new_event_loop
    return None
