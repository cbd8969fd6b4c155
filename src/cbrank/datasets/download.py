"""Download files over HTTP: broken downloads are resumed, checksums compared."""

import contextlib
import logging
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cbrank.optional import need

_BLOCK = 2**12  # small: when a connection breaks, the bytes of a block begun are lost
_TIMEOUT = 30.0
_WHOLE, _PARTIAL, _UNSATISFIABLE = 200, 206, 416  # what HTTP servers answer


class DownloadError(OSError):
    """A data set could not be downloaded from its public address.

    Examples
    --------
    >>> issubclass(DownloadError, OSError)
    True
    """


def download(
    address: str,
    target: Path,
    *,
    sha256: str | None = None,
    progress: bool = False,
    timeout: float = _TIMEOUT,
) -> None:
    """Download a file, unless it is there already.

    When the connection breaks, the bytes received stay in ``target.part`` and only the rest is
    asked for: at once, as long as each attempt brings more, and else by the next call. `target`
    itself is there only when the file is complete.

    Parameters
    ----------
    address : str
        An http or https address.
    target : Path
        Where the file goes; its folder is made if need be.
    sha256 : str, optional
        The checksum that the file must have.
    progress : bool, default=False
        Whether to report on standard error.
    timeout : float, default=30.0
        Seconds without an answer after which to give up.

    Raises
    ------
    DownloadError
        If the file cannot be downloaded; the message names the address and the reason.
    ModuleNotFoundError
        If pooch, which downloads, is not installed.

    Examples
    --------
    >>> download("file:///etc/hosts", Path("hosts"))
    Traceback (most recent call last):
    cbrank.datasets.download.DownloadError: file:///etc/hosts: not an http or https address.
    """
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise DownloadError(f"{address}: not an http or https address.")
    pooch = need("pooch", "a download", "datasets")
    transfer = _Transfer(target.with_name(f"{target.name}.part"), progress, timeout)
    with _quiet(pooch.get_logger()):
        try:
            pooch.retrieve(address, sha256, target.name, target.parent, downloader=transfer)
        except ValueError as reason:
            if sha256 is None:
                raise
            raise DownloadError(f"{address}: not the file with SHA-256 {sha256}.") from reason


class _Transfer:
    """The downloader that pooch calls; it goes on where an earlier attempt stopped."""

    def __init__(self, part: Path, progress: bool, timeout: float) -> None:
        self.part, self.progress, self.timeout = part, progress, timeout
        self.total: int | None = None  # bytes of the whole file, once the server has told

    def __call__(self, address: str, target: str, _: Any) -> None:
        while not self._attempt(address):
            pass
        self.part.replace(target)

    def _attempt(self, address: str) -> bool:
        """Return whether the file is whole now; if not, it is worth another attempt."""
        before = _size(self.part)
        try:
            with self.part.open("ab") as file:
                self._append(address, file)
        except OSError as reason:
            self._raise_unless_hopeful(address, reason, before)
            return False
        return True

    def _append(self, address: str, file: IO[bytes]) -> None:
        """Ask for the bytes that are missing and append them."""
        have = file.tell()
        self.total = None

        def begin(response: Any, *_: Any, **__: Any) -> None:
            start = response.headers.get("Content-Range", "")
            misplaced = response.status_code == _PARTIAL and not start.startswith(f"bytes {have}-")
            if misplaced or response.status_code == _WHOLE:  # all of it comes again
                file.seek(0)
                file.truncate()
            if misplaced:
                raise ConnectionError(f"asked for the bytes from {have} on, got {start!r}")
            length = response.headers.get("Content-Length", "")
            self.total = file.tell() + int(length) if length.isdecimal() else None

        headers = {"User-Agent": "cbrank", "Accept-Encoding": "identity"}
        downloader = need("pooch", "a download", "datasets").HTTPDownloader(
            progressbar=self.progress and _Meter(self.part.stem, file),
            chunk_size=_BLOCK,
            timeout=self.timeout,
            headers=headers | ({"Range": f"bytes={have}-"} if have else {}),
            hooks={"response": begin},
        )
        downloader(address, file, None)

    def _raise_unless_hopeful(self, address: str, reason: OSError, before: int) -> None:
        """Raise unless another attempt may help: bytes came, or a part too long was removed."""
        have, answer = _size(self.part), getattr(reason, "response", None)
        if answer is not None and answer.status_code == _UNSATISFIABLE and before:
            self.part.unlink()
        elif answer is not None or have <= before:
            if not have:
                self.part.unlink(missing_ok=True)
            told = self._told(reason) if answer is None else f"{answer.status_code} {answer.reason}"
            raise DownloadError(f"{address}: {told}.") from reason

    def _told(self, reason: BaseException) -> str:
        have = _size(self.part)
        if self.total and 0 < have < self.total:
            return f"the connection ended after {have} of {self.total} bytes"
        while deeper := reason.__cause__ or reason.__context__:
            reason = deeper
        return getattr(reason, "strerror", None) or str(reason) or type(reason).__name__


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep a logger to warnings meanwhile."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Meter:
    """A progress bar for pooch: amount, rate and remaining time on standard error.

    On a terminal it is one line that changes; elsewhere it is a line every ten seconds.
    """

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name, self.file, self.start = name, file, file.tell()
        self.total = 0  # bytes that the server will send; pooch writes it here, 0 if unknown
        self.live = sys.stderr.isatty()
        self.began = self.last = time.monotonic()

    def update(self, _: int) -> None:
        now = time.monotonic()
        if now - self.last >= (0.2 if self.live else 10.0):
            self.last = now
            self._write("\r" if self.live else "\n")

    def reset(self) -> None:
        """Do nothing: the file says how much has come."""

    def close(self) -> None:
        self._write("\n")

    def _write(self, end: str) -> None:
        sys.stderr.write(f"{self._text():<70}{end}")
        sys.stderr.flush()

    def _text(self) -> str:
        done = self.file.tell()
        self.start = min(self.start, done)  # the server may have started over
        rate = (done - self.start) / max(time.monotonic() - self.began, 1e-9)
        text = f"{self.name}: {done / 1e6:.1f} MB, {rate / 1e6:.1f} MB/s"
        left = self.start + self.total - done
        if left <= 0 or not rate:
            return text
        return f"{text}, of {(done + left) / 1e6:.1f} MB, {left / rate:.0f} s left"
