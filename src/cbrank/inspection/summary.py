"""An evaluation in words and tables, for terminals and pages alike."""

from collections.abc import Iterable
from math import isfinite, isnan

from cbrank.inspection.evaluation import Evaluation, Wanted
from cbrank.inspection.groups import Group
from cbrank.inspection.ranked import Decision, Part, Top
from cbrank.tables import ABSENT, Cell, Row, Table

_LONGEST_NAME = 40


def measures(found: Evaluation, label: str) -> list[tuple[str, str]]:
    """Say how many rows there are and how well they are ranked as a whole.

    Parameters
    ----------
    found : Evaluation
        The measures.
    label : str
        The positive label.

    Returns
    -------
    list of tuple of str
        What is measured and what came out, the most important first.
    """
    calibration, share = found.calibration, found.share
    loss, base = f"{calibration.log_loss:.4f}", f"{calibration.base:.4f}"
    return [
        ("rows", f"{found.rows:,}"),
        ("positives", f"{found.positives:,} ({share:.2%}), labelled {label!r}"),
        ("AUC", f"{found.auc.auc:.4f}, {found.interval()}"),
        ("average precision", f"{found.average_precision:.4f}, by chance {share:.4f}"),
        ("log loss", f"{loss}, by the share of positives alone {base}"),
        ("calibration error", f"{calibration.error:.4f}, mean probability {calibration.mean:.2%}"),
    ]


def tables(found: Evaluation) -> list[Table]:
    """Make the tables of an evaluation, each with how to read it.

    Parameters
    ----------
    found : Evaluation
        The measures.

    Returns
    -------
    list of Table
        Those with the keys ``tops``, ``thresholds``, ``deciles`` (of ten rows or more) and ``groups``
        (if there are some).
    """
    made = [_tops(found), _thresholds(found)]
    if len(found.deciles) == 10:
        made.append(_deciles(found))
    if found.column is not None:
        made.append(_groups(found))
    return [table for table in made if table.rows]


def remarks(found: Evaluation) -> list[str]:
    """Say what was asked for and is not there.

    Parameters
    ----------
    found : Evaluation
        The measures.

    Returns
    -------
    list of str
        Sentences.
    """
    missed = [asked for asked in found.wanted if asked.found is None]
    return [
        f"No threshold has a precision of {_wanted(asked.value)} on these rows: the highest is "
        f"{found.most_precise:.2%}."
        for asked in missed
    ]


def _tops(found: Evaluation) -> Table:
    digits = _digits(top.positives for top in found.tops)
    return Table(
        key="tops",
        title="The first rows of the ranking",
        note="Precision is the share of positives among them, recall the share of all positives that "
        "are among them, lift the precision divided by the share of positives among all rows. Where "
        "rows of one score are partly among them, figures are means over all orders of such rows.",
        corner="top",
        columns=("rows", "positives", "precision", "recall", "lift"),
        rows=tuple(_top(top, digits) for top in found.tops),
    )


def _top(top: Top, digits: int) -> Row:
    cells = (_count(top.positives, digits), _share(top.precision), _share(top.recall))
    return Row(top.name, (_count(top.rows), *cells, _lift(top.lift)))


def _deciles(found: Evaluation) -> Table:
    digits = _digits(part.positives for part in found.deciles)
    return Table(
        key="deciles",
        title="Tenths of the ranking",
        note="The first tenth has the highest scores. Where the probabilities are right, their mean is "
        "near the share of positives; the calibration error is the mean distance of the two.",
        corner="decile",
        columns=("rows", "positives", "share", "lift", "recall so far", "mean probability"),
        rows=tuple(_decile(at, part, digits) for at, part in enumerate(found.deciles, 1)),
    )


def _decile(at: int, part: Part, digits: int) -> Row:
    counts = (_count(part.rows), _count(part.positives, digits), _share(part.share))
    return Row(str(at), (*counts, _lift(part.lift), _share(part.recall), _share(part.probability)))


def _thresholds(found: Evaluation) -> Table:
    fixed = (
        _threshold("of the model", f"> {found.own.threshold:g}", found.own),
        _threshold("best for these rows", _from_on(found, found.best), found.best),
    )
    return Table(
        key="thresholds",
        title="Thresholds",
        note="Rows whose score is beyond the threshold are called positive. All but the model's own "
        "are chosen on these very rows, which flatters. The best is the most accurate; of a wanted "
        "precision it is the threshold of highest recall, of a wanted recall that of highest precision.",
        corner="threshold",
        columns=("score", "rows", "precision", "recall", "accuracy"),
        rows=(*fixed, *(_asked(found, asked) for asked in found.wanted)),
    )


def _asked(found: Evaluation, asked: Wanted) -> Row:
    name = f"{asked.measure} {_wanted(asked.value)}"
    if asked.found is None:
        return Row(name, (Cell(text="not reached"), *[Cell(text=ABSENT)] * 4))
    return _threshold(name, _from_on(found, asked.found), asked.found)


def _from_on(found: Evaluation, point: Decision) -> str:
    return f">= {found.ranked.written(point.threshold)}" if point.rows else "no row"


def _threshold(name: str, score: str, point: Decision) -> Row:
    rates = (point.precision, point.tpr, point.accuracy)
    value = point.threshold if isfinite(point.threshold) else None
    cells = Cell(text=score, value=value), _count(point.rows), *map(_share, rates)
    return Row(name, cells)


def _groups(found: Evaluation) -> Table:
    named = [group for group in found.groups if group.values == 1]
    rest = [group for group in found.groups if group.values != 1]
    note = "Pairs of rows of different groups do not count. A group with one label only has no AUC."
    if rest:
        note += (
            f" The {len(named)} values of most rows are shown; all others together are the rest."
        )
    return Table(
        key="groups",
        title=f"Groups by {_shown(found.column or '')}",
        note=note,
        corner=_shown(found.column or ""),
        columns=("rows", "positives", "share", "AUC", "95% interval"),
        rows=tuple(map(_group, named)),
        foot=tuple(map(_group, rest)),
    )


def _group(group: Group) -> Row:
    name = _shown(group.name)
    if group.values != 1:
        name = f"the other {group.values:,} values" if group.values else "all other values"
    counts = (_count(group.rows), _count(group.positives), _share(group.positives / group.rows))
    if group.auc is None:
        return Row(name, (*counts, Cell(text=ABSENT), Cell(text="one label only")))
    auc, low, high, _ = group.auc
    interval = f"{low:.4f} to {high:.4f}" if not isnan(low) else "one row of a class"
    return Row(name, (*counts, Cell(text=f"{auc:.4f}", value=auc), Cell(text=interval)))


def _shown(name: str) -> str:
    """Return a name that fits, without what would disturb a terminal."""
    name = "".join(letter if letter.isprintable() else "�" for letter in name)
    if not name.strip():
        return "(empty)"
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _wanted(value: float) -> str:
    return f"{100 * value:.6g}%"


def _digits(counts: Iterable[float]) -> int:
    """Return how many decimals counts need: one if orders of equal scores leave fractions."""
    return int(any(abs(count - round(count)) > 1e-6 for count in counts))


def _count(count: float, digits: int = 0) -> Cell:
    return Cell(text=f"{count:,.{digits}f}", value=count)


def _share(share: float) -> Cell:
    return Cell(text=ABSENT) if isnan(share) else Cell(text=f"{share:.2%}", value=share)


def _lift(lift: float) -> Cell:
    return Cell(text=f"{lift:.2f}", value=lift)
