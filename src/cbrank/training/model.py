"""A ranker with all that files need: a scaler and the meaning of columns."""

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from cbrank import modelfile
from cbrank.rankers._base import Ranker
from cbrank.streams import Chunk, Columns, StreamScaler


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

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model file or a checkpoint.

        Parameters
        ----------
        path : path-like
            A file that `write` wrote.

        Returns
        -------
        Model
            The model.

        Raises
        ------
        ModelFileError
            If the file is no sound model file, or does not say what columns mean.
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
            If this is no sound model, or does not say what columns mean.
        """
        if "columns" not in facts:
            raise modelfile.ModelFileError(
                f"{path} was saved from Python and does not say what the columns of a file mean: "
                "use it there, by cbrank.load, or train a model by cbrank train."
            )
        try:
            columns = modelfile.restore("columns", arrays, facts)
            whole = modelfile.restore("model", arrays, facts)
        except modelfile.ModelFileError as error:
            raise modelfile.ModelFileError(
                f"{path} does not hold a sound model: {error}."
            ) from None
        steps = [step for _, step in whole.steps] if isinstance(whole, Pipeline) else [None, whole]
        match [*steps, columns]:
            case [None | StreamScaler() as scaler, Ranker() as ranker, Columns()]:
                if scaler is None or scaler.n_features_in_ == ranker.n_features_in_:
                    return cls(ranker, scaler, columns)
        raise modelfile.ModelFileError(f"{path} does not hold one scaler, one ranker and columns.")

    def write(self, path: str | os.PathLike[str], **facts: Any) -> None:
        """Write a model file, in place only when it is whole; `cbrank.load` opens it too.

        Parameters
        ----------
        path : path-like
            Where the file goes.
        **facts : object
            What else to keep in the file, as JSON.
        """
        whole = self.ranker
        if self.scaler is not None:
            whole = Pipeline([("scaler", self.scaler), ("ranker", self.ranker)])
        arrays, own = modelfile.gather(model=whole, columns=self.columns)
        modelfile.write(path, arrays, own | facts)

    def learn(self, chunk: Chunk) -> None:
        """Go on learning, features included that were not seen before.

        Parameters
        ----------
        chunk : Chunk
            Rows of a stream that reads with these columns.
        """
        assert chunk.y is not None
        X = chunk.X if self.scaler is None else self.scaler.learn_transform(chunk.X)
        begun = self.ranker.__sklearn_is_fitted__()
        if begun and X.shape[1] > self.ranker.n_features_in_:
            self.ranker._resize(X.shape[1])
        self.ranker.partial_fit(X, chunk.y, classes=[0, 1])

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
        if X.shape[1] > self.ranker.n_features_in_:  # of rows that were all left out
            X = X[:, : self.ranker.n_features_in_]
        return X if self.scaler is None else self.scaler.transform(X)
