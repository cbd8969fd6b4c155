"""Learning from files, with checkpoints: what ``cbrank train`` and ``cbrank update`` run.

* ``model``: ranker, scaler and columns in one model file
* ``run``: passes over files
* ``ages``: how long a model keeps
* ``order``: whether rows are sorted by label; ``shuffling``: rows in random order
* ``checkpoint``: where a run stopped; ``file_lock``: one process at a time
"""

from cbrank.training.checkpoint import Checkpoint, Every, Progress
from cbrank.training.model import Model
from cbrank.training.run import Run

__all__ = ["Checkpoint", "Every", "Model", "Progress", "Run"]
