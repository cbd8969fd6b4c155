"""The schemas of requests and answers for the columns of a model, with examples that work."""

from collections.abc import Iterable
from itertools import chain, islice
from math import isfinite
from typing import TYPE_CHECKING, Any

from cbrank.serving.signature import NUMBER, column_kinds, output_names
from cbrank.serving.tensors import DATATYPES

if TYPE_CHECKING:
    from cbrank.serving.service import Service

Schema = dict[str, Any]

# Columns that are described one by one; a model may have thousands, and no reader takes more in.
_MOST_COLUMNS = 200


def ref(name: str) -> Schema:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def _list(of: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": of, **more}


def _object(properties: Schema, *required: str, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": [*required], **more}


_TEXTUAL: Schema = {"type": "string"}
_WHOLE: Schema = {"type": "integer"}
_ID: Schema = {"type": ["string", "integer"], "minLength": 1, "maxLength": 200}
_SCORE = (
    "The score, above zero for the positive label; the probability that the row is positive; the "
    "standard deviation of the score; the label that the score stands for."
)
_UNREADABLE = (
    "Cells that hold no number or date where the model needs one; they count as missing values."
)
_RESULT = _object(
    {
        "id": _TEXTUAL,
        "result": {"enum": ["learned", "already", "unknown", "expired", "discarded"]},
    },
    "id",
    "result",
)


def _tensor_schemas() -> dict[str, Schema]:
    parameters = {"type": "object", "description": "Unknown ones are left out."}
    name, shape = {"name": _TEXTUAL}, {"shape": _list(_WHOLE, minItems=1, maxItems=2)}
    datatype = {"datatype": {"enum": [*DATATYPES]}}
    needed = "name", "shape", "datatype"
    about = _list(_object({**name, **shape, **datatype}, *needed))
    data = {"data": _list({}, description="In the order of rows, flat or nested.")}
    tensor = _object({**name, **shape, **datatype, **data, "parameters": parameters}, *needed)
    wanted = _object({**name, "parameters": parameters}, "name")
    return {
        "Tensor": tensor,
        "Metadata": _object(
            {**name, "inputs": about, "outputs": about}, "name", "inputs", "outputs"
        ),
        "InferRequest": _object(
            {
                "id": _TEXTUAL,
                "inputs": _list(ref("Tensor"), minItems=1),
                "outputs": _list(wanted, description="What is asked for; by default all."),
                "parameters": parameters,
            },
            "inputs",
        ),
        "InferAnswer": _object(
            {
                "model_name": _TEXTUAL,
                "id": _TEXTUAL,
                "outputs": _list(ref("Tensor")),
                "parameters": _object({"unreadable_cells": _WHOLE}, description=_UNREADABLE),
            },
            "model_name",
            "outputs",
        ),
    }


def _ways_to_write(label: str) -> list[str | float]:
    """Return a label as text and, if it is one, as a number."""
    try:
        number = float(label)
    except ValueError:
        return [label]
    return [label, int(number) if number.is_integer() else number] if isfinite(number) else [label]


def _cell(kind: str) -> Schema:
    return {
        "type": ["number", "boolean", "null"] if kind == NUMBER else ["string", "number", "null"]
    }


def _tensor(name: str, cell: Any) -> dict[str, Any]:
    datatype = "BYTES" if isinstance(cell, str) else "FP64"
    return {"name": name, "shape": [1], "datatype": datatype, "data": [cell]}


def _line(cells: Iterable[Any]) -> str:
    """Return a line of CSV."""
    texts = [str(cell).replace('"', '""') for cell in cells]
    return ",".join(f'"{text}"' for text in texts) + "\n"


class Schemas:
    """What the document says of a model: schemas of its rows, and examples.

    Parameters
    ----------
    service : Service
        What has the model.
    """

    def __init__(self, service: "Service") -> None:
        self.columns = service.model.columns
        self.label, self.classes = service.label, self.columns.classes_
        self.outputs = output_names(service)
        self.is_sparse = self.columns.numeric_ is None
        self.kinds = {} if self.is_sparse else column_kinds(service)
        self.width = self.columns.width_
        self.id = service.served.objects.id

    def all(self) -> dict[str, Schema]:
        """Return all schemas by name."""
        row = {"additionalProperties": ref("Cell"), **self._row()}
        if self.id is not None:
            row["properties"][self.id] = {**_ID, "description": "Comes back with the score."}
        label = {"enum": [*chain.from_iterable(map(_ways_to_write, self.classes))]}
        labelled = {**row, "properties": {**row["properties"], self.label: label}}
        labelled["required"] = [*row.get("required", ()), self.label]
        numbers = {name: {"type": ["number", "null"]} for name in ("score", "proba", "std")}
        unreadable = _list(_TEXTUAL, description=_UNREADABLE)
        score = {"id": _TEXTUAL, **numbers, "label": _TEXTUAL, "unreadable": unreadable}
        rows = _list(ref("LabelledRow"), minItems=1)
        labels = _object({"id": _ID, "label": label}, "id", "label", additionalProperties=False)
        return {
            "Error": _object({"error": _TEXTUAL}, "error"),
            "Object": {"type": "object"},
            "Text": _TEXTUAL,
            "Cell": {"type": ["number", "string", "boolean", "null"]},
            "Row": row,
            "LabelledRow": labelled,
            "Score": _object(score, "score", description=_SCORE),
            "ScoreRequest": _object(
                {
                    "rows": _list(ref("Row"), minItems=1),
                    "remember": {"type": "boolean", "default": False},
                    "ids": _list(_ID, description="An id for each row."),
                },
                "rows",
                additionalProperties=False,
            ),
            "Scores": _object({"rows": _list(ref("Score"))}, "rows"),
            "LearnRequest": {
                "oneOf": [
                    _object({"rows": rows}, "rows", additionalProperties=False),
                    _object(
                        {"labels": _list(labels, minItems=1)}, "labels", additionalProperties=False
                    ),
                ]
            },
            "Learned": _object(
                {
                    "learned": _WHOLE,
                    "event": _WHOLE,
                    "labels": _list(_RESULT),
                    "unreadable": _list(
                        _object({"row": _WHOLE, "column": _TEXTUAL}, "row", "column"),
                        description=_UNREADABLE,
                    ),
                },
                "learned",
            ),
            "Replaced": _object(
                {"columns": _WHOLE, "labels": _list(_TEXTUAL), "discarded": _WHOLE}, "discarded"
            ),
            **_tensor_schemas(),
            **self._mlflow(),
        }

    def _row(self) -> Schema:
        if self.is_sparse:
            return _object(
                {},
                description=f"Numbers by the indices of features, up to {self.width}, or 0.",
                patternProperties={"^[1-9][0-9]{0,8}$": {"type": "number"}},
                additionalProperties=False,
            )
        told = "A key for each column; keys that the model does not know are left out."
        shown = dict(islice(self.kinds.items(), _MOST_COLUMNS))
        cells = {name: _cell(kind) for name, kind in shown.items()}
        if not self.columns.AS_THEY_COME:
            numbers = [name for name, kind in shown.items() if kind == NUMBER]
            cells |= {name: {"type": "number"} for name in numbers}
            return _object(cells, *numbers, description=told)
        row = _object(cells, description=f"{told} A gap is null, or no key at all.")
        if len(shown) == len(self.kinds):
            row["anyOf"] = [{"required": [name]} for name in shown]
        return row

    def _mlflow(self) -> dict[str, Schema]:
        records, cells = _list(ref("Row")), _list(_list(ref("Cell")))
        split = _object({"columns": _list(_TEXTUAL), "data": cells}, "columns", "data")
        by_column = {"type": "object", "additionalProperties": _list(ref("Cell"))}
        ways = {
            "dataframe_split": split,
            "dataframe_records": records,
            "instances": {"anyOf": [records, cells]},
            "inputs": {"anyOf": [by_column, cells]},
        }
        params = _object(
            {
                "output": {
                    "enum": [*self.outputs, None],
                    "description": "What each prediction is; by default all of them.",
                }
            },
            additionalProperties=False,
        )
        return {
            "Invocation": {
                "oneOf": [
                    _object({way: schema, "params": params}, way) for way, schema in ways.items()
                ]
            },
            "Predictions": _object(
                {
                    "predictions": _list(
                        {"anyOf": [ref("Score"), {"type": ["number", "string", "null"]}]}
                    )
                },
                "predictions",
            ),
        }

    # Examples ------------------------------------------------------------------------------------

    def examples(self) -> dict[str, dict[str, Any]]:
        """Return requests that work, by schema; none if they would be too long."""
        if len(self.kinds) > _MOST_COLUMNS and not self.columns.AS_THEY_COME:
            return {}
        row = self.row()
        names, cells = [*row], [*row.values()]
        tensors = [_tensor(name, cell) for name, cell in row.items()]
        return {
            "ScoreRequest": {
                "rows": {"rows": [row]},
                "remembered": {"rows": [row], "remember": True, "ids": ["example"]},
            },
            "LearnRequest": {
                "rows": {"rows": [row | {self.label: self.classes[-1]}]},
                "labels": {"labels": [{"id": "example", "label": self.classes[0]}]},
            },
            "InferRequest": {
                "columns": {"inputs": tensors, "outputs": [{"name": "score"}]},
            },
            "Invocation": {
                "records": {"dataframe_records": [row]},
                "split": {"dataframe_split": {"columns": names, "data": [cells]}},
                "scores": {
                    "inputs": {name: [cell] for name, cell in row.items()},
                    "params": {"output": "score"},
                },
            },
            "Text": {"table": _line(names) + _line(cells)},
        }

    def row(self) -> dict[str, Any]:
        """Return a row that has a score."""
        if self.is_sparse:
            return {"1": 1.0}
        shown = islice(self.kinds.items(), _MOST_COLUMNS)
        return {name: 1.0 if kind == NUMBER else "a word" for name, kind in shown}
