"""A model from the events of a store: the same as the one served, or one with other parameters."""

import hashlib
import logging
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from cbrank.serving.served import Served
from cbrank.serving.store import Event, Store, StoreError
from cbrank.training.model import Model

log = logging.getLogger("cbrank.serving")


def replay(
    folder: Path,
    make: Callable[[Model], Model] | None = None,
    progress: Callable[[int, int, Model], None] = lambda *_: None,
) -> tuple[Model, int]:
    """Learn from the events of a store again.

    Parameters
    ----------
    folder : path
        The store, whether a service uses it or not.
    make : callable, optional
        Takes the model that the events began with, and returns one that has learned nothing yet. By
        default learning goes on from the one they began with, which gives the model that is served.
    progress : callable, optional
        Called with the events so far, all of them, and the model.

    Returns
    -------
    model : Model
        What was learned.
    events : int
        From how many events.
    """
    store = Store.look_into(folder)
    try:
        first = store.snapshots()[-1]
        begin = store.open_snapshot(first)
        served = Served(begin if make is None else make(begin))
        done, total = 0, store.count_events(first.event)
        if make is not None and not total:
            raise StoreError(
                f"{folder} has no events to learn from: a service with `keep_events=True` keeps all."
            )
        for chunk in store.chunks(first.event):
            served.learn(
                [event.label for event in chunk],
                [msgspec.json.decode(event.row) for event in chunk],
            )
            done += len(chunk)
            progress(done, total, served.model)
        return served.model, done
    finally:
        store.close()


def _learn(served: Served, chunk: list[Event]) -> None:
    rows = [msgspec.json.decode(event.row) for event in chunk]
    served.learn([event.label for event in chunk], rows)


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
    if keep_events:
        store.keep_from_now()
    store.tidy()
    model, snapshot, faults = store.load()
    for fault in faults:
        log.warning("damaged snapshot", extra={"facts": {"reason": fault}})
    served = Served(model)
    for chunk in store.chunks(snapshot.event):
        _learn(served, chunk)
    return served


def opened(file: bytes, path: Path | str = "the model") -> Served:
    """Return the model of a file."""
    return Served(Model.from_bytes(str(path), file))
