"""What a request may take: how often, how large, how deep and how long."""

import asyncio
import json
import logging
import math
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cbrank.serving.errors import INTERNAL, Refused
from cbrank.serving.rules import (
    JSON,
    MODEL,
    Headers,
    Place,
    Rule,
    Scope,
    find_place,
    kind_of,
    rule_for,
    who_asks,
)
from cbrank.serving.tokens import Tokens

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Log = Callable[[str, str, int, float, int | None, str], None]

log = logging.getLogger("cbrank.serving")

# Bodies of the largest size that may be on their way together; further ones are told to come back.
_TOGETHER = 16
_MOST_BUCKETS = 10_000  # clients whose rate is known; those at rest are forgotten beyond it
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a request may take.

    Parameters
    ----------
    body : int
        Bytes of a body.
    model : int
        Bytes of a model file.
    rows : int
        Rows of a request.
    columns : int
        Columns of a row.
    depth : int
        Arrays and objects of JSON inside each other.
    rate : float
        Requests a second of each token, or of each address if there are no tokens; 0 for any.
    burst : float
        Requests that may come at once after a rest; 0 for twice `rate`.
    connections : int
        Requests that are open together.
    seconds : float
        Seconds for a request to arrive, for its answer to begin, and for each piece of the answer
        to be taken.

    Examples
    --------
    >>> Limits(rate=5).burst
    10
    """

    body: int = 16 << 20
    model: int = 1 << 30
    rows: int = 10_000
    columns: int = 10_000
    depth: int = 8
    rate: float = 0
    burst: float = 0
    connections: int = 1024
    seconds: float = 30

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            least = "0 or above" if name in ("rate", "burst") else "above 0"
            if not math.isfinite(value) or value < 0 or (value == 0 and least == "above 0"):
                raise ValueError(f"`{name}` must be {least}: {value} was given.")
        if self.burst == 0:
            object.__setattr__(self, "burst", max(1, 2 * self.rate))
        if self.burst < 1:
            raise ValueError(f"`burst` must be at least 1: {self.burst} was given.")


# JSON that is not too deep -----------------------------------------------------------------------

_DROPPED = bytes(set(range(256)) - set(b'"[]{}'))
_STEPS = bytes(1 if byte in b"[{" else 255 if byte in b"]}" else 0 for byte in range(256))
_SHORT = 4096  # up to here it is faster to count brackets first


def is_within_depth(body: bytes, depth: int) -> bool:
    """Say whether no part of a JSON text is inside more than `depth` arrays and objects.

    Brackets in strings do not count. In a text that is no JSON, what comes before the first mistake
    is judged right, and no reader goes beyond it.

    Examples
    --------
    >>> is_within_depth(b'{"rows": [{"a": "[[["}]}', 3)
    True
    >>> is_within_depth(b'{"rows": [{"a": [1]}]}', 3)
    False
    """
    if len(body) <= _SHORT and body.count(b"[") + body.count(b"{") <= depth:
        return True
    if b"\\" in body:  # pairs first: the quote after two backslashes ends its string
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    steps = np.frombuffer(body.translate(_STEPS, _DROPPED), dtype=np.int8)
    in_string = np.add.accumulate(steps == 0, dtype=np.uint8) & 1  # 256 is even: it may wrap
    steps = steps * (1 - in_string).view(np.int8)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0)) <= depth


def refuse_too_deep(body: bytes, depth: int) -> None:
    """Refuse a JSON text that is nested too deep."""
    if not is_within_depth(body, depth):
        raise Refused(400, f"the JSON is nested more than {depth} deep.")


# How often ---------------------------------------------------------------------------------------


class Buckets:
    """Requests a second: a bucket for each client, filled at `rate` and holding `burst`.

    Examples
    --------
    >>> buckets = Buckets(rate=2, burst=1)
    >>> buckets.wait("shop", now=0.0), buckets.wait("shop", now=0.0), buckets.wait("shop", now=0.5)
    (0.0, 0.5, 0.0)
    """

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._full_at = dict[str, float]()  # when the bucket of a client will be full again

    def wait(self, who: str, now: float) -> float:
        """Take one from the bucket and return 0, or return the seconds until there is one."""
        full_at = max(self._full_at.get(who, now), now)
        missing = (full_at - now) * self.rate
        if missing > self.burst - 1 + 1e-9:  # the sums are rounded
            return (missing - self.burst + 1) / self.rate
        if len(self._full_at) >= _MOST_BUCKETS and who not in self._full_at:
            self._full_at = {name: at for name, at in self._full_at.items() if at > now}
        self._full_at[who] = full_at + 1 / self.rate
        return 0.0


# The guard ---------------------------------------------------------------------------------------


class Counted(Protocol):
    """Where requests are counted."""

    requests: int
    refused: MutableMapping[int, int]


class _GoneError(Exception):
    """The client went away."""


class _Open:
    """A request that is open."""

    __slots__ = (
        "_given", "_guard", "_receive", "_send", "arrived", "body", "deadline", "late", "place",
        "scope", "status", "task", "unwelcome", "who",
    )  # fmt: skip

    def __init__(
        self, guard: "Guard", scope: Scope, receive: Receive, send: Send, deadline: float
    ) -> None:
        self._guard, self._receive, self._send, self.deadline = guard, receive, send, deadline
        self.scope, self.task = scope, asyncio.current_task()
        self.late = self.unwelcome = self.arrived = self._given = False
        self.place: Place | None = None
        self.who, self.body, self.status = "", b"", 0

    def send(self, message: Message) -> Awaitable[None]:
        """Pass a message on; the next has its full time again."""
        if self.status == 0:
            self.status = message["status"]
        self.deadline = self._guard.clock() + self._guard.limits.seconds
        return self._send(message)

    async def receive(self) -> Message:
        """Give the body as one message, then what the server has."""
        if not self._given:
            self._given = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        return await self._receive()


class Guard:
    """ASGI middleware that lets pass what is within the rules and the limits.

    It counts every request in `counts.requests`, and every answer of 400 and above in
    `counts.refused` by its status. What it passes on has ``scope["state"]["who"]``, the name of the
    token, and ``scope["state"]["body"]``, the whole body. Whatever raises `Refused` below it is
    answered by it. An endpoint whose answer takes too long is cancelled. One that sets
    ``scope["state"]["rows"]`` has that number in the log of requests.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    tokens : Tokens or None
        Who may; None for everyone on this machine but the pages of others in a browser.
    limits : Limits
        What a request may take.
    counts : Counts
        Has `requests` and `refused`.
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
        self._buckets = Buckets(limits.rate, limits.burst) if limits.rate else None
        self._open = set[_Open]()
        self._arriving = 0
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
            self._enter(request)
            headers = dict(scope["headers"])
            rule = self._admit(request, scope, headers)
            if rule.types:
                request.body = await self._read(rule, headers, receive)
                request.deadline = self.clock() + self.limits.seconds
            request.arrived = True
            state = scope.setdefault("state", {})
            state["who"], state["body"] = request.who, request.body
            await self.app(scope, request.receive, request.send)
        except Refused as refused:
            await self._answer(request, refused)
        except _GoneError:
            pass
        except asyncio.CancelledError:
            if not request.late:
                raise
            await self._too_late(request)
        except Exception:
            log.exception("not answered")
            if not request.status:
                await self._answer(request, Refused(500, INTERNAL))
        finally:
            self._open.discard(request)
            if request.status >= 400:
                self.counts.refused[request.status] = self.counts.refused.get(request.status, 0) + 1
            if self.log is not None:
                self._tell(request, scope, self.clock() - began)

    async def _otherwise(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    def _enter(self, request: _Open) -> None:
        if len(self._open) >= self.limits.connections:
            again = {"retry-after": "1"}
            raise Refused(503, "too many requests are open: try again.", headers=again)
        self._open.add(request)
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._watch(loop)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what is late, from time to time: cheaper than a timer for each request."""
        now = self.clock()
        for request in [*self._open]:
            begun = request.arrived and request.status > 0
            request.unwelcome = begun and not self._is_welcome(request)
            if request.deadline < now or request.unwelcome:
                request.late, request.deadline = True, now + self.limits.seconds
                if request.task is not None:
                    request.task.cancel()
        if self._open:
            loop.call_later(min(1.0, self.limits.seconds / 4), self._watch, loop)
        else:
            self._loop = None

    def _is_welcome(self, request: _Open) -> bool:
        """Say whether who listens to events still may: tokens end, and are removed."""
        scope = request.scope
        try:
            _, rank = who_asks(self.tokens, request.place, scope, dict(scope["headers"]))
            rule_for(request.place, scope["method"], rank)
        except Refused:
            return False
        return True

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

    async def _read(self, rule: Rule, headers: Headers, receive: Receive) -> bytes:
        """Read the body, as far as the limits go."""
        kind, length = kind_of(rule, headers), _length(headers)
        most = self.limits.model if rule.path == MODEL else self.limits.body
        if length is not None and length > most:
            raise _too_large(most)
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        body: bytes = message.get("body", b"")
        if message.get("more_body", False):
            body = await self._read_on(bytearray(body), most, receive)
        if len(body) > most:
            raise _too_large(most)
        if length is not None and length != len(body):
            raise Refused(400, f"Content-Length is {length}, but {len(body)} bytes came.")
        if kind == JSON and not rule.later:
            refuse_too_deep(body, self.limits.depth)
        return body

    async def _read_on(self, body: bytearray, most: int, receive: Receive) -> bytes:
        """Read a body that comes in pieces."""
        held, more = 0, True
        try:
            while more:
                self._arriving += len(body) - held
                held = len(body)
                if held > most:
                    raise _too_large(most, {"connection": "close"})
                if self._arriving > _TOGETHER * self.limits.body + self.limits.model:
                    again = {"retry-after": "1", "connection": "close"}
                    raise Refused(
                        503, "too many bodies are on their way: try again.", headers=again
                    )
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _GoneError
                body += message.get("body", b"")
                more = message.get("more_body", False)
        finally:
            self._arriving -= held
        return bytes(body)

    async def _too_late(self, request: _Open) -> None:
        """Answer a request that took too long; an answer that has begun is cut."""
        if request.task is not None:
            request.task.uncancel()
        request.late = False
        if request.unwelcome:
            await self._send(request, {"type": "http.response.body", "body": b""})
        elif not request.status:
            await self._answer(request, self._lateness(request))

    def _lateness(self, request: _Open) -> Refused:
        seconds = f"{self.limits.seconds:g} seconds"
        if not request.arrived:
            sentence = f"the body did not arrive within {seconds}."
            return Refused(408, sentence, headers={"connection": "close"})
        sentence = (
            f"there was no answer within {seconds}; what was to be learned may be learned all the "
            "same: ask again with the same Idempotency-Key."
        )
        return Refused(503, sentence, headers={"retry-after": "1"})

    async def _answer(self, request: _Open, refused: Refused) -> None:
        if request.status:
            raise refused
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
            if not request.late:
                raise
            if request.task is not None:
                request.task.uncancel()

    def _tell(self, request: _Open, scope: Scope, seconds: float) -> None:
        if self.log is not None:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            path = request.place.template if request.place else "unknown"
            rows = scope.get("state", {}).get("rows")
            self.log(method, path, request.status, seconds, rows, request.who)


def _too_large(most: int, headers: dict[str, str] | None = None) -> Refused:
    return Refused(413, f"a body has at most {most} bytes.", headers=headers)


def _length(headers: Headers) -> int | None:
    given = headers.get(b"content-length")
    if given is None:
        return None
    if len(given) > 18 or not given.isdigit():
        raise Refused(400, "Content-Length is no number of bytes.")
    return int(given)
