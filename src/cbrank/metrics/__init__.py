"""Metrics of a ranking: operating points of the ROC curve, AUC intervals, AUC of a stream."""

from cbrank.metrics.interval import AUCInterval, auc_interval
from cbrank.metrics.progressive import ProgressiveAUC
from cbrank.metrics.roc import (
    OperatingPoint,
    accuracy_at_operating_point,
    optimal_operating_point,
)

__all__ = [
    "AUCInterval",
    "OperatingPoint",
    "ProgressiveAUC",
    "accuracy_at_operating_point",
    "auc_interval",
    "optimal_operating_point",
]
