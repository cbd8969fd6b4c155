"""What peers are measured on, an entry each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from cbrank.bench.peers import BUFFERS
from cbrank.bench.rows import Rows
from cbrank.bench.synthetic import NOISE, stream

Group = Literal["tabular", "text", "dimension", "buffer", "length"]

_OTHERS = (
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
    "CBR as it comes",
    "CBR-diag 50",
    "CBR-diag 10",
    "Plain loop 50",
    *_OTHERS,
)
_TEXT = ("CBR-diag 50", "CBR-diag 10", "CBR-diag as it comes", *_OTHERS)
_DIMENSION = (
    "CBR 50, last mean",
    "Plain loop 50",
    "CBR 10",
    "CBR-diag 50",
    "SGD averaged",
    "River LR",
)
_LENGTH = ("CBR 50", "CBR 10", "CBR-diag 50", "SGD averaged", "River LR")

DIMENSIONS = {10: 4000, 20: 4000, 54: 3000, 200: 1000, 500: 400, 1000: 200, 2000: 256, 5000: 256}
"""Features, and rows of a chunk that all peers can be given."""


@dataclass(frozen=True)
class Workload:
    """A stream and who learns from it.

    Attributes
    ----------
    name, title : str
        What it is called, on the command line and in tables.
    group : str
        What it is for.
    peers : tuple of str
        Who takes part.
    load : callable
        Returns `Rows` for a number of rows, or fewer, and a seed.
    cuts : tuple of int
        Where chunks end if there are as many rows; the first is the lead-in.
    passes : int
        How often it is done.
    quick : tuple of int
        The cuts of a quick run; none if it is left out of one.
    data : str
        The data set that it needs.
    extra : float
        How much longer it takes than a workload of small matrices, in peers.
    """

    name: str
    title: str
    group: Group
    peers: tuple[str, ...]
    load: Callable[[int, int], Rows]
    cuts: tuple[int, ...]
    passes: int = 1
    quick: tuple[int, ...] = ()
    data: str = ""
    extra: float = 0.0

    @property
    def work(self) -> float:
        """About how long it takes, beside others."""
        return len(self.peers) + self.extra


def _chunks(lead_in: int, rows: int, count: int) -> tuple[int, ...]:
    return tuple(range(lead_in, lead_in + rows * count + 1, rows))


def _real(name: str, scaling: str, rows: int, seed: int) -> Rows:
    """Load a data set in a random order, a fifth held out, at most 20,000 rows."""
    from sklearn.preprocessing import StandardScaler, normalize  # noqa: PLC0415

    from cbrank import datasets  # noqa: PLC0415

    X, y, _ = datasets.load(name)
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
    return Rows(X_learn, y[learn], X_held, y[rest])


def _synthetic(d: int, noise: str, rows: int, seed: int) -> Rows:
    return stream(d, noise, rows, 1000, seed)


def _tabular(data: str, cuts: tuple[int, ...], passes: int) -> list[Workload]:
    scalings = {"raw": "columns as they come", "standard": "standardised columns"}
    return [
        Workload(
            name=f"{data}-{scaling}",
            title=f"{data}, {words}",
            group="tabular",
            peers=_TABULAR,
            load=partial(_real, data, scaling),
            cuts=cuts,
            passes=passes,
            quick=_chunks(400, 1000, 3) if (data, scaling) == ("covtype", "standard") else (),
            data=data,
        )
        for scaling, words in scalings.items()
    ]


def _text(data: str, cuts: tuple[int, ...]) -> Workload:
    return Workload(
        name=data,
        title=f"{data}, rows of unit length",
        group="text",
        peers=_TEXT,
        load=partial(_real, data, "unit"),
        cuts=cuts,
        passes=7,
        quick=_chunks(300, 500, 2) if data == "farm-ads" else (),
        data=data,
    )


def _dimension(d: int, rows: int, noise: str) -> Workload:
    return Workload(
        name=f"d{d}-{noise}",
        title=f"{d:,} features, {noise}",
        group="dimension",
        peers=_DIMENSION,
        load=partial(_synthetic, d, noise),
        cuts=_chunks(200, rows, 5 if d <= 1000 else 3),
        passes=5 if d <= 54 else 1,
        quick=_chunks(200, max(rows // 5, 60), 3) if d in {20, 54, 200, 1000} else (),
        extra=(d / 500) ** 2,
    )


WORKLOADS = [
    *_tabular("covtype", _chunks(1000, 20_000, 5), passes=1),
    *_tabular("cod-rna", _chunks(1000, 20_000, 5), passes=1),
    *_tabular("spambase", _chunks(400, 800, 4), passes=5),
    _text("farm-ads", _chunks(300, 1000, 3)),
    _text("reuters", _chunks(300, 1000, 6)),
    _text("news20", _chunks(300, 400, 3)),
    *[_dimension(d, rows, noise) for d, rows in DIMENSIONS.items() for noise in NOISE],
    Workload(
        name="buffer",
        title="54 features, noisy, by rows buffered",
        group="buffer",
        peers=tuple(f"{form} {M}" for M in BUFFERS for form in ("CBR", "CBR-diag")),
        load=partial(_synthetic, 54, "noisy"),
        cuts=_chunks(500, 1000, 5),
        quick=_chunks(500, 200, 3),
    ),
    Workload(
        name="length",
        title="54 features, noisy, by rows seen",
        group="length",
        peers=_LENGTH,
        load=partial(_synthetic, 54, "noisy"),
        cuts=(500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000),
        quick=(500, 1000, 2000, 4000, 8000),
    ),
]
