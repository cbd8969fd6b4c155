"""A ranker with what it takes to learn from files: a scaler and the meaning of columns."""

import io
import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cbrank import modelfile
from cbrank.features.table import Table
from cbrank.modelfile.container import pack, refuse_unwritable, unpack
from cbrank.rankers.base import Ranker
from cbrank.rankers.cbr import CBRanker
from cbrank.rankers.scorer import Judged, Moment
from cbrank.streams import Chunk, Columns, StreamScaler, TableColumns
from cbrank.streams.labels import canonical

# Features of a full covariance that nobody asked for by name: 32 MiB, all of it read for each pair.
WIDEST_FULL = 2048


class TooWideError(ValueError):
    """Rows whose full covariance would be larger than anybody asked for."""


@dataclass
class Model:
    r"""A ranker, the scaler before it and the meaning of the columns that both are for.

    Parameters
    ----------
    ranker : ranker
        What learns and scores.
    scaler : StreamScaler or None
        What scales rows first, if anything does.
    columns : Columns
        What the columns of a file mean.
    again : bool, default=False
        Whether the rows to come were learned from before, in an earlier pass: then they test nothing.
    shuffled : bool, default=False
        Whether the rows to come were shuffled: then their order says nothing of time.

    Examples
    --------
    >>> import io, tempfile
    >>> from pathlib import Path
    >>> import cbrank
    >>> from cbrank.streams import Columns, StreamScaler, open_stream
    >>> from cbrank.training import Model
    >>> model = Model(cbrank.CBRanker(), StreamScaler("maxabs"), Columns(label="clicked"))
    >>> table = io.BytesIO(b"age,clicked\n31,no\n44,yes\n")
    >>> for chunk in open_stream(table, columns=model.columns):
    ...     model.learn(chunk)
    >>> path = Path(tempfile.mkdtemp(), "clicks.cbrank")
    >>> model.write(path)
    >>> opened = Model.open(path)
    >>> opened.columns.feature_names(), opened.columns.classes_
    (['age'], ['no', 'yes'])
    >>> [chunk] = open_stream(
    ...     io.BytesIO(b"age\n38\n"), columns=opened.columns, learn=False, labels=False
    ... )
    >>> opened.scores(chunk.X).shape
    (1,)
    >>> cbrank.load(path)
    Pipeline(steps=[('scaler', StreamScaler(kind='maxabs')), ('ranker', CBRanker())])
    """

    ranker: Ranker
    scaler: StreamScaler | None
    columns: Columns
    again: bool = False
    shuffled: bool = False

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model file or a checkpoint.

        Parameters
        ----------
        path : path-like
            A file that `write` wrote, or one that was saved from Python: its columns are those that
            its ranker learned from, by name or as svmlight text.

        Returns
        -------
        Model
            The model.

        Raises
        ------
        ModelFileError
            If the file is no sound model file.
        """
        return cls.restore(path, *modelfile.read(path))

    @classmethod
    def restore(
        cls, path: str | os.PathLike[str], arrays: dict[str, Any], facts: dict[str, Any]
    ) -> Self:
        """Make the model of a file that was read.

        Parameters
        ----------
        path : path-like
            The file, for messages.
        arrays, facts : dict
            What `cbrank.modelfile.read` returned.

        Returns
        -------
        Model
            The model.

        Raises
        ------
        ModelFileError
            If this is no sound model.
        """
        try:
            steps = modelfile.restore_steps("model", arrays, facts)
            if "columns" in facts:
                columns = modelfile.restore("columns", arrays, facts)
            else:
                columns = columns_of(steps[-1])
                vars(steps[-1]).pop("feature_names_in_", None)  # columns are matched by name
            match [*(steps if steps[1:] else [None, *steps]), columns]:
                case [None | StreamScaler() as scaler, Ranker() as ranker, Columns()]:
                    _fit_together(ranker, columns)
                    return cls(ranker, scaler, columns)
        except ValueError as error:
            raise modelfile.ModelFileError(
                f"{path} does not hold a sound model: {error}."
            ) from None
        raise modelfile.ModelFileError(f"{path} does not hold one scaler, one ranker and columns.")

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        arrays: dict[str, NDArray[Any]] | None = None,
        **facts: Any,
    ) -> None:
        """Write a model file, in place only when it is whole; `cbrank.load` opens it too.

        Parameters
        ----------
        path : path-like
            Where the file goes.
        arrays : dict of str to ndarray, optional
            What else to keep in the file, as arrays.
        **facts : object
            What else to keep in the file, as JSON.
        """
        learned, own = self._gathered()
        modelfile.write(path, learned | (arrays or {}), own | facts)

    def to_bytes(self) -> bytes:
        """Return what `write` would write.

        Returns
        -------
        bytes
            A model file.
        """
        file = io.BytesIO()
        pack(file, *self._gathered())
        return file.getvalue()

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> Self:
        """Open a model file that is in memory.

        Parameters
        ----------
        name : str
            What messages call it.
        data : bytes
            The file.

        Returns
        -------
        Model
            The model.

        Raises
        ------
        ModelFileError
            If it is no sound model file.
        """
        try:
            found = unpack(io.BytesIO(data), len(data))
        except modelfile.ModelFileError as error:
            raise modelfile.ModelFileError(f"{name} {error}") from None
        return cls.restore(name, *found)

    def refuse_unwritable(self, **facts: Any) -> None:
        """Raise the ValueError that `write` would, and write nothing.

        Parameters
        ----------
        **facts : object
            What else to keep in the file, as JSON.
        """
        arrays, own = self._gathered()
        refuse_unwritable(arrays, own | facts)

    def _gathered(self) -> tuple[dict[str, Any], dict[str, Any]]:
        self._make_room(self.columns.width_)  # for features that only skipped rows had
        whole: Any = self.ranker
        if self.scaler is not None:
            whole = [("scaler", self.scaler), ("ranker", self.ranker)]
        _fit_together(self.ranker, self.columns)
        return modelfile.gather(model=whole, columns=self.columns)

    def _make_room(self, width: int) -> None:
        """Widen ranker and scaler to rows of this width: features appear as a stream goes on."""
        if self.takes_tables():
            return
        if self.ranker.__sklearn_is_fitted__() and width > self.ranker.n_features_in_:
            self.ranker.resize(width)
            if self.scaler is not None:
                self.scaler.resize(width)

    def learn(self, chunk: Chunk) -> None:
        """Go on learning, features included that were not seen before.

        Parameters
        ----------
        chunk : Chunk
            Rows of a stream that reads with these columns.
        """
        assert chunk.y is not None
        self.learn_rows(chunk.X, chunk.y)

    def learn_rows(self, X: Any, y: NDArray[np.int64]) -> None:
        """Go on learning from rows as a chunk has them.

        Parameters
        ----------
        X : ndarray, csr_array or Table
            The rows.
        y : ndarray of int64
            1 for the positive label, 0 for the other.
        """
        begun = self.ranker.__sklearn_is_fitted__()
        if self.takes_tables():
            named = not begun or hasattr(self.ranker, "feature_names_in_")
            X = Table(self.columns.numeric_ or (), X.columns, named)  # mixing does not keep names
        elif self.scaler is not None:
            X = self.scaler.learn_transform(X)
        self._make_room(X.shape[1])
        if isinstance(self.columns, TableColumns) and self.columns.kinds_ and not begun:
            self.ranker.set_params(kinds=self.columns.kinds_)
        classes = self.ranker.classes_ if begun else np.array([0, 1])
        if self.shuffled and not begun and self.takes_tables() and 0 < y.sum() < y.size:
            self.ranker.fit(
                X, classes[y]
            )  # which looks at more rows, and grows trees that all of them test
        elif self.again:
            self.ranker.learn_again(X, classes[y])
        elif self.shuffled:
            self.ranker.learn_shuffled(X, classes[y], classes=classes)
        else:
            self.ranker.partial_fit(X, classes[y], classes=classes)

    def for_later(self) -> Self:
        """Let a model that was learned in order rank rows that come much later, as `fit` does.

        What follows a stream, such as an update, does without: it changes the ranker's parameter `horizon`
        where that is "auto".

        Returns
        -------
        Model
            The model itself.
        """
        self.ranker.rank_later_rows()
        _fit_together(self.ranker, self.columns)  # other columns may be needed
        return self

    def takes_tables(self) -> bool:
        """Say whether rows are tables as they come.

        Returns
        -------
        bool
            If not, they are numbers, dense or sparse.
        """
        return isinstance(self.columns, TableColumns)

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of rows, scaled by what was learned so far.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Rows of a stream that reads with these columns.

        Returns
        -------
        ndarray of shape (n_samples,)
            The higher, the likelier positive.
        """
        return self.ranker.decision_function(self.scaled(X))

    def judge(self, X: Any, *, with_std: bool = False, moment: Moment | None = None) -> Judged:
        """Return scores and calibrated probabilities of rows, scaled as for `scores`.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Rows of a stream that reads with these columns.
        with_std : bool, default=False
            Whether to return standard deviations too, of a ranker that knows them.
        moment : Moment, optional
            What the ranker's `moment` returned; by default that of now.

        Returns
        -------
        Judged
            All that the ranker says of them.
        """
        return self.ranker.judge(self.scaled(X), with_std=with_std, moment=moment)

    def scaled(self, X: Any) -> Any:
        """Return rows as the ranker takes them, nothing being learned from them.

        Parameters
        ----------
        X : ndarray or csr_array of shape (n_samples, n_features)
            Rows of a stream that reads with these columns.

        Returns
        -------
        ndarray or csr_array of shape (n_samples, n_features)
            The scaled rows.
        """
        if not self.takes_tables() and X.shape[1] > self.ranker.n_features_in_:
            # features that only skipped rows had
            X = X[:, : self.ranker.n_features_in_]
        return X if self.scaler is None else self.scaler.transform(X)


def _fit_together(ranker: Ranker, columns: Columns) -> None:
    """Refuse a ranker that cannot have learned from columns; tell these what it can spare."""
    if not columns.have_learned() or not columns.classes_:
        raise ValueError("its columns have learned from no rows, and its ranker has")
    if isinstance(columns, TableColumns) != ranker.TAKES_TABLES:
        raise ValueError("its ranker and its columns are not for the same kind of rows")
    labels = [canonical(label) for label in ranker.classes_.tolist()]
    if labels not in (["0", "1"], columns.classes_):
        raise ValueError("its ranker has other classes than its columns")
    if ranker.n_seen_[0] and len(columns.classes_) < 2:
        raise ValueError("its ranker has seen a label that its columns do not know")
    width = ranker.n_features_in_
    if columns.width_ != width:
        raise ValueError(f"its columns make {columns.width_} features, and its ranker has {width}")
    if isinstance(columns, TableColumns) and not ranker.waits:
        needs = zip(columns.numeric_ or (), ranker.encoder_.needs_.values(), strict=True)
        columns.spare = frozenset(name for name, needed in needs if not needed)


def columns_of(ranker: Any) -> Columns:
    """Return the columns by which files are read for a ranker that was saved from Python."""
    if not isinstance(ranker, Ranker):
        raise ValueError("it is not one ranker with at most one scaler")  # noqa: TRY004
    labels = [str(label) for label in ranker.classes_.tolist()]
    names = getattr(ranker, "feature_names_in_", None)
    kind = TableColumns if ranker.TAKES_TABLES else Columns
    return kind.of_ranker(names, ranker.n_features_in_, labels)


def refuse_too_wide(ranker: Ranker, width: int, widest: int | None) -> None:
    """Refuse rows whose full covariance would be larger than anybody asked for."""
    full = isinstance(ranker, CBRanker) and ranker.covariance == "full"
    if full and widest is not None and width > widest:
        each = " for each learner" if ranker.C == "auto" else ""
        raise TooWideError(
            f"These rows have {width:,} features so far, whose full covariance takes "
            f"{8 * width**2 / 2**20:,.0f} MiB{each}, all of it looked at for every pair: train "
            'with `covariance="diagonal"`, or with `widest=None` if a full one is meant.'
        )
