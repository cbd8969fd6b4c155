"""The guard before the application: who may, and within which limits."""

import asyncio
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from cbrank.serving import memory
from cbrank.serving.errors import INTERNAL, Refused
from cbrank.serving.limits import Buckets, Limits
from cbrank.serving.memory import LARGE, Memory, Reservation, in_reader
from cbrank.serving.rules import (
    JSON,
    MODEL,
    Headers,
    Place,
    Rule,
    Scope,
    find_place,
    headers_of,
    kind_of,
    rule_for,
    who_asks,
)
from cbrank.serving.tokens import ROLES, Tokens

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Log = Callable[[str, str, int, float, int | None, str], None]

log = logging.getLogger("cbrank.serving")

# Large bodies of each role that are decoded and answered together: one is read while another is scored or
# learned from. More would take memory and no less time.
_TURNS = 2
_TRIM_SECONDS = 1.0  # after the last large request: others still free what it had
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Counted(memory.Counted, Protocol):
    """Where requests are counted."""

    requests: int
    refused: MutableMapping[int, int]


class _GoneError(Exception):
    """The client went away."""


class _Open:
    """A request that is open."""

    __slots__ = (
        "_given", "_guard", "_receive", "_send", "answering", "arrived", "cancelled", "deadline",
        "memory", "place", "scope", "started", "status", "task", "unwelcome", "who",
    )  # fmt: skip

    def __init__(
        self, guard: "Guard", scope: Scope, receive: Receive, send: Send, deadline: float
    ) -> None:
        self._guard, self._receive, self._send, self.deadline = guard, receive, send, deadline
        self.scope, self.task = scope, asyncio.current_task()
        self.cancelled = self.unwelcome = self.arrived = self.started = self._given = False
        self.answering: asyncio.Task[None] | None = (
            None  # in place of the application, which is late
        )
        self.place: Place | None = None
        self.who, self.status = "", 0
        self.memory: Reservation = guard.memory.reservation()

    def send(self, message: Message) -> Awaitable[None]:
        """Pass a message on; the next has its full time again."""
        if self.status == 0:
            self.status = message["status"]
        self.deadline = self._guard.clock() + self._guard.limits.seconds
        return self._send(message)

    async def send_on(self, message: Message) -> None:
        """Pass a message of the application on, unless it comes after the answer that it is late."""
        if self.answering is not None:
            return
        if len(message.get("body", b"")) <= LARGE or message.get("more_body", False):
            await self.send(message)
            return
        # The second message is sent when the client has taken the first: until then its memory is in use.
        await self.send({**message, "more_body": True})
        self.deadline = math.inf  # the connection is ended if nothing is taken for too long
        await self._send({**message, "body": b""})

    async def receive(self) -> Message:
        """Give the body as one message, then what the server has."""
        if not self._given:
            self._given = True
            body = self.scope["state"]["body"]
            return {"type": "http.request", "body": body, "more_body": False}
        return await self._receive()

    def forget(self) -> bool:
        """Drop the body, which the connection would keep until its next request.

        Say whether it was the last large one.
        """
        self.scope.get("state", {}).pop("body", None)
        return self.memory.release()


class Guard:
    """ASGI middleware that lets pass what is within the rules and the limits.

    It counts every request in `counts.requests`, and every answer of 400 and above in
    `counts.refused` by its status. What it passes on has ``scope["state"]["who"]``, the name of the
    token, ``scope["state"]["body"]``, the whole body, and ``scope["state"]["memory"]``, by which an
    endpoint reserves what it decodes. Whatever raises `Refused` below it is answered by it. If an answer
    takes too long, the client is told so, and the request is open, with the memory that it has reserved, until
    its work is done. An endpoint that sets ``scope["state"]["rows"]`` has that number in the log of requests.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    tokens : Tokens or None
        Who may; None for everyone on this machine but the pages of others in a browser.
    limits : Limits
        What a request may take.
    counts : Counts
        Has `requests`, `refused`, `memory` and `memory_limit`.
    log : callable, optional
        Called with method, path as in the table, status, seconds, rows and name of each request.
    """

    def __init__(
        self,
        app: App,
        tokens: Tokens | None,
        limits: Limits,
        counts: Counted,
        log: Log | None = None,
    ) -> None:
        self.app, self.tokens, self.limits, self.counts, self.log = app, tokens, limits, counts, log
        self.clock = time.monotonic
        self.memory = Memory(limits.memory, counts)
        self._buckets = Buckets(limits.rate, limits.burst) if limits.rate else None
        self._open = set[_Open]()
        self._turns = {role: asyncio.Semaphore(_TURNS) for role in ROLES}
        self._loop: asyncio.AbstractEventLoop | None = None  # in which there is a watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._otherwise(scope, receive, send)
            return
        began = self.clock()
        request = _Open(self, scope, receive, send, began + self.limits.seconds)
        self.counts.requests += 1
        try:
            await self._serve(request, receive)
        except Refused as refused:
            await self._answer(request, refused)
        except _GoneError:
            pass
        except asyncio.CancelledError:
            if not request.cancelled:
                raise
            await self._too_late(request)
        except Exception as error:
            log.exception("not answered")
            if not request.status:
                await self._answer(request, _failed(error))
        finally:
            self._end(request, began)

    async def _otherwise(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, request: _Open, receive: Receive) -> None:
        self._enter(request)
        headers = headers_of(request.scope)
        rule = self._admit(request, request.scope, headers)
        body: bytes | list[bytes] = b""
        if rule.types:
            body = await self._read(request, rule, headers, receive)
            request.deadline = self.clock() + self.limits.seconds
        request.arrived = True
        if isinstance(body, bytes):
            await self._pass_on(request, body)
            return
        async with self._turns[str(rule.role)]:
            await self._pass_on(request, await in_reader(_joined, body))

    async def _pass_on(self, request: _Open, body: bytes) -> None:
        request.started = True
        state = request.scope.setdefault("state", {})
        state["who"], state["body"], state["memory"] = request.who, body, request.memory
        await self.app(request.scope, request.receive, request.send_on)
        if request.answering is not None:
            await request.answering

    def _end(self, request: _Open, began: float) -> None:
        self._open.discard(request)
        if request.forget():
            loop = asyncio.get_running_loop()
            loop.call_later(_TRIM_SECONDS, loop.run_in_executor, None, memory.trim)
        if request.status >= 400:
            self.counts.refused[request.status] = self.counts.refused.get(request.status, 0) + 1
        if self.log is not None:
            self._tell(request, request.scope, self.clock() - began)

    # Which requests ------------------------------------------------------------------------------

    def _enter(self, request: _Open) -> None:
        if len(self._open) >= self.limits.connections:
            again = {"retry-after": "1"}
            raise Refused(503, "too many requests are open: try again.", headers=again)
        self._open.add(request)
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._watch(loop)

    def _admit(self, request: _Open, scope: Scope, headers: Headers) -> Rule:
        """Return the rule of a request that may pass, or refuse."""
        place = request.place = find_place(scope["path"])
        request.who, rank = who_asks(self.tokens, place, scope, headers)
        rule = rule_for(place, scope["method"], rank)
        if self._buckets is not None and rank >= 0:
            address = scope.get("client") or ("",)
            wait = self._buckets.wait(request.who or address[0], self.clock())
            if wait:
                again = {"retry-after": str(math.ceil(wait))}
                most = f"{self.limits.rate:g} requests a second"
                raise Refused(429, f"at most {most}: wait {wait:.3g} s.", headers=again)
        return rule

    # Bodies --------------------------------------------------------------------------------------

    async def _read(
        self, request: _Open, rule: Rule, headers: Headers, receive: Receive
    ) -> bytes | list[bytes]:
        """Return the body, or the pieces of a large one, as far as the limits go."""
        kind_of(rule, headers)
        length = _length(headers)
        most = self.limits.model if rule.path == MODEL else self.limits.body
        if length is not None and length > LARGE:
            if length > most:
                raise _too_large(most)
            request.memory.refuse_body(length)
        message = await receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body", False) or len(body) > min(most, LARGE):
            return await self._read_on(request, message, most, length, receive)
        if message["type"] == "http.disconnect":
            raise _GoneError
        _refuse_other_length(length, len(body))
        return body

    async def _read_on(
        self, request: _Open, message: Message, most: int, length: int | None, receive: Receive
    ) -> bytes | list[bytes]:
        """Read a body that comes in pieces or is large, and reserve memory for each piece."""
        pieces, size = list[bytes](), 0
        while True:
            piece, more = message.get("body", b""), message.get("more_body", False)
            size += len(piece)
            # The rest of a body of known length is dropped, so that the client can read the answer.
            close = {"connection": "close"} if more and length is None else {}
            if size > most:
                raise _too_large(most, close)
            try:
                request.memory.take_body(len(piece))
            except Refused as refused:
                refused.headers |= close
                raise
            pieces.append(piece)
            if not more:
                _refuse_other_length(length, size)
                return pieces if size > LARGE else b"".join(pieces)
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _GoneError

    # Time ----------------------------------------------------------------------------------------

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look for what is late, from time to time: cheaper than a timer for each request."""
        now = self.clock()
        for request in [*self._open]:
            if request.answering is None:
                self._look(request, now, loop)
        if self._open:
            loop.call_later(min(1.0, self.limits.seconds / 4), self._watch, loop)
        else:
            self._loop = None

    def _look(self, request: _Open, now: float, loop: asyncio.AbstractEventLoop) -> None:
        begun = request.arrived and request.status > 0
        request.unwelcome = begun and not self._is_welcome(request)
        if not (request.deadline < now or request.unwelcome):
            return
        if request.started and not begun:
            # Its job may be queued, and what is queued takes memory: the request stays open for as long.
            request.answering = loop.create_task(self._answer(request, self._lateness(request)))
            return
        request.cancelled, request.deadline = True, now + self.limits.seconds
        if request.task is not None:
            request.task.cancel()

    def _is_welcome(self, request: _Open) -> bool:
        """Say whether who listens to events still may: tokens end, and are removed."""
        scope = request.scope
        try:
            _, rank = who_asks(self.tokens, request.place, scope, headers_of(scope))
            rule_for(request.place, scope["method"], rank)
        except Refused:
            return False
        return True

    async def _too_late(self, request: _Open) -> None:
        """Answer a request that took too long; an answer that has begun is cut."""
        if request.task is not None:
            request.task.uncancel()
        request.cancelled = False
        if request.unwelcome:
            await self._send(request, {"type": "http.response.body", "body": b""})
        elif not request.status:
            await self._answer(request, self._lateness(request))

    def _lateness(self, request: _Open) -> Refused:
        seconds = f"{self.limits.seconds:g} seconds"
        if not request.arrived:
            sentence = f"the body did not arrive within {seconds}."
            return Refused(408, sentence, headers={"connection": "close"})
        sentence = f"there was no answer within {seconds}"
        if request.started:
            sentence += "; what was to be learned may be learned all the same"
        sentence += ": ask again with the same Idempotency-Key."
        return Refused(503, sentence, headers={"retry-after": "1"})

    # Answers -------------------------------------------------------------------------------------

    async def _answer(self, request: _Open, refused: Refused) -> None:
        """Answer by an error; one that comes when an answer has begun cuts it."""
        if request.status:
            if request.answering is None:
                raise refused
            return
        body = json.dumps(refused.answer()).encode()
        headers = {"content-type": JSON, "content-length": str(len(body)), **refused.headers}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        start = {"type": "http.response.start", "status": refused.status, "headers": pairs}
        await self._send(request, start, {"type": "http.response.body", "body": body})

    async def _send(self, request: _Open, *messages: Message) -> None:
        """Send messages, as long as the client takes them."""
        try:
            for message in messages:
                await request.send(message)
        except asyncio.CancelledError:
            if not request.cancelled:
                raise
            if request.task is not None:
                request.task.uncancel()

    def _tell(self, request: _Open, scope: Scope, seconds: float) -> None:
        if self.log is not None:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            path = request.place.template if request.place else "unknown"
            rows = scope.get("state", {}).get("rows")
            self.log(method, path, request.status, seconds, rows, request.who)


def _joined(pieces: list[bytes]) -> bytes:
    body = b"".join(pieces)
    pieces.clear()
    return body


def _refuse_other_length(length: int | None, size: int) -> None:
    if length is not None and length != size:
        raise Refused(400, f"Content-Length is {length}, but {size} bytes came.")


def _too_large(most: int, headers: dict[str, str] | None = None) -> Refused:
    return Refused(413, f"a body has at most {most} bytes.", headers=headers)


def _failed(error: Exception) -> Refused:
    if isinstance(error, MemoryError):
        again = {"retry-after": "1"}
        return Refused(503, "the machine is out of memory: try again.", headers=again)
    return Refused(500, INTERNAL)


def _length(headers: Headers) -> int | None:
    given = headers.get(b"content-length")
    if given is None:
        return None
    if len(given) > 18 or not given.isdigit():
        raise Refused(400, "Content-Length is no number of bytes.")
    return int(given)
