"""Everything that is compiled at its first use, compiled now.

A step learns from, reads or measures a few made-up rows; what Numba compiles for it is kept on
disk, and later processes load it.
"""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from cbrank import kernels, rankers
from cbrank.metrics import ProgressiveAUC
from cbrank.rankers._base import Ranker
from cbrank.streams import Columns, StreamScaler, open_stream

Step = Callable[[], None]

_RANKERS: dict[str, list[dict[str, Any]]] = {
    "CBRanker": [{}, {"covariance": "diagonal"}],
    "OAMRanker": [{}, {"update": "gradient"}],
    "OPAUCRanker": [{}, {"rank": 2}],
    "AdaOAMRanker": [{}],
    "UniExpRanker": [{}],
    "SCWRanker": [{}, {"covariance": "diagonal"}],
    "FTRLAUCRanker": [{}],
    "SPAUCRanker": [{}],
}


def steps() -> dict[str, Step]:
    """Return what can be warmed up, by a short name.

    Returns
    -------
    dict of str to callable
        One step for each ranker, one for reading files, one for the AUC of a stream and for
        probabilities.

    Examples
    --------
    >>> from cbrank import warmup
    >>> list(warmup.steps())
    ['cbr', 'oam', 'opauc', 'adaoam', 'uniexp', 'scw', 'ftrlauc', 'spauc', 'reading', 'measuring']
    """
    learners = {_short(name): _learner(name) for name in _RANKERS}
    return learners | {"reading": _read, "measuring": _measure}


def folder() -> Path | None:
    """Return where compiled kernels are kept, or None where they cannot be."""
    cache = getattr(kernels.uniexp.learn, "_cache", None)
    path = getattr(cache, "cache_path", None)
    return None if path is None else Path(path)


def _short(name: str) -> str:
    return "cbr" if name == "CBRanker" else name.removesuffix("Ranker").lower()


def _learner(name: str) -> Step:
    def learn() -> None:
        for parameters in _RANKERS[name]:
            ranker = getattr(rankers, name)(random_state=0, **parameters)
            for width in _widths(ranker):
                _learn(ranker, width)

    return learn


def _widths(ranker: Ranker) -> list[int]:
    """Return how wide rows must be to come by all the kernels of a ranker."""
    blocked = isinstance(ranker, rankers.CBRanker) and ranker.covariance == "full"
    return [3, kernels.blocked.WORTHWHILE] if blocked else [3]


def _learn(ranker: Ranker, width: int) -> None:
    X = np.random.default_rng(0).standard_normal((12, width)) / width
    y = np.arange(12) % 2
    for rows in (X, sp.csr_array(X)):
        ranker.fit(rows, y).partial_fit(rows, y)
        ranker.decision_function(rows)


def _read() -> None:
    table, text = b"a,b,label\n1,2,no\n3,5,yes\n", b"-1 1:1 2:2\n1 1:3 2:5\n"
    columns = Columns(label="label")
    for source, meaning in ((table, columns), (text, Columns())):
        for chunk in open_stream(io.BytesIO(source), columns=meaning):
            for kind in ("standard", "maxabs", "unit"):
                scaler = StreamScaler(kind)
                scaler.learn_transform(chunk.X)
                scaler.transform(chunk.X)


def _measure() -> None:
    ProgressiveAUC(window=4).update([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.9]).get()
    kernels.platt.fit(np.array([0.1, 0.9]), np.array([0, 1]), np.array([0.5, 0.5]))
