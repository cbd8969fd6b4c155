"""Partitions in memory, and their scores: blocks of dask arrays or data frames, or delayed ones."""

from collections.abc import Callable, Generator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed
from dask.array.utils import meta_from_array
from dask.delayed import Delayed
from distributed import Client
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _get_feature_names

from cbrank import checks
from cbrank.dask.tasks import CHUNK_ROWS, Chunk, Schema, tree_reduced

if TYPE_CHECKING:
    from cbrank.rankers import CBRanker

_KINDS = (
    "a dask array, a dask data frame, a list of delayed blocks of rows (each with a delayed block "
    "of labels in y), or a list of paths"
)


@dataclass
class Block:
    """The rows of one partition: delayed objects on the client, computed ones on a worker."""

    number: int
    X: Any
    y: Any
    weights: Any = None

    def chunks(
        self,
        random: np.random.Generator | None,
        ranker: "CBRanker | None",  # noqa: ARG002
    ) -> Generator[Chunk, None, None]:
        """Yield the rows in chunks, shuffled by `random` if it is not None."""
        X = sp.csr_array(self.X) if sp.issparse(self.X) else self.X
        y = checks.check_labels(self.y, X) if X.shape[0] else np.empty(0)
        weights = None if self.weights is None else checks.check_weights(self.weights, X)
        order = None if random is None else random.permutation(X.shape[0])
        for begin in range(0, X.shape[0], CHUNK_ROWS):
            rows: Any = slice(begin, begin + CHUNK_ROWS)
            rows = rows if order is None else order[rows]
            yield _safe_indexing(X, rows), y[rows], None if weights is None else weights[rows]

    def widen(self, ranker: "CBRanker", width: int) -> None:
        """Do nothing: all blocks have the same width, and `partial_fit` refuses another."""

    def located(self, error: ValueError, prior: "CBRanker") -> ValueError:
        """Return an error that names the partition, and the row's place in it before shuffling."""
        try:
            deepcopy(prior).partial_fit(self.X, self.y, sample_weight=self.weights)
        except ValueError as in_order:
            error = in_order
        return ValueError(f"Partition {self.number}: {error}")


class Blocks(NamedTuple):
    """The delayed blocks of rows, labels and weights: one of each for every partition."""

    X: list[Delayed]
    y: list[Delayed]
    weights: list[Delayed] | None
    meta: Any  # a block without rows; None where only computing a block shows what it is

    def parts(self) -> list[Block]:
        """Return the partitions."""
        weights = self.weights or [None] * len(self.X)
        blocks = zip(self.X, self.y, weights, strict=True)
        return [Block(number, *block) for number, block in enumerate(blocks)]

    def schema(
        self,
        client: Client,
        ranker: "CBRanker",  # noqa: ARG002
        classes: ArrayLike | None,
    ) -> Schema:
        """Find out what must be known of all rows before the first is learned from."""
        found = delayed(np.asarray)(classes)
        if classes is None:
            labels = [delayed(_labels)(number, y) for number, y in enumerate(self.y)]
            found = tree_reduced(labels, delayed(_union))
        found = client.compute(found)
        facts = self._facts(client) if self.meta is None else _facts(0, self.meta)
        return Schema(checks.check_classes(found.result()), *facts)

    def _facts(self, client: Client) -> "Facts":
        """Return the facts about the first block that has rows."""
        for number, X in enumerate(self.X):
            facts = client.compute(delayed(_facts_if_rows)(number, X)).result()
            if facts:
                return facts  # type: ignore[no-any-return]
        raise ValueError("There are no rows to learn from: every partition is empty.")


Facts = tuple[int, bool, NDArray[Any] | None]  # width, whether sparse, names of columns


def _facts_if_rows(number: int, X: Any) -> Facts | None:
    return _facts(number, X) if np.shape(X)[0] else None


def _facts(number: int, X: Any) -> Facts:
    if len(getattr(X, "shape", ())) != 2:
        raise ValueError(
            f"Partition {number}: a block must be an array, a CSR matrix or a data frame of rows and "
            f"columns, and it is {type(X).__name__}."
        )
    return X.shape[1], sp.issparse(X), _get_feature_names(X)


def _labels(number: int, y: Any) -> NDArray[Any]:
    """Return the labels of a block, at most two."""
    try:
        found = np.unique(checks.check_labels(y, y)) if len(y) else np.empty(0)
        return checks.check_classes(found) if len(found) > 2 else found
    except ValueError as error:
        raise ValueError(f"Partition {number}: {error}") from error


def _union(found: list[NDArray[Any]]) -> NDArray[Any]:
    """Return all labels found; empty blocks, whose type means nothing, have no say in theirs."""
    return np.unique(np.concatenate([labels for labels in found if len(labels)] or found))


# Blocks of what callers pass in -------------------------------------------------------------------


def blocks_of(X: Any, y: Any, sample_weight: Any) -> Blocks:
    """Return the blocks of rows, and the blocks of labels and weights that belong to them."""
    if y is None:
        raise ValueError("y is missing: only files bring their labels along.")
    X, meta = rows_of(X)
    weights = None if sample_weight is None else _aligned("sample_weight", sample_weight, X)
    return Blocks(_delayed(X), _aligned("y", y, X), weights, meta)


def rows_of(X: Any) -> tuple[Any, Any]:
    """Return rows whose blocks have all columns, and a block without rows if that can be known."""
    if _is_frame(X):
        from dask.dataframe.dispatch import make_meta  # noqa: PLC0415

        return X, make_meta(X)
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have rows and columns, and it has {X.ndim} dimensions.")
        X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        meta = meta_from_array(X)
        known = sp.issparse(meta) or isinstance(meta, np.ndarray)
        empty = sp.csr_array if sp.issparse(meta) else np.empty
        return X, empty((0, X.shape[1])) if known and not np.isnan(X.shape[1]) else None
    if _is_delayed(X):
        return X, None
    raise ValueError(
        f"X must be {_KINDS}, and it is {type(X).__name__}: use CBRanker for rows in memory, or "
        "dask.array.from_array."
    )


def _is_frame(X: Any) -> bool:
    """Say whether this is a dask data frame."""
    return _is_collection(X) and hasattr(X, "map_partitions") and hasattr(X, "columns")


def _is_collection(X: Any) -> bool:
    """Say whether this has partitions; a Delayed, which seems to have every attribute, has none."""
    return not isinstance(X, Delayed) and hasattr(X, "dask") and hasattr(X, "to_delayed")


def _is_delayed(X: Any) -> bool:
    """Say whether this is a list of delayed blocks."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(x, Delayed) for x in X)


def _delayed(X: Any) -> list[Delayed]:
    if isinstance(X, da.Array):
        return X.to_delayed().ravel().tolist()  # type: ignore[no-any-return]
    return list(X.to_delayed()) if hasattr(X, "to_delayed") else list(X)


def _aligned(name: str, values: Any, X: Any) -> list[Delayed]:
    """Return labels or weights in as many blocks as X has."""
    if isinstance(values, da.Array):
        if values.ndim != 1:
            raise ValueError(f"{name} must have one dimension, and it has {values.ndim}.")
        values = _rechunked(name, values, X)
    elif not (_is_delayed(values) or _is_collection(values)):
        raise ValueError(
            f"{name} must be a dask array or series, or a list of delayed blocks, like X; it is "
            f"{type(values).__name__}."
        )
    blocks, wanted = _delayed(values), len(_delayed(X))
    if len(blocks) != wanted:
        raise ValueError(
            f"X has {wanted} partitions and {name} has {len(blocks)}: make them the same, with "
            "rechunk for arrays and repartition for frames."
        )
    return blocks


def _rechunked(name: str, values: Any, X: Any) -> Any:
    """Return an array in chunks as long as those of X, where both lengths are known."""
    if not isinstance(X, da.Array) or not _known(X.chunks[0]) or not _known(values.chunks[0]):
        return values
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and {name} has {values.shape[0]}.")
    return values.rechunk((X.chunks[0],))


def _known(lengths: Sequence[float]) -> bool:
    return not np.isnan(lengths).any()


# Scores -------------------------------------------------------------------------------------------


def is_lazy(X: Any) -> bool:
    """Say whether rows are yet to be computed, rather than in memory."""
    return dask.is_dask_collection(X) or _is_delayed(X)


def lazily(ranker: "CBRanker", method: str, X: Any, dtype: np.dtype[Any]) -> Any:
    """Return what a method of the ranker gives for rows, in the partitions of the rows."""
    if not is_lazy(X):
        return getattr(ranker, method)(X)
    X, _ = rows_of(X)
    call = partial(_of_block, method=method, dtype=dtype)
    shared = _for_all_blocks(ranker)
    if isinstance(X, da.Array):
        return X.map_blocks(call, shared, drop_axis=1, meta=np.empty(0, dtype))
    if _is_frame(X):
        return X.map_partitions(partial(_of_frame, call), shared, meta=(None, dtype))
    blocks = [delayed(call)(block, shared) for block in X]
    return da.concatenate([da.from_delayed(block, (np.nan,), dtype) for block in blocks])


def auc(ranker: "CBRanker", blocks: Blocks) -> Delayed:
    """Return the area under the ROC curve over all blocks, yet to be computed."""
    shared, dtype = _for_all_blocks(ranker), np.dtype(np.float64)
    score = partial(_of_block, method="decision_function", dtype=dtype)
    scores = [delayed(score)(block, shared) for block in blocks.X]
    return delayed(_auc)(scores, blocks.y, blocks.weights, ranker.classes_)


def _for_all_blocks(ranker: "CBRanker") -> Delayed:
    """Return a ranker that says the same of a row in a block of any size: what ranks rows of much later."""
    ranker = copy(ranker)
    ranker.rank_later_rows()
    return delayed(ranker, traverse=False)


def _of_block(X: Any, ranker: "CBRanker", method: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the scores or labels of a block, which may be empty."""
    return getattr(ranker, method)(X) if X.shape[0] else np.empty(0, dtype)


def _of_frame(call: Callable[..., NDArray[Any]], X: Any, ranker: "CBRanker") -> Any:
    """Return the same as a series with the index of the frame."""
    import pandas as pd  # noqa: PLC0415

    return pd.Series(call(X, ranker), index=X.index)


def _auc(
    scores: list[NDArray[np.float64]], y: list[Any], weights: list[Any] | None, classes: Any
) -> float:
    labels = checks.encode(np.concatenate([np.asarray(block) for block in y]), classes)
    weight = None if weights is None else np.concatenate(weights)
    return float(roc_auc_score(labels, np.concatenate(scores), sample_weight=weight))
