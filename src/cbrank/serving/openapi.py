"""What the service answers to, as an OpenAPI document for its model."""

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cbrank import __version__
from cbrank.serving.protocols import said
from cbrank.serving.rules import BYTES, JSON, RULES, Rule
from cbrank.serving.schemas import Schemas, ref

if TYPE_CHECKING:
    from cbrank.serving.service import Service

_ERRORS = {
    400: "The request is malformed; nothing was done.",
    401: "There is no token, or a wrong one.",
    403: "The role of the token does not allow this.",
    404: "There is no such model or id.",
    408: "The request took too long to arrive.",
    409: "The id has a label, or waits for one; the key was used for another request; or the model "
    "was replaced, or cannot be while rows wait.",
    413: "The request is too large.",
    415: "The body is of another type.",
    429: "There were too many requests.",
    503: "Too much is asked for at once, or learning has stopped: the sentence says why.",
}
_ALL = (401, 403, 408, 429, 503)
_SENT = (400, 413, 415)  # for what has a body


class Operation(NamedTuple):
    """What an endpoint does, takes and gives; the rules tell who may, and the types of its body.

    Parameters
    ----------
    summary : str
        What it does.
    gives : str, default="Object"
        The schema of the answer.
    media_type : str, default="application/json"
        The type of the answer.
    takes : str, optional
        The schema of a body of JSON.
    parameters : tuple of str, default=()
        Names of its parameters, beside those in its path.
    errors : tuple of int, default=()
        Statuses of errors beside those that all have.
    """

    summary: str
    gives: str = "Object"
    media_type: str = JSON
    takes: str = ""
    parameters: tuple[str, ...] = ()
    errors: tuple[int, ...] = ()


_INFER = (
    "Score rows given as tensors: one for each column, or one named `input` with all columns in their "
    "order. NaN, null, empty texts and tensors that are not sent are gaps. Tensors may be bytes "
    "after the JSON (the extension `binary_tensor_data`)."
)
_LEARN = (
    "Learn from rows with labels, or from the labels of rows that were remembered. The answer comes "
    "when they are on the disk."
)
OPERATIONS = {
    "POST /score": Operation(
        "Score rows; with `remember`, keep them for labels that come later.",
        "Scores",
        takes="ScoreRequest",
        parameters=("key",),
        errors=(409,),
    ),
    "POST /learn": Operation(
        _LEARN, "Learned", takes="LearnRequest", parameters=("key",), errors=(404, 409)
    ),
    "GET /model": Operation("The model as a file.", "", BYTES, parameters=("tag",)),
    "POST /model": Operation(
        "Serve the model of this file from now on.",
        "Replaced",
        parameters=("waiting",),
        errors=(409,),
    ),
    "GET /metrics": Operation("Numbers for Prometheus.", "Text", "text/plain"),
    "GET /": Operation("A page that shows how the model does.", "Text", "text/html"),
    "GET /events": Operation("What the page shows, every second.", "Text", "text/event-stream"),
    "GET /openapi.json": Operation("This document."),
    "GET /v2": Operation("What this server is."),
    "GET /v2/health/live": Operation("Whether the server runs."),
    "GET /v2/health/ready": Operation("Whether it can score."),
    "GET /v2/models/{model}": Operation("The tensors that the model takes and gives.", "Metadata"),
    "GET /v2/models/{model}/ready": Operation("Whether the model can score."),
    "POST /v2/models/{model}/infer": Operation(_INFER, "InferAnswer", takes="InferRequest"),
    "GET /ping": Operation("Whether the server runs.", ""),
    "GET /health": Operation("Whether the server runs.", ""),
    "GET /version": Operation("The version of cbrank.", "Text", "text/plain"),
    "POST /invocations": Operation(
        "Score the rows of a data frame as clients of MLflow send it.",
        "Predictions",
        takes="Invocation",
    ),
}


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
    examples = about.examples()
    paths: dict[str, Any] = {}
    for rule in RULES:
        operation = OPERATIONS.get(f"{rule.method} {rule.path}")
        if operation is not None:
            told = _told(operation, rule, examples)
            paths.setdefault(rule.path, {})[rule.method.lower()] = told
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
                    "description": "A token that whoever runs the server made. Its role is score, learn or "
                    "admin, and each may what those before it may. A server without tokens asks "
                    "nobody, and serves its own machine only.",
                }
            },
        },
        "security": [{"token": []}, {}],
    }


def _told(operation: Operation, rule: Rule, examples: Mapping[str, Any]) -> dict[str, Any]:
    body = {"schema": ref(operation.gives)} if operation.gives else {}
    done = {"description": "Done.", "content": {operation.media_type: body}}
    errors = [*operation.errors, *(_SENT if rule.types else ()), *(_ALL if rule.role else ())]
    parameters = [*operation.parameters]
    if "{model}" in rule.path:
        errors.append(404)
        parameters.append("model")
    told: dict[str, Any] = {
        "operationId": _identifier(rule),
        "summary": operation.summary,
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in parameters],
        "responses": {
            "200": done,
            **{str(code): {"$ref": f"#/components/responses/{code}"} for code in sorted(errors)},
        },
    }
    if "tag" in parameters:
        told["responses"]["304"] = {"description": "The model is that of the given tag."}
    if rule.role:
        told["description"] = f"For tokens whose role is {rule.role} or more."
    else:
        told["security"] = []
    if rule.types:
        content = {kind: _body(kind, operation.takes, examples) for kind in rule.types if kind}
        told["requestBody"] = {"required": True, "content": content}
    return told


def _identifier(rule: Rule) -> str:
    words = re.findall("[a-z0-9]+", rule.path) or ["page"]
    return "_".join([rule.method.lower(), *words])


def _body(kind: str, takes: str, examples: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a body of one type; of bytes, nothing is."""
    if kind == BYTES:
        return {}
    schema = takes if kind == JSON else "Text"
    found = {name: {"value": example} for name, example in examples.get(schema, {}).items()}
    return {"schema": ref(schema), "examples": found}


def _error(sentence: str) -> dict[str, Any]:
    return {"description": sentence, "content": {JSON: {"schema": ref("Error")}}}


def _parameters(name: str) -> dict[str, Any]:
    return {
        "model": {
            "name": "model",
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
        "waiting": {
            "name": "waiting",
            "in": "query",
            "description": "Discard the rows that wait for labels if the model has other columns or "
            "labels; else it is refused while rows wait.",
            "schema": {"type": "string", "enum": ["discard"]},
        },
        "tag": {
            "name": "If-None-Match",
            "in": "header",
            "description": "The ETag of an answer before: the model is sent if it is another.",
            "schema": {"type": "string"},
        },
    }
