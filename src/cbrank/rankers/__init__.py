"""The rankers: scikit-learn estimators around the kernels."""

import importlib
from typing import TYPE_CHECKING, Any

from cbrank.methods import ESTIMATORS

if TYPE_CHECKING:
    from cbrank.rankers.adaoam import AdaOAMRanker
    from cbrank.rankers.additive import AdditiveRanker
    from cbrank.rankers.cbr import CBRanker
    from cbrank.rankers.cbr_cv import CBRankerCV
    from cbrank.rankers.ftrl import FTRLAUCRanker
    from cbrank.rankers.oam import OAMRanker
    from cbrank.rankers.opauc import OPAUCRanker
    from cbrank.rankers.scw import SCWRanker
    from cbrank.rankers.spauc import SPAUCRanker
    from cbrank.rankers.uniexp import UniExpRanker

__all__ = [
    "AdaOAMRanker",
    "AdditiveRanker",
    "CBRanker",
    "CBRankerCV",
    "FTRLAUCRanker",
    "OAMRanker",
    "OPAUCRanker",
    "SCWRanker",
    "SPAUCRanker",
    "UniExpRanker",
]


def __getattr__(name: str) -> Any:
    """Import a ranker at its first use: `CBRankerCV` needs scikit-learn, the others do not."""
    if name in ESTIMATORS:
        return getattr(importlib.import_module(f"cbrank.rankers.{ESTIMATORS[name].module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
