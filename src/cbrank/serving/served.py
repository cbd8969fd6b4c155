"""A model that is served, what reads rows for it, and how it comes out of a store."""

import hashlib
import logging
import time
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import msgspec
import numpy as np

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

    def judge(self, rows: Sequence[Row]) -> Judged:
        """Return all that the model says of rows, as of the last `refresh`; from any thread."""
        X = self.objects.features(rows)
        return judge(self._frozen, X, with_std=self.with_std, moment=self._moment)

    def learn(self, labels: Sequence[str], rows: Sequence[Row]) -> str | None:
        """Learn from the rows of one chunk; return why not, if it is refused.

        It is refused again when events are replayed, and changes nothing then either.
        """
        y = np.array([label == self.labels[1] for label in labels], np.int64)
        try:
            self.model.learn_rows(self.objects.features(rows), y)
        except ValueError as error:
            return str(error)
        return None


def warm_up(served: Served) -> None:
    """Have all compiled that scoring and learning need, before the first request waits for it."""
    rows: list[Row] = [dict.fromkeys(served.objects.names, 0.0)] * 2
    served.judge(rows)
    if served.model.ranker.n_features_in_ <= _NARROW:  # else a copy would take too much room
        Served(deepcopy(served.model)).learn(served.labels, rows)


def learn_again(served: Served, chunk: list[Event]) -> None:
    """Learn from events that were learned in one call, or that failed in one.

    Raises
    ------
    StoreError
        If something else went wrong than the rows, such as memory that is not there.
    """
    try:
        rows = [msgspec.json.decode(event.row) for event in chunk]
        served.learn([event.label for event in chunk], rows)
    except Exception as error:
        raise StoreError(
            f"events {chunk[0].number} to {chunk[-1].number} could not be learned from "
            f"({type(error).__name__}); if there is memory enough, this is a mistake in cbrank: "
            "please report it."
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
