"""Partitions in memory: blocks of dask arrays, of dask data frames, or delayed ones."""

from collections.abc import Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed
from dask.delayed import Delayed
from distributed import Client
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _get_feature_names

from cbrank.dask.learning import CHUNK_ROWS, Chunk, Form
from cbrank.dask.tree import reduced
from cbrank.rankers import CBRanker, checks

_KINDS = (
    "a dask array, a dask data frame, a list of delayed blocks of rows (each with a delayed block "
    "of labels in y), or a list of paths"
)


@dataclass
class Block:
    """Some rows in memory; on the client they are yet to be computed."""

    number: int
    X: Any
    y: Any
    weights: Any = None

    def chunks(
        self,
        random: np.random.Generator | None,
        width: int,  # noqa: ARG002
    ) -> Generator[Chunk, None, None]:
        """Yield the rows in chunks, shuffled by `random` if there is one."""
        X = sp.csr_array(self.X) if sp.issparse(self.X) else self.X
        y = checks.check_labels(self.y, X) if X.shape[0] else np.empty(0)
        weights = None if self.weights is None else checks.check_weights(self.weights, X)
        order = None if random is None else random.permutation(X.shape[0])
        for begin in range(0, X.shape[0], CHUNK_ROWS):
            rows: Any = slice(begin, begin + CHUNK_ROWS)
            rows = rows if order is None else order[rows]
            yield _safe_indexing(X, rows), y[rows], None if weights is None else weights[rows]

    def make_room(self, ranker: CBRanker, width: int) -> None:
        """Do nothing: blocks are of one width, and learning refuses another."""

    def explained(self, error: ValueError, prior: CBRanker) -> ValueError:
        """Return an error that names the partition and the row in it, shuffled or not."""
        try:
            deepcopy(prior).partial_fit(self.X, self.y, sample_weight=self.weights)
        except ValueError as in_order:
            error = in_order
        return ValueError(f"Partition {self.number}: {error}")


class Blocks(NamedTuple):
    """Rows, labels and weights in blocks that are yet to be computed."""

    X: list[Delayed]
    y: list[Delayed]
    weights: list[Delayed] | None
    meta: Any  # a block without rows; None if it is not known what blocks are

    def parts(self) -> list[Block]:
        """Return the partitions."""
        weights = self.weights or [None] * len(self.X)
        blocks = zip(self.X, self.y, weights, strict=True)
        return [Block(number, *block) for number, block in enumerate(blocks)]

    def form(
        self,
        client: Client,
        ranker: CBRanker,  # noqa: ARG002
        classes: ArrayLike | None,
    ) -> Form:
        """Find out what must be known before the first row is learned from."""
        found = delayed(np.asarray)(classes)
        if classes is None:
            labels = [delayed(_labels)(number, y) for number, y in enumerate(self.y)]
            found = reduced(labels, delayed(_union))
        found = client.compute(found)
        facts = self._facts(client) if self.meta is None else _facts(0, self.meta)
        return Form(checks.check_classes(found.result()), *facts)

    def _facts(self, client: Client) -> "Facts":
        """Return the facts about the first block that has rows."""
        for number, X in enumerate(self.X):
            if facts := client.compute(delayed(_facts_if_rows)(number, X)).result():
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
    """Return the labels of blocks; those of an empty block have no type to go by."""
    return np.unique(np.concatenate([labels for labels in found if len(labels)] or found))


# From what callers pass in ------------------------------------------------------------------------


def blocks_of(X: Any, y: Any, sample_weight: Any) -> Blocks:
    """Return the blocks of rows with their labels and weights, in step."""
    if y is None:
        raise ValueError("y is missing: only files bring their labels along.")
    X, meta = rows_of(X)
    weights = None if sample_weight is None else _in_step("sample_weight", sample_weight, X)
    return Blocks(_delayed(X), _in_step("y", y, X), weights, meta)


def rows_of(X: Any) -> tuple[Any, Any]:
    """Return rows whose blocks have all columns, and an example without rows if there is one."""
    if is_frame(X):
        return X, X._meta
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have rows and columns, and it has {X.ndim} dimensions.")
        X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        known = sp.issparse(X._meta) or isinstance(X._meta, np.ndarray)
        empty = sp.csr_array if sp.issparse(X._meta) else np.empty
        return X, empty((0, X.shape[1])) if known and X.shape[1] == X.shape[1] else None
    if is_delayed(X):
        return X, None
    raise ValueError(
        f"X must be {_KINDS}, and it is {type(X).__name__}: use CBRanker for rows in memory, or "
        "dask.array.from_array."
    )


def is_frame(X: Any) -> bool:
    """Say whether this is a dask data frame."""
    return _is_collection(X) and hasattr(X, "map_partitions") and hasattr(X, "columns")


def _is_collection(X: Any) -> bool:
    """Say whether this has partitions; one delayed object claims to have any attribute."""
    return not isinstance(X, Delayed) and hasattr(X, "dask") and hasattr(X, "to_delayed")


def is_delayed(X: Any) -> bool:
    """Say whether this is a list of delayed blocks."""
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(x, Delayed) for x in X)


def _delayed(X: Any) -> list[Delayed]:
    if isinstance(X, da.Array):
        return X.to_delayed().ravel().tolist()  # type: ignore[no-any-return]
    return list(X.to_delayed()) if hasattr(X, "to_delayed") else list(X)


def _in_step(name: str, values: Any, X: Any) -> list[Delayed]:
    """Return labels or weights in blocks like those of X."""
    if isinstance(values, da.Array):
        if values.ndim != 1:
            raise ValueError(f"{name} must have one dimension, and it has {values.ndim}.")
        values = _rechunked(name, values, X)
    elif not (is_delayed(values) or _is_collection(values)):
        raise ValueError(
            f"{name} must be a dask array or series, or a list of delayed blocks, like X; it is "
            f"{type(values).__name__}."
        )
    blocks, wanted = _delayed(values), len(_delayed(X))
    if len(blocks) != wanted:
        raise ValueError(
            f"X has {wanted} partitions and {name} has {len(blocks)}: make them the same, by "
            "rechunk for arrays and repartition for frames."
        )
    return blocks


def _rechunked(name: str, values: Any, X: Any) -> Any:
    """Return an array in chunks like those of X, where the lengths of both are known."""
    if not isinstance(X, da.Array) or not _known(X.chunks[0]) or not _known(values.chunks[0]):
        return values
    if values.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and {name} has {values.shape[0]}.")
    return values.rechunk((X.chunks[0],))


def _known(lengths: Sequence[float]) -> bool:
    return not np.isnan(lengths).any()
