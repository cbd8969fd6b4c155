r"""One file of named arrays and JSON facts: safetensors with a checksum, written and read strictly.

A file is the length of its header in eight bytes, the header and the arrays one after the other.
The header of every file begins with the same text and the 64 digits of its checksum, the SHA-256
of the whole file with zeros in their place, so that no byte can change unseen.
"""

import functools
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cbrank.atomic import atomic_write
from cbrank.version import __version__

Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]

FORMAT = 4
LARGEST_HEADER = 2**20

# JSON takes up to a hundred times its letters as objects, so it may not have as many as it could.
_MOST_VALUES = 2**17
_DEEPEST = 16

_PIECE = 2**20  # bytes of an array that are put in order at a time

_OPENING = rb'{"__metadata__":{"cbrank":"{\"sha256\":\"'
_LENGTH = 8
_DIGITS = slice(_LENGTH + len(_OPENING), _LENGTH + len(_OPENING) + 64)
_UNSIGNED = "0" * 64
_DTYPES = {
    f"{letter}{8 * size}": np.dtype(f"<{kind}{size}")
    for letter, kind, sizes in (("F", "f", (2, 4, 8)), ("I", "i", (1, 2, 4, 8)), ("U", "u", (1, 2, 4, 8)))
    for size in sizes
} | {"BOOL": np.dtype(bool)}  # fmt: skip
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_OTHERS = {
    b"\x80": "a pickle, which could run code when opened",
    b"PK": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
}


class ModelFileError(ValueError):
    """A file is not a model file that this version can open.

    Examples
    --------
    >>> import tempfile
    >>> import cbrank
    >>> path = Path(tempfile.mkdtemp(), "model.cbrank")
    >>> path.touch()
    >>> try:
    ...     cbrank.load(path)
    ... except cbrank.ModelFileError as error:
    ...     print(str(error).replace(str(path), path.name))
    model.cbrank is empty.
    """


def write(path: str | os.PathLike[str], arrays: Mapping[str, Any], facts: Facts) -> None:
    """Write arrays and facts into one file, in place only when it is whole and on the disk.

    Parameters
    ----------
    path : path-like
        Where the file goes; one that is there is replaced.
    arrays : mapping of str to array-like
        Named arrays of numbers or booleans.
    facts : dict
        What JSON can say, up to a megabyte; lists of many texts belong into arrays, see
        `texts_to_arrays`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "notes")
    >>> write(path, {"seen": [3, 4]}, {"rows": 7})
    >>> arrays, facts = read(path)
    >>> arrays["seen"], facts["rows"]
    (array([3, 4]), 7)
    """
    with atomic_write(path) as file:
        pack(file, arrays, facts)


def pack(file: BinaryIO, arrays: Mapping[str, Any], facts: Facts) -> None:
    """Write arrays and facts into a file that is open; what cannot be written is a ValueError."""
    laid = _in_order(arrays)
    header = _header(laid, facts)
    digest = hashlib.sha256(_with_checksum(header, _UNSIGNED))
    for piece in _pieces(laid):
        digest.update(piece)
    file.write(_with_checksum(header, digest.hexdigest()))
    for piece in _pieces(laid):
        file.write(piece)


def refuse_unwritable(arrays: Mapping[str, Any], facts: Facts) -> None:
    """Raise the ValueError that `write` would, and write nothing."""
    _header(_in_order(arrays), facts)


def read(path: str | os.PathLike[str]) -> tuple[Arrays, Facts]:
    """Read the arrays and the facts of a file; nothing in it is executed.

    Parameters
    ----------
    path : path-like
        A file that `write` wrote.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays, the caller's own.
    facts : dict
        The facts, with the ``format`` and the library ``versions`` of the file.

    Raises
    ------
    ModelFileError
        If the file is no such file, is damaged or is of another format.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "notes")
    >>> write(path, {"seen": [3, 4]}, {"rows": 7})
    >>> read(path)[1]["format"]
    4
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise ModelFileError("is not a file.")
        with Path(path).open("rb") as file:
            return unpack(file, os.fstat(file.fileno()).st_size)
    except ModelFileError as error:
        raise ModelFileError(f"{path} {error}") from None


def checksum(path: str | os.PathLike[str]) -> str:
    """Return the checksum that a file names; whether it is that of its content, `read` finds out.

    Parameters
    ----------
    path : path-like
        A file that `write` wrote.

    Returns
    -------
    str
        64 digits, or what stands in their place.
    """
    if not Path(path).is_file():
        raise ModelFileError(f"{path} is not a file.")
    with Path(path).open("rb") as file:
        return file.read(_DIGITS.stop)[_DIGITS].decode("ascii", "replace")


def brief(error: Exception) -> str:
    """Return what an error says in few and printable characters, whatever a file made it say."""
    return "".join(c if c.isprintable() else "?" for c in str(error)[:300])


# Writing ----------------------------------------------------------------------------------------


def _in_order(arrays: Mapping[str, Any]) -> Arrays:
    """Return the arrays as they lie in the file: wide numbers first, so that all are aligned."""
    laid = {}
    for name, values in arrays.items():
        array = np.asarray(values)
        dtype = array.dtype.newbyteorder("<")
        if dtype not in _CODES:
            raise ValueError(f"{name} is an array of {dtype}, which a model file cannot hold.")
        laid[name] = np.asarray(array, dtype=dtype)
    return dict(sorted(laid.items(), key=lambda item: (-item[1].itemsize, item[0])))


def _header(arrays: Arrays, facts: Facts) -> bytes:
    said = {"sha256": _UNSIGNED, "format": FORMAT, "versions": _versions(), **facts}
    entries: Facts = {"__metadata__": {"cbrank": _compact(said)}}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        code = _CODES[array.dtype]
        entries[name] = {"dtype": code, "shape": array.shape, "data_offsets": [begin, end]}
    header = _compact(entries).encode()
    if len(header) > LARGEST_HEADER:
        raise ValueError(f"The facts would take {len(header)} bytes, more than {LARGEST_HEADER}.")
    _refuse_swelling(header.decode(), facts)
    return header + b" " * (-len(header) % _LENGTH)


def _with_checksum(header: bytes, digits: str) -> bytes:
    """Return the length and the header, with these digits in the place of the checksum."""
    whole = len(header).to_bytes(_LENGTH, "little") + header
    return whole[: _DIGITS.start] + digits.encode() + whole[_DIGITS.stop :]


def _compact(value: Facts) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _pieces(arrays: Arrays) -> Iterator[memoryview]:
    """Yield the bytes of arrays in order; of one that lies otherwise only a piece is copied."""
    left = list(arrays.values())[::-1]
    while left:
        array = left.pop()
        if array.flags.c_contiguous or array.nbytes <= _PIECE:
            yield _bytes(np.ascontiguousarray(array))
        elif len(array) == 1:
            left.append(array[0])
        else:
            half = len(array) // 2
            left += [array[half:], array[:half]]


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


@functools.cache
def _versions() -> dict[str, str]:
    others = {name: importlib.metadata.version(name) for name in ("numba", "numpy", "scikit-learn")}
    return {"cbrank": __version__, "python": platform.python_version(), **others}


# Reading ----------------------------------------------------------------------------------------


def unpack(file: BinaryIO, size: int) -> tuple[Arrays, Facts]:
    """Read a file of `size` bytes; an error says what it is, for a sentence that names the file.

    An array is made only when the header has been checked against the size of the file.
    """
    header = _read_header(file, size)
    try:
        facts, arrays = _parse(header, size - _LENGTH - len(header))
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"is damaged: {brief(error)}.") from None
    digest = hashlib.sha256(_with_checksum(header, _UNSIGNED))
    for name, array in arrays.items():
        if file.readinto(_bytes(array)) != array.nbytes:  # type: ignore[attr-defined]
            raise ModelFileError("was cut short while it was read.")
        digest.update(_bytes(array))
        if array.dtype == bool and (array.view(np.uint8) > 1).any():
            raise ModelFileError(f"is damaged: {name} has truth values beyond true and false.")
    if digest.hexdigest() != facts.pop("sha256"):
        raise ModelFileError("is damaged: its content is not what its checksum says.")
    return arrays, facts


def _read_header(file: BinaryIO, size: int) -> bytes:
    if not size:
        raise ModelFileError("is empty.")
    start = file.read(_DIGITS.stop)
    length = int.from_bytes(start[:_LENGTH], "little")
    if not start[_LENGTH:].startswith(_OPENING):
        if len(start) > _LENGTH and _OPENING.startswith(start[_LENGTH:]):
            raise ModelFileError("is cut short.")
        other = "".join(f" {kind}," for magic, kind in _OTHERS.items() if start.startswith(magic))
        raise ModelFileError(f"is{other} not a cbrank model file.")
    if not _DIGITS.stop <= _LENGTH + length <= _LENGTH + LARGEST_HEADER:
        raise ModelFileError(f"is damaged: its header cannot have {length} bytes.")
    header = start[_LENGTH:] + file.read(length - len(start) + _LENGTH)
    if len(header) < length:
        raise ModelFileError(f"is cut short: it ends before its header of {length} bytes does.")
    return header


def _parse(header: bytes, room: int) -> tuple[Facts, Arrays]:
    entries = _from_json(header.decode("ascii"))
    match entries.pop("__metadata__"):
        case {"cbrank": str(text), **others} if not others:
            facts = _from_json(text)
        case _:
            raise ValueError("it has more than one text")
    _refuse_other_format(facts)
    _refuse_odd_versions(facts)
    return facts, _room_for(entries, room)


def _room_for(entries: Facts, room: int) -> Arrays:
    """Make the arrays to be read, which lie one after the other and fill the rest of the file."""
    arrays, end = {}, 0
    for name, entry in entries.items():
        match entry:
            case {"dtype": str(code), "shape": [*shape], "data_offsets": [begin, stop], **others}:
                known = code in _DTYPES and not others
                if not known or not _is_shape(shape):
                    raise ValueError(f"{name!r} is not an array that a model file can hold")
                if begin != end or stop != end + math.prod(shape) * _DTYPES[code].itemsize:
                    raise ValueError(f"{name!r} does not lie between its neighbours")
                if stop > room:
                    raise ValueError(f"it ends before its array {name!r} does")
            case _:
                raise ValueError(f"{name!r} is not described as an array")
        arrays[name], end = np.empty(shape, _DTYPES[code]), stop
    if end < room:
        raise ValueError(f"it goes on for {room - end} bytes behind its arrays")
    return arrays


def _is_shape(axes: list[Any]) -> bool:
    """Say whether NumPy knows arrays of such a shape, empty ones included."""
    whole = all(type(axis) is int and axis >= 0 for axis in axes)
    return whole and len(axes) <= 8 and math.prod(max(axis, 1) for axis in axes) < 2**56


def _from_json(text: str) -> Facts:
    _refuse_swelling(text, {})
    try:
        found = json.loads(
            text, object_pairs_hook=_once, parse_float=_finite, parse_constant=_finite
        )
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its header is not JSON as it should be ({error})") from None
    _refuse_swelling("", found)
    if type(found) is not dict:
        raise ValueError("its header is not JSON as it should be (it is no object)")
    return found


def _refuse_swelling(text: str, value: Any) -> None:
    """Refuse JSON with too many values or too deep nesting."""
    if sum(map(text.count, ",[{")) > _MOST_VALUES:
        raise ValueError("its header has too many values")
    level = [value]
    for _ in range(_DEEPEST):
        inner = [list(item.values()) if type(item) is dict else item for item in level]
        level = [item for items in inner for item in items if type(item) in (dict, list)]
        if not level:
            return
    raise ValueError("its header has values within values, and too deep")


def _once(pairs: list[tuple[str, Any]]) -> Facts:
    """Return a JSON object; refuse one that has a name twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not a finite number")
    return number


def _refuse_odd_versions(facts: Facts) -> None:
    versions = facts.get("versions")
    texts = [*versions, *versions.values()] if type(versions) is dict else [None]
    if not all(type(text) is str and text.isprintable() and len(text) <= 100 for text in texts):
        raise ValueError("it does not say what wrote it")


def _refuse_other_format(facts: Facts) -> None:
    found = facts.get("format")
    if type(found) is not int or found < 1:
        raise ValueError("it does not say its format")
    if found != FORMAT:
        raise ModelFileError(
            f"has format {found}, and this version of cbrank reads format {FORMAT}: open it with the "
            "version that wrote it."
        )
