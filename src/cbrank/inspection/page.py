"""An evaluation as one HTML file: its measures, tables and pictures, and the curves of the model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbrank.atomic import atomic_write_text
from cbrank.inspection import pictures
from cbrank.inspection.display import (
    PANEL,
    Panel,
    ends_of,
    maps_of,
    panels_of,
    put_panel,
    reaches,
)
from cbrank.inspection.evaluation import Evaluation
from cbrank.inspection.summary import measures, remarks, tables
from cbrank.page import Block, Code, Figure, Gallery, Section, Terms, page
from cbrank.plotting import picture
from cbrank.provenance import LIBRARIES, versions
from cbrank.tables import Table
from cbrank.training.ages import Age, ages_of, in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_MOST_CURVES = 12


def write_page(
    path: Path, found: Evaluation, label: str, *, model: str, command: str, ranker: Any = None
) -> None:
    """Write the page of an evaluation.

    Parameters
    ----------
    path : Path
        Where the page goes; it is in place only when it is whole.
    found : Evaluation
        The measures.
    label : str
        The positive label.
    model : str
        What the model is called.
    command : str
        What to run to get the page again.
    ranker : ranker, default=None
        What gave the scores; the curves of an `AdditiveRanker` are shown, and how long a model keeps that
        was learned in order, which takes seconds to measure.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from cbrank.inspection.evaluation import evaluate
    >>> y, scores = np.array([0, 0, 1, 0, 1, 1]), np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0])
    >>> found = evaluate(y, scores, 1 / (1 + np.exp(-scores)))
    >>> path = Path(tempfile.mkdtemp(), "page.html")
    >>> write_page(path, found, "yes", model="clicks.model", command="cbrank evaluate ...")
    >>> "<h1>AUC 0.8889</h1>" in path.read_text("utf-8")
    True
    """
    by_key = {table.key: table for table in tables(found)}
    sections = [
        _ranking(found, label),
        Section("first", "The first rows", [by_key["tops"]]) if "tops" in by_key else None,
        _thresholds(found, by_key["thresholds"]),
        _probabilities(found, by_key.get("deciles")),
        Section("by", by_key["groups"].title, [by_key["groups"]]) if "groups" in by_key else None,
        _ages(ages_of(ranker)) if ranker is not None else None,
        _curves(ranker) if hasattr(ranker, "effects") else None,
        _origins(command),
    ]
    html = page(
        title=f"{model}: evaluation",
        kicker=f"How well {model} ranks labelled rows",
        headline=_headline(found),
        points=[f"{_capital(name)}: {text}." for name, text in measures(found, label)],
        sections=[section for section in sections if section],
        looks=pictures.LOOKS,
    )
    atomic_write_text(path, html)


def _headline(found: Evaluation) -> str:
    auc = f"AUC {found.auc.auc:.4f}"
    tenth = [top for top in found.tops if top.name == "10%"]
    if not tenth:
        return auc
    return f"The first 10% of the rows have {tenth[0].recall:.1%} of the positives; {auc}"


def _ranking(found: Evaluation, label: str) -> Section:
    own = found.own
    roc = _drawn(
        "roc",
        pictures.roc(found),
        f"ROC curve. Its area, the AUC, is {found.auc.auc:.4f}. At the threshold of the model "
        f"{own.tpr:.1%} of the positives and {own.fpr:.1%} of the negatives are called positive.",
        f"ROC curve: the share of the positives, which are labelled {label!r}, by the share of the "
        "negatives that are above a threshold. The grey line is a random order.",
    )
    pr = _drawn(
        "pr",
        pictures.pr(found),
        f"Precision-recall curve. The area below it, the average precision, is "
        f"{found.average_precision:.4f}; that of a random order is {found.share:.4f}.",
        "Precision-recall curve: the share of positives among the rows above a threshold by the "
        "share of all positives that are above it. The grey line is a random order.",
    )
    return Section("ranking", "Ranking", [Gallery((roc, pr))])


def _thresholds(found: Evaluation, table: Table) -> Section:
    return Section("decisions", "Thresholds", [table, *remarks(found)])


def _probabilities(found: Evaluation, deciles: Table | None) -> Section:
    parts = found.calibration.parts
    ends = [f"{part.share:.2%} where {part.probability:.2%} is given" for part in parts]
    drawn = _drawn(
        "calibration",
        pictures.calibration(found),
        f"Shares of positives by mean probabilities in {len(parts)} parts of the ranking: from "
        f"{ends[0]} in the first part to {ends[-1]} in the last.",
        "Each point is a part of the ranking: the tenths of the table, the first of them divided at "
        "5%, 1% and 0.1% of all rows where there are so many. On the grey line probabilities are "
        "right; a line through a point is the 95% interval (Wilson) of the share. Where positives are "
        "rare, scales are logarithmic, and what is below them stands at the edge.",
    )
    return Section("probabilities", "Probabilities", [Gallery((drawn,)), *filter(None, [deciles])])


def _ages(found: Sequence[Age]) -> Section | None:
    if len(found) < 2:
        return None
    told = [f"{age.auc:.4f} ± {age.error:.4f} about {age.rows:,.0f} rows later" for age in found]
    drawn = _drawn(
        "ages",
        pictures.ages(found),
        f"AUC with standard error, by age: {'; '.join(told)}.",
        "The rows that the model was learned from, ranked by how many rows came between them and the last row "
        "learned until then: the next block of the stream, and rows up to an eighth, a fourth and half of the "
        "stream later, by what a sample of the rows before teaches. Lines through points are 95% intervals.",
    )
    sentence = in_words(found)
    said = [] if sentence is None else [f"{_capital(sentence)}."]
    return Section("ages", "How long the model keeps", [*said, Gallery((drawn,))])


def _curves(ranker: Any) -> Section | None:
    panels = panels_of(ranker, n=_MOST_CURVES)
    if not panels:
        return None
    panels += maps_of(ranker)
    intro = (
        "What each column adds to scores, those first that move scores most. Curves are zero at the "
        "median and bars at their mean; bands and bars of error are 95% wide. Maps show what two columns "
        "add together, beyond what each adds. Of all curves the scale is one, and so it is of all bars and "
        "all maps."
    )
    drawn = map(_curve, range(len(panels)), panels, reaches(panels))
    return Section("curves", "What columns do", [intro, Gallery(tuple(drawn), small=True)])


def _curve(at: int, panel: Panel, reach: float) -> Figure:
    low, high = (f"{adds:+.3g} at {place}" for place, adds in ends_of(panel))

    def draw(figure: "Drawing") -> None:
        put_panel(figure.subplots(), panel, reach)

    alt = f"{panel.name}, {panel.kind}: it adds least, {low}, and most, {high}."
    moves = f"{panel.name} moves scores by {panel.moves:.3g} (standard deviation)"
    caption = f"{moves}: from {low} to {high}."
    return _drawn(f"curve-{at}", draw, alt, caption, PANEL)


def _origins(command: str) -> Section:
    said = ", ".join(f"{name} {version}" for name, version in versions(LIBRARIES).items())
    blocks: Sequence[Block] = [Code(command), Terms((*_DEFINITIONS, ("Versions", said)))]
    return Section("origins", "How each number came about", blocks)


_DEFINITIONS = tuple(
    {
        "AUC": "The share of pairs of a positive and a negative row in which the positive one has the "
        "higher score, pairs of equal scores counted as half. The interval is DeLong's, on the logit "
        "scale.",
        "Average precision": "The mean, over the positives, of the precision among the rows that have "
        "at least the score of the positive.",
        "Log loss": "The mean of -log(p) over the positives and of -log(1 - p) over the negatives, p "
        "being the probability given.",
        "Calibration error": "The expected calibration error: the distance between share of positives "
        "and mean probability in each tenth of the ranking, averaged over all rows.",
        "Equal scores": "Of rows of one score any may come first. What is said of the first rows and "
        "of tenths is the mean over all such orders.",
    }.items()
)


def _drawn(
    key: str,
    draw: "Callable[[Drawing], None]",
    alt: str,
    caption: str,
    size: tuple[float, float] = pictures.SQUARE,
) -> Figure:
    made = picture(draw, key=key, alt=alt, size=size, looks=pictures.LOOKS, folder=None)
    return Figure(made, caption)


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]
