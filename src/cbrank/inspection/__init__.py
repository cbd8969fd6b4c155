"""Inspecting a model: its scores of rows, how well it ranks them, and its weights.

* ``scoring``: scores with their deviation, confidence and label
* ``evaluation``: measures of scored rows
* ``contents``: a model file opened to be looked at: what the model has seen
* ``weights``: weights with their confidence, largest effect first
* ``pictures``: the ROC curve and the weights, drawn
* ``display``: what the columns of an `AdditiveRanker` do to scores, drawn
"""

from cbrank.inspection.display import CurvesDisplay

__all__ = ["CurvesDisplay"]
