"""Scores of partitions, computed when they are asked for."""

from collections.abc import Callable
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.delayed import Delayed
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from cbrank.dask.blocks import Blocks, is_delayed, is_frame, rows_of
from cbrank.rankers import CBRanker, checks


def is_lazy(X: Any) -> bool:
    """Say whether rows are yet to be computed, rather than in memory."""
    return dask.is_dask_collection(X) or is_delayed(X)


def lazily(ranker: CBRanker, method: str, X: Any, dtype: np.dtype[Any]) -> Any:
    """Return what a method of the ranker gives for rows, in their partitions."""
    if not is_lazy(X):
        return getattr(ranker, method)(X)
    X, _ = rows_of(X)
    call = partial(_of_block, method=method, dtype=dtype)
    whole = delayed(ranker, traverse=False)
    if isinstance(X, da.Array):
        return X.map_blocks(call, whole, drop_axis=1, meta=np.empty(0, dtype))
    if is_frame(X):
        return X.map_partitions(partial(_of_frame, call), whole, meta=(None, dtype))
    blocks = [delayed(call)(block, whole) for block in X]
    return da.concatenate([da.from_delayed(block, (np.nan,), dtype) for block in blocks])


def auc(ranker: CBRanker, blocks: Blocks) -> Delayed:
    """Return the area under the ROC curve over all blocks, yet to be computed."""
    whole, dtype = delayed(ranker, traverse=False), np.dtype(np.float64)
    score = partial(_of_block, method="decision_function", dtype=dtype)
    scores = [delayed(score)(block, whole) for block in blocks.X]
    return delayed(_auc)(scores, blocks.y, blocks.weights, ranker.classes_)


def _of_block(X: Any, ranker: CBRanker, method: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the scores or labels of a block, which may be empty."""
    return getattr(ranker, method)(X) if X.shape[0] else np.empty(0, dtype)


def _of_frame(call: Callable[..., NDArray[Any]], X: Any, ranker: CBRanker) -> Any:
    """Return the same as a series with the index of the frame."""
    return X._constructor_sliced(call(X, ranker), index=X.index)


def _auc(
    scores: list[NDArray[np.float64]], y: list[Any], weights: list[Any] | None, classes: Any
) -> float:
    labels = checks.encode(np.concatenate([np.asarray(block) for block in y]), classes)
    weight = None if weights is None else np.concatenate(weights)
    return float(roc_auc_score(labels, np.concatenate(scores), sample_weight=weight))
