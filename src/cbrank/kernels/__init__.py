"""The numerical code: plain functions over arrays, compiled by Numba.

No scikit-learn, no files and no validation: callers pass C-ordered float64 arrays, labels 0 and 1.
Rows are always passed as read-only views. Layout and writeability are part of a type for Numba, so
that one compiled version serves arrays of every origin, those mapped read-only by joblib included.
Submodules are imported at their first use, so that ``import cbrank`` need not import Numba:

* ``confidence``: the soft confidence-weighted step (Propositions 1 and 2) and the state of a ranker
* ``buffers``: one buffer of rows per class, reservoir sampling (Algorithm 2) or FIFO
* ``full``: CBR, pair by pair (Algorithms 1 and 3); ``blocked``: the same by matrix products
* ``diagonal``, ``sparse_diagonal``: CBR-diag on dense and on sparse rows
* ``one_row``: one row by one call (``row_table``); ``scores``: of rows, the same to the last bit alone and among others
* ``forgetting``: exponential forgetting, for streams whose distribution changes
* ``encoding``: features of rows of a table; ``deviations``: of scores
* ``covariances``: Cholesky factors of badly scaled covariance matrices
* ``oam``, ``opauc``, ``adaoam``, ``uniexp``: the paper's baselines
* ``scw``, ``ftrl``, ``spauc``: later competing methods
* ``vectors``, ``steps``, ``random``: shared by all learners; ``threads``: one BLAS thread at a time
* ``prequential``: rows are tested, then learned from: honest AUC; ``calibration``: probabilities
* ``window_auc``: exact AUC of a sliding window
* ``trees``: trees of decisions, grown from histograms
* ``svmlight``, ``csv``: parsers of text; ``numbers``: decimal to double; ``scaling``: of columns
"""

import importlib
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # to type checkers, all in a module that is not listed here is Any
    from cbrank.kernels import (  # noqa: F401
        adaoam,
        blocked,
        buffers,
        calibration,
        confidence,
        covariances,
        csv,
        diagonal,
        forgetting,
        ftrl,
        full,
        oam,
        one_row,
        opauc,
        prequential,
        random,
        row_table,
        scaling,
        scores,
        scw,
        sparse_diagonal,
        spauc,
        svmlight,
        threads,
        trees,
        uniexp,
        window_auc,
    )

__all__ = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"cbrank.kernels.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
