"""A ranker on a Dask cluster."""

import os
import warnings
from collections.abc import Sequence
from copy import copy, deepcopy
from numbers import Integral
from typing import Any, ClassVar, Self

import dask
import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from cbrank.dask import blocks, cluster, tasks
from cbrank.dask.blocks import Blocks
from cbrank.dask.files import Files
from cbrank.dask.tasks import Partition, Seed
from cbrank.rankers.additive import AdditiveRanker
from cbrank.rankers.cbr import CBRanker
from cbrank.rankers.cbr_cv import CBRankerCV
from cbrank.streams import Columns, StreamScaler

# The model is part of the graph of tasks; that it may be large is no reason for Dask to warn.
_ANY_SIZE = {"distributed.admin.large-graph-warning-threshold": "1 PiB"}

Partitions = Blocks | Files


def _of_ranker(name: str) -> Any:
    """Return a property that is an attribute of the fitted ranker."""

    def get(self: "DaskRanker") -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return getattr(self.ranker_, name)

    return property(get, doc=f"The `{name}` of `ranker_`.")


class DaskRanker(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A ranker that learns on a Dask cluster.

    Every partition is learned from by a copy of the ranker, on the worker that holds it, and these
    are merged in a tree by `cbrank.merge`, also on the workers. Only the merged ranker comes back.
    It depends on the partitions and their order, but neither on the number of workers nor on
    workers that are lost meanwhile.

    Parameters
    ----------
    ranker : CBRanker
        The ranker to learn with; it stays as it is, and a copy learns.
    rounds : int, default=1
        How often to learn from all partitions: each round goes on from the merged ranker of the
        one before. Partitions are computed anew in each round, unless they are persisted.
    client : distributed.Client or None, default=None
        The cluster; by default that of the client made last.
    progress : bool, default=True
        Whether to show a progress bar, where standard error is a terminal.

    Attributes
    ----------
    ranker_ : CBRanker
        The merged ranker. Use `to_local` for a copy of your own.
    columns_ : Columns
        What the columns of the files mean; only after learning from files.
    coef_ : ndarray of shape (1, n_features)
        This and all that follow are those of `ranker_`: the mean of the weights.
    covariance_ : ndarray of shape (n_features, n_features) or (n_features,)
        Covariance of the weights, or their variances where it is diagonal.
    C_ : float
        The C that all partitions were learned with; of the learner that weighs most if the C of `ranker`
        is "auto".
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive class.
    intercept_ : ndarray of shape (1,)
        What is added to scores so that zero is the operating point.
    progressive_auc_ : float
        AUC of rows by the weights of their partition's ranker before it learned from them, in the
        first round.
    progressive_auc_interval_ : tuple of float
        Ends of its 95% confidence interval.
    progressive_auc_history_ : ndarray
        AUC of each block of rows, one partition after the other: `rows`, `auc` and `weight`.
    recent_auc_ : float
        The same as `progressive_auc_` over about the last thousand rows, those of the last partition
        being the latest.
    recent_auc_interval_ : tuple of float
        Ends of its 95% confidence interval.
    n_seen_ : ndarray of shape (2,)
        Rows learned from, of the negative and of the positive class, in all rounds.
    n_pairs_ : int
        Pairs met.
    n_updates_ : int
        Pairs that moved the model.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where `X` is a data frame with string columns.

    See Also
    --------
    cbrank.CBRanker : The ranker of each partition, and what `to_local` returns.
    cbrank.merge : How the rankers of all partitions become one.
    cbrank.dask.Files : Files to learn from.

    Notes
    -----
    Parameters of `ranker` mean on a cluster what they mean elsewhere, each partition being a stream
    of its own, but for these:

    * C "auto": each learner learns from all partitions, and is merged with those of the same C; the one
      that forgets is left out. Where columns are scaled, each partition does it by its own first rows,
      and merging brings all to the units of the first.
    * `AdditiveRanker`: one copy learns the first rows of up to 16 partitions, some 8,000 in all, and
      so decides what columns are; the other rows of all partitions go on from it. Frames, arrays and
      files (by `TableColumns`) may have words and gaps.
    * `shuffle`: `fit` and `partial_fit` take the rows of each partition in random order; those of a
      file are shuffled through temporary files on the worker.
    * `n_passes`: passes over a partition before it is merged, whereas `rounds` learns from all
      partitions again after they were. ``cbrank train --scheduler ... --passes N`` is ``rounds=N``.
    * `class_weight` "balanced": goes by the running counts of each partition.
    * `forgetting`: within each partition, for a single round of `fit`. Rankers that have forgotten
      part of what they went on from cannot be merged. With "auto" nothing is forgotten, for the learner
      that forgets is left out.
    * `random_state`: each partition has a generator of its own, which depends on this seed, on the
      partition's number and on the rows learned from before.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from cbrank import CBRanker
    >>> from cbrank.dask import DaskRanker
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     rows, labels = da.from_array(X[:800], chunks=(200, -1)), da.from_array(y[:800])
    ...     ranker = DaskRanker(CBRanker(C=0.1, random_state=0), client=client).fit(rows, labels)
    >>> ranker.n_seen_
    array([561, 239])
    >>> round(ranker.to_local().score(X[800:], y[800:]), 1)
    0.8
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ranker": [object],  # `_check_ranker` says more
        "rounds": [Interval(Integral, 1, None, closed="left")],
        "client": [Client, None],
        "progress": ["boolean"],
    }

    ranker_: CBRanker
    columns_: Columns
    _scaler: StreamScaler  # of the files learned from

    coef_ = _of_ranker("coef_")
    covariance_ = _of_ranker("covariance_")
    C_ = _of_ranker("C_")
    classes_ = _of_ranker("classes_")
    intercept_ = _of_ranker("intercept_")
    progressive_auc_ = _of_ranker("progressive_auc_")
    progressive_auc_interval_ = _of_ranker("progressive_auc_interval_")
    progressive_auc_history_ = _of_ranker("progressive_auc_history_")
    recent_auc_ = _of_ranker("recent_auc_")
    recent_auc_interval_ = _of_ranker("recent_auc_interval_")
    n_seen_ = _of_ranker("n_seen_")
    n_pairs_ = _of_ranker("n_pairs_")
    n_updates_ = _of_ranker("n_updates_")
    n_features_in_ = _of_ranker("n_features_in_")
    feature_names_in_ = _of_ranker("feature_names_in_")

    def __init__(
        self,
        ranker: CBRanker,
        rounds: int = 1,
        client: Client | None = None,
        *,
        progress: bool = True,
    ) -> None:
        self.ranker = ranker
        self.rounds = rounds
        self.client = client
        self.progress = progress

    # Learning ------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn anew from all partitions, `rounds` times.

        Parameters
        ----------
        X : dask array, dask data frame, list of delayed blocks, list of paths or Files
            Rows. Partitions may be empty, of one class, and of any length. Delayed blocks are CSR
            matrices, arrays or data frames.
        y : dask array, dask series or list of delayed blocks, default=None
            Two labels; the greater is the positive class. Files bring their labels along.
        sample_weight : dask array, dask series or list of delayed blocks, default=None
            Factors of C. A row of weight 0 is as good as absent.

        Returns
        -------
        DaskRanker
            The ranker itself.
        """
        self._check_ranker()
        return self._learn(_partitions(X, y, sample_weight), None, None)

    def partial_fit(
        self, X: Any, y: Any = None, classes: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Go on learning from more partitions, `rounds` times, from the ranker as it is.

        Parameters
        ----------
        X : dask array, dask data frame, list of delayed blocks, list of paths or Files
            Rows; files are read as those before were.
        y : dask array, dask series or list of delayed blocks, default=None
            Labels.
        classes : array-like of shape (2,), default=None
            The two labels; needed at the first call unless `y` has both.
        sample_weight : dask array, dask series or list of delayed blocks, default=None
            Factors of C. A row of weight 0 is as good as absent.

        Returns
        -------
        DaskRanker
            The ranker itself.
        """
        self._check_ranker()
        partitions = _partitions(X, y, sample_weight)
        if not self.__sklearn_is_fitted__():
            return self._learn(partitions, None, classes)
        if isinstance(partitions, Files):
            partitions.go_on(self._known_columns(), self._scaler)
        prior = self.to_local().set_params(**self.ranker.get_params(deep=False))
        prior.check_parameters(classes)
        return self._learn(partitions, prior, None)

    def _learn(
        self, partitions: Partitions, prior: CBRanker | None, classes: ArrayLike | None
    ) -> Self:
        forgets = self.ranker.forgetting not in {"auto", 0.0}
        if forgets and (prior is not None or self.rounds > 1):
            raise ValueError(
                f"forgetting is {self.ranker.forgetting}, and rankers that have forgotten part of "
                "what they went on from cannot be merged: use rounds=1 and fit, or go on with "
                "to_local()."
            )
        client = cluster.client_or_default(self.client)
        known: dict[int, int] = {}
        number = check_random_state(self.ranker.random_state).randint(2**31 - 1)
        seed = Seed(int(number), self.ranker.shuffle)
        with cluster.messages_logged(client), dask.config.set(_ANY_SIZE):
            if prior is None and isinstance(self.ranker, AdditiveRanker):
                begun, known = self._start_table(client, partitions, seed, classes)
                model = delayed(begun, traverse=False)
            elif prior is None:
                ranker = clone(self.ranker)
                schema = partitions.schema(client, ranker, classes)
                model = delayed(tasks.start)(ranker, schema)
            else:
                if isinstance(partitions, Files):
                    partitions.look(client)
                model = delayed(prior, traverse=False)
            for round_ in range(1, self.rounds + 1):
                label = f"Round {round_} of {self.rounds}" if self.rounds > 1 else "Partitions"
                parts, again = partitions.parts(), round_ > 1
                model = self._round(client, label, parts, model, seed, known, again=again)
            merged = model.result()
        self._keep(merged, partitions, anew=prior is None)
        return self

    def _check_ranker(self) -> None:
        """Refuse a ranker that cannot learn apart, and bad parameters, before all computing."""
        self._validate_params()
        if isinstance(self.ranker, CBRankerCV):
            raise ValueError(  # noqa: TRY004
                "ranker is a CBRankerCV, which needs all rows at once to choose C: pass "
                'CBRanker(C="auto"), or a CBRanker with the C_ that it chose.'
            )
        if not hasattr(self.ranker, "together"):
            raise ValueError(
                f"ranker is {self.ranker!r}: only a CBRanker, whose model is a Gaussian, can be "
                "merged."
            )
        clone(self.ranker).check_parameters()

    def _start_table(
        self, client: Client, partitions: Partitions, seed: Seed, classes: ArrayLike | None
    ) -> tuple[Any, dict[int, int]]:
        """Return the ranker that decided what columns are, and how many rows of partitions it took."""
        fresh = clone(self.ranker)
        labels = partitions.schema(client, fresh, classes).classes
        every: Sequence[Partition] = partitions.parts()
        for parts in (tasks.evenly_spaced(every), every):
            heads = [delayed(tasks.head_of_table)(part, seed, len(parts)) for part in parts]
            numbers = [part.number for part in parts]
            first = delayed(tasks.begun)(heads, fresh, labels, numbers, seed)
            ranker = client.compute(first).result()
            if ranker.__sklearn_is_fitted__() and not ranker.waits:
                return ranker, dict.fromkeys(numbers, tasks.share_of(len(parts)))
        raise ValueError(
            "The partitions have too few rows, or rows of weight above zero, to decide what columns "
            "are, which takes 256: learn from them without a cluster."
        )

    def _round(
        self,
        client: Client,
        label: str,
        parts: Sequence[Partition],
        prior: Any,
        seed: Seed,
        known: dict[int, int],
        *,
        again: bool,
    ) -> Any:
        """Learn from all partitions; return the merged ranker, which stays on the cluster."""
        learned = [
            delayed(tasks.learn)(part, prior, seed, again, known.get(part.number, 0))
            for part in parts
        ]
        merged = tasks.tree_reduced(learned, lambda some: delayed(tasks.merged)(some, prior))
        model = delayed(tasks.end_of_round)(merged, prior, len(parts))
        shown = self.progress and cluster.at_terminal()
        rows = [delayed(tasks.rows_since)(prior, ranker) for ranker in learned] if shown else []
        future, *counts = client.compute([model, *rows])
        if shown:
            cluster.show_progress(client, label, counts)
        if future.exception() is not None:
            future.result()
        return future

    def _keep(self, merged: CBRanker, partitions: Partitions, anew: bool) -> None:
        if not merged.n_seen_.any():
            raise ValueError("All sample weights are zero: there is no row to learn from.")
        if anew:
            self.__dict__.pop("columns_", None)
        self.ranker_ = merged
        if isinstance(partitions, Files):
            self.columns_, self._scaler = deepcopy(partitions.columns), partitions.scaler
            self.columns_.width_ = merged.n_features_in_
        if merged.n_pairs_ == 0:
            warnings.warn(
                "No partition had rows of both classes, so no pair was learned from: mix the rows "
                "before they are partitioned, or go on with `rounds=2`.",
                stacklevel=4,
            )

    def _known_columns(self) -> Columns:
        if not hasattr(self, "columns_"):
            raise ValueError(
                "This ranker did not learn from files, so it does not know what their columns mean."
            )
        return deepcopy(self.columns_)

    # Using what was learned ----------------------------------------------------------------------

    def to_local(self) -> CBRanker:
        """Return the ranker without the cluster: it scores, goes on learning and can be saved.

        Returns
        -------
        CBRanker
            A copy of `ranker_`.
        """
        check_is_fitted(self)
        return deepcopy(self.ranker_)

    def decision_function(self, X: Any) -> Any:
        """Return the ranking score of each row, computed when it is asked for.

        Parameters
        ----------
        X : dask array, dask data frame or list of delayed blocks
            Rows; those in memory are scored at once. Others are taken for rows that come much later than
            those learned in order, if `horizon` is "auto", so that partitions of all sizes are alike.

        Returns
        -------
        dask array of shape (n_samples,) or dask series
            The scores, in the partitions of `X`: the higher, the likelier positive.
        """
        check_is_fitted(self)
        return blocks.lazily(self.ranker_, "decision_function", X, np.dtype(np.float64))

    def predict(self, X: Any) -> Any:
        """Predict the positive class where the score is above zero, when it is asked for.

        Parameters
        ----------
        X : dask array, dask data frame or list of delayed blocks
            Rows; those in memory are predicted at once.

        Returns
        -------
        dask array of shape (n_samples,) or dask series
            One of the two labels for each row, in the partitions of `X`.
        """
        check_is_fitted(self)
        return blocks.lazily(self.ranker_, "predict", X, self.classes_.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the area under the ROC curve; one worker holds all scores meanwhile.

        Parameters
        ----------
        X : dask array, dask data frame or list of delayed blocks
            Rows; those in memory are scored at once.
        y : dask array, dask series or list of delayed blocks
            Their labels.
        sample_weight : dask array, dask series or list of delayed blocks, default=None
            Weights of the rows.

        Returns
        -------
        float
            The share of (positive, negative) pairs ranked right, ties counted half.
        """
        check_is_fitted(self)
        if not blocks.is_lazy(X):
            return self.ranker_.score(X, y, sample_weight)
        auc = blocks.auc(self.ranker_, blocks.blocks_of(X, y, sample_weight))
        with dask.config.set(_ANY_SIZE):
            return float(cluster.client_or_default(self.client).compute(auc).result())

    # As scikit-learn wants it --------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "ranker_" in vars(self)

    def __sklearn_clone__(self) -> Self:
        """Return a clone with the same client, of which there can be no copy."""
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        copies = {name: clone(value, safe=False) for name, value in parameters.items()}
        return type(self)(client=client, **copies)

    def __getstate__(self) -> dict[str, Any]:
        """Return all but the client, which belongs to this process."""
        return {**super().__getstate__(), "client": None}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def _partitions(X: Any, y: Any, sample_weight: Any) -> Partitions:
    """Return the partitions of what callers pass in."""
    are_paths = isinstance(X, str | os.PathLike) or (
        isinstance(X, list | tuple)
        and len(X) > 0
        and all(isinstance(path, str | os.PathLike) for path in X)
    )
    if not are_paths and not isinstance(X, Files):
        return blocks.blocks_of(X, y, sample_weight)
    if y is not None or sample_weight is not None:
        raise ValueError("Files bring their labels along and have no weights: leave y out.")
    return Files(X) if are_paths else copy(X)
