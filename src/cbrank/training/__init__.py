"""Learning from files: the model that is trained, and what it was trained on.

* ``model``: ranker, scaler and columns in one model file
"""

from cbrank.training.model import Model

__all__ = ["Model"]
