"""Inspecting a model: its scores of rows, how well it ranks them, and its weights.

* ``scoring``: scores with their deviation, confidence and label
* ``evaluation``: measures of scored rows; ``ranked``: the rows from the highest score down, ``groups``:
  groups of them, ``summary``: an evaluation in words and tables, ``page``: as a page
* ``contents``: a model file opened to be looked at: what the model has seen
* ``weights``: weights with their confidence, largest effect first
* ``pictures``: the curves of an evaluation and the weights, drawn
* ``display``: what the columns of an `AdditiveRanker` do to scores, drawn
"""

from cbrank.inspection.display import CurvesDisplay

__all__ = ["CurvesDisplay"]
