"""What the service answers to, as an OpenAPI document for its model."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cbrank import __version__
from cbrank.serving.protocols import BINARY, CSV, JSON, said
from cbrank.serving.schemas import Schemas, ref

if TYPE_CHECKING:
    from cbrank.serving.service import Service

_TEXT, _HTML, _EVENTS = "text/plain", "text/html", "text/event-stream"
_ERRORS = {
    400: "The request is malformed; nothing was done.",
    401: "There is no token, or a wrong one.",
    403: "The role of the token does not allow this.",
    404: "There is no such model or id.",
    408: "The request took too long to arrive.",
    409: "The id has a label, or waits for one; or the key was used for another request.",
    413: "The request is too large.",
    415: "The body is of another type.",
    429: "There were too many requests.",
    503: "Too much is asked for at once, or learning has stopped: the sentence says why.",
}
_ALL = (401, 403, 408, 429, 503)
_SENT = (400, 413, 415)  # for what has a body


@dataclass(frozen=True)
class Operation:
    """An endpoint: its method, path, what it does and takes and gives.

    Parameters
    ----------
    method, path : str
        Where it is.
    summary : str
        What it does.
    answers : mapping of str to str
        The schema of the answer by its media type.
    role : str, default="score"
        Who may; "" if nobody is asked.
    takes : mapping of str to str, optional
        The schema of the body by its media type.
    errors : tuple of int, default=()
        Statuses of errors beside those that all have.
    parameters : tuple of str, default=()
        Names of its parameters.
    """

    method: str
    path: str
    summary: str
    answers: Mapping[str, str]
    role: str = "score"
    takes: Mapping[str, str] | None = None
    errors: tuple[int, ...] = ()
    parameters: tuple[str, ...] = ()


_MODEL = "/v2/models/{name}"
OPERATIONS = (
    Operation(
        "post",
        "/score",
        "Score rows; with `remember`, keep them for labels that come later.",
        {JSON: "Scores"},
        takes={JSON: "ScoreRequest"},
        errors=(409,),
        parameters=("key",),
    ),
    Operation(
        "post",
        "/learn",
        "Learn from rows with labels, or from labels of rows that were remembered. The answer "
        "comes when they are on the disk.",
        {JSON: "Learned"},
        "learn",
        takes={JSON: "LearnRequest"},
        errors=(404, 409),
        parameters=("key",),
    ),
    Operation(
        "get", "/model", "The model as a file.", {BINARY: "File"}, "admin", parameters=("tag",)
    ),
    Operation(
        "post",
        "/model",
        "Serve the model of this file from now on.",
        {JSON: "Object"},
        "admin",
        takes={BINARY: "File"},
    ),
    Operation("get", "/metrics", "Numbers for Prometheus.", {_TEXT: "Text"}),
    Operation("get", "/", "A page that shows how the model does.", {_HTML: "Text"}),
    Operation("get", "/events", "What the page shows, every second.", {_EVENTS: "Text"}),
    Operation("get", "/openapi.json", "This document.", {JSON: "Object"}),
    Operation("get", "/v2", "What this server is.", {JSON: "Object"}),
    Operation("get", "/v2/health/live", "Whether the server runs.", {JSON: "Object"}, ""),
    Operation("get", "/v2/health/ready", "Whether it can score.", {JSON: "Object"}, ""),
    Operation(
        "get",
        _MODEL,
        "The tensors that the model takes and gives.",
        {JSON: "Metadata"},
        errors=(404,),
        parameters=("name",),
    ),
    Operation(
        "get",
        f"{_MODEL}/ready",
        "Whether the model can score.",
        {JSON: "Object"},
        errors=(404,),
        parameters=("name",),
    ),
    Operation(
        "post",
        f"{_MODEL}/infer",
        "Score rows given as tensors: one for each column, or one named `input` with all columns "
        "in their order. NaN, null, empty texts and tensors that are not sent are gaps. Tensors may "
        "be bytes after the JSON (the extension `binary_tensor_data`).",
        {JSON: "InferAnswer"},
        takes={JSON: "InferRequest"},
        errors=(404,),
        parameters=("name",),
    ),
    Operation("get", "/ping", "Whether the server runs.", {JSON: "Text"}, ""),
    Operation("get", "/health", "Whether the server runs.", {JSON: "Text"}, ""),
    Operation("get", "/version", "The version of cbrank.", {_TEXT: "Text"}),
    Operation(
        "post",
        "/invocations",
        "Score the rows of a data frame as clients of MLflow send it.",
        {JSON: "Predictions"},
        takes={JSON: "Invocation", CSV: "Text"},
    ),
)


def routes(service: "Service") -> list[BaseRoute]:
    """Return the endpoint `GET /openapi.json`.

    Parameters
    ----------
    service : Service
        What is described.

    Returns
    -------
    list of BaseRoute
        The endpoint.
    """

    async def give(request: Request) -> Response:  # noqa: ARG001
        return said(await asyncio.to_thread(document, service))

    return [Route("/openapi.json", give)]


def document(service: "Service") -> dict[str, Any]:
    """Return the OpenAPI document of a service, with the columns of its model.

    Parameters
    ----------
    service : Service
        What is described.

    Returns
    -------
    dict
        For JSON.
    """
    about = Schemas(service)
    paths: dict[str, Any] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method] = _operation(each, about.examples())
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"cbrank: {service.name}",
            "version": __version__,
            "description": "A ranker that scores rows and learns from their labels.",
        },
        "paths": paths,
        "components": {
            "schemas": about.all(),
            "parameters": _parameters(service.name),
            "responses": {str(code): _error(told) for code, told in _ERRORS.items()},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token that `cbrank token` made. Its role is score, learn or "
                    "admin, and each may what those before it may. A server without tokens asks "
                    "nobody, and serves its own machine only.",
                }
            },
        },
        "security": [{"token": []}, {}],
    }


def _operation(each: Operation, examples: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "operationId": _identifier(each),
        "summary": each.summary,
        "responses": {"200": {"description": "Done.", "content": _content(each.answers, {})}},
    }
    errors = [*each.errors, *(_SENT if each.takes else ()), *(_ALL if each.role else ())]
    told["responses"] |= {
        str(code): {"$ref": f"#/components/responses/{code}"} for code in sorted(errors)
    }
    if "tag" in each.parameters:
        told["responses"]["304"] = {"description": "The model is that of the given tag."}
    if each.role:
        told["description"] = f"For tokens whose role is {each.role} or more."
    else:
        told["security"] = []
    if each.parameters:
        told["parameters"] = [
            {"$ref": f"#/components/parameters/{name}"} for name in each.parameters
        ]
    if each.takes:
        told["requestBody"] = {"required": True, "content": _content(each.takes, examples)}
    return told


def _identifier(each: Operation) -> str:
    words = [word for word in each.path.replace("{", "").replace("}", "").split("/") if word]
    return "_".join([each.method, *(word.partition(".")[0] for word in words or ["page"])])


def _content(schemas: Mapping[str, str], examples: Mapping[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for media_type, name in schemas.items():
        content[media_type] = {"schema": ref(name)} if name != "File" else {}
        found = examples.get(f"{name} {media_type}", {})
        if found:
            content[media_type]["examples"] = {key: {"value": each} for key, each in found.items()}
    return content


def _error(sentence: str) -> dict[str, Any]:
    return {"description": sentence, "content": {JSON: {"schema": ref("Error")}}}


def _parameters(name: str) -> dict[str, Any]:
    return {
        "name": {
            "name": "name",
            "in": "path",
            "required": True,
            "schema": {"type": "string", "enum": [name]},
        },
        "key": {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "The same request under the same key is carried out once.",
            "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
        },
        "tag": {
            "name": "If-None-Match",
            "in": "header",
            "description": "The ETag of an answer before: the model is sent if it is another.",
            "schema": {"type": "string"},
        },
    }
