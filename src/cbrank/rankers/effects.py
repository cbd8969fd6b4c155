"""What columns do to scores: curves with their deviations, parts of rows.

The score of a row is a sum over terms: a column of numbers or words is one, a time is four (its trend, month,
weekday and hour), and free text is one. Terms are looked at relative to a typical row: a number to its
median, all else to its mean over the buffered rows, classes weighed as they have come.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.features.curves import NumberColumn
from cbrank.features.text import TextColumn
from cbrank.features.times import CALENDAR, TimeColumn
from cbrank.features.words import WordColumn
from cbrank.learning import served
from cbrank.learning.state import buffered_rows
from cbrank.rankers.grids import MISSING, middle_of, of_numbers, of_words

if TYPE_CHECKING:
    from cbrank.features import TableEncoder

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class Curve(NamedTuple):
    """What a column adds to the score at its values.

    Attributes
    ----------
    grid : ndarray or list of str
        Values of a number, times, or the categories of words.
    effect : ndarray of shape (n_values,)
        What the column adds to the score there, more than at the median (numbers, times) or than
        on average (words).
    deviation : ndarray of shape (n_values,)
        Standard deviations of the effects.
    """

    grid: Any
    effect: Floats
    deviation: Floats


class Term(NamedTuple):
    """A part of the score.

    Attributes
    ----------
    name : str
        The column's, ``"when: month"`` for a part of a time.
    kind : {"number", "word", "time", "text"}
        What it is.
    column : int
        Its column, by position.
    places : ndarray of int
        Its features.
    known : object
        What the encoder knows of it.
    """

    name: str
    kind: str
    column: int
    places: Places
    known: Any


class Effects:
    """What the columns of a ranker do to its scores, as of one moment.

    Parameters
    ----------
    encoder : TableEncoder
        What columns are.
    weights : ndarray of shape (n_features,)
        Weights of its features.
    covariance : ndarray of shape (n_features, n_features) or (n_features,)
        Their covariance, or their variances.
    rows : ndarray or csr_array of shape (n_rows, n_features)
        Rows that say what is typical.
    shares : ndarray of shape (n_rows,)
        How much each of them counts; they sum to 1.
    """

    def __init__(
        self,
        encoder: "TableEncoder",
        weights: Floats,
        covariance: Floats,
        rows: Any,
        shares: Floats,
    ) -> None:
        self._encoder, self._weights, self._covariance = encoder, weights, covariance
        self._rows, self._shares = rows, shares
        self._width = len(weights)
        self._names = encoder.names()
        self._columns = {name: at for at, name in enumerate(self._names)}

    @cached_property
    def terms(self) -> list[Term]:
        """The parts of the score; found when first asked for, since there may be thousands."""
        return [*self._all_terms()]

    @cached_property
    def _typical(self) -> Floats:
        typical = np.zeros(self._width)
        if len(self._shares):
            mean = np.asarray(self._shares @ self._rows).ravel()[: self._width]
            typical[: len(mean)] = mean
        for term in self.terms:
            if term.kind in {"number", "time"} and not isinstance(term.known, WordColumn):
                _, places, middle = middle_of(term.known)
                inside = places < self._width
                typical[term.places] = 0.0
                typical[places[inside]] = middle[inside]
        return typical

    def _all_terms(self) -> Iterator[Term]:
        by_owner = self._by_owner()
        for column, known in enumerate(self._encoder.known()):
            own, name = by_owner[column], self._names[column]
            if isinstance(known, TimeColumn):
                for part in known.parts:
                    places = np.array([*part.features.values(), part.other], np.int64)
                    places = places[(places >= 0) & (places < self._width)]
                    own = np.setdiff1d(own, places)
                    if len(places):
                        yield Term(part.name, "word", column, places, part)
                yield Term(name, "time", column, own, known)
            elif known is not None:
                yield Term(name, known.kind, column, own, known)

    def _by_owner(self) -> list[NDArray[np.int64]]:
        """Return the places of the features of each column."""
        owners = self._encoder.owners_[: self._width]
        own = np.argsort(owners, kind="stable")
        return np.split(own, np.searchsorted(owners[own], np.arange(1, len(self._names))))

    def term(self, column: Any) -> Term:
        """Return the term of a column, by its name or position.

        Parameters
        ----------
        column : str or int
            Such as ``"age"``, ``0`` or ``"when: month"``.

        Returns
        -------
        Term
            The term.
        """
        if isinstance(column, str) and column not in self._columns and column in self._named:
            return self._named[column]
        name = self._names[self._place(column)]
        found = self._named.get(name)
        if found is not None:
            return found
        kind = self._encoder.kinds_[name]
        why = "has had no value so far" if kind == "empty" else "is left out"
        raise ValueError(f"Column {name!r} {why}, so it adds nothing to scores.")

    @cached_property
    def _named(self) -> dict[str, Term]:
        """The first term of each name."""
        return {term.name: term for term in reversed(self.terms)}

    def _place(self, column: Any) -> int:
        if isinstance(column, str) and column in self._columns:
            return self._columns[column]
        if not isinstance(column, str) and column in range(len(self._names)):
            return int(column)
        raise ValueError(f"There is no column {column!r}: the ranker knows {self._some_names()}.")

    def _some_names(self) -> str:
        more = len(self._names) - 8
        return ", ".join(map(repr, self._names[:8])) + (f" and {more} more" if more > 0 else "")

    # Curves --------------------------------------------------------------------------------------

    def curve(self, column: Any) -> Curve:
        """Return what a column adds to the score at its values.

        Parameters
        ----------
        column : str or int
            The column's name or position.

        Returns
        -------
        Curve
            Its grid, effects and deviations.
        """
        term = self.term(column)
        known = term.known
        if isinstance(known, TextColumn):
            raise ValueError(  # noqa: TRY004
                f"Column {term.name!r} is free text, which has no curve: `contributions` says what "
                "it adds."
            )
        if isinstance(known, WordColumn):
            names, places, Z = of_words(known, term.places)
            if term.name not in self._columns:  # of a time: in the order of the calendar
                order = sorted(range(len(names)), key=lambda at: CALENDAR.get(names[at], 24))
                names, Z = [names[at] for at in order], Z[order]
            return self._read(names, places, Z - self._typical_at(places))
        grid, places, Z = of_numbers(known)
        return self._read(grid, places, Z - self._typical_at(places))

    def marks(self, column: Any) -> Curve:
        """Return what gaps and isolated values of a number or time add to the score.

        Parameters
        ----------
        column : str or int
            The column's name or position.

        Returns
        -------
        Curve
            The grid says "missing" or the value.
        """
        term = self.term(column)
        known, names, marked = term.known, list[str](), list[int]()
        if isinstance(known, NumberColumn) and known.curve is not None:
            names = [f"{value:.6g}" for value in known.curve.sentinels]
            marked = [*known.sentinels]
        if isinstance(known, NumberColumn | TimeColumn) and known.gap >= 0:
            names, marked = [*names, MISSING], [*marked, known.gap]
        if not names:
            return Curve([], np.zeros(0), np.zeros(0))
        _, places, middle = middle_of(known)
        Z = np.hstack([np.eye(len(marked)), np.tile(-middle, (len(marked), 1))])
        return self._read(names, np.concatenate([marked, places]).astype(np.int64), Z)

    def _typical_at(self, places: Places) -> Floats:
        return np.where(
            places < self._width, self._typical[np.minimum(places, self._width - 1)], 0.0
        )

    def _read(self, grid: Any, places: Places, Z: Floats) -> Curve:
        """Return effects and deviations of differences to the typical row in some features."""
        inside = places < self._width  # the encoder may be ahead
        places, Z = places[inside], Z[:, inside]
        if self._covariance.ndim == 2:
            squares = (Z * (Z @ self._covariance[np.ix_(places, places)])).sum(axis=1)
        else:
            squares = (Z * Z) @ self._covariance[places]
        deviation = np.sqrt(np.maximum(squares, 0.0))
        return Curve(grid, Z @ self._weights[places], deviation)

    # How far terms move scores -------------------------------------------------------------------

    def parts(self, rows: Any) -> Floats:
        """Return what each term adds to the scores of encoded rows.

        Parameters
        ----------
        rows : ndarray or csr_array of shape (n_rows, n_features)
            Encoded rows.

        Returns
        -------
        ndarray of shape (n_rows, n_terms)
            The parts, in the order of `terms`; with the intercept they sum to scores.
        """
        sizes = [len(term.places) for term in self.terms]
        places = np.concatenate([np.zeros(0, np.int64), *(term.places for term in self.terms)])
        entries = self._weights[places], (places, np.repeat(np.arange(len(sizes)), sizes))
        shares = sp.csr_array(entries, shape=(self._width, len(sizes)))
        found = rows[:, : self._width] @ shares
        return np.asarray(found.todense() if sp.issparse(found) else found)

    def moves(self, rows: Any = None) -> Floats:
        """Return how far each term moves scores: the standard deviation of what it adds.

        Parameters
        ----------
        rows : ndarray or csr_array of shape (n_rows, n_features), default=None
            Encoded rows; the buffered ones if None.

        Returns
        -------
        ndarray of shape (n_terms,)
            The standard deviations, in the order of `terms`.
        """
        if rows is not None:
            return np.asarray(self.parts(rows).std(axis=0))
        if not len(self._shares):
            return np.zeros(len(self.terms))
        parts = self.parts(self._rows)
        return np.sqrt(self._shares @ (parts - self._shares @ parts) ** 2)

    # Rows ----------------------------------------------------------------------------------------

    def added(self, rows: Any) -> Floats:
        """Return what each term adds to the scores of encoded rows, more than it does on average.

        The average is that of the buffered rows, classes weighed as they came.

        Parameters
        ----------
        rows : ndarray or csr_array of shape (n_rows, n_features)
            Encoded rows.

        Returns
        -------
        ndarray of shape (n_rows, n_terms)
            In the order of `terms`; with the average score they sum to scores.
        """
        if not len(self._shares):
            return self.parts(rows)
        return np.asarray(self.parts(rows) - self._shares @ self.parts(self._rows))

    def is_part_of_time(self, term: Term) -> bool:
        """Say whether a term is the month, weekday or hour of a time.

        Parameters
        ----------
        term : Term
            One of `terms`.

        Returns
        -------
        bool
            Whether it is.
        """
        known = self._encoder.known()[term.column]
        return term.kind == "word" and isinstance(known, TimeColumn)


def effects_of(weights: Floats, method: Any, state: Any) -> Effects:
    """Return what the columns of a state do to scores, by the weights that are served."""
    labels, rows = buffered_rows(state)
    counts = np.bincount(labels, minlength=2)
    shares = (state.buffer.seen / np.maximum(counts, 1))[labels]
    model = state.models[served.leader_of(method, state)]
    return Effects(
        state.front.encoder,
        weights,
        model.Sigma if "Sigma" in model._fields else model.variances,
        rows,
        shares / max(float(shares.sum()), 1.0),
    )
