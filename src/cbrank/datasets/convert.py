"""Convert public files of several formats to svmlight, the format that is kept and loaded."""

import contextlib
import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from cbrank.datasets.entry import Part
from cbrank.streams.sources import Source, open_bytes
from cbrank.streams.svmlight import read_svmlight_chunks

_ROWS = 65536


def read_svmlight(source: Source, n_features: int) -> tuple[csr_array, NDArray[np.float64]]:
    r"""Read a whole svmlight file.

    Examples
    --------
    >>> import io
    >>> X, labels = read_svmlight(io.BytesIO(b"2 1:0.5\n-1\n"), n_features=3)
    >>> X.shape, labels
    ((2, 3), array([ 2., -1.]))
    """
    chunks = list(read_svmlight_chunks(source, _ROWS, n_features=n_features))
    if not chunks:
        return csr_array((0, n_features)), np.empty(0)
    return vstack([X for X, _ in chunks], format="csr"), np.concatenate([y for _, y in chunks])


def write_svmlight(path: Path, X: csr_array, labels: NDArray[np.float64]) -> None:
    r"""Write rows to a gzipped svmlight file, from which every value reads back equal.

    The file gets its name only when it is complete.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.svm.gz")
    ...     write_svmlight(path, csr_array([[0.5, 0.0]]), np.array([1.0]))
    ...     gzip.decompress(path.read_bytes())
    b'1 1:0.5\n'
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with gzip.open(unfinished, "wt", encoding="ascii", newline="\n") as file:
            file.writelines(_lines(X, labels))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_part(path: Path, part: Part, n_features: int) -> tuple[csr_array, NDArray[np.float64]]:
    """Read a public file in the way that its entry in the registry describes.

    Raises
    ------
    ValueError
        If the file is not as the entry describes.
    """
    width = n_features + len(part.drop)
    with _opened(path, part.member) as stream:
        X, words = _read(stream, part, width)
    if X.shape[1] != width:
        raise ValueError(f"{path.name}: expected {width} features, found {X.shape[1]}.")
    if part.drop:
        X = X[:, np.delete(np.arange(width), part.drop)]
    return X, np.array([float(part.labels.get(word, word)) for word in words])


def _read(stream: IO[bytes], part: Part, width: int) -> tuple[csr_array, list[str]]:
    if part.form == "matlab":
        return _read_matlab(stream)
    if part.form == "svmlight":
        X, labels = read_svmlight(stream, width)
        return X, [f"{label:.17g}" for label in labels.tolist()]
    return _read_table(stream, "," if part.form == "commas" else None)


def _read_table(stream: IO[bytes], delimiter: str | None) -> tuple[csr_array, list[str]]:
    lines = stream.read().decode().splitlines()
    rows = [line.split(delimiter) for line in lines if line.strip()]
    X = np.array([row[:-1] for row in rows], dtype=np.float64)
    return csr_array(X), [row[-1].strip() for row in rows]


def _read_matlab(stream: IO[bytes]) -> tuple[csr_array, list[str]]:
    variables = scipy.io.loadmat(io.BytesIO(stream.read()), variable_names=("fea", "gnd"))
    X = csr_array(variables["fea"], dtype=np.float64)
    X.sort_indices()
    return X, variables["gnd"].ravel().astype(str).tolist()


@contextlib.contextmanager
def _opened(path: Path, member: str) -> Iterator[IO[bytes]]:
    if not member:
        with open_bytes(path) as stream:
            yield stream
    else:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            yield stream


def _lines(X: csr_array, labels: NDArray[np.float64]) -> Iterator[str]:
    indptr, indices, values = X.indptr.tolist(), (X.indices + 1).tolist(), X.data.tolist()
    for row, label in enumerate(labels.tolist()):
        entries = slice(indptr[row], indptr[row + 1])
        pairs = zip(indices[entries], values[entries], strict=True)
        yield f"{label:.17g}{''.join(f' {index}:{value!r}' for index, value in pairs)}\n"
