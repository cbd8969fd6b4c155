"""A model that is served, and what reads rows for it."""

import logging
from collections.abc import Sequence

import numpy as np

from cbrank.inspection.scoring import both_labels, knows_confidence
from cbrank.streams.objects import Objects, Row
from cbrank.training.model import Model

log = logging.getLogger("cbrank.serving")


class Served:
    """A model, and what reads rows for it."""

    def __init__(self, model: Model) -> None:
        self.model, self.objects = model, Objects(model.columns)
        self.labels = both_labels(model)
        self.with_std = knows_confidence(model)

    def learn(self, labels: Sequence[str], rows: Sequence[Row]) -> str | None:
        """Learn from the rows of one chunk; return why not, if that cannot be done.

        The same chunk fails again when events are replayed, and changes nothing then either.
        """
        y = np.array([label == self.labels[1] for label in labels], np.int64)
        try:
            self.model.learn_rows(self.objects.features(rows), y)
        except ValueError as error:
            return str(error)
        except Exception as error:
            log.exception("not learned")
            return f"internal error: {type(error).__name__}: {error}"
        return None
