"""The live page, and the server-sent events that it shows.

`Feed` has one task for all listeners, which runs only while there is one: once a second it takes the
numbers of the service and wakes the listeners, each of which sends them and, where they changed since it
sent them last, the AUC along the stream and what moved. The page itself holds no data.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from importlib.resources import files
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cbrank.serving.drift import Interval, calibration, path, verdict
from cbrank.serving.errors import Refused
from cbrank.serving.movement import Movement

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_LISTENERS = 64
_TICK = 1.0
_BEAT = 5.0  # seconds without numbers, for the writer is busy, after which a comment is sent
_PATIENCE = 10.0  # seconds that a listener may take to read what it was sent
_LONGEST = 900.0  # seconds of a connection: then the token is asked for again
_RETRY = 2000  # milliseconds that a browser waits before it connects again
_WINDOW = 10  # ticks that rates are made of
_SLOW = 5.0  # seconds between looks at the AUC's path, and at curves or weights
_SHARE_OF_TIME = 50.0  # a look that takes t seconds is followed by none for 50 t

SECURITY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_STREAM = [
    (name.lower().encode(), value.encode())
    for name, value in {
        **SECURITY,
        "Content-Type": "text/event-stream",
        "X-Accel-Buffering": "no",  # a proxy shall pass events on at once
    }.items()
]
_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


def routes(service: Any) -> list[BaseRoute]:
    """Return the routes of the live page: ``/``, its script and style, and ``/events``.

    Parameters
    ----------
    service : Service
        What the page shows.

    Returns
    -------
    list of BaseRoute
        The routes.
    """
    pages = {"/": "index.html", "/live/live.js": "live.js", "/live/live.css": "live.css"}
    return [
        *(Route(where, _page(name), methods=["GET"]) for where, name in pages.items()),
        Route("/events", Feed(service), methods=["GET"]),
    ]


def _page(name: str) -> Callable[[Any], Awaitable[Response]]:
    kind = _KINDS[name.rpartition(".")[2]]
    content = (files("cbrank.serving") / "live" / name).read_bytes()

    async def answer(_: Any) -> Response:
        return Response(content, media_type=kind, headers=SECURITY)

    return answer


# What is shown ------------------------------------------------------------------------------------


def status(service: Any) -> dict[str, Any]:
    """Return the numbers of a service as they are now.

    Parameters
    ----------
    service : Service
        The service.

    Returns
    -------
    dict
        What ``GET /events`` gives every second, but for rates, history and movement.
    """
    counts = service.counts
    with service.lock:
        ranker = service.model.ranker
        fitted = ranker.__sklearn_is_fitted__()
        auc, recent = (_measured(ranker, name) if fitted else _UNKNOWN for name in _MEASURES)
        seen = ranker.n_seen_.tolist() if fitted else [0, 0]
    word, sentence = verdict(auc, recent)
    mean = counts.probabilities / max(counts.rows_scored, 1)
    return {
        "model": service.name,
        "learning": service.stopped,
        "rows_learned": counts.rows_learned,
        "rows_scored": counts.rows_scored,
        "rows_ever": sum(seen),
        "requests": counts.requests,
        "refused": sum(counts.refused.values()),
        "auc": auc._asdict(),
        "recent": recent._asdict(),
        "share_positive": _share(counts.positives_learned, counts.rows_learned),
        "share_above": _share(counts.scores_above, counts.rows_scored),
        "waiting": counts.waiting,
        "waiting_room": counts.waiting_bytes / service.settings.wait_bytes,
        "wait_s": service.settings.wait,
        "latency_ms": {
            name: [1000.0 * seconds for seconds in latency.quantiles()[::2]]
            for name, latency in counts.latencies.items()
        },
        "drift": {
            "word": word,
            "sentence": sentence,
            "probabilities": calibration(
                counts.rows_scored, mean, counts.rows_learned, counts.positives_learned
            ),
        },
    }


_MEASURES = "progressive_auc", "recent_auc"
_UNKNOWN = Interval(math.nan, math.nan, math.nan)


def _measured(ranker: Any, name: str) -> Interval:
    return Interval(getattr(ranker, f"{name}_"), *getattr(ranker, f"{name}_interval_"))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


class Watch:
    """What is shown of a service, with what takes a memory: rates, the AUC's path, what moved.

    Parameters
    ----------
    service : Service
        The service.
    clock : callable, default=time.monotonic
        The time in seconds.
    """

    def __init__(self, service: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._service, self._clock = service, clock
        self._began = clock()
        self._ticks: deque[tuple[float, dict[str, int]]] = deque(maxlen=_WINDOW + 1)
        self._movement = Movement(service.lock, clock)
        self._next_look = -math.inf
        self._blocks: tuple[Any, int] | None = None
        self.slow: dict[str, bytes] = {}  # what is sent only when it has changed, as JSON

    def look(self) -> bytes:
        """Return the numbers as a JSON object, and renew what is slow to change."""
        now, numbers = self._clock(), status(self._service)
        if self._ticks and now - self._ticks[-1][0] > _WINDOW * _TICK:
            self._ticks.clear()  # nobody has listened for a while
        self._ticks.append((now, {name: numbers[name] for name in _COUNTED}))
        if now >= self._next_look:
            self._renew_path()
            moved = self._movement.look(self._service.model)
            self.slow["moved"] = msgspec.json.encode(moved)
            self._next_look = now + max(_SLOW, _SHARE_OF_TIME * (self._clock() - now))
        uptime = now - self._began
        return msgspec.json.encode({**numbers, "uptime_s": uptime, "rates": self._rates()})

    def _rates(self) -> dict[str, float | None]:
        """Return how many of each there were a second, over the last ticks."""
        (begun, first), (ended, last) = self._ticks[0], self._ticks[-1]
        if ended <= begun:
            return dict.fromkeys(_COUNTED)
        return {name: (last[name] - first[name]) / (ended - begun) for name in _COUNTED}

    def _renew_path(self) -> None:
        with self._service.lock:
            ranker = self._service.model.ranker
            if not ranker.__sklearn_is_fitted__():
                return
            history, seen = ranker.progressive_auc_history_, ranker.n_seen_
        blocks = ranker, int(history["rows"][-1]) if len(history) else 0
        if blocks != self._blocks:
            self._blocks = blocks
            self.slow["history"] = msgspec.json.encode(path(history, rare=seen[1] <= seen[0]))


_COUNTED = "rows_learned", "rows_scored", "requests", "refused"


# Listeners ----------------------------------------------------------------------------------------


class Feed:
    """Server-sent events for up to 64 listeners, as an ASGI application.

    Parameters
    ----------
    service : Service
        What they hear of.
    """

    def __init__(self, service: Any) -> None:
        self._service, self._watch = service, Watch(service)
        self._listening, self._number, self._numbers = 0, 0, b"{}"
        self._ticked, self._failed = asyncio.Event(), False
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request for events until its sender has gone or the service ends."""
        if self._listening >= _LISTENERS:
            sentence = f"{_LISTENERS} listeners are connected already: close a page, or try later."
            raise Refused(503, sentence, headers={"Retry-After": "10"})
        self._join()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
            if scope["method"] == "GET":
                await _first_of(self._talk(send), _disconnected(receive))
            await _in_time(send({"type": "http.response.body", "body": b"", "more_body": False}))
        except TimeoutError:
            _LOG.info("A listener that did not read was dropped.")
        finally:
            self._listening -= 1
            self._service.counts.listeners = self._listening

    def _join(self) -> None:
        self._listening += 1
        self._service.counts.listeners = self._listening
        if self._task is None:
            self._task = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        """Take the numbers once a second for as long as somebody listens."""
        try:
            while self._listening and not self._service.closing:
                began = time.monotonic()
                try:
                    self._numbers = await asyncio.to_thread(self._watch.look)
                except Exception:  # noqa: BLE001  (what the page looks at goes on)
                    if not self._failed:
                        _LOG.exception("The live page could not take its numbers.")
                    self._failed = True
                else:
                    self._number += 1
                    self._wake()
                await self._rest(began + _TICK)
        finally:
            self._task = None
            self._wake()

    async def _rest(self, until: float) -> None:
        """Wait for the next tick; not long at the end, which waits for listeners."""
        while (left := until - time.monotonic()) > 0.0 and not self._service.closing:
            await asyncio.sleep(min(left, 0.1))

    def _wake(self) -> None:
        self._ticked.set()
        self._ticked = asyncio.Event()

    async def _talk(self, send: Send) -> None:
        """Send events to one listener."""
        await _in_time(send(_body(b"retry: %d\n\n" % _RETRY)))
        sent: dict[str, bytes] = {}
        until = time.monotonic() + _LONGEST
        while time.monotonic() < until and not self._service.closing:
            try:
                await asyncio.wait_for(self._ticked.wait(), _BEAT)
            except TimeoutError:
                await _in_time(send(_body(b":\n\n")))
                continue
            if self._service.closing:
                return
            slow = self._watch.slow
            news = {name: text for name, text in slow.items() if sent.get(name) != text}
            sent |= news
            await _in_time(send(_body(_event(self._number, self._numbers, news))))


_LOG = logging.getLogger(__name__)


def _event(number: int, numbers: bytes, news: dict[str, bytes]) -> bytes:
    """Return an event whose data are a JSON object with some members added."""
    added = b"".join(b',"%b":%b' % (name.encode(), text) for name, text in news.items())
    return b"id: %d\ndata: %b%b}\n\n" % (number, numbers[:-1], added)


def _body(text: bytes) -> Message:
    return {"type": "http.response.body", "body": text, "more_body": True}


async def _in_time(sending: Awaitable[None]) -> None:
    """Wait for a listener to take what it is sent; one that does not read is dropped."""
    await asyncio.wait_for(sending, _PATIENCE)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first_of(*works: Any) -> None:
    """Wait until one of some works ends, and end the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
