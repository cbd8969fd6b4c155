"""How a ranker learns: what its parameters say, as the loop over blocks goes by it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.learning.pool import Learner
from cbrank.learning.selection import Selection

State = Any  # a `cbrank.learning.state.State`, which is made by a method
Floats = NDArray[np.float64]


def _weights_of(model: Any, readout: int, columns: Any) -> Floats:  # noqa: ARG001
    weights: Floats = model.w[columns]
    return weights


def _as_before(_: "Method", state: State) -> Any:
    return state.buffer


class Kernels(NamedTuple):
    """The functions that stream rows into a model: dense or sparse ones."""

    dense: Callable[..., None] | None
    sparse: Callable[..., None] | None = None
    blocked: Callable[..., None] | None = None  # dense ones of many features, many of them kept


@dataclass(frozen=True, slots=True)
class Method:
    """How rows are learned.

    Attributes
    ----------
    new_model : callable
        Gives the model before its first row, for a number of features and whether rows are sparse.
    kernels : Kernels
        The functions that stream rows into a model.
    parameters : tuple of tuples
        For each learner the numbers that its kernel goes by.
    needs_matrix : bool
        Whether the model is d x d, so that rows are dense.
    rows_kept : callable
        Gives, for a number of features, how many rows of each class are kept at first, and for how many
        there is room; the rows of rankers that learn without a buffer only tell what is typical.
    learners : tuple of Learner
        The learners there may be.
    pool : bool
        Whether C is "auto".
    lasting : int
        How many learners there are where rows come in random order.
    joins : bool
        Whether one more learns where rows come in their order.
    new_memory : callable, optional
        Gives the sample of all rows before the first, for a seed, if one is kept.
    readouts : sequence of int
        Which readouts are served.
    n_readouts : int
        How many each learner has.
    weights : callable
        Gives the weights of a readout of a model, in some columns.
    buffer_after : callable
        Gives the buffer after a block, for this method and a state whose record has been measured.
    multiplies : bool
        Whether to learn takes products of matrices, which threads share out, whatever the kernel.
    of_matrix : tuple of Method, optional
        The same without and with a d x d model, if what columns are decides that.
    leaves : Method, optional
        How leaves of trees are learned, if trees are grown.
    ids : Method, optional
        How columns of many categories are learned.
    trees : int, optional
        How many trees are grown where their number was asked for.
    grows : bool
        Whether trees are grown as rows come.
    selection : Selection, optional
        Which weights are served, if not all.
    """

    new_model: Callable[[int, bool], Any]
    kernels: Kernels
    parameters: tuple[Any, ...]
    needs_matrix: bool = False
    rows_kept: Callable[[int], tuple[int, int]] = lambda _: (50, 50)
    learners: tuple[Learner, ...] = (Learner(1.0),)
    pool: bool = False
    lasting: int = 1
    joins: bool = False
    new_memory: Callable[[int], Any] | None = None
    readouts: Sequence[int] = (0,)
    n_readouts: int = 1
    weights: Callable[[Any, int, Any], Floats] = _weights_of
    buffer_after: Callable[["Method", State], Any] = _as_before
    multiplies: bool = False
    of_matrix: tuple["Method", "Method"] | None = None
    leaves: "Method | None" = None
    ids: "Method | None" = None
    trees: int | None = None
    grows: bool = True
    selection: Selection | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Learners where rows come in random order, and readouts of each."""
        return self.lasting, self.n_readouts

    def of_source(self, source: Any) -> Any:
        """Return how the features from some source beside the others are learned."""
        return getattr(self, source.kind)

    def of_state(self, state: State) -> "Method":
        """Return the method of a state whose columns are decided."""
        return self if self.of_matrix is None else self.of_matrix[not state.sparse]


class Settings(NamedTuple):
    """What a stream is learned by for as long as no parameter changes."""

    read: Callable[[dict[str, Any]], tuple[Any, ...]]
    values: tuple[Any, ...]  # of the parameters, `read` from the attributes
    class_weight: Any  # a copy, for a dictionary changes within
    method: Method
    sparse: bool  # the state's, which the method depends on
    weights: Floats  # of the classes
