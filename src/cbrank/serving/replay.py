"""A model from the events of a store: the same as the one served, or one with other parameters."""

from collections.abc import Callable
from pathlib import Path

from cbrank.serving.served import Served, learn_again
from cbrank.serving.store import Store, StoreError
from cbrank.training.model import Model


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
        if not (snapshots := store.snapshots()):
            raise StoreError(f"{folder} has no model yet: start the service once.")
        first = snapshots[-1]
        begin = Model.open(store.path(first))
        served = Served(begin if make is None else make(begin))
        done, total = 0, store.count_events(first.event)
        if make is not None and not total:
            raise StoreError(
                f"{folder} has no events to learn from: a service with `keep_events=True` keeps all."
            )
        for chunk in store.chunks(first.event):
            learn_again(served, chunk)
            done += len(chunk)
            progress(done, total, served.model)
        return served.model, done
    finally:
        store.close()
