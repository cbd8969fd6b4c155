"""A model that is served, what reads rows for it, and how it comes out of a store."""

import hashlib
import logging
import time
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from cbrank.features.table import Words
from cbrank.inspection.scoring import both_labels, judge, knows_confidence
from cbrank.modelfile.container import ModelFileError
from cbrank.rankers.scorer import Judged
from cbrank.serving.store import Event, Snapshot, Store, StoreError
from cbrank.streams.objects import Objects, Row
from cbrank.training.model import Model

log = logging.getLogger("cbrank.serving")

_NARROW = 512  # columns, or features of svmlight text


class Served:
    """A model, and what reads rows for it."""

    def __init__(self, model: Model) -> None:
        self.model, self.objects = model, Objects(model.columns)
        self.labels = both_labels(model)
        self.with_std = knows_confidence(model)
        self.refresh()

    def refresh(self) -> None:
        """Judge by what the model has learned until now, and by nothing that it learns from now on."""
        self._moment = self.model.ranker.moment()
        self._frozen = Model(self.model.ranker, deepcopy(self.model.scaler), self.model.columns)

    def read(self, rows: Sequence[Row]) -> Any:
        """Return rows as the model takes them, which is the one time that they are decoded.

        Raises
        ------
        ValueError
            If the model cannot score them or learn from them; the sentence says why.
        """
        return self.objects.features(rows)

    def unreadable(self, X: Any, ranker: Any = None) -> dict[str, list[int]]:
        """Return the cells that hold no number or date where the model knows only these.

        Parameters
        ----------
        X : Table, ndarray or csr_array
            Rows that `read` returned.
        ranker : ranker, optional
            By whose columns; by default as of the last `refresh`.

        Returns
        -------
        dict of str to list of int
            By column, the rows in which the cell counts as a missing value.
        """
        if not self.model.takes_tables() or not any(isinstance(c, Words) for c in X.columns):
            return {}
        encoder = self._moment.state.front.encoder if ranker is None else ranker.encoder_
        names = dict(zip(encoder.kinds_, X.names, strict=True))  # which a ranker may not know
        return {names[own]: rows.tolist() for own, rows in encoder.misfits(X).items()}

    def judge(self, X: Any) -> Judged:
        """Return all that the model says of rows, as of the last `refresh`; from any thread."""
        return judge(self._frozen, X, with_std=self.with_std, moment=self._moment)

    def learn(self, labels: Sequence[str], X: Any) -> None:
        """Learn from the rows of one chunk."""
        negative, positive = self.labels
        if unknown := {*labels} - {negative, positive}:
            raise ValueError(f"the labels {sorted(unknown)} are none of the model's.")
        y = np.array([label == positive for label in labels], np.int64)
        self.model.learn_rows(X, y)

    def reads_rows_of(self, other: "Served") -> bool:
        """Say whether rows that another model scored, and their labels, mean the same to this one."""
        return self.signature() == other.signature()

    def signature(self) -> tuple[Any, ...]:
        """Return what rows and labels must have: names of columns or features, and both labels."""
        columns = self.model.columns
        names = None if columns.numeric_ is None else frozenset(columns.numeric_)
        categories = frozenset(columns.categorical)
        return type(columns), names, categories, columns.zero_based, frozenset(self.labels)


def warm_up(served: Served) -> None:
    """Have all compiled that scoring and learning need, before the first request waits for it."""
    rows: list[Row] = [dict.fromkeys(served.objects.names, 0.0)] * 2
    X = served.read(rows)
    served.judge(X)
    if served.model.ranker.n_features_in_ <= _NARROW:  # else a copy would take too much room
        Served(deepcopy(served.model)).learn(served.labels, X)


def learn_again(served: Served, chunk: list[Event]) -> None:
    """Learn from events that were learned in one call.

    Raises
    ------
    StoreError
        If they cannot be learned from, such as for lack of memory.
    """
    try:
        X = served.read([msgspec.json.decode(event.row) for event in chunk])
        served.learn([event.label for event in chunk], X)
    except Exception as error:
        raise StoreError(
            f"events {chunk[0].number} to {chunk[-1].number} could not be learned from "
            f"({type(error).__name__}: {error}). They were learned from before they were stored: "
            "make sure that there is as much memory as then, and that the store is that of this model."
        ) from error


# The start of a service ---------------------------------------------------------------------------


def begun(store: Store, given: bytes, path: Path, *, keep_events: bool) -> Served:
    """Return the model of a store, after all its events; a new store begins with the model given."""
    digest = hashlib.sha256(given).hexdigest()
    if not store.snapshots():
        served = opened(given, path)
        with store.transaction():
            store.set_fact("model", digest)
        store.add_snapshot(served.model, time.time(), given=True, keep_events=True)
        return served
    if store.fact("model") != digest:
        raise StoreError(
            f"{store.folder} goes on from another model than {path} is now: give the file that the "
            "service began with, another store for this one, or send it by POST /model."
        )
    served, snapshot, faults = resumed(store)
    for fault in faults:
        log.warning("damaged snapshot", extra={"facts": {"reason": fault}})
    if faults:  # else the next snapshot would push out the good one, and not those
        store.forget_after(snapshot)
    if keep_events:
        store.keep_from_now()
    store.tidy()  # only now is it known that nothing else is needed
    return served


def resumed(store: Store) -> tuple[Served, Snapshot, list[str]]:
    """Return the model of a store after all its events; the store stays as it is.

    Returns
    -------
    served : Served
        The model.
    snapshot : Snapshot
        The newest good snapshot, from which it was made.
    faults : list of str
        A sentence on each newer one.

    Raises
    ------
    StoreError
        If no snapshot is good, or an event is damaged.
    """
    model, snapshot, faults = load(store)
    served = Served(model)
    if count := store.count_events(snapshot.event):
        log.info("learning again", extra={"facts": {"events": count}})
    for chunk in store.chunks(snapshot.event):
        learn_again(served, chunk)
    served.refresh()
    return served, snapshot, faults


def load(store: Store) -> tuple[Model, Snapshot, list[str]]:
    """Return the model of the newest good snapshot, and a sentence on each newer one that is not.

    Raises
    ------
    StoreError
        If none is good.
    """
    faults, found = list[str](), store.snapshots()
    for snapshot in found:
        try:
            return Model.open(store.path(snapshot)), snapshot, faults
        except (OSError, ModelFileError) as error:
            faults.append(str(error))
    raise StoreError(
        f"{store.folder}: none of its {len(found)} snapshots is good: {' '.join(faults)} Bring the "
        "folder back from a backup, or serve a model with a new store."
    )


def faults_of(store: Store) -> list[str]:
    """Return all that is wrong with a store that could be opened.

    Every event is read and every snapshot opened, and the start of a service is made.
    """
    faults = []
    for snapshot in store.snapshots():
        try:
            Model.open(store.path(snapshot))
        except (OSError, ModelFileError) as error:
            faults.append(str(error))
    try:
        for _ in store.chunks(store.first_event() - 1):
            pass
        if store.snapshots():  # else the first start was stopped before it ended
            resumed(store)
    except StoreError as error:
        faults.append(str(error))
    return faults


def opened(file: bytes, path: Path | str = "the model") -> Served:
    """Return the model of a file."""
    return Served(Model.from_bytes(str(path), file))
