"""Model files: everything needed to go on learning, safe to open, never half written.

* ``container``: one file of arrays and JSON facts, with a checksum
* ``state``: objects as arrays and facts
* ``values``: parameters, labels and texts with their exact types
"""

import os
from typing import Any

from cbrank.atomic import atomic_write
from cbrank.locking import undisturbed
from cbrank.modelfile.container import ModelFileError, read, write
from cbrank.modelfile.state import gather, restore, restore_steps
from cbrank.modelfile.values import texts_from_arrays, texts_to_arrays

__all__ = [
    "ModelFileError",
    "atomic_write",
    "gather",
    "load",
    "read",
    "restore",
    "restore_steps",
    "save",
    "texts_from_arrays",
    "texts_to_arrays",
    "write",
]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a ranker into a file from which it can go on learning.

    The file is in place only when it is whole and on the disk: until then, one that is there
    stays as it was.

    Parameters
    ----------
    model : ranker or Pipeline
        A ranker that has learned something, or a pipeline of cbrank's stream transformers that
        ends with one. A `CBRankerCV` becomes the `CBRanker` with the C it chose.
    path : path-like
        Where the file goes.

    Raises
    ------
    ValueError
        If `model` has learned nothing yet or is nothing that a model file can hold.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : Return the ranker.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import cbrank
    >>> path = Path(tempfile.mkdtemp(), "clicks.cbrank")
    >>> ranker = cbrank.CBRanker().partial_fit([[0.0, 1.0], [1.0, 1.0]], ["no", "yes"])
    >>> cbrank.save(ranker, path)
    >>> cbrank.load(path).partial_fit([[2.0, 0.0]], ["yes"]).n_seen_
    array([1, 2])
    """
    steps = getattr(model, "steps", [("model", model)])
    with undisturbed(step for _, step in steps):
        write(path, *gather(model=model))


def load(path: str | os.PathLike[str]) -> Any:
    """Return the ranker in a file, as it was when it was saved.

    Nothing in the file is executed, so it may come from anyone. With the same rows, a ranker that
    was saved and loaded goes on as if it had not been, to the last bit on one machine.

    Parameters
    ----------
    path : path-like
        A file that `save` wrote, or a checkpoint.

    Returns
    -------
    ranker or Pipeline
        What was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged or is of another format. The sentence says
        which.

    See Also
    --------
    save : Write the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import cbrank
    >>> path = Path(tempfile.mkdtemp(), "clicks.cbrank")
    >>> cbrank.save(cbrank.CBRanker(C=0.5).partial_fit([[0.0], [1.0]], [0, 1]), path)
    >>> cbrank.load(path)
    CBRanker(C=0.5)
    """
    arrays, facts = read(path)
    try:
        return restore("model", arrays, facts)
    except ModelFileError as error:
        raise ModelFileError(f"{path} does not hold a sound model: {error}.") from None
