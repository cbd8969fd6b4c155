"""Everything that is compiled at its first use, compiled now.

A step learns from, reads or measures a few made-up rows; what Numba compiles for it is kept on
disk, and later processes load it.
"""

import io
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from cbrank import kernels
from cbrank.features import TableEncoder
from cbrank.learning.leaves import FIRST
from cbrank.learning.record import SHORTEST
from cbrank.methods import ESTIMATORS
from cbrank.metrics import ProgressiveAUC
from cbrank.rankers.additive import AdditiveRanker
from cbrank.rankers.base import Ranker
from cbrank.rankers.cbr import CBRanker
from cbrank.streams import Columns, StreamScaler, TableColumns, open_stream
from cbrank.workers import Workers

_ESTIMATORS = {each.module: each for each in ESTIMATORS.values() if each.variants}


def steps() -> list[str]:
    """Name what can be warmed up.

    Returns
    -------
    list of str
        One step for each ranker, one for reading files, one for encoding tables, one for trees, one for the
        AUC of a stream; those that take long come first.

    Examples
    --------
    >>> from cbrank import warmup
    >>> [name for name in warmup.steps() if name in ("cbr", "oam", "reading", "measuring")]
    ['cbr', 'oam', 'reading', 'measuring']
    """
    return [*_ESTIMATORS, *_OTHERS]


def compile_all(names: Iterable[str], jobs: int = 1) -> Iterator[str]:
    """Compile what some steps need.

    Parameters
    ----------
    names : iterable of str
        The steps.
    jobs : int, default=1
        How many processes share the steps; 1 for this one alone.

    Yields
    ------
    name : str
        Each step, when it is done.
    """
    if jobs == 1:
        yield from map(_compile, names)
    else:
        yield from Workers(jobs).unordered(_compile, [(name,) for name in names])


def folder() -> Path | None:
    """Return where compiled kernels are kept, or None where they cannot be."""
    cache = getattr(kernels.uniexp.learn, "_cache", None)
    path = getattr(cache, "cache_path", None)
    return None if path is None else Path(path)


def _says_more(record: logging.LogRecord) -> bool:
    return "compiling" not in record.getMessage()


def _compile(name: str) -> str:
    logging.getLogger("cbrank").addFilter(_says_more)  # that it compiles is known
    if name in _OTHERS:
        _OTHERS[name]()
    else:
        estimator = _ESTIMATORS[name]
        for variant in estimator.variants:
            # Narrow rows, and rows wide enough for kernels that work on blocks of columns.
            for width in (3, kernels.blocked.WORTHWHILE):
                _learn(estimator.new(variant, random_state=0), width)
    return name


def _learn(ranker: Ranker, width: int) -> None:
    X = np.random.default_rng(0).standard_normal((SHORTEST, width)) / width  # a block
    y = np.arange(SHORTEST) % 2
    for rows in (X, sp.csr_array(X)):
        ranker.fit(rows, y).partial_fit(rows, y)
        ranker.judge(rows[:1], with_std=isinstance(ranker, CBRanker))
    if isinstance(ranker, CBRanker):
        ranker.set_params(C=1.0).fit(X, y)
        for x, label in zip(X[:2], y[:2], strict=True):  # the first row after a fit is no plain one
            ranker.learn_one(x, label).predict_proba(X[:1])
            ranker.decision_function(X[:1])


def _read() -> None:
    table, text = b"a,b,label\n1,2,no\n3,5,yes\n", b"-1 1:1 2:2\n1 1:3 2:5\n"
    [*open_stream(io.BytesIO(table), columns=TableColumns(label="label"))]
    for source, meaning in ((table, Columns(label="label")), (text, Columns())):
        for chunk in open_stream(io.BytesIO(source), columns=meaning):
            for kind in ("standard", "maxabs", "unit"):
                scaler = StreamScaler(kind)
                scaler.learn_transform(chunk.X)
                scaler.transform(chunk.X)


def _encode() -> None:
    encoder = TableEncoder()
    table = encoder.read({"age": [1.0, 2.0, 3.0], "city": ["Oslo", "Rome", "Oslo"]})
    encoder.settle(table)
    encoder.encode_dense(table)


def _grow() -> None:
    random = np.random.default_rng(0)
    X, y = random.standard_normal((2 * FIRST, 2)), np.arange(2 * FIRST) % 2
    for ranker in (
        AdditiveRanker().fit(X[: 2 * SHORTEST], y[: 2 * SHORTEST]),
        AdditiveRanker(trees=2).partial_fit(X, y),
    ):
        ranker.contributions(X[:1])
        ranker.curve(0)


def _measure() -> None:
    ProgressiveAUC(window=4).update([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.9]).get()


_OTHERS = {"reading": _read, "encoding": _encode, "trees": _grow, "measuring": _measure}
