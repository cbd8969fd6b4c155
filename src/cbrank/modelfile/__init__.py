"""Model files: everything needed to go on learning, safe to open, never half written.

* ``container``: one file of arrays and JSON facts, with a checksum
* ``state``: objects as arrays and facts
* ``values``: parameters, labels and texts with their exact types
"""

import io
import os
from typing import Any, BinaryIO

from cbrank.atomic import atomic_write
from cbrank.locking import undisturbed
from cbrank.modelfile.container import ModelFileError, pack, read, unpack, write
from cbrank.modelfile.state import gather, restore, restore_steps
from cbrank.modelfile.values import texts_from_arrays, texts_to_arrays

__all__ = [
    "ModelFileError",
    "atomic_write",
    "dumps",
    "gather",
    "load",
    "loads",
    "read",
    "restore",
    "restore_steps",
    "save",
    "texts_from_arrays",
    "texts_to_arrays",
    "write",
]


def save(model: Any, path: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a ranker into a file from which it can go on learning.

    A file with a name is in place only when it is whole and on the disk: until then, one that is there
    stays as it was.

    Parameters
    ----------
    model : ranker or Pipeline
        A ranker that has learned something, or a pipeline of cbrank's stream transformers that
        ends with one. A `CBRankerCV` becomes the `CBRanker` with the C it chose.
    path : path-like or file
        Where the file goes, or a file that is open for writing bytes.

    Raises
    ------
    ValueError
        If `model` has learned nothing yet or is nothing that a model file can hold.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : Return the ranker.
    dumps : Return the bytes of the file.

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
        if isinstance(path, str | os.PathLike):
            write(path, *gather(model=model))
        else:
            pack(path, *gather(model=model))


def dumps(model: Any) -> bytes:
    """Return the bytes of the file that `save` writes.

    Parameters
    ----------
    model : ranker or Pipeline
        What `save` takes.

    Returns
    -------
    bytes
        A model file.

    See Also
    --------
    loads : Return the ranker.

    Examples
    --------
    >>> import cbrank
    >>> ranker = cbrank.CBRanker().partial_fit([[0.0, 1.0], [1.0, 1.0]], ["no", "yes"])
    >>> cbrank.loads(cbrank.dumps(ranker)).n_seen_
    array([1, 1])
    """
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


def loads(data: bytes | bytearray | memoryview) -> Any:
    """Return the ranker of which these are the bytes; it is as safe as `load`.

    Parameters
    ----------
    data : bytes-like
        What `dumps` returned, or the content of a model file.

    Returns
    -------
    ranker or Pipeline
        What was saved.

    Raises
    ------
    ModelFileError
        If the bytes are no model file, are damaged or are of another format. The sentence says which.

    See Also
    --------
    dumps : Return the bytes.

    Examples
    --------
    >>> import cbrank
    >>> try:
    ...     cbrank.loads(b"a model")
    ... except cbrank.ModelFileError as error:
    ...     print(error)
    The data is not a cbrank model file.
    """
    return load(io.BytesIO(data))


def load(path: str | os.PathLike[str] | BinaryIO) -> Any:
    """Return the ranker in a file, as it was when it was saved.

    Nothing in the file is executed, so it may come from anyone. With the same rows, a ranker that
    was saved and loaded goes on as if it had not been, to the last bit on one machine.

    Parameters
    ----------
    path : path-like or file
        A file that `save` wrote, or a checkpoint; its name, or the file open for reading bytes, which is read to its end.

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
    if isinstance(path, str | os.PathLike):
        name, (arrays, facts) = str(path), read(path)
    else:
        name, (arrays, facts) = "The data", _read_open(path)
    try:
        return restore("model", arrays, facts)
    except ModelFileError as error:
        raise ModelFileError(f"{name} does not hold a sound model: {error}.") from None


def _read_open(file: BinaryIO) -> Any:
    data = file.read()
    try:
        return unpack(io.BytesIO(data), len(data))
    except ModelFileError as error:
        raise ModelFileError(f"The data {error}") from None
