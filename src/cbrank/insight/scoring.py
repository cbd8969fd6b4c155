"""Scores of rows, and what else a model says of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cbrank.rankers import CBRanker
from cbrank.training import Model


def say(model: Model, X: Any, *, std: bool, proba: bool, label: bool) -> dict[str, list[Any]]:
    """Return what a model says of rows, by the name of each column.

    Parameters
    ----------
    model : Model
        The model.
    X : ndarray or csr_array of shape (n_samples, n_features)
        Rows of a stream that reads with the model's columns.
    std : bool
        Whether to say how sure each score is.
    proba : bool
        Whether to say how sure the model is that the score reaches its threshold.
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
    said: dict[str, NDArray[Any]] = {}
    if std or proba:
        refuse_without_confidence(model)
        scores, deviations = model.ranker.decision_function(model.scaled(X), return_std=True)  # type: ignore[call-arg]
        said |= {"score": scores, "std": deviations, "proba": _reaching(model, scores, deviations)}
    else:
        said["score"] = scores = model.scores(X)
    if label:
        reaches = (scores >= model.ranker.threshold_).astype(np.int64)
        said["label"] = np.array(model.columns.classes_, dtype=object)[reaches]
    for name, values in said.items():
        if name != "label" and not np.isfinite(values).all():
            raise ValueError(f"a row has no finite {name}: its values are too large.")
    wanted = {"score": True, "std": std, "proba": proba, "label": label}
    return {name: values.tolist() for name, values in said.items() if wanted[name]}


def knows_confidence(model: Model) -> bool:
    """Say whether a model knows how sure its scores are."""
    return isinstance(model.ranker, CBRanker)


def refuse_without_confidence(model: Model) -> None:
    """Raise an error if a model does not know how sure its scores are."""
    if not knows_confidence(model):
        raise ValueError(
            f"{type(model.ranker).__name__} does not know how sure its scores are: --std and "
            "--proba are for models of CBRanker."
        )


def _reaching(
    model: Model, scores: NDArray[np.float64], deviations: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the probability, over the Gaussian of the weights, that scores reach the threshold."""
    ahead = scores - model.ranker.threshold_
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(deviations > 0, ndtr(ahead / deviations), ahead >= 0)
