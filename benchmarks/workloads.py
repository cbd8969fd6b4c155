"""The data that peers learn from: real and synthetic streams, an entry in `WORKLOADS` each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.peers import BUFFER_SIZES

Group = Literal["tabular", "text", "dimension", "buffer", "length", "short"]

NOISE = {"easy": 0.02, "third": 0.2, "noisy": 0.3}
"""Share of flipped labels: few pairs of a sweep fire, about a third, or a quarter to a half.

The share that fires falls as features grow in number; it is a third at 20 to 100 of them.
"""

_DISTANCE = 2.0  # between the classes' means; rows lie about 1 away from their mean

_LIBRARIES = (
    "SGD",
    "SGD hinge",
    "SGD averaged",
    "Batch LR",
    "River LR",
    "River AdPredictor",
    "Vowpal Wabbit",
    "LibAUC",
)
_TABULAR = (
    "CBR 50",
    "CBR 10",
    "CBR 10, row by row",
    "CBR default",
    "CBR fixed C",
    "CBR 50, C auto",
    "CBR-diag 50",
    "CBR-diag 10",
    "Plain loop 50",
    *_LIBRARIES,
)
_TEXT = (
    "CBR-diag 50",
    "CBR-diag 10",
    "CBR-diag default",
    "CBR-diag 50, one call",
    "SGD, one call",
    "SGD, ten passes",
    *_LIBRARIES,
)
_WIDE_SWEEPS = ("CBR 50, no averaging", "Plain loop 50", "CBR 10, no averaging")
_SWEEPS = (*_WIDE_SWEEPS, "Plain loop 10")
_OTHERS = ("CBR-diag 50", "SGD averaged", "River LR")
_LENGTH = ("CBR 50", "CBR 10", "CBR-diag 50", "SGD averaged", "River LR")

_CHUNK_ROWS = {
    8: 16_000, 20: 16_000, 30: 8000, 54: 3000, 100: 2000, 128: 1500, 200: 1000, 500: 400, 1000: 200,
    2000: 256, 5000: 256,
}  # fmt: skip
"""Rows of a chunk by features: few enough for the slowest peer, enough for a process that others have waited
beside to be at its pace for most of it."""

_WITH_OTHERS = {8, 20, 54, 200, 500, 1000, 2000, 5000}
"""Numbers of features at which other libraries learn too."""

SHORT = 128
"""The most features at which no sweep may be slower than the plain loop, with 10 buffered or 50."""


class Split(NamedTuple):
    """The rows that every peer of a workload learns from, and those held out to measure AUC."""

    X: Any
    y: NDArray[np.int64]
    X_held: Any
    y_held: NDArray[np.int64]

    @property
    def kind(self) -> str:
        """Whether the rows are dense or sparse."""
        return "sparse" if sparse.issparse(self.X) else "dense"


@dataclass(frozen=True)
class Workload:
    """A stream and the peers that learn from it.

    Attributes
    ----------
    name, title : str
        Its name on the command line, and in tables.
    group : str
        What it shows.
    peers : tuple of str
        Names of the peers.
    load : callable
        Returns a `Split` for a number of rows to learn from (fewer if there are not as many) and a
        seed.
    ends : tuple of int
        The row at which each chunk ends. The first chunk is the lead-in: it fills CBR's buffers and
        its time does not count.
    repeats : int
        How often the whole is measured, each time with new learners.
    quick : tuple of int
        The ends of a quick run's chunks; empty if a quick run leaves it out.
    data : str
        The data set that it needs, if it is not synthetic.
    extra : float
        Work beyond that of small matrices, in the time that a peer takes for those.
    """

    name: str
    title: str
    group: Group
    peers: tuple[str, ...]
    load: Callable[[int, int], Split]
    ends: tuple[int, ...]
    repeats: int = 1
    quick: tuple[int, ...] = ()
    data: str = ""
    extra: float = 0.0

    @property
    def work(self) -> float:
        """Rough duration relative to other measurements, for the time that remains."""
        return len(self.peers) + self.extra


def synthetic(d: int, noise: str, rows: int, held: int, seed: int) -> Split:
    """Draw two Gaussian clouds, one for each class, and flip some labels.

    Parameters
    ----------
    d : int
        Features.
    noise : {"easy", "noisy"}
        How many labels are flipped, see `NOISE`.
    rows, held : int
        Rows to learn from, and rows held out.
    seed : int
        Seed of the draw.

    Returns
    -------
    Split
        About as many positive as negative rows.
    """
    random = np.random.default_rng([seed, d])
    direction = random.standard_normal(d)
    direction *= _DISTANCE / np.linalg.norm(direction)
    truth = random.integers(0, 2, rows + held)
    X = random.standard_normal((rows + held, d)) / np.sqrt(d)
    X += np.outer(2.0 * truth - 1.0, direction / 2.0)
    y = np.where(random.random(rows + held) < NOISE[noise], 1 - truth, truth)
    return Split(X[:rows], y[:rows], X[rows:], y[rows:])


def _synthetic(d: int, noise: str, rows: int, seed: int) -> Split:
    return synthetic(d, noise, rows, 1000, seed)


def _real(name: str, scaling: str, rows: int, seed: int) -> Split:
    """Shuffle a data set and hold a fifth of it out, but no more than 20,000 rows."""
    from sklearn.preprocessing import StandardScaler, normalize  # noqa: PLC0415

    from docs.one_class import load  # noqa: PLC0415

    X, y = load(name)
    order = np.random.default_rng(seed).permutation(len(y))
    held = min(len(y) // 5, 20_000)
    learn, rest = np.sort(order[held:][:rows]), order[:held]
    learn = np.random.default_rng(seed).permutation(learn)
    X_learn, X_held = X[learn], X[rest]
    if scaling == "unit":
        X_learn, X_held = normalize(X_learn), normalize(X_held)
    elif scaling == "standard":
        scaler = StandardScaler().fit(X_learn)
        X_learn, X_held = scaler.transform(X_learn), scaler.transform(X_held)
    return Split(X_learn, y[learn], X_held, y[rest])


def _chunks(lead_in: int, rows: int, count: int) -> tuple[int, ...]:
    """Return the ends of a lead-in and of chunks of as many rows each."""
    return tuple(range(lead_in, lead_in + rows * count + 1, rows))


def _tabular(data: str, ends: tuple[int, ...], repeats: int) -> list[Workload]:
    scalings = {"raw": "raw columns", "standard": "standardised columns"}
    return [
        Workload(
            name=f"{data}-{scaling}",
            title=f"{data}, {words}",
            group="tabular",
            peers=_TABULAR,
            load=partial(_real, data, scaling),
            ends=ends,
            repeats=repeats,
            quick=_chunks(400, 1000, 3) if (data, scaling) == ("covtype", "standard") else (),
            data=data,
        )
        for scaling, words in scalings.items()
    ]


def _text(data: str, ends: tuple[int, ...]) -> Workload:
    return Workload(
        name=data,
        title=f"{data}, rows of unit length",
        group="text",
        peers=_TEXT,
        load=partial(_real, data, "unit"),
        ends=ends,
        repeats=7,
        quick=_chunks(300, 500, 2) if data == "farm-ads" else (),
        data=data,
    )


def _dimension(d: int, rows: int, noise: str) -> Workload:
    sweeps = _SWEEPS if d <= SHORT or noise == "third" else _WIDE_SWEEPS
    others = _OTHERS if noise != "third" and d in _WITH_OTHERS else ()
    return Workload(
        name=f"d{d}-{noise}",
        title=f"{d:,} features, " + ("a third fires" if noise == "third" else noise),
        group="dimension",
        peers=(*sweeps, *others),
        load=partial(_synthetic, d, noise),
        ends=_chunks(200, rows, 5 if d <= 1000 else 3),
        repeats=3 if d <= SHORT else 1,
        quick=_chunks(200, max(rows // 5, 60), 3) if d in {20, 54, 200, 1000} else (),
        extra=(d / 500) ** 2,
    )


_DIMENSIONS = [
    _dimension(d, rows, noise)
    for d, rows in _CHUNK_ROWS.items()
    for noise in NOISE
    if noise != "third" or d <= 200
]


WORKLOADS = [
    *_tabular("covtype", _chunks(1000, 20_000, 5), repeats=1),
    *_tabular("cod-rna", _chunks(1000, 20_000, 5), repeats=1),
    *_tabular("spambase", _chunks(400, 800, 4), repeats=5),
    _text("farm-ads", _chunks(300, 1000, 3)),
    _text("reuters", _chunks(300, 1000, 6)),
    _text("news20", _chunks(300, 400, 3)),
    *_DIMENSIONS,
    Workload(
        name="short",
        title="500 rows of 54 features",
        group="short",
        peers=("CBR 50", "CBR 50, C auto", "CBR fixed C", "CBR default"),
        load=partial(_synthetic, 54, "third"),
        ends=(100, 500),
        repeats=20,
        quick=(100, 500),
    ),
    Workload(
        name="buffer",
        title="54 features, noisy, by rows buffered",
        group="buffer",
        peers=tuple(f"{form} {M}" for M in BUFFER_SIZES for form in ("CBR", "CBR-diag")),
        load=partial(_synthetic, 54, "noisy"),
        ends=_chunks(500, 1000, 5),
        quick=_chunks(500, 200, 3),
    ),
    Workload(
        name="length",
        title="54 features, noisy, by rows seen",
        group="length",
        peers=_LENGTH,
        load=partial(_synthetic, 54, "noisy"),
        ends=(500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000),
        quick=(500, 1000, 2000, 4000, 8000),
    ),
]
