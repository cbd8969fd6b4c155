"""Trees grown from rows that were learned, whose leaves are features that learners have weights for.

`fit` grows trees before it learns, each row with the leaves of trees that were grown without it. In a stream
trees are grown from the rows of the memory whenever there are four times as many rows as the last time; the trees
before them stay until the next ones come, and what is served of each goes by how they ranked rows since.
"""

from typing import Any

import numpy as np

from cbrank import kernels
from cbrank.features import forests, ids
from cbrank.features.encoder import TableEncoder
from cbrank.features.forests import Apart, Forest
from cbrank.kernels.trees import NO_NODE
from cbrank.learning import record
from cbrank.learning.method import Method
from cbrank.learning.state import Arrays, Batch, Indicators, State, arrays_of

Facts = dict[str, Any]

FIRST, _TIMES = 1024, 4
_MOST = 2  # generations of trees at a time


def grown_in_fit(method: Method, state: State, batch: Batch) -> tuple[State, Batch]:
    """Return a state with trees that some rows have grown, and these with what trees each may go by."""
    if method.leaves is None:
        return state, batch
    kept = batch.order
    rows = forests.Rows(batch.X.take(kept), batch.labels[kept], batch.weights[kept])
    seed = int(state.buffer.random[0])
    found = forests.grown(state.front.encoder, rows, seed, folds=True, trees=method.leaves.trees)
    if found is None:
        return state, batch
    forest, leaves = found
    every = np.full((len(batch.X), leaves.shape[1]), NO_NODE, np.int32)
    every[kept] = leaves
    apart = Apart(batch.X, every)
    state = _with_forest(method, state, forest, rows._replace(X=apart.take(kept)), 1.0)
    return state, batch._replace(X=apart)


def grown_before(method: Method, state: State, batch: Batch) -> State:
    """Return a state with trees that some rows have grown, for rankers that will learn others apart."""
    if method.leaves is None:
        return state
    kept = batch.order
    rows = forests.Rows(batch.X.take(kept), batch.labels[kept], batch.weights[kept])
    seed, trees = int(state.buffer.random[0]), method.leaves.trees
    found = forests.grown(state.front.encoder, rows, seed, folds=False, trees=trees)
    if found is None:
        return state
    return _with_forest(method, state, found[0]._replace(shared=True), rows, 1.0)


def grown_again(method: Method, state: State, before: int) -> State:
    """Return a state at the end of a block with new trees if it is time, `before` rows having come before it."""
    now = before + state.record.labels.size
    if not method.grows or state.memory is None or not _is_time(before, now):
        return state
    rows = state.memory.rows(np.array([now, 0]))
    if method.ids is not None:
        state = with_ids(method, state, ids.found(state.front.encoder, rows.X))
    if method.leaves is None or any(each.source.shared for each in _forests_of(state)):
        return state
    known = forests.Rows(rows.X, rows.labels, rows.weights)
    seed, trees = state.memory.seed + now, method.leaves.trees
    found = forests.grown(state.front.encoder, known, seed, folds=False, trees=trees)
    if found is None:
        return state
    while len(_trees_of(state)) >= _MOST:
        state = _without_weakest(state)
    return _with_forest(method, state, found[0], known, 0.0 if _trees_of(state) else 1.0)


def _trees_of(state: State) -> list[int]:
    """Return which groups are the leaves of trees."""
    return [at for at, group in enumerate(state.beside) if isinstance(group.source, Forest)]


def _forests_of(state: State) -> list[Indicators]:
    return [state.beside[at] for at in _trees_of(state)]


def _is_time(before: int, now: int) -> bool:
    milestone = FIRST
    while milestone <= before:
        milestone *= _TIMES
    return milestone <= now


def _with_forest(
    method: Method, state: State, forest: Forest, rows: forests.Rows, blend: float
) -> State:
    """Return a state with learners of the leaves of some trees, and what some rows say of their scores."""
    scores = forest.encode(state.front.encoder, rows.X) @ forest.value
    own = method.of_source(forest)
    known = record.known_from(scores, rows.labels, own.shape)
    group = begun(own, forest, int(state.buffer.random[0]))
    return with_group(state, group, known, blend)


def with_group(state: State, group: Indicators, known: record.Known, blend: float) -> State:
    """Return a state with one more group of learners."""
    held = record.with_group(state.record, known, blend)
    return state._replace(beside=(*state.beside, group), record=held)


def known_groups(state: State) -> list[tuple[Indicators, record.Known, float]]:
    """Return the groups beside the others, what is known of their learners and how much they weigh."""
    found, begin = list[tuple[Indicators, record.Known, float]](), len(state.models)
    for at, group in enumerate(state.beside):
        known = record.known_of(state.record, slice(begin, begin + len(group.models)))
        found.append((group, known, float(state.record.blend[at + 1])))
        begin += len(group.models)
    return found


def with_groups_of(method: Method, state: State, first: State) -> State:
    """Return a state with the groups that another has, which has learned nothing so far."""
    for group, known, blend in known_groups(first):
        own = begun(method.of_source(group.source), group.source, int(state.buffer.random[0]))
        state = with_group(state, own, known, blend)
    return state


def with_ids(method: Method, state: State, source: ids.Ids | None) -> State:
    """Return a state with learners of columns that have many categories, if there are any."""
    if source is None:
        return state
    for at, group in enumerate(state.beside):
        if isinstance(group.source, ids.Ids):  # places of other columns are in the same table
            both = group.source._replace(columns=np.union1d(group.source.columns, source.columns))
            beside = [*state.beside]
            beside[at] = group._replace(source=both)
            return state._replace(beside=tuple(beside))
    own = method.of_source(source)
    nothing = record.Known(
        np.zeros(own.shape),
        np.zeros((*own.shape, 3)),
        np.full(own.shape, 0.5),
        np.zeros(own.lasting),
    )
    return with_group(state, begun(own, source, int(state.buffer.random[0])), nothing, 1.0)


def begun(method: Method, source: Any, seed: int) -> Indicators:
    """Return learners before their first row: weights of leaves begin with what trees say."""
    models = tuple(method.new_model(source.width, True) for _ in range(method.lasting))
    held = source.value.copy() if isinstance(source, Forest) else np.zeros(source.width)
    for model in models:
        model.features[:, kernels.sparse_diagonal.MU] = held
    buffer = kernels.buffers.empty_sparse(*method.rows_kept(source.width), seed)
    return Indicators(source, models, buffer, held)


def _without_weakest(state: State) -> State:
    """Return a state without the trees that weigh least."""
    weakest = min(_trees_of(state), key=lambda at: float(state.record.blend[at + 1]))
    first = len(state.models) + sum(len(group.models) for group in state.beside[:weakest])
    learners = slice(first, first + len(state.beside[weakest].models))
    held = record.without_group(state.record, weakest + 1, learners)
    beside = state.beside[:weakest] + state.beside[weakest + 1 :]
    return state._replace(beside=beside, record=held)


# In files -----------------------------------------------------------------------------------------


def taken_out(method: Method, beside: tuple[Indicators, ...]) -> tuple[Arrays, list[Facts]]:
    """Return arrays and facts for files: of weights only those that are not as at the beginning."""
    arrays, facts = Arrays(), list[Facts]()
    for at, group in enumerate(beside):
        first = _arrays(begun(method.of_source(group.source), group.source, 1))
        own = Arrays()
        for name, array in _arrays(group).items():
            own[name] = array
            if _is_of_weights(name):
                changed = (array != first[name]).reshape(len(array), -1).any(axis=1)
                own[f"{name}_at"] = np.flatnonzero(changed)
                own[name] = array[changed]
        own |= {f"trees.{name}": array for name, array in group.source.arrays().items()}
        arrays |= {f"{at}.{name}": array for name, array in own.items()}
        facts.append(group.source.facts() if isinstance(group.source, Forest) else {})
    return arrays, facts


def from_arrays(
    method: Method, arrays: Arrays, facts: Any, encoder: TableEncoder
) -> list[tuple[Indicators, Arrays]]:
    """Return saved groups, without what their learners have learned, and the arrays of that."""
    found, known_arrays = [], 0
    for at, known in enumerate(facts):
        own = _within(f"{at}.", arrays)
        trees, rest = _within("trees.", own), {k: v for k, v in own.items() if k[:6] != "trees."}
        known_arrays += len(own)
        if "columns" in trees:
            source: Any = ids.Ids.from_arrays(trees, encoder)
        else:
            source = Forest.from_arrays(trees, known, encoder)
        own_method = method.of_source(source)
        if own_method is None:
            raise ValueError("its groups have no learners")
        group = begun(own_method, source, 1)
        for name, first in filter(lambda pair: _is_of_weights(pair[0]), _arrays(group).items()):
            rest[name] = _filled(first, rest.get(name), rest.pop(f"{name}_at", None))
        found.append((group._replace(held=rest.pop("held")), rest))
    if known_arrays != len(arrays):
        raise ValueError("it has arrays of groups that it does not speak of")
    return found


def _arrays(group: Indicators) -> Arrays:
    return arrays_of(group) | {"held": group.held}


def _is_of_weights(name: str) -> bool:
    return name == "held" or name.endswith(".features")


def _filled(first: Any, values: Any, at: Any) -> Any:
    """Return weights as at the beginning but for some; refuse what makes no sense."""
    if not (
        at is not None
        and values is not None
        and at.dtype == np.int64
        and values.dtype == np.float64
        and values.shape == (at.size, *first.shape[1:])
        and at.ndim == 1
        and (np.diff(at) > 0).all()
        and np.isin(at[[0, -1]] if at.size else at, np.arange(len(first))).all()
        and np.isfinite(values).all()
    ):
        raise ValueError("the weights of its groups make no sense")
    found = first.copy()
    found[at] = values
    return found


def _within(prefix: str, arrays: Arrays) -> Arrays:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
