"""Protocols that clients have: the Open Inference Protocol (V2) and that of MLflow's scoring server."""

import asyncio
import csv
import io
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cbrank import __version__
from cbrank.serving import tensors
from cbrank.serving.errors import Refused
from cbrank.serving.limits import Limits, refuse_too_deep
from cbrank.serving.memory import ANSWER, Reservation, apart, of_csv, of_json
from cbrank.serving.rules import BYTES, JSON
from cbrank.serving.signature import NUMBER, column_kinds, column_names, output_names
from cbrank.serving.tensors import ALL, Rows
from cbrank.streams.objects import Cell

if TYPE_CHECKING:
    from cbrank.serving.service import Service

CSV = "text/csv"
_JSON_LENGTH = "Inference-Header-Content-Length"


def routes(service: "Service", limits: Limits) -> list[BaseRoute]:
    """Return the endpoints of both protocols.

    Parameters
    ----------
    service : Service
        What scores.
    limits : Limits
        How many rows and columns a request may have.

    Returns
    -------
    list of BaseRoute
        The endpoints.
    """
    v2, mlflow = OpenInference(service, limits), MLflow(service, limits)
    model = "/v2/models/{model}"
    return [
        Route("/v2", v2.server),
        Route("/v2/health/live", v2.live),
        Route("/v2/health/ready", v2.ready),
        Route(model, v2.model),
        Route(f"{model}/ready", v2.model_ready),
        Route(f"{model}/infer", v2.infer, methods=["POST"]),
        Route(f"{model}/versions/{{rest:path}}", v2.version, methods=["GET", "POST"]),
        Route("/ping", mlflow.ping),
        Route("/health", mlflow.ping),
        Route("/version", mlflow.version),
        Route("/invocations", mlflow.invocations, methods=["POST"]),
    ]


# Requests and answers ----------------------------------------------------------------------------


def said(answer: Any) -> Response:
    """Return an answer in JSON.

    Parameters
    ----------
    answer : object
        What JSON can hold.

    Returns
    -------
    Response
        The answer.
    """
    return Response(msgspec.json.encode(answer), media_type=JSON)


async def _scored(
    service: "Service", limits: Limits, request: Request, rows: Rows
) -> list[dict[str, Any]]:
    if not rows:
        raise Refused(400, "There are no rows: give at least one.")
    if len(rows) > limits.rows:
        raise Refused(413, tensors.too_many(len(rows), limits.rows))
    widest = max(map(len, rows), default=0)
    if widest > limits.columns:
        raise Refused(413, f"A row has {widest:,} columns; this service takes {limits.columns:,}.")
    state = request.scope["state"]
    state["memory"].take(ANSWER * len(rows))
    state["rows"] = len(rows)
    return await service.score([*rows])


# The Open Inference Protocol ---------------------------------------------------------------------


class OpenInference:
    """The endpoints of the Open Inference Protocol, version 2.

    A column of the model is a tensor; one that is not sent is a gap, as are NaN, null and empty
    texts. One tensor named "input" may have all columns in the model's order. Data are JSON or,
    by the extension `binary_tensor_data`, bytes after it.

    Parameters
    ----------
    service : Service
        What scores.
    limits : Limits
        How many rows and columns a request may have.
    """

    def __init__(self, service: "Service", limits: Limits) -> None:
        self.service, self.limits = service, limits

    async def server(self, request: Request) -> Response:  # noqa: ARG002
        """Say what this server is."""
        extensions = ["binary_tensor_data"]
        return said({"name": "cbrank", "version": __version__, "extensions": extensions})

    async def live(self, request: Request) -> Response:  # noqa: ARG002
        """Say that the server runs."""
        return said({"live": True})

    async def ready(self, request: Request) -> Response:  # noqa: ARG002
        """Say that the server can score, which it can even if learning has stopped."""
        return said({"ready": True})

    async def model(self, request: Request) -> Response:
        """Say which tensors the model takes and gives."""
        service = self._known(request)
        if service.model.columns.numeric_ is None:
            inputs = [_tensor(ALL, "FP64", -1, len(column_names(service)))]
        else:
            kinds = await asyncio.to_thread(column_kinds, service)
            inputs = [
                _tensor(name, "FP64" if kind == NUMBER else "BYTES") for name, kind in kinds.items()
            ]
        outputs = [_tensor(name, tensors.output_type(name)) for name in output_names(service)]
        about = {"name": service.name, "platform": "cbrank", "inputs": inputs, "outputs": outputs}
        return said(about)

    async def model_ready(self, request: Request) -> Response:
        """Say that the model can score."""
        return said({"name": self._known(request).name, "ready": True})

    async def version(self, request: Request) -> Response:
        """Refuse to look for a version."""
        self._known(request)
        raise Refused(404, "The model learns and has no versions: leave /versions/... out.")

    async def infer(self, request: Request) -> Response:
        """Score the rows of tensors."""
        service = self._known(request)
        state, length = request.scope["state"], request.headers.get(_JSON_LENGTH)
        asked, rows = await apart(state["body"], self._read, state["body"], length, state["memory"])
        outputs = output_names(service)
        found = await _scored(service, self.limits, request, rows)
        columns = {name: [row[name] for row in found] for name in outputs}
        unreadable = sum(len(row.get("unreadable", ())) for row in found)
        answer = tensors.answer(service.name, asked, columns, unreadable)
        if answer.header is None:
            return Response(answer.body, media_type=JSON)
        return Response(answer.body, 200, {_JSON_LENGTH: str(answer.header)}, BYTES)

    def _read(
        self, body: bytes, length: str | None, memory: Reservation
    ) -> tuple[tensors.Request, Rows]:
        """Return a request and its rows."""
        asked, cells = tensors.read_request(body, length, self.limits, memory)
        tensors.refuse_other_outputs(asked.outputs or [], output_names(self.service))
        sparse = self.service.model.columns.numeric_ is None
        names = column_names(self.service)
        return asked, tensors.rows_of(asked, cells, names, sparse=sparse)

    def _known(self, request: Request) -> "Service":
        if request.path_params["model"] != self.service.name:
            raise Refused(404, f"There is no such model: this server has {self.service.name!r}.")
        return self.service


def _tensor(name: str, datatype: str, *shape: int) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": [*shape] or [-1]}


# MLflow ------------------------------------------------------------------------------------------


class Split(msgspec.Struct):
    """A data frame as pandas writes it with orient="split"."""

    columns: list[str | int]
    data: list[list[Cell]]


class Invocation(msgspec.Struct):
    """A request to `/invocations`: one of four ways to write rows, and what is wanted of them."""

    dataframe_split: Split | None = None
    dataframe_records: list[dict[str, Cell]] | None = None
    instances: msgspec.Raw = msgspec.Raw(b"null")
    inputs: msgspec.Raw = msgspec.Raw(b"null")
    params: dict[str, Any] | None = None


WAYS = "dataframe_split", "dataframe_records", "instances", "inputs"


class MLflow:
    """The endpoints of MLflow's scoring server.

    Predictions are records with score, probability, deviation and label, or, with the parameter
    `output`, one of these alone.

    Parameters
    ----------
    service : Service
        What scores.
    limits : Limits
        How many rows and columns a request may have.
    """

    def __init__(self, service: "Service", limits: Limits) -> None:
        self.service, self.limits = service, limits

    async def ping(self, request: Request) -> Response:  # noqa: ARG002
        """Say that the server runs."""
        return Response("\n", media_type=JSON)

    async def version(self, request: Request) -> Response:  # noqa: ARG002
        """Say which version of cbrank this is."""
        return Response(__version__, media_type="text/plain")

    async def invocations(self, request: Request) -> Response:
        """Score the rows of a data frame."""
        state = request.scope["state"]
        is_csv = request.headers["Content-Type"].lower().startswith(CSV)
        read = self._from_csv if is_csv else self._from_json
        rows, output = await apart(state["body"], read, state["body"], state["memory"])
        found = await _scored(self.service, self.limits, request, rows)
        return said({"predictions": found if output is None else [row[output] for row in found]})

    def _output(self, asked: Invocation) -> str | None:
        params = asked.params or {}
        known = output_names(self.service)
        output = params.get("output")
        if {*params} - {"output"} or output not in (None, *known):
            raise Refused(400, f"`params` may have `output`, one of {', '.join(known)}.")
        return output

    def _from_json(self, body: bytes, memory: Reservation) -> tuple[Rows, str | None]:
        """Return rows and the output that is asked for, if it is one alone."""
        memory.take(of_json(body))
        refuse_too_deep(body, self.limits.depth)
        asked = tensors.decoded(body, Invocation)
        return _rows(asked, column_names(self.service)), self._output(asked)

    def _from_csv(self, body: bytes, memory: Reservation) -> tuple[Rows, None]:
        """Return rows of text; the numbers of a model that takes nothing else are read."""
        memory.take(of_csv(body))
        try:
            lines = [*csv.reader(io.StringIO(body.decode("utf-8-sig")), strict=True)]
        except (UnicodeDecodeError, csv.Error) as error:
            raise Refused(400, f"The body is no table in CSV: {error}.") from None
        header, *lines = [line for line in lines if line] or [[]]
        rows = _table(header, lines)
        columns = self.service.model.columns
        if columns.AS_THEY_COME:
            return rows, None
        names = column_names(self.service)
        numeric = [name for name in header if name in names and name not in columns.categorical]
        return [row | {name: _number(str(row[name])) for name in numeric} for row in rows], None


def _number(cell: str) -> Cell:
    try:
        return float(cell.replace("_", "no"))  # which Python allows in numbers
    except ValueError:
        return cell.strip() or None


def _rows(asked: Invocation, names: Collection[str]) -> Rows:
    given = [way for way in WAYS if getattr(asked, way) not in (None, msgspec.Raw(b"null"))]
    if len(given) != 1:
        raise Refused(400, f"Give one of {', '.join(WAYS)}.")
    if asked.dataframe_records is not None:
        return asked.dataframe_records
    if asked.dataframe_split is not None:
        return _table(asked.dataframe_split.columns, asked.dataframe_split.data)
    raw = bytes(getattr(asked, given[0]))
    if raw[:1] == b"{" and given == ["inputs"]:
        return _from_columns(tensors.decoded(raw, dict[str, list[Cell] | Cell]))
    if raw[1:].lstrip()[:1] == b"{":
        return tensors.decoded(raw, list[dict[str, Cell]])
    return _table(names, tensors.decoded(raw, list[list[Cell]]))


def _table(names: Iterable[str | int], cells: Sequence[Sequence[Cell]]) -> Rows:
    texts = [str(name) for name in names]
    if len({*texts}) < len(texts):
        raise Refused(400, "Two columns have the same name.")
    wrong = next((at for at, row in enumerate(cells) if len(row) != len(texts)), None)
    if wrong is not None:
        raise Refused(400, f"Row {wrong} has {len(cells[wrong])} cells, not {len(texts)}.")
    return [dict(zip(texts, row, strict=True)) for row in cells]


def _from_columns(columns: dict[str, Any]) -> Rows:
    """Return the rows of columns; columns of one cell each are a row."""
    lists = [cells if isinstance(cells, list) else [cells] for cells in columns.values()]
    if len({*map(len, lists)}) > 1:
        raise Refused(400, "The columns of `inputs` have different numbers of rows.")
    return _table([*columns], [*zip(*lists, strict=True)])
