"""HTTP as it comes over the wire: what is malformed, too long or too slow is refused in JSON as well.

uvicorn's protocol answers such requests by plain text, takes headers of any size, and waits for ever for
clients that neither send nor read.
"""

import asyncio
import json
import time
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from cbrank.serving.limits import Counted, Limits

HEAD = 128 << 10  # bytes of the first line and the headers together
HEADERS = 100  # browsers and proxies send up to some thirty
_LINGER = 1.0  # seconds for which a refused client may go on sending


class Wires:
    """Makes the protocol of each connection of a server, and ends those that stand still.

    Parameters
    ----------
    limits : Limits
        How many connections there may be, and the seconds for which one may stand still while it is
        the client's turn: to send a head, or what is left of a refused body, or to read.
    counts : Counts
        Where refusals are counted.
    """

    def __init__(self, limits: Limits, counts: Counted) -> None:
        self.limits, self.counts = limits, counts
        self._open: set[Any] = set()
        self._loop: asyncio.AbstractEventLoop | None = None  # in which there is a watch

    def __call__(self, **how: Any) -> "Wire":
        """Return the protocol of a connection, as uvicorn asks for it."""
        return Wire(self, **how)

    def begin(self, wire: "Wire") -> None:
        """Keep watch over a connection."""
        self._open = wire.connections
        if self._loop is not wire.loop:
            self._loop = wire.loop
            self._watch()

    def _watch(self) -> None:
        """Look at all connections from time to time, since timers for each request would cost more."""
        now = time.monotonic()
        for wire in [*self._open]:
            wire.look(now)
        if self._open and self._loop is not None:
            self._loop.call_later(min(1.0, self.limits.seconds / 4), self._watch)
        else:
            self._loop = None


class Wire(HttpToolsProtocol):
    """uvicorn's protocol on httptools, with limits.

    Parameters
    ----------
    wires : Wires
        What made it.
    **how : object
        As uvicorn calls it.
    """

    def __init__(self, wires: Wires, **how: Any) -> None:
        super().__init__(**how)
        self._wires = wires
        self._head = 0  # bytes of a head that is not whole
        self._refused = False
        self._unsent = -1
        self._still_since: float | None = None

    # Reading -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, unless there are too many."""
        super().connection_made(transport)
        self._wires.begin(self)
        most = self._wires.limits.connections
        if len(self.connections) > 2 * most:  # those who are told linger for a while
            self.transport.abort()
        elif len(self.connections) > most:
            self._refuse(503, "too many connections are open: try again.")

    def on_headers_complete(self) -> None:
        """Begin a request, unless it has too many headers."""
        if len(self.headers) > HEADERS:
            raise ValueError("too many headers")  # ends the reading; `data_received` counts them
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Read some bytes."""
        if self._refused:
            return
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # or CONNECT: the parser reads no further request
            self._end_after_answers()
        except httptools.HttpParserError:
            if not self._is_head_too_large(data):
                self._refuse(400, "this is no request that HTTP/1.1 knows.")
        else:
            self._is_head_too_large(data)

    def _is_head_too_large(self, data: bytes) -> bool:
        """Refuse a head that is not whole, and too large already."""
        scope, cycle = self._reading(), self._last_cycle()
        if scope is None or (cycle is not None and cycle.scope is scope):
            self._head = 0
            return False
        self._head += len(data)
        if self._head > HEAD or len(self.headers) > HEADERS:
            self._refuse(431, f"a request has at most {HEADERS} headers, and {HEAD} bytes of them.")
            return True
        return False

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Answer a client that sends no more, if its request is whole; True keeps the way open."""
        cycle = self._open_cycle()
        if cycle is None or cycle.more_body or cycle.response_started or self.scheme != "http":
            return None
        self._end_after_answers()
        return True

    # Ending --------------------------------------------------------------------------------------

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer by an error and close, or just close when it would end up inside another answer."""
        cycle = self._open_cycle()
        if cycle is not None:
            if not cycle.more_body:  # asked properly: what came after it is left out
                self._end_after_answers()
                return
            if self.pipeline or cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected, cycle.waiting_for_100_continue = True, False
            cycle.message_event.set()  # whoever waits for the body is told
        else:
            self._wires.counts.requests += 1
        refused = self._wires.counts.refused
        refused[status] = refused.get(status, 0) + 1
        body = json.dumps({"error": sentence}).encode()
        headers = {b"content-type": b"application/json", b"content-length": b"%d" % len(body)}
        lines = [*self.server_state.default_headers, *headers.items(), (b"connection", b"close")]
        self.transport.write(
            STATUS_LINE[status] + b"".join(b"%s: %s\r\n" % line for line in lines) + b"\r\n" + body
        )
        self._refused = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        # Not at once: a client that is still sending would be reset before it reads the answer.
        self.loop.call_later(_LINGER, self.transport.close)

    def _end_after_answers(self) -> None:
        """Read no more, and close when all that was asked is answered."""
        cycle = self._open_cycle()
        if cycle is None:
            self.transport.close()
        else:
            cycle.keep_alive = False
            self._refused = True

    def _last_cycle(self) -> RequestResponseCycle | None:
        """Return the last request whose head is whole."""
        return self.cycle

    def _open_cycle(self) -> RequestResponseCycle | None:
        """Return it, if it is not answered yet."""
        cycle = self._last_cycle()
        return None if cycle is None or cycle.response_complete else cycle

    def _reading(self) -> Any:
        """Return the scope of the last request whose head has begun, or None."""
        return self.scope

    # Time ----------------------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """End the connection if it has stood still for too long, and it is the client's turn."""
        unsent = self.transport.get_write_buffer_size()
        if not self._is_client_s_turn(unsent) or unsent != self._unsent:
            self._unsent, self._still_since = unsent, None
        elif self._still_since is None:
            self._still_since = now
        elif now - self._still_since > self._wires.limits.seconds:
            self._end(unsent)

    def _is_client_s_turn(self, unsent: int) -> bool:
        if unsent and (self.transport.is_closing() or self.flow.write_paused):
            return True  # to read
        # The guard times a request whose head is here, and uvicorn what is between two.
        return self._open_cycle() is None and self.timeout_keep_alive_task is None

    def _end(self, unsent: int) -> None:
        if unsent or self._refused or self.transport.is_closing():
            self.transport.abort()
        elif self._reading() is None or self._head:
            seconds = f"{self._wires.limits.seconds:g} seconds"
            self._refuse(408, f"the headers did not arrive within {seconds}.")
        else:
            self.transport.close()
