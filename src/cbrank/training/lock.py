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


@contextlib.contextmanager
def alone(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep other processes from a file meanwhile.

    The lock is the operating system's and ends with the process, however that ends, so a lock
    file that a killed process left behind stops nobody.

    Parameters
    ----------
    path : path-like
        The file; beside it is ``path.lock``, for as long as this lasts.

    Raises
    ------
    ValueError
        If another process has it.
    OSError
        If the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "run.ckpt")
    >>> with alone(path):
    ...     path.with_name("run.ckpt.lock").exists()
    True
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(f"{target.name}.lock")
    with _opened(lock, path) as file:
        file.truncate(0)
        file.write(str(os.getpid()).encode())
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
            _take(file)
        except OSError:
            file.seek(0)
            owner = file.read().decode("ascii", "replace")
            file.close()
            raise ValueError(
                f"{path} is in use by process {owner}: wait for it, or give this one a checkpoint "
                "of its own."
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(lock.stat(), os.fstat(file.fileno())):
                return file
        file.close()


def _take(file: IO[bytes]) -> None:
    """Lock a file, or raise an OSError at once."""
    if sys.platform == "win32":
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
