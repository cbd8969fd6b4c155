"""One process at a time."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

_OURS = "cbrank"
_NO_LOCKS_HERE = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)  # what such file systems answer


def lock_file(path: str | os.PathLike[str]) -> Path:
    """Return the lock file of a file.

    Parameters
    ----------
    path : path-like
        The file that one process at a time may use.

    Returns
    -------
    Path
        The lock file beside it; where `path` is a link, beside what it links to.

    Examples
    --------
    >>> lock_file("run.ckpt").name
    'run.ckpt.cbrank-lock'
    """
    target = Path(os.path.realpath(path))
    return target.with_name(f"{target.name}.cbrank-lock")


@contextlib.contextmanager
def alone(path: str | os.PathLike[str], what: str = "checkpoint") -> Iterator[None]:
    """Keep other processes from using a file for as long as this context lasts.

    The lock is the operating system's and ends with the process, however that ends, so a lock
    file that a killed process left behind stops nobody.

    Parameters
    ----------
    path : path-like
        The file. Meanwhile ``path.cbrank-lock`` is beside it.
    what : str, default="checkpoint"
        What messages call the file.

    Raises
    ------
    ValueError
        If another process uses the file, if a file with the name of the lock file is not a lock
        file, or if the file system cannot lock.
    OSError
        If the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "run.ckpt")
    >>> with alone(path):
    ...     lock_file(path).name
    'run.ckpt.cbrank-lock'
    """
    file = lock_file(path)
    owner = _owner(file, what)
    lock = FileLock(file, fallback_to_soft=False, on_acquired=_sign)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise ValueError(
            f"{path} is in use by process {owner}: wait for it, or give this one a {what} of its own."
        ) from None
    except OSError as reason:
        if reason.errno not in _NO_LOCKS_HERE:
            raise
        raise ValueError(
            f"The file system of {path} cannot lock files: give a {what} on another."
        ) from reason
    try:
        yield
    finally:
        # Removed while still held: who has opened it already sees that, and opens a new one.
        # Windows keeps a file that is open; there the release removes it.
        with contextlib.suppress(OSError):
            file.unlink()
        lock.release()


def _owner(file: Path, what: str) -> str:
    """Return the process that a lock file names, or refuse a file that is no lock file."""
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            text = opened.read(100)
    except (FileNotFoundError, PermissionError):  # none, or locked on Windows
        return "of another"
    if text and not text.startswith(_OURS):
        raise ValueError(
            f"{file} is in the way: it is not the lock of a {what}. Move it, or give another {what}."
        )
    return text.removeprefix(_OURS).strip() or "of another"


def _sign(descriptor: int) -> None:
    """Write into a lock file whose it is."""
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{_OURS} {os.getpid()}".encode())
