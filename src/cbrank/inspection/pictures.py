"""Curves of an evaluation and the weights of a model, drawn as the study's figures are."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cbrank.inspection.evaluation import Evaluation
from cbrank.inspection.ranked import Decision
from cbrank.inspection.weights import Weights
from cbrank.methods import METHODS, Look
from cbrank.plotting import GRID, INK, WIDTH, dots, log_axis, log_y_axis, write_figure
from cbrank.training.ages import Age

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CURVE, _OWN, _BEST = (METHODS[name].look for name in ("CBR_FIFO", "OAM_seq", "OPAUC"))
LOOKS = {"curve": _CURVE, "own": _OWN, "best": _BEST}
SQUARE = (WIDTH, WIDTH)
_MOST_POINTS = 2000
_LONGEST_NAME = 32
_NORMAL_95 = 1.959963984540054  # standard errors on each side of a 95% interval
_RARE = 0.1  # where fewer are positive, most of a linear scale is empty


def roc(found: Evaluation) -> "Callable[[Figure], None]":
    """Return what draws the ROC curve."""
    ranked = found.ranked
    tpr = ranked.positives / found.positives
    fpr = (ranked.rows - ranked.positives) / (found.rows - found.positives)
    shown = _along(tpr + fpr)

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GRID, linewidth=1)
        axes.plot(fpr[shown], tpr[shown], color=_CURVE.colour, linewidth=1.6, clip_on=False)
        for point, look, name in _points(found):
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

    return draw


def pr(found: Evaluation) -> "Callable[[Figure], None]":
    """Return what draws the precision-recall curve."""
    ranked = found.ranked
    steps = np.flatnonzero(np.diff(ranked.positives)) + 1
    recall = ranked.positives[steps] / found.positives
    precision = ranked.positives[steps] / ranked.rows[steps]
    shown = _along(recall)
    x = np.concatenate([[0.0], recall[shown]])
    y = precision[shown][np.concatenate([[0], np.arange(len(shown))])]

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.axhline(found.share, color=GRID, linewidth=1)
        axes.step(x, y, where="pre", color=_CURVE.colour, linewidth=1.6, clip_on=False)
        for point, look, name in _points(found):
            if point.rows:
                label = f"{name}: precision {point.precision:.3f}"
                dots(axes, look, [point.tpr], [point.precision], label)
        axes.set(
            title=f"Average precision {found.average_precision:.4f}, by chance {found.share:.4f}",
            xlabel=f"recall ({found.positives} positives)",
            ylabel="precision",
            aspect="equal",
            xlim=(0, 1),
            ylim=(0, 1),
        )
        if found.own.rows or found.best.rows:
            axes.legend(loc="upper right" if found.average_precision < 0.5 else "lower left")

    return draw


def calibration(found: Evaluation) -> "Callable[[Figure], None]":
    """Return what draws shares of positives by mean probabilities."""
    parts = found.calibration.parts
    given = np.array([part.probability for part in parts])
    shares = np.array([part.share for part in parts])
    low, high = np.array([part.interval() for part in parts]).T
    logarithmic = found.share < _RARE
    lowest = shares[shares > 0].min()
    # Far below what shares can be told from none, probabilities stand at the edge.
    least = 0.5 * min(lowest, max(given.min(), 0.1 * lowest)) if logarithmic else 0.0
    most = min(1.0, 1.05 * max(given.max(), high.max()))

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.plot([least, most], [least, most], color=GRID, linewidth=1)
        x = np.maximum(given, least)
        axes.vlines(x, np.maximum(low, least), high, color=_CURVE.colour, linewidth=1.2)
        seen = shares > 0 if logarithmic else np.ones(len(parts), bool)
        dots(axes, _CURVE, x[seen], shares[seen], "")
        names = "mean probability of a part", "share of positives in it, 95% interval"
        axes.set(xlim=(least, most), ylim=(least, most), xlabel=names[0], ylabel=names[1])
        if logarithmic:
            log_axis(axes, names[0])
            log_y_axis(axes, names[1])
        axes.set(
            title=f"Calibration error {found.calibration.error:.4f}, log loss "
            f"{found.calibration.log_loss:.4f}",
            aspect="equal",
        )

    return draw


def ages(found: Sequence[Age]) -> "Callable[[Figure], None]":
    """Return what draws the AUC of rows by how much later than the last row learned they come."""
    rows, aucs, errors = np.array(found).T

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        reach = _NORMAL_95 * errors
        axes.vlines(rows, aucs - reach, aucs + reach, color=_CURVE.colour, linewidth=1.2)
        axes.plot(rows, aucs, color=_CURVE.colour, linewidth=1.6)
        dots(axes, _CURVE, rows, aucs, "")
        log_axis(axes, "rows between the last row learned and the rows ranked")
        axes.set(ylabel="AUC, 95% interval", title=f"From {aucs[0]:.4f} to {aucs[-1]:.4f}")

    return draw


def _points(found: Evaluation) -> tuple[tuple[Decision, Look, str], ...]:
    """Return the two thresholds, with how they are drawn and called."""
    return (
        (found.own, _OWN, "model's threshold"),
        (found.best, _BEST, "best threshold here"),
    )


def _along(way: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return points of a curve that are about evenly far from each other, both ends among them."""
    if len(way) <= _MOST_POINTS:
        return np.arange(len(way))
    wanted = np.linspace(way[0], way[-1], _MOST_POINTS)
    return np.unique(np.append(np.searchsorted(way, wanted), len(way) - 1))


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


PICTURES = {"roc": roc, "pr": pr, "calibration": calibration}


def draw(path: Path, picture: str, found: Evaluation) -> None:
    """Draw one of `PICTURES`.

    Parameters
    ----------
    path : Path
        Where the picture goes, ``.svg`` or ``.png``.
    picture : {"roc", "pr", "calibration"}
        Which.
    found : Evaluation
        The measures of the rows.
    """
    write_figure(PICTURES[picture](found), path, SQUARE)
