"""The ROC curve and the weights, drawn as the study's figures are."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_curve

from cbrank.inspection.evaluation import Evaluation
from cbrank.inspection.weights import Weights
from cbrank.methods import METHODS
from cbrank.plotting import GRID, INK, WIDTH, dots, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CURVE, _OWN, _BEST = (METHODS[name].look for name in ("CBR_FIFO", "OAM_seq", "OPAUC"))
_MOST_POINTS = 2000
_LONGEST_NAME = 32


def draw_roc(
    path: Path, y: NDArray[np.int64], scores: NDArray[np.float64], found: Evaluation
) -> None:
    """Draw the ROC curve with the two operating points.

    Parameters
    ----------
    path : Path
        Where the picture goes, ``.svg`` or ``.png``.
    y, scores : ndarray of shape (n_samples,)
        Labels, 1 and 0, and scores.
    found : Evaluation
        The measures of these rows.
    """
    fpr, tpr, _ = roc_curve(y, scores)
    shown = np.unique(np.linspace(0, len(fpr) - 1, _MOST_POINTS).round().astype(int))

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GRID, linewidth=1)
        axes.plot(fpr[shown], tpr[shown], color=_CURVE.colour, linewidth=1.6, clip_on=False)
        for point, look, name in (
            (found.own, _OWN, "model's threshold"),
            (found.best, _BEST, "best threshold here"),
        ):
            dots(axes, look, [point.fpr], [point.tpr], f"{name}: accuracy {point.accuracy:.3f}")
        axes.set(
            title=f"AUC {found.auc.auc:.4f}, {found.interval()}",
            xlabel=f"false positive rate ({found.rows - found.positives} negatives)",
            ylabel=f"true positive rate ({found.positives} positives)",
            aspect="equal",
            xlim=(0, 1),
            ylim=(0, 1),
        )
        axes.legend(loc="lower right")

    write_figure(draw, path, (WIDTH, WIDTH))


def draw_weights(path: Path, names: Sequence[str], weights: Weights, title: str) -> None:
    """Draw weights with their deviations, the first on top.

    Parameters
    ----------
    path : Path
        Where the picture goes, ``.svg`` or ``.png``.
    names : sequence of str
        What the features are called.
    weights : Weights
        Their weights.
    title : str
        The title.
    """

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        put_weights(axes, names, weights)
        axes.set_title(_plain(title))

    write_figure(draw, path, (WIDTH, 1.2 + 0.22 * len(names)))


def put_weights(axes: "Axes", names: Sequence[str], weights: Weights) -> None:
    """Draw weights with their deviations on axes, the first on top."""
    places = np.arange(len(names))
    axes.axvline(0, color=INK, linewidth=0.6)
    if weights.deviations is not None:
        axes.hlines(
            places,
            weights.weights - weights.deviations,
            weights.weights + weights.deviations,
            color=_CURVE.colour,
            linewidth=1.2,
        )
    dots(axes, _CURVE, weights.weights, places, "")
    axes.set_yticks(places, [_short(name) for name in names])
    axes.set(
        xlabel="weight" if weights.deviations is None else "weight ± its standard deviation",
        ylim=(len(names) - 0.5, -0.5),
    )
    axes.grid(visible=True, axis="x")
    axes.tick_params(axis="y", length=0)


def _short(name: str) -> str:
    return _plain(name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…")


def _plain(text: str) -> str:
    """Return a text in which matplotlib sees no formula."""
    return text.replace("$", r"\$")
