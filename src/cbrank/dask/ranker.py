"""Confidence-weighted bipartite ranking on a Dask cluster."""

import os
import warnings
from collections.abc import Sequence
from copy import copy, deepcopy
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import dask
import numpy as np
from dask import delayed
from dask.delayed import Delayed
from distributed import Client
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from cbrank.dask import choosing, scoring
from cbrank.dask.blocks import Blocks, blocks_of
from cbrank.dask.compiling import hearing
from cbrank.dask.connecting import client_or_default
from cbrank.dask.files import Files, Scale
from cbrank.dask.following import can_be_shown, follow
from cbrank.dask.learning import Partition, Seed, learn, rows_since, start
from cbrank.dask.tree import calmed, merged, reduced
from cbrank.rankers import CBRanker
from cbrank.streams import Columns

_ANY_SIZE = {"distributed.admin.large-graph-warning-threshold": "1 PiB"}  # a model is sent as it is

Partitions = Blocks | Files


class DaskCBRanker(ClassifierMixin, BaseEstimator):
    """Confidence-weighted bipartite ranking on a Dask cluster.

    Every partition is learned from by a `CBRanker` of its own on the worker that holds it, and
    these are merged in a tree by `cbrank.merge`, also on the workers. Only the merged ranker comes
    back. It depends on the partitions and their order, not on the number of workers, nor on
    workers that are lost meanwhile.

    Parameters
    ----------
    C : float or "auto", default="auto"
        Largest step of a pair: how far one pair may move the mean. With "auto", a `CBRanker` with
        C "auto" takes the first rows of some partitions, and its C is the C of all partitions.
    eta : float, default=0.7
        Confidence wanted of each pair, between 0.5 and 1.
    buffer_size : int, default=50
        Rows kept of each class.
    policy : {"fifo", "reservoir"}, default="fifo"
        Whether the buffer holds the latest rows or a uniform sample of all.
    covariance : {"full", "diagonal"}, default="full"
        Full covariance takes d x d numbers; the diagonal suits high dimensions and sparse rows.
    diagonal_update : {"paper", "precision", "drop"}, default="paper"
        Form of the diagonal update: the paper's Proposition 2 to the letter, its KL-consistent
        repair, or the diagonal of the full update.
    average : bool, default=True
        Whether `coef_` is the polynomial-decay average of the means rather than the last mean.
    forgetting : float, default=0.0
        Share of the evidence forgotten per row of a partition. Only for one round: what was partly
        forgotten cannot be gone on from by several.
    class_weight : {"balanced"}, dict or None, default=None
        Factors of C for rows of each class, and costs of errors for `threshold_`; "balanced" goes
        by the running counts of each partition.
    shuffle : bool, default=True
        Whether `fit` takes the rows of a partition in random order; those of a file are shuffled
        chunk by chunk.
    n_passes : int, default=1
        Passes over a partition before it is merged.
    random_state : int, RandomState instance or None, default=None
        Source of the shuffling and of the reservoir.
    rounds : int, default=1
        How often to learn from all partitions: each round goes on from the merged ranker of the
        one before. Partitions are computed anew in each round, unless they are persisted.
    client : distributed.Client or None, default=None
        The cluster; by default that of the client made last.
    progress : bool, default=True
        Whether to show a progress bar, where standard error is a terminal.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        Mean of the weights, averaged over the stream if `average`.
    covariance_ : ndarray of shape (n_features, n_features) or (n_features,)
        Covariance of the weights, or their variances where it is diagonal.
    C_ : float
        The C that the ranker learned with.
    Cs_ : ndarray of shape (9,)
        Every C tried; only if `C` is "auto".
    progressive_auc_path_ : ndarray of shape (9,)
        Progressive AUC of the learner with each of `Cs_`; only if `C` is "auto".
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive class.
    columns_ : Columns
        What the columns of the files mean; only after learning from files.
    threshold_ : float
        Score from which rows are predicted positive: the optimal operating point of the buffered
        rows at the class shares of all rows.
    progressive_auc_ : float
        Share of the pairs (new row, buffered row of the other class) that the mean ranked right
        before the row was learned from, ties counted half.
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
    cbrank.dask.Files : Files to learn from.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from cbrank.dask import DaskCBRanker
    >>> from cbrank.datasets import load
    >>> X, y, facts = load("german")
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     rows, labels = da.from_array(X[:800], chunks=(200, -1)), da.from_array(y[:800])
    ...     ranker = DaskCBRanker(C=0.1, random_state=0, client=client).fit(rows, labels)
    >>> ranker.n_seen_
    array([561, 239])
    >>> round(ranker.to_local().score(X[800:], y[800:]), 1)
    0.8
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CBRanker._parameter_constraints,
        "rounds": [Interval(Integral, 1, None, closed="left")],
        "client": [Client, None],
        "progress": ["boolean"],
    }

    _local: CBRanker
    columns_: Columns
    _scale: Scale

    def __init__(
        self,
        C: float | Literal["auto"] = "auto",
        *,
        eta: float = 0.7,
        buffer_size: int = 50,
        policy: Literal["fifo", "reservoir"] = "fifo",
        covariance: Literal["full", "diagonal"] = "full",
        diagonal_update: Literal["paper", "precision", "drop"] = "paper",
        average: bool = True,
        forgetting: float = 0.0,
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        shuffle: bool = True,
        n_passes: int = 1,
        random_state: Any = None,
        rounds: int = 1,
        client: Client | None = None,
        progress: bool = True,
    ) -> None:
        self.C = C
        self.eta = eta
        self.buffer_size = buffer_size
        self.policy = policy
        self.covariance = covariance
        self.diagonal_update = diagonal_update
        self.average = average
        self.forgetting = forgetting
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_passes = n_passes
        self.random_state = random_state
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
        DaskCBRanker
            The ranker itself.
        """
        return self._learn(_partitions(X, y, sample_weight), None, None)

    def partial_fit(
        self, X: Any, y: Any = None, classes: ArrayLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Go on learning from more partitions, from the ranker as it is.

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
        DaskCBRanker
            The ranker itself.
        """
        partitions = _partitions(X, y, sample_weight)
        if not self.__sklearn_is_fitted__():
            return self._learn(partitions, None, classes)
        if isinstance(partitions, Files):
            partitions.columns, partitions.scale = self._known_columns(), self._scale
        prior = self.to_local().set_params(**self._local_parameters(self._local.C_))
        prior._check_unchanged(classes)
        return self._learn(partitions, prior, None)

    def _learn(
        self, partitions: Partitions, prior: CBRanker | None, classes: ArrayLike | None
    ) -> Self:
        self._validate_params()
        if self.forgetting and (prior is not None or self.rounds > 1):
            raise ValueError(
                f"forgetting is {self.forgetting}, and rankers that have partly forgotten what they "
                "went on from cannot be merged: use rounds=1 and fit, or go on with to_local()."
            )
        client, race = client_or_default(self.client), None
        seed = Seed(int(check_random_state(self.random_state).randint(2**31 - 1)), self.shuffle)
        with hearing(client), dask.config.set(_ANY_SIZE):
            if prior is None:
                model, race = self._start(client, partitions, seed, classes)
            else:
                model = delayed(prior, traverse=False)
            for number in range(1, self.rounds + 1):
                label = f"Round {number} of {self.rounds}" if self.rounds > 1 else "Partitions"
                model = self._round(client, label, partitions.parts(), model, seed)
            local = model.result()
        self._keep(local, race, partitions, anew=prior is None)
        return self

    def _start(
        self, client: Client, partitions: Partitions, seed: Seed, classes: ArrayLike | None
    ) -> tuple[Delayed, CBRanker | None]:
        """Return the ranker before its first row, and the race if C had to be chosen."""
        ranker = CBRanker(**self._local_parameters(1.0))
        form = partitions.form(client, ranker, classes)
        if self.C != "auto":
            return delayed(start)(ranker, form), None
        parts = choosing.some(partitions.parts())
        prior = delayed(start)(clone(ranker).set_params(C="auto"), form)
        heads = [delayed(choosing.first_rows)(part, prior, seed, len(parts)) for part in parts]
        race = client.compute(delayed(choosing.race)(heads, prior)).result()
        ranker.set_params(C=race.C_)
        return delayed(start)(ranker, form), race

    def _round(
        self, client: Client, label: str, parts: Sequence[Partition], prior: Any, seed: Seed
    ) -> Any:
        """Learn from all partitions; return the merged ranker, which stays on the cluster."""
        learned = [delayed(learn)(part, prior, seed) for part in parts]
        whole = reduced(learned, lambda some: delayed(merged)(some, prior))
        model = delayed(calmed)(whole, prior, len(parts))
        shown = self.progress and can_be_shown()
        rows = [delayed(rows_since)(prior, ranker) for ranker in learned] if shown else []
        future, *counts = client.compute([model, *rows])
        if shown:
            follow(client, label, counts)
        if future.exception() is not None:
            future.result()
        return future

    def _keep(
        self, local: CBRanker, race: CBRanker | None, partitions: Partitions, anew: bool
    ) -> None:
        if not local.n_seen_.any():
            raise ValueError("All sample weights are zero: there is no row to learn from.")
        if anew:
            for name in ("Cs_", "progressive_auc_path_", "columns_"):
                self.__dict__.pop(name, None)
        self._local = local
        if race is not None:
            self.Cs_, self.progressive_auc_path_ = race.Cs_, race.progressive_auc_path_
        if isinstance(partitions, Files):
            self.columns_, self._scale = deepcopy(partitions.columns), partitions.scale
            self.columns_.width_ = local.n_features_in_
        if local.n_pairs_ == 0:
            warnings.warn(
                "No partition had rows of both classes, so no pair was learned from: mix the rows "
                "before they are partitioned, or go on with rounds=2.",
                stacklevel=4,
            )

    def _local_parameters(self, chosen: float) -> dict[str, Any]:
        """Return the parameters of CBRanker, with the C chosen if it was to be."""
        own = self.get_params(deep=False)
        own |= {"C": chosen} if self.C == "auto" else {}
        return {name: own[name] for name in CBRanker._get_param_names()}

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
            A copy, with the C chosen if it was "auto".
        """
        check_is_fitted(self)
        return deepcopy(self._local)

    def decision_function(self, X: Any) -> Any:
        """Return the ranking score of each row, computed when it is asked for.

        Parameters
        ----------
        X : dask array, dask data frame or list of delayed blocks
            Rows; those in memory are scored at once.

        Returns
        -------
        dask array of shape (n_samples,) or dask series
            The scores, in the partitions of `X`: the higher, the likelier positive.
        """
        check_is_fitted(self)
        return scoring.lazily(self._local, "decision_function", X, np.dtype(np.float64))

    def predict(self, X: Any) -> Any:
        """Predict the positive class where the score reaches `threshold_`, when it is asked for.

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
        return scoring.lazily(self._local, "predict", X, self.classes_.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the area under the ROC curve; a worker holds all scores meanwhile.

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
        if not scoring.is_lazy(X):
            return self._local.score(X, y, sample_weight)
        auc = scoring.auc(self._local, blocks_of(X, y, sample_weight))
        with dask.config.set(_ANY_SIZE):
            return float(client_or_default(self.client).compute(auc).result())

    # As scikit-learn wants it --------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_local" in vars(self)

    def __getattr__(self, name: str) -> Any:
        """Return what the merged ranker has: `coef_`, `classes_` and so on."""
        if name.endswith("_") and not name.startswith("_") and "_local" in vars(self):
            return getattr(self._local, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_clone__(self) -> Self:
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
    named = isinstance(X, str | os.PathLike) or (
        isinstance(X, list | tuple)
        and len(X) > 0
        and all(isinstance(path, str | os.PathLike) for path in X)
    )
    if not named and not isinstance(X, Files):
        return blocks_of(X, y, sample_weight)
    if y is not None or sample_weight is not None:
        raise ValueError("Files bring their labels along and have no weights: leave y out.")
    return Files(X) if named else copy(X)
