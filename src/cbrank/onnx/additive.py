"""An AdditiveRanker as a graph, whose inputs are the columns of a table.

Words look up what they add to the score. All numbers, and years and days of times, become features at
once, which are multiplied with their weights. Trees get numbers, ranks of words and parts of times. The sum of
all that is the score before the intercept, from which a curve leads to the probability.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.features import forests
from cbrank.features.curves import NumberColumn, Pieces
from cbrank.features.forests import Forest
from cbrank.features.ids import Ids
from cbrank.features.table import GAP_WORDS, Words
from cbrank.features.text import TextColumn
from cbrank.features.times import LONGEST, PARTS, TimeColumn
from cbrank.features.words import BUCKETS, WordColumn
from cbrank.kernels.trees import NO_NODE
from cbrank.onnx.graph import Graph, Port
from cbrank.onnx.trees import score_of_trees
from cbrank.rankers.additive import AdditiveRanker
from cbrank.rankers.scorer import Calibration
from cbrank.version import __version__

Floats = NDArray[np.float64]

_DAY, _HOUR = 86400.0, 3600.0
_LARGEST = float(np.finfo(np.float64).max)

_MEANINGS = {
    "number": "a number; NaN for a gap; true and false are 1 and 0",
    "time": "a time in seconds since 1970-01-01 00:00 by the clock on the wall, whatever its zone; "
    "NaN for a gap",
    "word": "a word without blanks at its ends, a number such as 3 or 0.5; an empty one for a gap",
    "bucket": "CRC-32 of the UTF-8 bytes of the word in column {!r}, modulo 32: where words are too "
    "many, those without a feature of their own share features by it",
}
_GAPS = f", as are {' '.join(sorted(GAP_WORDS - {''}))} in small or capital letters"
_OUTPUTS = (
    Port("score", "double", "the ranking score; positive above 0"),
    Port("probability", "double", "the probability of the positive label"),
    Port("label", "string", "the positive label where the score is above 0, else the other"),
)


class Input(NamedTuple):
    """An input of the graph.

    Attributes
    ----------
    port : Port
        Its name, type and meaning.
    kind : {"number", "time", "word", "bucket"}
        What the column is taken as; a bucket goes with the column of words before it.
    known : NumberColumn, WordColumn, TimeColumn or None
        What the encoder knows of the column.
    asked : bool
        Whether the kind was asked for: then words that otherwise mean a gap are words.
    """

    port: Port
    kind: str
    known: Any = None
    asked: bool = False


def additive_model(
    ranker: AdditiveRanker, names: Sequence[str] | None, labels: Sequence[str] | None
) -> Any:
    """Return the scorer of an AdditiveRanker as an ONNX model.

    Parameters
    ----------
    ranker : AdditiveRanker
        One that has learned.
    names : sequence of str, optional
        The names of the columns, if other than the ranker's own.
    labels : sequence of str, optional
        The names of the labels, the positive one last.

    Returns
    -------
    onnx.ModelProto
        The model.
    """
    names = [*ranker.encoder_.kinds_] if names is None else [*names]
    inputs = _inputs_of(ranker, names)
    taken = {each.port.name for each in inputs}
    if len(taken) < len(inputs) or "" in taken:
        raise ValueError(
            "the inputs of an ONNX model need names that differ and are not empty, and the columns have "
            "others: rename them."
        )
    outputs = [port._replace(name=_free(port.name, taken)) for port in _OUTPUTS]
    labels = [*map(str, ranker.classes_.tolist())] if labels is None else [*labels]
    graph = _Additive(ranker, taken | {port.name for port in outputs})
    graph.build(inputs, [port.name for port in outputs], labels)
    columns = [each.port._asdict() | {"kind": each.kind} for each in inputs]
    return graph.model(
        [each.port for each in inputs],
        outputs,
        f"A scorer of cbrank {__version__}. It takes the columns of a table, an input for each, "
        f"and gives for each row score, probability of {labels[1]!r}, and label.",
        {
            "columns": json.dumps(columns),
            "left_out": json.dumps([name for name in names if name not in taken]),
            "labels": json.dumps(labels),
            "version": __version__,
        },
    )


def _inputs_of(ranker: AdditiveRanker, names: list[str]) -> list[Input]:
    """Return what the graph takes: all columns that are not left out."""
    encoder, inputs = ranker.encoder_, list[Input]()
    sentences, decisions = encoder.decisions(), encoder.decided()
    if len(names) != len(decisions):
        raise ValueError(f"`features` has {len(names)} names for {len(decisions)} columns.")
    known = encoder.known()
    texts = [name for name, each in zip(names, known, strict=True) if isinstance(each, TextColumn)]
    if texts:
        raise ValueError(
            f"column {', '.join(map(repr, texts))} holds free text, for which ONNX has no standard "
            "operators: score by cbrank, or train with the column dropped."
        )
    for place, (name, each) in enumerate(zip(names, known, strict=True)):
        if each is None:
            continue
        sentence, (kind, _, asked) = sentences[place], decisions[place]
        meaning = _MEANINGS[kind] + (_GAPS if kind == "word" and not asked else "")
        typed = "string" if kind == "word" else "double"
        port = Port(name, typed, f"{meaning} ({sentence})")
        inputs.append(Input(port, kind, each, asked))
        if isinstance(each, WordColumn) and each.buckets >= 0:
            port = Port(_bucket_of(name), "int64", _MEANINGS["bucket"].format(name))
            inputs.append(Input(port, "bucket"))
    if not inputs:
        raise ValueError("all columns are left out, or empty so far, so that there is no input.")
    return inputs


def _bucket_of(name: str) -> str:
    return f"{name}: bucket"


def _free(name: str, taken: set[str]) -> str:
    """Return the name of an output; it is another where a column has that name."""
    while name in taken:
        name += "_"
    return name


def _refuse_many(names: Sequence[str], ids: Ids) -> None:
    columns = ", ".join(repr(names[at]) for at in ids.columns)
    raise ValueError(
        f"each of the many categories of column {columns} has a weight of its own, at a place that ONNX has no "
        "standard operators to find: score by cbrank, or train with the column dropped."
    )


class _Additive(Graph):
    """The graph of a ranker."""

    def __init__(self, ranker: AdditiveRanker, taken: set[str]) -> None:
        super().__init__(taken)
        # The last feature, which place -1 finds, is none: the encoder may also be ahead of the weights.
        width = ranker.encoder_.width_
        self._weights = np.zeros(width + 1)
        method, state = ranker._now()
        served = ranker._served_of(method, state)
        weights = served.weights[:width]
        self._weights[: len(weights)] = weights
        self._trees = list[tuple[Forest, Any]]()
        for group, leaves in zip(state.beside, served.beside, strict=True):
            if isinstance(group.source, Ids):
                _refuse_many(ranker.encoder_.names(), group.source)
            self._trees.append((group.source, leaves))
        self._columns = dict[tuple[int, int], tuple[str, int]]()  # numbers: a matrix, and where
        self._words = dict[int, tuple[str, list[int]]]()  # codes of words, and features of codes
        self._intercept = float(ranker.intercept_[0])
        self._calibration = ranker.calibration()
        self._parts = list[str]()  # what columns add to the score

    def build(self, inputs: Sequence[Input], outputs: Sequence[str], labels: list[str]) -> None:
        """Add all nodes."""
        self._add_words(inputs)
        self._add_numbers(inputs)
        self._add_trees(inputs)
        if not self._parts:
            self._parts = [self.add("Expand", 0.0, self.add("Shape", inputs[0].port.name))]
        raw = self.add("Sum", *self._parts)
        score = self.add("Add", raw, self._intercept, output=outputs[0])
        # Not by Sigmoid, which runtimes round to 0 where probabilities are small.
        against = self.add("Exp", self.add("Neg", self._log_odds(raw, self._calibration)))
        self.add("Reciprocal", self.add("Add", against, 1.0), output=outputs[1])
        positive = self.cast(self.add("Greater", score, 0.0), "int64")
        self.add("Gather", np.array(labels), positive, output=outputs[2])

    # Words ---------------------------------------------------------------------------------------

    def _add_words(self, inputs: Sequence[Input]) -> None:
        for column in inputs:
            known, name = column.known, column.port.name
            if not isinstance(known, WordColumn):
                continue
            buckets = range(known.buckets, known.buckets + BUCKETS) if known.buckets >= 0 else ()
            places = [known.gap, known.other, *known.features.values(), *buckets]
            if max(places) < 0:
                continue
            codes = {word: 2 + at for at, word in enumerate(known.features)}
            codes |= dict.fromkeys([""] if column.asked else _spellings(), 0)
            code = self.code(name, codes, -1 if buckets else 1)
            if buckets:
                shared = self.add("Add", _bucket_of(name), np.array(2 + len(known.features)))
                code = self.add("Where", self.add("Less", code, np.array(0)), shared, code)
            self._parts.append(self.add("Gather", self._weights[places], code))
            self._words[known.owner] = code, places

    # Numbers and times ---------------------------------------------------------------------------

    def _add_numbers(self, inputs: Sequence[Input]) -> None:
        times = [column for column in inputs if isinstance(column.known, TimeColumn)]
        numbers = [column for column in inputs if isinstance(column.known, NumberColumn)]
        curves = [column.known for column in numbers]
        values = [self.add("Unsqueeze", column.port.name, np.array([1])) for column in numbers]
        for curve, value in zip(curves, values, strict=True):
            self._columns[curve.owner, forests.NUMBER] = value, 0
        if times:
            years, days, words = self._times(times)
            self._parts.append(words)
            curves += [column.known.year for column in times]
            curves += [column.known.days for column in times]
            values += [years, days]
        found = [*self._features(curves, self.side_by_side(values))] if curves else []
        if not found:
            return
        places = [place for some, _ in found for place in some]
        features = self.side_by_side([tensor for _, tensor in found])
        self._parts.append(self.add("MatMul", features, self._weights[places]))

    def _features(
        self, curves: Sequence[NumberColumn], values: str
    ) -> Iterator[tuple[Sequence[int], str]]:
        """Yield features of numbers, and their values."""
        gaps = [(at, curve.gap) for at, curve in enumerate(curves) if curve.gap >= 0]
        if gaps:
            columns, places = zip(*gaps, strict=True)
            cells = self.add("Gather", values, np.array(columns), axis=1)
            yield places, self.cast(self.add("IsNaN", cells), "double")
        singles = [(at, *pair) for at, curve in enumerate(curves) for pair in curve.singles.items()]
        if singles:
            columns, alone, places = zip(*singles, strict=True)
            cells = self.add("Gather", values, np.array(columns), axis=1)
            yield places, self.cast(self.add("Equal", cells, np.array(alone)), "double")
        most, shown = max(len(curve.sentinels) for curve in curves), values
        if most > 2:
            raise ValueError("a column has more values that stand apart than its two ends.")
        for level in range(most):
            apart, marked = np.full(len(curves), np.nan), [-1] * len(curves)
            for at, curve in enumerate(curves):
                if curve.curve is not None and len(curve.sentinels) > level:
                    apart[at], marked[at] = curve.curve.sentinels[level], curve.sentinels[level]
            marks = self.add("Equal", values, apart)
            yield marked, self.cast(marks, "double")
            shown = self.add("Where", marks, np.nan, shown)  # for the curve, these are gaps
        ramps = Pieces([(curve, at) for at, curve in enumerate(curves)]).ramps()
        if ramps.features.size:
            cells = self.add("Gather", shown, ramps.places, axis=1)
            lifted = self.add("Sub", self.add("Mul", cells, ramps.scale), ramps.low)
            share = self.add("Max", self.add("Div", lifted, ramps.run), ramps.least)
            share = self.add("Sub", self.add("Min", share, ramps.most), ramps.base)
            heights = self.add("Mul", share, ramps.height)
            known = self.add("Where", self.add("IsNaN", cells), 0.0, heights)
            yield ramps.features.tolist(), known

    def _times(self, times: Sequence[Input]) -> tuple[str, str, str]:
        """Return years and days since the first as numbers, and what months, weekdays and hours give."""
        known = [column.known for column in times]
        cells = [self.add("Unsqueeze", column.port.name, np.array([1])) for column in times]
        seconds = self.side_by_side(cells)
        gaps = self.add("Not", self.add("Less", self.add("Abs", seconds), LONGEST))
        whole = self.cast(self.add("Where", gaps, 0.0, seconds), "int64")
        moment = self.cast(whole, "double")
        day = self._floor(moment, _DAY)
        hour = self._floor(self._less(moment, day, _DAY), _HOUR)
        since_monday = self.add("Add", day, 3.0)  # 1970 began on a Thursday
        weekday = self._less(since_monday, self._floor(since_monday, 7.0), 7.0)
        year, month = self._year_and_month(day)
        years = self.add("Where", gaps, np.nan, year)
        firsts = np.array([np.nan if each.first is None else each.first for each in known])
        since = self.add("Div", self.add("Sub", seconds, firsts), _DAY)
        days = self.add("Where", gaps, np.nan, since)
        if self._trees:
            parts = [self.add("Where", gaps, np.nan, part) for part in (month, weekday, hour)]
            for part, values in enumerate([days, *parts], forests.DAYS):
                for at, column in enumerate(known):
                    self._columns[column.owner, part] = values, at
        return years, days, self._calendar(known, gaps, (month, weekday, hour))

    def _calendar(self, known: Sequence[TimeColumn], gaps: str, parts: Sequence[str]) -> str:
        """Return what the months, weekdays and hours of all columns of times give."""
        places, codes = list[int](), list[str]()
        for at, (part, (_, values)) in enumerate(zip(parts, PARTS, strict=True)):
            count = len(values)
            firsts = len(places) + (count + 1) * np.arange(len(known), dtype=np.float64)
            every = Words(np.arange(count, dtype=np.int32), values)
            for column in known:
                places += [*column.parts[at].places(every), column.gap if at == 0 else -1]
            code = self.add("Where", gaps, float(count), part)
            codes.append(self.cast(self.add("Add", code, firsts), "int64"))
        found = self.add("Gather", self._weights[places], self.side_by_side(codes))
        return self.add("ReduceSum", found, np.array([1]), keepdims=0)

    def _year_and_month(self, day: str) -> tuple[str, str]:
        """Return the year and the month, from 0, of days since 1970 in the Gregorian calendar.

        Years are counted from March, so that the leap day is the last; 400 of them are an era.
        """
        from_march = self.add("Add", day, 719468.0)
        era = self._floor(from_march, 146097.0)
        at = self._less(from_march, era, 146097.0)
        leap = [self._floor(at, days) for days in (1460.0, 36524.0, 146096.0)]
        even = self.add("Sub", self.add("Add", self.add("Sub", at, leap[0]), leap[1]), leap[2])
        of_era = self._floor(even, 365.0)
        before = self.add("Add", self.add("Mul", of_era, 365.0), self._floor(of_era, 4.0))
        before = self.add("Sub", before, self._floor(of_era, 100.0))
        of_year = self.add("Sub", at, before)
        fifths = self.add("Add", self.add("Mul", of_year, 5.0), 2.0)
        march_is_0 = self._floor(fifths, 153.0)
        late = self.add("Greater", march_is_0, 9.5)
        month = self.add("Add", march_is_0, self.add("Where", late, -10.0, 2.0))
        year = self.add("Add", of_era, self.add("Mul", era, 400.0))
        return self.add("Add", year, self.cast(late, "double")), month

    def _floor(self, tensor: str, divisor: float) -> str:
        return self.add("Floor", self.add("Div", tensor, divisor))

    def _less(self, tensor: str, count: str, unit: float) -> str:
        return self.add("Sub", tensor, self.add("Mul", count, unit))

    # Trees ---------------------------------------------------------------------------------------

    def _add_trees(self, inputs: Sequence[Input]) -> None:
        for forest, weights in self._trees:
            used = np.unique(forest.column[forest.left != NO_NODE])
            if used.size and weights.any():
                values = [self._decided_by(forest, at, inputs[0]) for at in used.tolist()]
                found = score_of_trees(self, forest, weights, used, self.side_by_side(values))
                self._parts.append(found)

    def _decided_by(self, forest: Forest, at: int, some: Input) -> str:
        """Return the numbers of a column by which trees decide, as a matrix."""
        owner, part = int(forest.columns.owner[at]), int(forest.columns.part[at])
        if part == forests.WORD and owner in self._words:
            code, places = self._words[owner]
            ranks = forests.ranks_of(forest.columns.words, np.array(places))
            return self.add("Unsqueeze", self.add("Gather", ranks, code), np.array([1]))
        if (owner, part) in self._columns:
            matrix, place = self._columns[owner, part]
            return self.add("Gather", matrix, np.array([place]), axis=1)
        rows = self.add("Shape", self.add("Unsqueeze", some.port.name, np.array([1])))
        return self.add("Expand", np.nan, rows)  # it has become words since

    # Probabilities -------------------------------------------------------------------------------

    def _log_odds(self, raw: str, curve: Calibration) -> str:
        """Return the log odds of scores before the intercept."""
        middle, unit = curve.anchor
        place = self.add("Div", self.add("Sub", raw, middle), unit)
        place = self.add("Clip", place, -_LARGEST, _LARGEST)
        evidence = place
        if curve.knots.size:
            (low, high), rises = curve.knots[0][[0, -1]], np.diff(curve.knots[1])
            runs = np.diff(curve.knots[0])
            column = self.add("Unsqueeze", place, np.array([1]))
            shares = self.add("Div", self.add("Sub", column, curve.knots[0][:-1]), runs)
            inside = self.add("MatMul", self.add("Clip", shares, 0.0, 1.0), rises)
            evidence = self.add("Add", inside, curve.knots[1][0])
            slopes = rises[[0, -1]] / runs[[0, -1]]
            under = self._log1p(self.add("Sub", low, place), slopes[0])
            above = self._log1p(self.add("Sub", place, high), slopes[1])
            evidence = self.add("Sub", self.add("Add", evidence, above), under)
        along = self.add("Mul", evidence, curve.along)
        line = self.add("Mul", place, curve.line)
        return self.add("Add", self.add("Add", along, line), curve.offset)

    def _log1p(self, distance: str, slope: float) -> str:
        far = self.add("Mul", self.add("Max", distance, 0.0), slope)
        return self.add("Log", self.add("Add", far, 1.0))


def _spellings() -> list[str]:
    """Return all words that stand for a gap, in small and capital letters."""
    return [
        "".join(letters)
        for word in sorted(GAP_WORDS)
        for letters in itertools.product(*(sorted({*letter, *letter.upper()}) for letter in word))
    ]
