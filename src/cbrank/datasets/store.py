"""Find data sets on this machine."""

import os
import sys
from pathlib import Path
from typing import Literal, NamedTuple

from cbrank.datasets.entry import Contents, DataSet
from cbrank.datasets.registry import info, names

Origin = Literal["embedded", "CBRANK_DATA", "cache", "download"]

_EMBEDDED = Path(__file__).with_name("data")
_ENDINGS = (".svm.xz", ".svm", ".svm.gz", ".svm.bz2", ".svm.zst", "")


class Found(NamedTuple):
    """A file on this machine, where it was found, and the counts that it must have."""

    path: Path
    origin: Origin
    contents: Contents


def find(entry: DataSet) -> Found | None:
    """Return the file on this machine that holds a data set or its sample, if there is one.

    Examples
    --------
    >>> find(info("glass")).path.name
    'glass.svm.xz'
    """
    for stem, contents in _candidates(entry):
        for origin, folder in _folders():
            for ending in _ENDINGS:
                path = folder / f"{stem}{ending}"
                if path.is_file():
                    return Found(path, origin, contents)
    return None


def available() -> list[str]:
    """Name the data sets that load without the network, samples included.

    Returns
    -------
    list of str
        Those among the embedded files, in the folder that the environment variable
        ``CBRANK_DATA`` names, and in the cache.

    Examples
    --------
    >>> from cbrank import datasets
    >>> set(datasets.available()) >= {"glass", "german", "diabetes", "vehicle", "segment"}
    True
    """
    return [name for name in names() if find(info(name))]


def cache_folder() -> Path:
    """Return the folder for downloads: ``CBRANK_CACHE``, else the platform's cache folder.

    Examples
    --------
    >>> cache_folder().is_absolute()
    True
    """
    if chosen := os.environ.get("CBRANK_CACHE"):
        return Path(chosen).expanduser().absolute()
    home = Path("~").expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return (base / "cbrank").absolute()


def data_folder() -> Path | None:
    """Return the folder that the environment variable ``CBRANK_DATA`` names, if it is set."""
    chosen = os.environ.get("CBRANK_DATA")
    return Path(chosen).expanduser().absolute() if chosen else None


def _folders() -> list[tuple[Origin, Path]]:
    folders: list[tuple[Origin, Path]] = [("embedded", _EMBEDDED)]
    if folder := data_folder():
        folders.append(("CBRANK_DATA", folder))
    return [*folders, ("cache", cache_folder())]


def _candidates(entry: DataSet) -> list[tuple[str, Contents]]:
    whole: list[tuple[str, Contents]] = [(entry.name, entry)]
    return [*whole, (entry.sample.file, entry.sample)] if entry.sample else whole
