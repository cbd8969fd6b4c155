"""A model's scorer as an ONNX file, which many other runtimes and languages can run."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from cbrank import kernels
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

    It takes ``features``, dense rows of doubles, and gives ``score``, doubles, one for each row.
    Rows above zero are called positive. The names of features and labels are in its metadata.

    Parameters
    ----------
    ranker : ranker
        One that has learned.
    scaler : StreamScaler, optional
        What scales rows before the ranker.
    sparse : bool, default=False
        Whether the scaler learned from sparse rows, which are not centred.
    features : sequence of str, optional
        The names of the features.
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

    Examples
    --------
    >>> from cbrank import CBRanker
    >>> from cbrank.onnx import to_onnx
    >>> ranker = CBRanker().partial_fit([[0.0, 1.0], [1.0, 1.0]], [0, 1])
    >>> [node.op_type for node in to_onnx(ranker).graph.node]
    ['MatMul', 'Add']
    """
    if isinstance(ranker, AdditiveRanker):
        raise ValueError(  # noqa: TRY004
            "an AdditiveRanker takes tables, with words, times and gaps, and an ONNX scorer takes "
            "rows of numbers: score by cbrank.load, or export a CBRanker."
        )
    try:
        from onnx import TensorProto, checker, helper, parser  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"exporting needs {error.name}: pip install 'cbrank[onnx]'.", name=error.name
        ) from error
    form, arrays = _form(ranker, scaler, sparse)
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
