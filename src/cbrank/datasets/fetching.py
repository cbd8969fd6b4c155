"""Download data sets into the cache."""

import urllib.parse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from cbrank.datasets.checks import check
from cbrank.datasets.convert import read_part, write_svmlight
from cbrank.datasets.download import DownloadError, download
from cbrank.datasets.entry import DataSet, Part
from cbrank.datasets.registry import info
from cbrank.datasets.store import cache_folder, data_folder, find


def fetch(name: str, progress: bool = True) -> Path:
    """Download a data set, unless all of it is on this machine already.

    Parameters
    ----------
    name : str
        One of `names`.
    progress : bool, default=True
        Whether to show the progress of a download on standard error.

    Returns
    -------
    Path
        The file, in svmlight form: embedded, in the folder that the environment variable
        ``CBRANK_DATA`` names, or in the cache (``CBRANK_CACHE``, else the platform's), where a
        download goes.

    Raises
    ------
    ValueError
        If there is no such data set.
    DownloadError
        If the data set cannot be downloaded; the message says why and what to do.
    ModuleNotFoundError
        If a download is needed and pooch is not installed.

    Examples
    --------
    >>> from cbrank import datasets
    >>> datasets.fetch("glass").name
    'glass.svm.xz'
    """
    entry = info(name)
    found = find(entry)
    if found and found.contents is entry:
        return found.path
    try:
        return _fetch(entry, cache_folder(), progress)
    except OSError as reason:
        raise DownloadError(f"{name} cannot be fetched: {reason} {_cure(name)}") from reason


def _fetch(entry: DataSet, folder: Path, progress: bool) -> Path:
    files = [_download(entry.name, part, folder / "parts", progress) for part in entry.parts]
    try:
        X, labels = _join(entry, files)
    except Exception as reason:
        _remove(files)
        raise DownloadError(f"the downloaded file is not as expected: {reason}") from reason
    path = folder / f"{entry.name}.svm.gz"
    write_svmlight(path, X, labels)
    _remove(files)
    return path


def _download(name: str, part: Part, folder: Path, progress: bool) -> Path:
    file = folder / f"{name}-{Path(urllib.parse.urlsplit(part.address).path).name}"
    download(part.address, file, sha256=part.sha256, progress=progress)
    return file


def _join(entry: DataSet, files: list[Path]) -> tuple[csr_array, NDArray[np.float64]]:
    pieces = [
        read_part(file, part, entry.features) for file, part in zip(files, entry.parts, strict=True)
    ]
    X = vstack([X for X, _ in pieces], format="csr")
    labels = np.concatenate([labels for _, labels in pieces])
    check(entry, entry, X, labels, " + ".join(part.address for part in entry.parts))
    return X, labels


def _remove(files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _cure(name: str) -> str:
    folder = data_folder()
    now = "not set" if folder is None else str(folder)
    return (
        f"Try again later, or put {name}.svm.xz into the folder that CBRANK_DATA names "
        f"(now {now}); downloads go to {cache_folder()} unless CBRANK_CACHE is set."
    )
