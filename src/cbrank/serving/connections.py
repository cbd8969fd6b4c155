"""Connections: what comes before a request is whole, and after its answer was given.

Uvicorn leaves these open: headers of any size, clients that never send or never read, any number of them.
"""

import asyncio
import functools
import ipaddress
import json
import time
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from cbrank.serving.guard import Counted
from cbrank.serving.limits import Limits

_MOST_HEADERS = 100  # browsers and proxies send up to some thirty
_LONGEST_HEAD = 64 << 10  # bytes of request line and headers
# A client that is still sending would be reset before it reads the answer, if it were closed at once.
_STILL_SENDING = (400, 431)
_LINGER = 1.0  # seconds for which it may go on


class Connection(HttpToolsProtocol):
    """A connection within limits: how many, how large the headers, how slow either side.

    One address may have three quarters of all connections. Beyond them, and when all are in use, a new
    connection takes the place of one of its address that is idle, the one for the longest time first.

    Attributes
    ----------
    limits : Limits
        What a request may take.
    counts : Counts
        Where refused requests are counted.
    """

    limits: ClassVar[Limits]
    counts: ClassVar[Counted]
    peers: ClassVar[
        dict[str, dict["Connection", None]]
    ]  # of each address, the last used at the end
    watched: ClassVar[asyncio.AbstractEventLoop | None] = None
    _peer = ""
    _head = 0  # bytes of headers that are not whole
    _since: float | None = None  # when a sweep first found nothing to wait for but the client
    _unsent = -1
    _refused = False

    @classmethod
    def within(cls, limits: Limits, counts: Counted) -> type["Connection"]:
        """Return the class for a server."""
        return type("Connection", (cls,), {"limits": limits, "counts": counts, "peers": {}})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless too many connections are open."""
        super().connection_made(transport)
        self._peer = peer_of(self.client[0] if self.client else "")
        mine = self.peers.setdefault(self._peer, {})
        mine[self] = None
        if len(mine) > self.limits.connections_of_one:
            self._take_place(mine, "too many connections of this address are open: try again.")
        elif len(self.connections) > self.limits.connections:
            self._take_place(mine, "too many connections are open: try again.")
        kind = type(self)
        if kind.watched is not self.loop:
            kind.watched = self.loop
            kind.watch(self.loop, self.connections)

    def connection_lost(self, exc: Exception | None) -> None:
        """End; the timer of a connection that was reset would otherwise keep it for another minute."""
        self.leave()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def leave(self) -> None:
        """Make room for another connection."""
        self.connections.discard(self)
        mine = self.peers.get(self._peer, {})
        mine.pop(self, None)
        if not mine:
            self.peers.pop(self._peer, None)

    def _take_place(self, mine: dict["Connection", None], sentence: str) -> None:
        """Close an idle connection of the same address, or refuse this one."""
        for other in mine:
            if other is not self and other.is_idle():
                other.leave()  # now: the transport tells of its end later
                other.transport.abort()
                return
        self._refuse(503, sentence)

    def is_idle(self) -> bool:
        """Say whether there is neither a request nor an answer on its way."""
        return self._unanswered() is None and not self.transport.get_write_buffer_size()

    def data_received(self, data: bytes) -> None:
        """Read on; headers that are not whole may not grow for ever."""
        if self._refused:
            return
        super().data_received(data)
        scope, cycle = self._request()
        if scope is None or (cycle is not None and cycle.scope is scope):
            self._head = 0
            return
        self._head += len(data)
        if self._head > _LONGEST_HEAD or len(self.headers) > _MOST_HEADERS:
            self._refuse(431, "the headers are too large.")

    def on_headers_complete(self) -> None:
        """Begin a request, unless it has too many headers."""
        if len(self.headers) > _MOST_HEADERS:
            self._refuse(431, "there are too many headers.")
            raise ValueError("too many headers")  # which ends the reading
        super().on_headers_complete()
        mine = self.peers.get(self._peer, {})
        if self in mine:
            mine[self] = mine.pop(self)
        if self.parser.should_upgrade():  # as by CONNECT: what follows is not read as HTTP
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """Refuse what is no HTTP."""
        self._refuse(400, "this is no request of HTTP/1.1 that can be understood.")

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Answer a client that sends no more, if its request is whole; True keeps the way open."""
        cycle = self._unanswered()
        if cycle is None or cycle.more_body or self.scheme != "http":
            return None
        cycle.keep_alive, self._refused = False, True
        return True

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer by an error and close, or just close where it would end up inside another answer."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self.counts.requests += 1
        self.counts.refused[status] = self.counts.refused.get(status, 0) + 1
        cycle = self._unanswered()
        if cycle is not None:
            if not cycle.more_body:  # asked properly: what came after it is left out
                cycle.keep_alive = False
                return
            if self.pipeline or cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected, cycle.waiting_for_100_continue = True, False
            cycle.message_event.set()  # whoever waits for the body is told
        body = json.dumps({"error": sentence}).encode()
        again = b"retry-after: 1\r\n" if status == 503 else b""
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + again + head % len(body) + body)
        if status not in _STILL_SENDING or not self.transport.can_write_eof():
            self.transport.close()
            return
        self.transport.write_eof()
        self.loop.call_later(_LINGER, self.transport.close)

    def _unanswered(self) -> Any:
        """Return the last request if it has no whole answer yet."""
        _, cycle = self._request()
        return None if cycle is None or cycle.response_complete else cycle

    def _request(self) -> tuple[Any, Any]:
        """Return the request that is read, and the one that is answered; None if there is none."""
        return self.scope, self.cycle

    # Time ----------------------------------------------------------------------------------------

    @classmethod
    def watch(cls, loop: asyncio.AbstractEventLoop, connections: set[Any]) -> None:
        """End connections that stand still; from time to time, as timers for each would cost more."""
        now = time.monotonic()
        for connection in [*connections]:
            connection.look(now)
        if connections:
            loop.call_later(min(1.0, cls.limits.seconds / 4), cls.watch, loop, connections)
        else:
            cls.watched = None

    def look(self, now: float) -> None:
        """End the connection if the client has let it wait for too long."""
        unsent = self.transport.get_write_buffer_size()
        if not self._is_client_s_turn(unsent) or unsent != self._unsent:
            self._unsent, self._since = unsent, None
        elif self._since is None:
            self._since = now
        elif now - self._since > self.limits.seconds:
            self._end(unsent)

    def _is_client_s_turn(self, unsent: int) -> bool:
        if unsent and (self.transport.is_closing() or self.flow.write_paused):
            return True  # to read
        # The guard times a request whose headers are here, and uvicorn a connection between two.
        return self._unanswered() is None and self.timeout_keep_alive_task is None

    def _end(self, unsent: int) -> None:
        if unsent or self.transport.is_closing():
            self.transport.abort()
        elif self._request()[0] is None or self._head:
            self._refuse(408, f"no request arrived within {self.limits.seconds:g} seconds.")
        else:
            self.transport.close()


@functools.lru_cache(1024)
def peer_of(host: str) -> str:
    """Return the address by which connections are counted: of IPv6 the network that one client has.

    Examples
    --------
    >>> [peer_of(host) for host in ("192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1:2:3:4", "")]
    ['192.0.2.7', '192.0.2.7', '2001:db8::/64', '']
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address.packed, 64), strict=False))
