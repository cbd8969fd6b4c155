"""Scores of rows, and what else a model says of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cbrank.rankers.scorer import Judged, Moment
from cbrank.training.model import Model


def say(
    model: Model, X: Any, *, std: bool, confidence: bool, proba: bool, label: bool
) -> dict[str, list[Any]]:
    """Return what a model says of rows, by the name of each column.

    Parameters
    ----------
    model : Model
        The model.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows of a stream that reads with the model's columns.
    std : bool
        Whether to say how sure each score is.
    confidence : bool
        Whether to say how sure the model is that the score is above zero.
    proba : bool
        Whether to say with which probability each row is positive.
    label : bool
        Whether to say which label the score stands for.

    Returns
    -------
    dict of str to list
        ``score`` and the columns asked for.

    Raises
    ------
    ValueError
        If the model keeps no confidence, or a row's values are so large that it has no score.
    """
    judged = judge(model, X, with_std=std or confidence)
    scores, deviations = judged.scores, judged.std
    said: dict[str, NDArray[Any]] = {"score": scores}
    if std and deviations is not None:
        said["std"] = deviations
    if confidence and deviations is not None:
        said["confidence"] = _reaching(scores, deviations)
    if proba:
        said["proba"] = judged.probabilities
    if label:
        reaches = (scores > 0.0).astype(np.int64)
        said["label"] = np.array(both_labels(model), dtype=object)[reaches]
    return {name: values.tolist() for name, values in said.items()}


def judge(model: Model, X: Any, *, with_std: bool = False, moment: Moment | None = None) -> Judged:
    """Return scores, probabilities and, if asked for, deviations; refuse numbers too large."""
    if with_std:
        refuse_without_confidence(model)
    with np.errstate(over="ignore", invalid="ignore"):
        judged = model.judge(X, with_std=with_std, moment=moment)
    finite = np.isfinite(judged.scores).all()
    if not finite or (judged.std is not None and not np.isfinite(judged.std).all()):
        raise ValueError("a row has no finite score: its values are too large.")
    return judged


def both_labels(model: Model) -> list[str]:
    """Return the labels of a model that knows both, the positive one last."""
    labels = model.columns.classes_
    if len(labels) < 2:
        raise ValueError(
            f"the model has seen one label only, {labels[0]!r}: update it with rows of another."
        )
    return labels


def knows_confidence(model: Model) -> bool:
    """Say whether a model knows how sure its scores are."""
    return hasattr(model.ranker, "preference_proba")


def refuse_without_confidence(model: Model) -> None:
    """Raise an error if a model does not know how sure its scores are."""
    if not knows_confidence(model):
        raise ValueError(
            f"{type(model.ranker).__name__} does not know how sure its scores are: `std` and "
            "`confidence` are for models of CBRanker."
        )


def _reaching(scores: NDArray[np.float64], deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability, over the Gaussian of the weights, that scores are above zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(deviations > 0, ndtr(scores / deviations), scores > 0)
