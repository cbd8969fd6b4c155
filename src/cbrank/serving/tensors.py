"""Rows as tensors of the Open Inference Protocol, in JSON or as bytes after it."""

import re
import struct
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from cbrank.serving.errors import Refused
from cbrank.serving.limits import Limits, refuse_too_deep
from cbrank.serving.memory import Reservation, of_json, of_tensor
from cbrank.streams.objects import Cell

T = TypeVar("T")
Rows = list[dict[str, Cell]]

ALL = "input"  # the tensor that holds all columns
_DTYPES = {
    "BOOL": "u1",
    **{f"INT{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"UINT{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    **{f"FP{8 * size}": f"<f{size}" for size in (2, 4, 8)},
}
_BYTES = "BYTES"
DATATYPES = (*_DTYPES, _BYTES)
_LENGTH = struct.Struct("<I")  # before each text of a binary tensor
# Texts, which are kept, and NaN outside of them; a text without an end is one, so that each byte is
# looked at once.
_TEXT_OR_NAN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|\bNaN\b', re.DOTALL)


class Tensor(msgspec.Struct):
    """A tensor of a request."""

    name: str
    shape: list[int]
    datatype: str
    data: msgspec.Raw = msgspec.Raw(b"")
    parameters: dict[str, Any] | None = None

    def parameter(self, name: str) -> Any:
        """Return a parameter, None if it is not there."""
        return (self.parameters or {}).get(name)


class Wanted(msgspec.Struct):
    """An output that a request asks for."""

    name: str
    parameters: dict[str, Any] | None = None


class Request(msgspec.Struct):
    """A request for inference."""

    inputs: list[Tensor]
    id: str | None = None
    outputs: list[Wanted] | None = None
    parameters: dict[str, Any] | None = None


class Answer(NamedTuple):
    """The body of an answer, and the length of the JSON before the bytes, None if there are none."""

    body: bytes
    header: int | None


# Requests ----------------------------------------------------------------------------------------


def decoded(body: bytes, kind: type[T]) -> T:
    """Return the JSON of a request, in which NaN is null, as clients in Python write it.

    Parameters
    ----------
    body : bytes
        The JSON.
    kind : type
        What it must be.

    Returns
    -------
    object
        Of that type.

    Raises
    ------
    Refused
        If it is anything else.

    Examples
    --------
    >>> decoded(b'{"age": NaN, "city": "NaN"}', dict[str, Cell])
    {'age': None, 'city': 'NaN'}
    """
    try:
        try:
            return _decoder(kind).decode(body)  # type: ignore[arg-type, no-any-return]
        except msgspec.DecodeError:
            if b"NaN" not in body:
                raise
            return _decoder(kind).decode(_without_nan(body))  # type: ignore[arg-type, no-any-return]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"The body is not what is asked for: {error}.") from None


@cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _without_nan(body: bytes) -> bytes:
    return _TEXT_OR_NAN.sub(lambda found: b"null" if found[0] == b"NaN" else found[0], body)


def read_request(
    body: bytes, header: str | None, limits: Limits, memory: Reservation
) -> tuple[Request, dict[str, list[Cell]]]:
    """Return a request and the cells of its tensors in the order of their rows.

    Parameters
    ----------
    body : bytes
        JSON, and after it the bytes of binary tensors.
    header : str or None
        The length of the JSON if it is not all.
    limits : Limits
        How many rows there may be, and how deep JSON may be.
    memory : Reservation
        Where what the cells take is reserved.

    Returns
    -------
    request : Request
        The request, whose tensors have one or two dimensions.
    cells : dict of str to list
        The cells of each tensor; None for gaps.

    Raises
    ------
    Refused
        If the request is malformed.

    Examples
    --------
    >>> from cbrank.serving.counts import Counts
    >>> from cbrank.serving.memory import Memory
    >>> tensor = b'{"name": "age", "shape": [2], "datatype": "FP64", "data": [31, null]}'
    >>> memory = Memory(10_000, Counts()).reservation()
    >>> read_request(b'{"inputs": [' + tensor + b"]}", None, Limits(), memory)[1]
    {'age': [31.0, None]}
    """
    length = len(body) if header is None else _header_length(header, len(body))
    text, rest = body[:length], memoryview(body)[length:]
    memory.take(of_json(text))
    refuse_too_deep(text, limits.depth)
    request = decoded(text, Request)
    cells: dict[str, list[Cell]] = {}
    for tensor in request.inputs:
        if tensor.name in cells:
            raise Refused(400, f"The tensor {tensor.name[:40]!r} comes twice.")
        count = _count(tensor, limits.rows)
        size = tensor.parameter("binary_data_size")
        if size is None:
            cells[tensor.name] = _from_json(tensor, count)
        else:
            _refuse(
                tensor,
                type(size) is not int or not 0 <= size <= len(rest),
                "has another `binary_data_size` than there are bytes after the JSON",
            )
            memory.take(of_tensor(tensor.shape[0], count, size))
            cells[tensor.name] = _from_bytes(tensor, rest[:size], count)
            rest = rest[size:]
    if len(rest):
        raise Refused(400, f"After the JSON there are {len(rest)} bytes that belong to no tensor.")
    return request, cells


def _header_length(text: str, most: int) -> int:
    length = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else -1
    if not 0 < length <= most:
        raise Refused(400, "Inference-Header-Content-Length is not the length of the JSON.")
    return length


def _refuse(tensor: Tensor, bad: bool, sentence: str) -> None:
    if bad:
        raise Refused(400, f"The tensor {tensor.name[:40]!r} {sentence}.")


def _count(tensor: Tensor, most: int) -> int:
    """Return how many cells a tensor has by its shape."""
    shape = tensor.shape
    _refuse(
        tensor,
        tensor.parameter("shared_memory_region") is not None,
        "is in shared memory, which this server does not read: send its data",
    )
    _refuse(
        tensor,
        tensor.datatype not in DATATYPES,
        f"has a datatype other than {', '.join(DATATYPES)}",
    )
    _refuse(tensor, len(shape) not in (1, 2), "needs the shape [rows] or [rows, columns]")
    _refuse(tensor, any(not 0 <= size < 2**31 for size in shape), "has an impossible shape")
    if shape[0] > most:
        raise Refused(413, too_many(shape[0], most))
    return shape[0] * (shape[1] if len(shape) == 2 else 1)


def too_many(rows: int, most: int) -> str:
    """Say that a request has more rows than it may have."""
    return f"There are {rows:,} rows; this service takes {most:,} at a time: send several requests."


def _refuse_other_count(tensor: Tensor, found: int, count: int) -> None:
    _refuse(tensor, found != count, f"has {found} values, and its shape {tensor.shape} {count}")


def _from_json(tensor: Tensor, count: int) -> list[Cell]:
    data = bytes(tensor.data)
    _refuse(tensor, not data, "has no data")
    kind = _cell_type(tensor.datatype)
    if tensor.datatype != _BYTES:  # before they are decoded, which takes many times the memory
        _refuse_other_count(tensor, data.count(b",") + (data[1:-1].strip() != b""), count)
    nested = len(tensor.shape) == 2 and data[1:].lstrip()[:1] == b"["
    try:
        read = decoded(data, list[list[kind]] if nested else list[kind])  # type: ignore[valid-type]
    except Refused as refused:
        raise Refused(400, f"The tensor {tensor.name[:40]!r}: {refused.sentence}") from None
    if nested:
        fits = {*map(len, read)} <= {tensor.shape[1]}
        _refuse(tensor, not fits, f"has rows that are not of its shape {tensor.shape}")
    cells: list[Cell] = [*chain.from_iterable(read)] if nested else read
    _refuse_other_count(tensor, len(cells), count)
    return [None if cell == "" else cell for cell in cells]


@cache
def _cell_type(datatype: str) -> Any:
    if datatype in ("BOOL", _BYTES):
        return bool | None if datatype == "BOOL" else str | None
    if datatype.startswith("FP"):
        return float | None
    bounds = np.iinfo(_DTYPES[datatype])
    # msgspec takes no bound above a signed integer's
    top = None if datatype == "UINT64" else int(bounds.max)
    return Annotated[int, msgspec.Meta(ge=int(bounds.min), le=top)] | None


def _from_bytes(tensor: Tensor, data: memoryview, count: int) -> list[Cell]:
    _refuse(tensor, bool(tensor.data), "has both data in JSON and binary data")
    if tensor.datatype == _BYTES:
        return _texts(tensor, bytes(data), count)
    dtype = np.dtype(_DTYPES[tensor.datatype])
    whole, left = divmod(len(data), dtype.itemsize)
    _refuse(tensor, left > 0, f"has {len(data)} bytes, which is no number of {tensor.datatype}")
    _refuse_other_count(tensor, whole, count)
    values = np.frombuffer(data, dtype)
    if tensor.datatype == "BOOL":
        values = values != 0
    gaps = np.isnan(values)
    cells: list[Cell] = values.tolist()
    for at in np.flatnonzero(gaps).tolist():
        cells[at] = None
    return cells


def _texts(tensor: Tensor, data: bytes, count: int) -> list[Cell]:
    cells: list[Cell] = []
    at = 0
    while at < len(data) and len(cells) <= count:
        start = at + _LENGTH.size
        _refuse(tensor, start > len(data), "ends within the length of a text")
        at = start + _LENGTH.unpack_from(data, at)[0]
        _refuse(tensor, at > len(data), "ends within a text")
        try:
            cells.append(data[start:at].decode() or None)
        except UnicodeDecodeError:
            _refuse(tensor, True, f"has a text that is not UTF-8, number {len(cells)}")
    _refuse_other_count(tensor, len(cells), count)
    return cells


# Rows --------------------------------------------------------------------------------------------


def rows_of(
    request: Request, cells: Mapping[str, list[Cell]], names: Collection[str], *, sparse: bool
) -> Rows:
    """Return the rows of a request: of a tensor for each column, or of one with all columns.

    Parameters
    ----------
    request : Request
        The request.
    cells : mapping of str to list
        The cells of its tensors.
    names : collection of str
        The model's columns in order.
    sparse : bool
        Whether cells that are 0 are left out.

    Returns
    -------
    list of dict
        The rows; columns without a tensor have no key.

    Examples
    --------
    >>> request = Request([Tensor("input", [2, 2], "FP64")])
    >>> rows_of(request, {"input": [1.0, 0.0, 3.0, None]}, ["a", "b"], sparse=False)
    [{'a': 1.0, 'b': 0.0}, {'a': 3.0, 'b': None}]
    """
    tensors = request.inputs
    if not tensors:
        raise Refused(400, "There are no tensors: send one for each column.")
    sizes = {tensor.shape[0] for tensor in tensors}
    if len(sizes) > 1:
        raise Refused(400, f"The tensors have different numbers of rows: {sorted(sizes)[:5]}.")
    if _holds_all(tensors, names):
        values, (size, width) = cells[ALL], tensors[0].shape
        rows = [values[at * width : (at + 1) * width] for at in range(size)]
        order = [*names]
        if sparse:
            return [
                {name: cell for name, cell in zip(order, row, strict=True) if cell != 0}
                for row in rows
            ]
        return [dict(zip(order, row, strict=True)) for row in rows]
    _refuse_unknown(tensors, names)
    return [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]


def _holds_all(tensors: Sequence[Tensor], names: Collection[str]) -> bool:
    """Say whether one tensor has all columns; refuse it if these are not the model's."""
    if [tensor.name for tensor in tensors] != [ALL]:
        return False
    fits = tensors[0].shape[1:] == [len(names)]
    if ALL in names and not (fits and len(names) > 1):
        return False
    shape = f"[rows, {len(names)}]"
    _refuse(tensors[0], not fits, f"needs the shape {shape}, the model's columns in their order")
    return True


def _refuse_unknown(tensors: Sequence[Tensor], names: Collection[str]) -> None:
    shown = ", ".join(map(repr, islice(names, 5))) + ", ..." * (len(names) > 5)
    for tensor in tensors:
        _refuse(tensor, tensor.name not in names, f"is no column of the model: these are {shown}")
        _refuse(tensor, tensor.shape[1:] not in ([], [1]), "is one column: its shape is [rows]")


# Answers -----------------------------------------------------------------------------------------


def answer(
    name: str, request: Request, outputs: Mapping[str, list[Any]], unreadable: int = 0
) -> Answer:
    """Return the answer to a request: the outputs asked for, or all.

    Parameters
    ----------
    name : str
        The model's name.
    request : Request
        The request.
    outputs : mapping of str to list
        All outputs: numbers, or texts.
    unreadable : int, default=0
        How many cells counted as missing values because they could not be read.

    Returns
    -------
    Answer
        The body, with those outputs as bytes after the JSON of which the request says so.

    Examples
    --------
    >>> answer("clicks", Request([], id="7"), {"score": [0.5]}).body
    b'{"model_name":"clicks","id":"7","outputs":[{"name":"score","shape":[1],"datatype":"FP64","data":[0.5]}]}'
    """
    default = (request.parameters or {}).get("binary_data_output", False)
    wanted = request.outputs or [Wanted(name) for name in outputs]
    told, parts = list[dict[str, Any]](), list[bytes]()
    for each in wanted:
        values = outputs[each.name]
        datatype = output_type(each.name)
        tensor: dict[str, Any] = {"name": each.name, "shape": [len(values)], "datatype": datatype}
        if (each.parameters or {}).get("binary_data", default) is True:
            parts.append(_to_bytes(values, datatype))
            tensor["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            tensor["data"] = values
        told.append(tensor)
    whole: dict[str, Any] = {"model_name": name}
    if request.id is not None:
        whole["id"] = request.id
    if unreadable:
        whole["parameters"] = {"unreadable_cells": unreadable}
    header = msgspec.json.encode(whole | {"outputs": told})
    return Answer(b"".join([header, *parts]), len(header) if parts else None)


def output_type(name: str) -> str:
    """Return the datatype of an output."""
    return _BYTES if name == "label" else "FP64"


def refuse_other_outputs(wanted: Sequence[Wanted], names: Collection[str]) -> None:
    """Refuse to make outputs that are not there, that come twice or in other forms."""
    for each in wanted:
        if each.name not in names:
            shown = ", ".join(map(repr, names))
            raise Refused(400, f"There is no output {each.name[:40]!r}: the outputs are {shown}.")
        if {"classification", "shared_memory_region"} & {*(each.parameters or {})}:
            raise Refused(400, "Outputs are sent as they are: no classes, no shared memory.")
    if len({each.name for each in wanted}) < len(wanted):
        raise Refused(400, "An output is asked for twice.")


def _to_bytes(values: list[Any], datatype: str) -> bytes:
    if datatype != _BYTES:
        return np.array(values, "<f8").tobytes()
    texts = [str(value).encode() for value in values]
    return b"".join(_LENGTH.pack(len(text)) + text for text in texts)
