"""What columns do to scores: curves with their deviations, parts of rows.

The score of a row is a sum over terms: a column of numbers or words is one, a time is four (its trend, month,
weekday and hour), and free text is one. What trees add goes to the terms that they decide by. Terms are looked
at relative to a typical row: a number to its median, all else to its mean over a sample of the rows learned.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from cbrank.features.curves import NumberColumn
from cbrank.features.forests import DAYS, MONTH, Forest, numbers_of
from cbrank.features.ids import SIZE, Ids
from cbrank.features.table import Table, Times
from cbrank.features.text import TextColumn
from cbrank.features.times import CALENDAR, TimeColumn
from cbrank.features.words import WordColumn
from cbrank.learning import served
from cbrank.learning.blocks import Encoded
from cbrank.rankers.grids import MISSING, middle_of, of_numbers, of_words
from cbrank.rankers.paths import Trees

if TYPE_CHECKING:
    from cbrank.features import TableEncoder

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

_TYPICAL = 256  # rows that say what is typical
_DEPENDENCE = 4  # one of so many of them has its values replaced to see what trees do
_POINTS_OF_MAPS = 24  # values of a number
_TRIED = 8  # columns whose pairs are looked at, and values of a number for that


class Curve(NamedTuple):
    """What a column adds to the score at its values.

    Attributes
    ----------
    grid : ndarray or list of str
        Values of a number, times, or the categories of words.
    effect : ndarray of shape (n_values,)
        What the column adds to the score there, more than at the median (numbers, times) or than
        on average (words): what its own features add, and the mean score that trees give some rows if they have
        the value there (partial dependence).
    deviation : ndarray of shape (n_values,)
        Standard deviations of the effects, of features and trees as if they were independent.
    """

    grid: Any
    effect: Floats
    deviation: Floats


class Map(NamedTuple):
    """What trees add for two columns together.

    Attributes
    ----------
    grid, other_grid : ndarray or list of str
        Values of the two columns.
    effect : ndarray of shape (n_values, n_other_values)
        The mean score that trees give some rows if they have both values (joint partial dependence), less what
        each value does alone: 0 where a number is at its median, and on average over words.
    """

    grid: Any
    other_grid: Any
    effect: Floats


class Term(NamedTuple):
    """A part of the score.

    Attributes
    ----------
    name : str
        The column's, ``"when: month"`` for a part of a time.
    kind : {"number", "word", "time", "text", "id"}
        What it is; an id has nothing but a weight for each of its many categories.
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


class _Side(NamedTuple):
    """Values of a term: as features, and as trees know them."""

    grid: Any
    places: Places
    Z: Floats  # (values, places) features, more than is typical
    cells: Any
    reference: Floats  # how much of each cell is typical
    mixed: Floats  # (values, cells) how much of each cell they have


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
    unit : float
        What standard deviations by this covariance are multiplied by.
    forests : sequence of tuples of a Forest and two ndarrays
        Trees, the weights of their nodes and the variances of these.
    sample : Table
        Rows that say what is typical.
    ids : tuple of an Ids and an ndarray, default=None
        Columns whose many categories have weights of their own, and these.
    """

    def __init__(
        self,
        encoder: "TableEncoder",
        weights: Floats,
        covariance: Floats,
        unit: float,
        forests: Sequence[tuple[Forest, Floats, Floats]],
        sample: Table,
        ids: tuple[Ids, Floats] | None = None,
    ) -> None:
        self._ids = ids
        self.encoder, self._weights, self._covariance = encoder, weights, covariance
        self._unit, self._forests, self.sample = unit, forests, sample
        self._width = len(weights)
        self._names = encoder.names()
        self._columns = {name: at for at, name in enumerate(self._names)}

    @cached_property
    def terms(self) -> list[Term]:
        """The parts of the score; found when first asked for, since there may be thousands."""
        return [*self._all_terms()]

    @cached_property
    def _trees(self) -> list[Trees]:
        return [Trees(*each, self._terms_of(each[0])) for each in self._forests]

    def _terms_of(self, forest: Forest) -> Places:
        """Return which term each of the columns that trees decide by belongs to."""
        known, found = self.encoder.known(), list[int]()
        places = {(term.column, term.name): at for at, term in enumerate(self.terms)}
        for owner, part in zip(*forest.columns[:2], strict=True):
            column, own = known[owner], places[owner, self._names[owner]]
            if isinstance(column, TimeColumn) and part > DAYS:
                own = places.get((owner, column.parts[part - MONTH].name), own)
            found.append(own)
        return np.array(found, np.int64)

    @cached_property
    def _rows(self) -> Any:
        return self.encode(self.sample)

    @cached_property
    def _typical(self) -> Floats:
        X = self._rows.X
        typical = np.zeros(self._width)
        typical[: X.shape[1]] = np.asarray(X.sum(axis=0)).ravel() / max(X.shape[0], 1)
        for term in self.terms:
            if term.kind in {"number", "time"} and not isinstance(term.known, WordColumn):
                _, places, middle = middle_of(term.known)
                inside = places < self._width
                typical[term.places] = 0.0
                typical[places[inside]] = middle[inside]
        return typical

    def _all_terms(self) -> Iterator[Term]:
        by_owner = self._by_owner()
        for column, known in enumerate(self.encoder.known()):
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
            elif self._ids is not None and column in self._ids[0].columns:
                yield Term(name, "id", column, own[:0], None)

    def _by_owner(self) -> list[NDArray[np.int64]]:
        """Return the places of the features of each column."""
        owners = self.encoder.owners_[: self._width]
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
        kind = self.encoder.kinds_[name]
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
        side = self._side(term)
        found = self._read(side.grid, side.places, side.Z)
        return self._with_trees(found, term, side)

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
        known, values, marked = term.known, list[Any](), list[int]()
        if isinstance(known, NumberColumn) and known.curve is not None:
            values, marked = [*known.curve.sentinels], [*known.sentinels]
        names = [f"{value:.6g}" for value in values]
        if isinstance(known, NumberColumn | TimeColumn) and known.gap >= 0:
            gap = np.nan if isinstance(known, NumberColumn) else np.datetime64("NaT", "s")
            values, names, marked = [*values, gap], [*names, MISSING], [*marked, known.gap]
        if not names:
            return Curve([], np.zeros(0), np.zeros(0))
        _, places, middle = middle_of(known)
        Z = np.hstack([np.eye(len(marked)), np.tile(-middle, (len(marked), 1))])
        found = self._read(names, np.concatenate([marked, places]).astype(np.int64), Z)
        return self._with_trees(found, term, self._beside_median(known, np.array(values)))

    def _side(self, term: Term, most: int | None = None) -> "_Side":
        """Return the values of a term, at most so many of a number or time."""
        known = term.known
        if isinstance(known, TextColumn):
            raise ValueError(  # noqa: TRY004
                f"Column {term.name!r} is free text, which has no curve: `contributions` says what "
                "it adds."
            )
        if not isinstance(known, WordColumn):
            grid, places, Z = of_numbers(known)
            some = np.linspace(0, len(grid) - 1, min(most or len(grid), len(grid))).astype(np.int64)
            side = self._beside_median(known, grid[some])
            return side._replace(places=places, Z=Z[some] - self._typical_at(places))
        names, places, Z = of_words(known, term.places)
        cells: Any = places
        if term.name not in self._columns:  # of a time: in the order of the calendar
            order = sorted(range(len(names)), key=lambda at: CALENDAR.get(names[at], 24))
            names, Z = [names[at] for at in order], Z[order]
            words = {place: word for word, place in known.features.items()}
            cells = np.array(
                [CALENDAR.get(words.get(place, ""), np.nan) for place in places.tolist()]
            )
        usual = self._typical_at(places)
        reference = usual / (usual.sum() or 1.0)
        return _Side(names, places, Z - usual, cells, reference, Z)

    def _beside_median(self, known: NumberColumn | TimeColumn, grid: Any) -> "_Side":
        """Return values as trees know them, with the median, which is the reference."""
        values = np.append(grid, middle_of(known)[0])
        reference, mixed = np.append(np.zeros(len(grid)), 1.0), np.eye(len(grid), values.size)
        cells: Any = values
        if isinstance(known, TimeColumn):
            cells = known.numbers(Times(values.astype("M8[s]").astype(np.float64)))
        return _Side(grid, np.zeros(0, np.int64), np.zeros((len(grid), 0)), cells, reference, mixed)

    def _with_trees(self, curve: Curve, term: Term, side: "_Side") -> Curve:
        """Return a curve with what trees add."""
        grid, effect, deviation = curve
        squares = deviation**2
        for effects, variances in self._of_trees(
            [(self.terms.index(term), side.cells)], side.reference
        ):
            effect = effect + side.mixed @ effects
            squares = squares + (side.mixed @ np.sqrt(variances)) ** 2
        return Curve(grid, effect, np.sqrt(squares))

    def _of_trees(
        self, cells: Sequence[tuple[int, Any]], reference: Floats
    ) -> Iterator[tuple[Floats, Floats]]:
        """Return the mean scores and variances of each group of trees, if rows had some cells."""
        rows = self.sample.take(slice(None, None, _DEPENDENCE))
        for trees in self._trees:
            X = numbers_of(self.encoder, rows, trees.forest.columns)
            yield trees.dependence(X, cells, reference)

    # Pairs ---------------------------------------------------------------------------------------

    def pair(self, column: Any, other: Any) -> Map:
        """Return what trees add for two columns together, beyond what they add for each.

        Parameters
        ----------
        column, other : str or int
            Names or positions of the columns.

        Returns
        -------
        Map
            The two grids and the effects.
        """
        terms = self.term(column), self.term(other)
        left, right = (self._side(term, _POINTS_OF_MAPS) for term in terms)
        return Map(left.grid, right.grid, self._map(terms, (left, right)))

    def pairs(self, most: int = 3) -> list[tuple[str, str]]:
        """Return the pairs of columns that trees add most for together, beyond what they add for each.

        Of the eight columns that move scores most, each pair is looked at by a map of eight values of numbers,
        and goes by the standard deviation of that.

        Parameters
        ----------
        most : int, default=3
            How many pairs to name.

        Returns
        -------
        list of two names each
            The strongest pair first; none that trees add nothing for.
        """
        if not self._forests:
            return []
        order = np.argsort(-self.moves(), kind="stable")
        terms = [self.terms[at] for at in order if self.terms[at].kind not in {"text", "id"}][
            :_TRIED
        ]
        sides, found = [self._side(term, _TRIED) for term in terms], []
        for one, two in combinations(range(len(terms)), 2):
            effect = self._map((terms[one], terms[two]), (sides[one], sides[two]))
            found.append(
                (float(effect.std()) if effect.size else 0.0, terms[one].name, terms[two].name)
            )
        strongest = sorted(found, key=itemgetter(0), reverse=True)[:most]
        return [(one, two) for size, one, two in strongest if size > 0.0]

    def _map(self, terms: tuple[Term, Term], sides: "tuple[_Side, _Side]") -> Floats:
        left, right = sides
        shape = left.reference.size, right.reference.size
        at = np.indices(shape).reshape(2, -1)
        cells = [
            (self.terms.index(term), _taken(side.cells, own))
            for term, side, own in zip(terms, sides, at, strict=True)
        ]
        joint = np.zeros(shape)
        for effects, _ in self._of_trees(cells, np.outer(left.reference, right.reference).ravel()):
            joint += effects.reshape(shape)
        joint -= left.reference @ joint
        joint -= (joint @ right.reference)[:, None]
        found: Floats = left.mixed @ joint @ right.mixed.T
        return found

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
        return Curve(grid, Z @ self._weights[places], self._unit * deviation)

    # How far terms move scores -------------------------------------------------------------------

    def encode(self, table: Table) -> Encoded:
        """Return rows as the features and leaves that the other methods take.

        Parameters
        ----------
        table : Table
            Rows as the encoder reads them.

        Returns
        -------
        Encoded
            The rows.
        """
        dense = self._covariance.ndim == 2
        encode = self.encoder.encode_dense if dense else self.encoder.encode
        beside = [forest.encode(self.encoder, table) for forest, *_ in self._forests]
        if self._ids is not None:
            beside.append(self._ids[0].places(table))
        return Encoded(encode(table)[:, : self._width], tuple(beside))

    def parts(self, rows: Encoded) -> Floats:
        """Return what each term adds to the scores of rows.

        At each split of a tree, the column that decides adds the change of the expected score.

        Parameters
        ----------
        rows : Encoded
            Rows that `encode` returned.

        Returns
        -------
        ndarray of shape (n_rows, n_terms)
            The parts, in the order of `terms`; with the intercept they sum to scores.
        """
        sizes = [len(term.places) for term in self.terms]
        places = np.concatenate([np.zeros(0, np.int64), *(term.places for term in self.terms)])
        entries = self._weights[places], (places, np.repeat(np.arange(len(sizes)), sizes))
        shares = sp.csr_array(entries, shape=(self._width, len(sizes)))
        found = rows.X @ shares[: rows.X.shape[1]]
        parts = np.asarray(found.todense() if sp.issparse(found) else found)
        for trees, leaves in zip(self._trees, rows.beside, strict=False):
            parts = parts + trees.parts(leaves, len(sizes))
        if self._ids is not None:
            ids, weights = self._ids
            terms = {term.column: at for at, term in enumerate(self.terms)}
            for column, places in zip(ids.columns.tolist(), rows.beside[-1].T, strict=True):
                parts[:, terms[column]] += np.where(places >= 0, weights[places], 0.0)
        return parts

    def by_column(self, table: Table) -> Floats:
        """Return what each column adds to the scores of rows.

        Parameters
        ----------
        table : Table
            Rows as the encoder reads them.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            With the intercept they sum to scores.
        """
        owners, count = [term.column for term in self.terms], len(self.terms)
        own = sp.csr_array(
            (np.ones(count), (np.arange(count), owners)), shape=(count, len(self._names))
        )
        found: Floats = self.parts(self.encode(table)) @ own
        return found

    def moves(self, rows: Encoded | None = None) -> Floats:
        """Return how far each term moves scores: the standard deviation of what it adds.

        Parameters
        ----------
        rows : Encoded, default=None
            Rows that `encode` returned; the sample of those learned if None.

        Returns
        -------
        ndarray of shape (n_terms,)
            The standard deviations, in the order of `terms`.
        """
        parts = self.parts(self._rows if rows is None else rows)
        return parts.std(axis=0) if len(parts) else np.zeros(len(self.terms))

    # Rows ----------------------------------------------------------------------------------------

    def added(self, rows: Encoded) -> Floats:
        """Return what each term adds to the scores of rows, more than it does on average.

        The average is that of the sample of rows learned.

        Parameters
        ----------
        rows : Encoded
            Rows that `encode` returned.

        Returns
        -------
        ndarray of shape (n_rows, n_terms)
            In the order of `terms`; with the average score they sum to scores.
        """
        usual = self.parts(self._rows)
        return self.parts(rows) - usual.sum(axis=0) / max(len(usual), 1)

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
        known = self.encoder.known()[term.column]
        return term.kind == "word" and isinstance(known, TimeColumn)


def _taken(cells: Any, at: Places) -> Any:
    return tuple(each[at] for each in cells) if isinstance(cells, tuple) else cells[at]


def sample_of(state: Any, most: int) -> Table:
    """Return at most so many of the rows learned, taken evenly from the memory."""
    rows = None if state.memory is None else state.memory.rows(state.record.position)
    if rows is None:
        names = state.front.encoder.names()
        return Table(names, [np.zeros(0)] * len(names))
    places = np.linspace(0, rows.labels.size - 1, min(most, rows.labels.size)).astype(np.int64)
    found: Table = rows.X.take(places)
    return found


def effects_of(method: Any, state: Any, mixture: served.Mixture) -> Effects:
    """Return what the columns of a state do to scores, by what is served."""
    (model, unit), *others = served.leaders_of(method, state)
    forests, ids, own = list[Any](), None, mixture.weights.copy()
    for group, made, (leader, share) in zip(state.beside, mixture.beside, others, strict=True):
        weights = served.whole(made)
        if isinstance(
            group.source, Ids
        ):  # which learn the encoder's features again, beside categories
            ids = group.source, weights[:SIZE]
            own[: group.source.others] += weights[SIZE:]
        else:
            forests.append((group.source, weights, share**2 * leader.variances))
    return Effects(
        state.front.encoder,
        own,
        model.Sigma if "Sigma" in model._fields else model.variances,
        unit,
        forests,
        sample_of(state, _TYPICAL),
        ids,
    )
