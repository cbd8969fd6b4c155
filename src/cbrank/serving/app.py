"""The application: which path leads where, and rows from JSON.

``/score`` and ``/learn`` are plain ASGI, as they are called most; all else is Starlette's.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from cbrank.serving import metrics, models, openapi, page, protocols
from cbrank.serving.errors import INTERNAL, Refused
from cbrank.serving.jobs import Once
from cbrank.serving.limits import Limits, refuse_too_deep
from cbrank.serving.memory import ANSWER, LARGE, Reservation, in_reader, of_json
from cbrank.streams.objects import Row

if TYPE_CHECKING:
    from cbrank.serving.service import Service

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

Cell = float | str | bool | None


# Rows are decoded one by one: a decoder lets no other thread run, and a large body takes it long.
class _Score(msgspec.Struct, forbid_unknown_fields=True):
    rows: list[msgspec.Raw]
    remember: bool = False
    ids: list[str | int] | None = None


class _Label(msgspec.Struct, forbid_unknown_fields=True):
    id: str | int
    label: str | float | bool | None


class _Learn(msgspec.Struct, forbid_unknown_fields=True):
    rows: list[msgspec.Raw] | None = None
    labels: list[_Label] | None = None


class _Whole(msgspec.Struct):
    rows: Any = None


_SCORE = msgspec.json.Decoder(_Score)
_LEARN = msgspec.json.Decoder(_Learn)
_ROW = msgspec.json.Decoder(dict[str, Cell])
_WHOLE = msgspec.json.Decoder(_Whole)


class App:
    """The ASGI application of a service.

    Parameters
    ----------
    service : Service
        What answers.
    limits : Limits
        How many rows and columns a request may have.
    """

    def __init__(self, service: "Service", limits: Limits) -> None:
        self.service, self.limits = service, limits
        self._hot = {"/score": self._score, "/learn": self._learn}
        self._rest = Starlette(
            routes=_routes(service, limits),
            exception_handlers={
                Refused: refused_response,
                HTTPException: http_response,
                Exception: internal_response,
            },
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> Any:
        self.service.start()
        yield
        await self.service.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the guard has let pass; it answers what is refused."""
        answer = self._hot.get(scope.get("path", "")) if scope["type"] == "http" else None
        if answer is None:
            await self._rest(scope, receive, send)
            return
        body, replayed = await answer(scope)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        if replayed:
            headers.append((b"idempotent-replay", b"true"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _score(self, scope: Scope) -> tuple[bytes, bool]:
        asked = await self._decoded(_SCORE, scope)
        self._refuse_large(asked.rows)
        scope["state"]["rows"] = len(asked.rows)
        return await self.service.answer(
            asked.rows, remember=asked.remember, ids=asked.ids, once=_once(scope)
        )

    async def _learn(self, scope: Scope) -> tuple[bytes, bool]:
        asked = await self._decoded(_LEARN, scope)
        if (asked.rows is None) == (asked.labels is None):
            raise Refused(400, "Give either `rows` with labels, or `labels` of rows scored before.")
        if asked.labels is not None:
            self._refuse_many(len(asked.labels), "labels")
            scope["state"]["rows"] = len(asked.labels)
            pairs = [(one.id, one.label) for one in asked.labels]
            return await self.service.learn_labels(pairs, once=_once(scope))
        rows: list[Row] = asked.rows
        self._refuse_large(rows)
        scope["state"]["rows"] = len(rows)
        return await self.service.learn(rows, once=_once(scope))

    async def _decoded(self, decoder: Any, scope: Scope) -> Any:
        body, memory = scope["state"]["body"], scope["state"]["memory"]
        if len(body) <= LARGE:
            return self._decode(decoder, body, memory)
        return await in_reader(self._decode, decoder, body, memory)

    def _decode(self, decoder: Any, body: bytes, memory: Reservation) -> Any:
        memory.take(of_json(body) + ANSWER * body.count(b"{"))
        try:
            asked = decoder.decode(body)
            if asked.rows is not None:
                asked.rows = [_ROW.decode(row) for row in asked.rows]
            return asked
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            refuse_too_deep(body, self.limits.depth)
            raise Refused(400, _explained(body, error)) from None

    def _refuse_large(self, rows: list[Any]) -> None:
        self._refuse_many(len(rows), "rows")
        widest = max(map(len, rows), default=0)
        if widest > self.limits.columns:
            raise Refused(
                413, f"A row has {widest:,} columns; this service takes {self.limits.columns:,}."
            )

    def _refuse_many(self, count: int, what: str) -> None:
        if count > self.limits.rows:
            raise Refused(
                413,
                f"There are {count:,} {what}; this service takes {self.limits.rows:,} at a time: "
                "send several requests.",
            )


def _routes(service: "Service", limits: Limits) -> list[BaseRoute]:
    return [
        *page.routes(service),
        *protocols.routes(service, limits),
        *models.routes(service),
        *openapi.routes(service),
        *metrics.routes(service),
    ]


def _once(scope: Scope) -> Once:
    """Return what tells a request from others: who asks, its key if it has one, method and path."""
    key = next((value for name, value in scope["headers"] if name == b"idempotency-key"), None)
    text = None if key is None else key.decode("latin-1")
    return Once(scope["state"].get("who", ""), text, f"{scope['method']} {scope['path']}")


def _explained(body: bytes, error: Exception) -> str:
    """Say what is wrong with a body, by row and column where rows are."""
    if isinstance(error, msgspec.ValidationError):
        try:
            rows = _WHOLE.decode(body).rows
        except (msgspec.MsgspecError, UnicodeDecodeError):
            rows = None
        if isinstance(rows, list):
            for at, row in enumerate(rows):
                if not isinstance(row, dict):
                    return f"Row {at} is no object of columns and values."
                for name, cell in row.items():
                    if isinstance(cell, list | dict):
                        return (
                            f"Row {at}, column {str(name)[:40]!r}: a cell is a number, a text, true, "
                            "false or null, and this one is nested."
                        )
    return f"The body is not what is asked for: {error}."


async def http_response(request: Any, error: Any) -> Any:
    """Return the response of what Starlette refuses itself."""
    sentences = {404: "there is nothing at this path.", 405: "this path takes other methods."}
    sentence = sentences.get(error.status_code, f"{error.detail}.")
    return await refused_response(
        request, Refused(error.status_code, sentence, headers=error.headers)
    )


async def internal_response(request: Any, _error: Any) -> Any:
    """Return the response of what should not happen."""
    return await refused_response(request, Refused(500, INTERNAL))


async def refused_response(_request: Any, refused: Any) -> Any:
    """Return the response of a refusal inside Starlette."""
    from starlette.responses import Response  # noqa: PLC0415

    body = msgspec.json.encode(refused.answer())
    return Response(body, refused.status, refused.headers, "application/json")
