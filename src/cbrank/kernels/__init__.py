"""The mathematics: plain functions over arrays, compiled by Numba.

No scikit-learn, no files, no checking of input. Submodules are imported at their first use,
because importing them imports Numba:

* ``confidence``: the soft confidence-weighted step (Propositions 1 and 2) and the ranker's state
* ``buffers``: the two buffers per class, reservoir and FIFO (Algorithm 2)
* ``full``: CBR pair by pair (Algorithms 1 and 3); ``blocked``: the same as matrix products
* ``diagonal``, ``sparse_diagonal``: CBR-diag
* ``forgetting``: evidence that fades, for streams that change
* ``covariances``: factors of covariances, whatever the scale of the features
* ``oam``, ``opauc``, ``adaoam``, ``uniexp``: the online baselines
* ``scw``, ``ftrl``, ``spauc``: later rivals
* ``vectors``, ``steps``, ``random``: what they share; ``threads``: products by one thread
* ``window_auc``: the exact AUC of a sliding window; ``platt``: probabilities from scores
* ``svmlight``, ``csv``: the parsers of text, and ``numbers``, which they share; ``scaling``
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
        confidence,
        covariances,
        csv,
        diagonal,
        forgetting,
        ftrl,
        full,
        oam,
        opauc,
        platt,
        random,
        scaling,
        scw,
        sparse_diagonal,
        spauc,
        svmlight,
        threads,
        uniexp,
        window_auc,
    )

__all__ = [module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"cbrank.kernels.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
