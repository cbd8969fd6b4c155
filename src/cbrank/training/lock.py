"""One process at a time."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


_OURS = b"cbrank"
_BEYOND = 2**20


def lock_file(path: str | os.PathLike[str]) -> Path:
    """Return the file that says that a process has another.

    Parameters
    ----------
    path : path-like
        The file that processes want for themselves.

    Returns
    -------
    Path
        The file beside it, or beside what it links to.

    Examples
    --------
    >>> lock_file("run.ckpt").name
    'run.ckpt.cbrank-lock'
    """
    target = Path(os.path.realpath(path))
    return target.with_name(f"{target.name}.cbrank-lock")


@contextlib.contextmanager
def alone(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep other processes from a file meanwhile.

    The lock is the operating system's and ends with the process, however that ends, so a lock
    file that a killed process left behind stops nobody.

    Parameters
    ----------
    path : path-like
        The file; beside it is ``path.cbrank-lock``, for as long as this lasts.

    Raises
    ------
    ValueError
        If another process has it, or a file of that name holds something else.
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
    lock = lock_file(path)
    with _opened(lock, path) as file:
        file.truncate(0)
        file.write(b"%b %d" % (_OURS, os.getpid()))
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows keeps a file that is open
                lock.unlink()


def _opened(lock: Path, path: str | os.PathLike[str]) -> IO[bytes]:
    """Open and lock the file of this name, which another process may be about to remove."""
    while True:
        file = lock.open("a+b", buffering=0)
        try:
            file.seek(0)
            told = file.read(100)
            if told and not told.startswith(_OURS):
                raise ValueError(
                    f"{lock} is in the way: it is not the lock of a checkpoint. Move it, or give "
                    "another checkpoint."
                )
            if not _taken(file):
                owner = told.removeprefix(_OURS).decode("ascii", "replace") or " of another"
                raise ValueError(
                    f"{path} is in use by process{owner}: wait for it, or give this one a "
                    "checkpoint of its own."
                )
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(lock.stat(), os.fstat(file.fileno())):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()


def _taken(file: IO[bytes]) -> bool:
    """Lock a file, if no other process has."""
    try:
        if sys.platform == "win32":
            file.seek(_BEYOND)  # what is locked there cannot be read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
