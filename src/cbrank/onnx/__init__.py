"""A model's scorer as an ONNX file, which many other runtimes and languages can run."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from cbrank import kernels
from cbrank.onnx.additive import additive_model
from cbrank.optional import need
from cbrank.rankers.additive import AdditiveRanker
from cbrank.rankers.base import Ranker
from cbrank.streams import StreamScaler

__all__ = ["to_onnx"]

_BLOCK = 2**12  # names that are texts at a time

_SCORE = {
    "plain": "raw = MatMul (features, weights)  score = Add (raw, intercept)",
    "bounded": "row = Clip (features, least, most)  raw = MatMul (row, weights)  "
    "score = Add (raw, intercept)",
    "centred": """
        bounded = Clip (features, least, most)
        row = Sub (bounded, centre)
        raw = MatMul (row, weights)
        score = Add (raw, intercept)
    """,
    "unit": """
        sizes = Abs (features)
        largest = ReduceMax <axes = [1], keepdims = 1> (sizes)
        scale = Max (largest, tiny)
        even = Div (features, scale)
        length = ReduceL2 <axes = [1], keepdims = 1> (even)
        length_or_one = Max (length, one)
        row = Div (even, length_or_one)
        raw = MatMul (row, weights)
        score = Add (raw, intercept)
    """,
}


def to_onnx(
    ranker: Ranker,
    scaler: StreamScaler | None = None,
    *,
    sparse: bool = False,
    features: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
) -> Any:
    """Return the scorer of a ranker, and of the scaler before it, as an ONNX model.

    That of a linear ranker takes ``features``, dense rows of doubles, and gives ``score``, doubles,
    one for each row. Rows above zero are called positive. The names of features and labels are in
    its metadata.

    That of an `AdditiveRanker` takes the columns of the table, an input for each, named as the
    column: doubles for numbers, NaN for a gap; doubles for times, the seconds since 1970 by the
    clock on the wall; strings for words, without blanks at their ends, an empty one for a gap.
    Columns that are left out, such as ids, are no inputs. A column with more categories than
    `max_categories` has a second input, ``"city: bucket"``: CRC-32 of the word's UTF-8 bytes, modulo
    32. It gives ``score`` and ``probability``, doubles, and ``label``, strings, each named with an
    underscore more where a column has the name. Trees are in it, in single floats that hold what they
    decide by exactly. Its metadata are ``columns`` (JSON: name, type,
    kind and meaning of each input), ``left_out``, ``labels`` and ``version``; what to feed is also
    in the documentation of each input.

    Parameters
    ----------
    ranker : ranker
        One that has learned.
    scaler : StreamScaler, optional
        What scales rows before the ranker.
    sparse : bool, default=False
        Whether the scaler learned from sparse rows, which are not centred.
    features : sequence of str, optional
        The names of the features; of an `AdditiveRanker`, those of the columns, if other than its
        own.
    labels : sequence of str, optional
        The names of the labels, the positive one last.

    Returns
    -------
    onnx.ModelProto
        The model; ``SerializeToString()`` gives the bytes of its file.

    Raises
    ------
    ModuleNotFoundError
        If onnx is not installed.
    ValueError
        If there is a column of free text, for which there are no standard operators.

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> from cbrank.onnx import to_onnx
    >>> ranker = CBRanker().partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> [node.op_type for node in to_onnx(ranker).graph.node]
    ['MatMul', 'Add']

    >>> from cbrank import AdditiveRanker
    >>> rows = {"age": [31, 45, None, 27] * 16, "city": ["Oslo", "Bergen", "Oslo", "?"] * 16}
    >>> model = to_onnx(AdditiveRanker().fit(rows, ["no", "yes", "no", "no"] * 16))
    >>> [port.name for port in model.graph.input], [port.name for port in model.graph.output]
    (['age', 'city'], ['score', 'probability', 'label'])
    """
    need("onnx", "exporting", "onnx")
    if isinstance(ranker, AdditiveRanker):
        if scaler is not None and scaler.kind != "none":
            raise ValueError("an AdditiveRanker takes tables as they are: leave out `scaler`.")
        return additive_model(ranker, features, labels)
    return _linear_model(ranker, *_form(ranker, scaler, sparse), features, labels)


def _linear_model(
    ranker: Ranker,
    form: str,
    arrays: dict[str, Any],
    features: Sequence[str] | None,
    labels: Sequence[str] | None,
) -> Any:
    from onnx import TensorProto, checker, helper, parser  # noqa: PLC0415

    arrays["intercept"] = ranker.intercept_
    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17], producer_name: "cbrank">
        scorer (double[rows, {ranker.n_features_in_}] features) => (double[rows] score)
        {{ {_SCORE[form]} }}
    """)
    for name in list(arrays):
        array = np.asarray(arrays.pop(name), "<f8")
        tensor = model.graph.initializer.add(name=name, data_type=TensorProto.DOUBLE)
        tensor.dims.extend(array.shape)
        tensor.raw_data = array.tobytes()
        del array  # before the checks, which take twice its size
    checker.check_model(model)
    known = {"features": _as_json(features)} if features is not None else {}
    known |= {"labels": _as_json(labels)} if labels is not None else {}
    helper.set_model_props(model, known)
    return model


def _as_json(texts: Sequence[str]) -> str:
    """Return texts as JSON, without objects for all of them at once."""
    parts = (
        ", ".join(map(json.dumps, texts[begin : begin + _BLOCK]))
        for begin in range(0, len(texts), _BLOCK)
    )
    return f"[{', '.join(parts)}]"


def _form(ranker: Ranker, scaler: StreamScaler | None, sparse: bool) -> tuple[str, dict[str, Any]]:
    """Return how rows are scored, and the numbers that takes."""
    weights, kind = ranker.weights(), "none" if scaler is None else scaler.kind
    if scaler is None or kind == "none":
        return "plain", {"weights": weights}
    if kind == "unit":
        tiny, one = np.array(np.finfo(np.float64).tiny), np.array(1.0)
        return "unit", {"weights": weights, "tiny": tiny, "one": one}
    centre, divisor = scaler.centre_and_divisor()
    with np.errstate(over="ignore"):
        weights = weights / divisor
    if not np.isfinite(weights).all():
        raise ValueError(
            "a feature is so small that its weight, not scaled, is beyond all numbers."
        )
    if kind == "maxabs":
        return "plain", {"weights": weights}
    most = np.array(kernels.scaling.LARGEST)
    bounds = {"least": -most, "most": most}
    if sparse:
        return "bounded", {"weights": weights, **bounds}
    return "centred", {"weights": weights, "centre": centre, **bounds}
