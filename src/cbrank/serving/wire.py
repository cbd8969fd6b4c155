"""HTTP as it comes over the wire: what is malformed, too long or too slow is refused in JSON as well.

uvicorn's protocol answers such requests by plain text, and waits for ever for the end of a head.
"""

import asyncio
import json
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD = 128 << 10  # bytes of the first line and the headers together
_LINGER = 1.0  # seconds for which a refused client may go on sending
_REASONS = {400: b"Bad Request", 408: b"Request Timeout", 431: b"Request Header Fields Too Large"}


class Wire(HttpToolsProtocol):
    """uvicorn's protocol on httptools, with limits for the head of a request.

    Parameters
    ----------
    seconds : float
        For the head to arrive, from its first byte on or from when the connection was opened.
    **how : object
        As uvicorn calls it.
    """

    def __init__(self, seconds: float, **how: Any) -> None:
        super().__init__(**how)
        self._seconds = seconds
        self._head: int | None = 0  # bytes of it, or None when it is whole
        self._timer: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._have_head()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to wait for a head."""
        super().on_message_begin()
        self._wait_for_head()

    def on_headers_complete(self) -> None:
        """Wait no longer."""
        self._have_head()
        super().on_headers_complete()

    def _wait_for_head(self) -> None:
        self._have_head()
        self._head, self._timer = 0, self.loop.call_later(self._seconds, self._too_slow)

    def _have_head(self) -> None:
        self._head = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

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
            self._refuse(400, "this is no request that HTTP/1.1 knows.")
        else:
            if self._head is not None:
                self._head += len(data)
                if self._head > HEAD:
                    self._refuse(431, f"the headers of a request have at most {HEAD} bytes.")

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Answer a client that sends no more, if its request is whole; True keeps the way open."""
        open_cycle = self._open_cycle()
        if open_cycle is None or open_cycle.more_body or self.scheme != "http":
            return None
        self._end_after_answers()
        return True

    def _too_slow(self) -> None:
        self._refuse(408, f"the headers did not arrive within {self._seconds:g} seconds.")

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer by an error and close, or just close when it would end up inside another answer."""
        self._have_head()
        open_cycle = self._open_cycle()
        if open_cycle is not None:
            if not open_cycle.more_body:  # asked properly: what came after it is left out
                self._end_after_answers()
                return
            if self.pipeline or open_cycle.response_started:
                self.transport.close()
                return
            open_cycle.disconnected, open_cycle.waiting_for_100_continue = True, False
            open_cycle.message_event.set()  # whoever waits for the body is told
        body = json.dumps({"error": sentence}).encode()
        headers = {b"content-type": b"application/json", b"content-length": b"%d" % len(body)}
        lines = [*self.server_state.default_headers, *headers.items(), (b"connection", b"close")]
        self.transport.write(
            b"HTTP/1.1 %d %s\r\n" % (status, _REASONS[status])
            + b"".join(b"%s: %s\r\n" % line for line in lines)
            + b"\r\n"
            + body
        )
        self._refused = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        # Not at once: a client that is still sending would be reset before it reads the answer.
        self._timer = self.loop.call_later(_LINGER, self.transport.close)

    def _end_after_answers(self) -> None:
        """Read no more, and close when all that was asked is answered."""
        open_cycle = self._open_cycle()
        if open_cycle is None:
            self.transport.close()
        else:
            open_cycle.keep_alive = False
            self._refused = True

    def _open_cycle(self) -> RequestResponseCycle | None:
        """Return the last request, if it is not answered yet."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle
