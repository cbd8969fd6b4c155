"""The model as a file: taken from a service that runs, and put in place of its own."""

import asyncio
import hashlib
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cbrank.serving.errors import Refused
from cbrank.serving.memory import MODEL_TIMES
from cbrank.serving.protocols import said
from cbrank.serving.rules import BYTES, MODEL

if TYPE_CHECKING:
    from cbrank.serving.service import Service


def routes(service: "Service") -> list[BaseRoute]:
    """Return the endpoints `GET /model` and `POST /model`.

    Parameters
    ----------
    service : Service
        What has the model.

    Returns
    -------
    list of BaseRoute
        The endpoints.
    """

    async def give(request: Request) -> Response:
        file = await service.snapshot()
        request.scope["state"]["memory"].take(len(file))
        digest = await asyncio.to_thread(hashlib.sha256, file)
        headers = {
            "ETag": f'"{digest.hexdigest()[:32]}"',
            "Cache-Control": "no-cache",
            "Content-Disposition": f'attachment; filename="{service.name}.cbrank"',
        }
        if _is_known(headers["ETag"], request.headers.get("If-None-Match", "")):
            return Response(None, 304, headers)
        return Response(file, 200, headers, BYTES)

    async def take(request: Request) -> Response:
        asked = request.query_params.multi_items()
        if asked not in ([], [("waiting", "discard")]):
            raise Refused(400, "the query may be empty, or ?waiting=discard.")
        state = request.scope["state"]
        state["memory"].take((MODEL_TIMES - 1) * len(state["body"]))
        return said(await service.replace(state["body"], discard=bool(asked)))

    return [Route(MODEL, give), Route(MODEL, take, methods=["POST"])]


def _is_known(tag: str, given: str) -> bool:
    return given.strip() == "*" or tag in [
        each.strip().removeprefix("W/") for each in given.split(",")
    ]
