"""The rankers: scikit-learn estimators around the kernels."""

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
