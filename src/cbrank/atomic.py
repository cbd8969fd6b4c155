"""Files that are in place only when they are whole and on the disk."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` once it is written and on the disk.

    Whatever goes wrong before, a full disk or an interrupt, `path` stays as it was and nothing is
    left beside it. Where `path` is a link, the file it points to is replaced.

    Parameters
    ----------
    path : path-like
        Where the file goes; its folder must exist.

    Yields
    ------
    file : binary file
        The new file, to be written but not closed.

    Raises
    ------
    OSError
        If the file cannot be written; the sentence names `path`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "notes")
    >>> with atomic_write(path) as file:
    ...     _ = file.write(b"all of it")
    >>> path.read_bytes()
    b'all of it'
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".cbrank-{secrets.token_hex(8)}.tmp")
    try:
        mode = _mode(target)
        try:
            with draft.open("xb") as file:
                if mode is not None:
                    draft.chmod(mode)
                yield file
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(error.errno, f"{path} could not be written: {reason}") from error


def atomic_write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, in UTF-8 and with its line ends as they are, by `atomic_write`.

    Parameters
    ----------
    path : path-like
        Where the file goes; its folder must exist.
    text : str
        All that it is to contain.

    Raises
    ------
    OSError
        If the file cannot be written; the sentence names `path`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "notes")
    >>> atomic_write_text(path, "all of it")
    >>> path.read_text(encoding="utf-8")
    'all of it'
    """
    with atomic_write(path) as file:
        file.write(text.encode())


def _mode(target: Path) -> int | None:
    """Return the permissions of the file to be replaced, if there is one."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise FileExistsError(errno.EEXIST, "it is there and is not a file")
    return stat.S_IMODE(mode)


def _sync_folder(folder: Path) -> None:
    """Bring a folder's new name to the disk, on systems where folders can be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
