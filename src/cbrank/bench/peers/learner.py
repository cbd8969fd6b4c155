"""What a peer must be able to do."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["dense", "sparse"]


class Learner:
    """A peer at work on one stream; a subclass says how it learns and scores.

    Attributes
    ----------
    batch : bool
        Whether it learns from all rows at once, in `finish`.
    matrices : bool
        Whether matrix products are what it should be spending its time on.
    learned : int or None
        Rows of the last chunk that it learned from, if not all.
    """

    batch = False
    matrices = False
    learned: int | None = None

    def prepare(self, X: Any, y: NDArray[np.int64]) -> Any:
        """Return rows in the form that the library takes; not timed."""
        return X, y

    def learn(self, rows: Any) -> None:
        """Go on learning from prepared rows; this is timed."""
        raise NotImplementedError

    def finish(self) -> None:
        """Do what needs all rows at once; timed if `batch`."""

    def scores(self, X: Any) -> NDArray[np.float64] | None:
        """Return the score of each row, or None if not all rows were learned from."""
        raise NotImplementedError

    def counts(self) -> tuple[int, int]:
        """Return the pairs met and those that fired."""
        return 0, 0

    def difference(self) -> float:
        """Return how far it is from `CBRanker`, if it should be the same."""
        return math.nan


@dataclass(frozen=True)
class Peer:
    """An entry of the benchmark.

    Attributes
    ----------
    name : str
        Its name in tables.
    make : callable
        Makes its learner, in the process that is measured.
    takes : tuple of {"dense", "sparse"}
        The rows that it can learn from.
    needs : dict of str to str
        Modules that must be installed, and how one gets them.
    """

    name: str
    make: Callable[[], Learner]
    takes: tuple[Kind, ...] = ("dense", "sparse")
    needs: dict[str, str] = field(default_factory=dict)

    def missing(self) -> str:
        """Say why it cannot run here; nothing if it can."""
        absent = [module for module in self.needs if find_spec(module) is None]
        return f"no {absent[0]}: {self.needs[absent[0]]}" if absent else ""
