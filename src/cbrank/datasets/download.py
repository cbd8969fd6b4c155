"""Files over HTTP: resumed, checked, and in place only when whole."""

import http.client
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

_BLOCK = 2**16
_TIMEOUT = 30.0
_PARTIAL, _UNSATISFIABLE = 206, 416


class DownloadError(OSError):
    """A data set could not be had from its public address.

    Examples
    --------
    >>> issubclass(DownloadError, OSError)
    True
    """


def download(
    address: str, target: Path, *, progress: bool = False, timeout: float = _TIMEOUT
) -> None:
    """Bring the file at an HTTP address to `target`.

    What has come before a connection broke stays in ``target.part``; the rest is asked for at
    once, and again by the next call, as long as each attempt brings something.

    Parameters
    ----------
    address : str
        An http or https address.
    target : Path
        Where the file goes; its folder is made if need be.
    progress : bool, default=False
        Whether to report on standard error.
    timeout : float, default=30.0
        Seconds without an answer after which to give up.

    Raises
    ------
    DownloadError
        If the file cannot be had whole; the message names the address and what happened.

    Examples
    --------
    >>> download("file:///etc/hosts", Path("hosts"))
    Traceback (most recent call last):
    cbrank.datasets.download.DownloadError: file:///etc/hosts: not an http or https address.
    """
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise DownloadError(f"{address}: not an http or https address.")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    while not _attempt(address, part, progress, timeout):
        pass
    part.replace(target)


def _attempt(address: str, part: Path, progress: bool, timeout: float) -> bool:
    """Return whether the file is whole now, or something has come and it is worth going on."""
    before = _size(part)
    try:
        _transfer(address, part, progress, timeout)
    except urllib.error.HTTPError as answer:
        answer.close()
        if answer.code != _UNSATISFIABLE or not before:
            raise DownloadError(f"{address}: {answer.code} {answer.reason}.") from None
        part.unlink()
        return False
    except (OSError, http.client.HTTPException) as reason:
        if _size(part) <= before:
            what = getattr(reason, "reason", reason)
            raise DownloadError(f"{address}: {what or type(reason).__name__}.") from reason
        return False
    return True


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _transfer(address: str, part: Path, progress: bool, timeout: float) -> None:
    """Ask for what `part` still lacks and append it; start over where the server does."""
    have = _size(part)
    headers = {"User-Agent": "cbrank"} | ({"Range": f"bytes={have}-"} if have else {})
    request = urllib.request.Request(address, headers=headers)
    with _opener().open(request, timeout=timeout) as response:
        resumed = response.status == _PARTIAL
        start = response.headers.get("Content-Range", "")
        if resumed and not start.startswith(f"bytes {have}-"):
            part.unlink(missing_ok=True)
            raise ConnectionError(f"asked for the bytes from {have} on, got {start!r}")
        have = have if resumed else 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if length.isdecimal() else None
        meter = _Meter(part.stem, have, total, progress)
        with part.open("ab" if resumed else "wb") as file:
            while block := response.read(_BLOCK):
                file.write(block)
                meter.advance(len(block))
        meter.finish()
    if total not in (None, _size(part)):
        raise ConnectionError(f"the connection ended after {_size(part)} of {total} bytes")


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener that knows HTTP only, also after a redirection."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


class _Meter:
    """Amount, rate and remaining time on standard error: one line, or one in ten seconds."""

    def __init__(self, name: str, have: int, total: int | None, shown: bool) -> None:
        self.name, self.start, self.done, self.total = name, have, have, total
        self.shown, self.live = shown, sys.stderr.isatty()
        self.began = self.last = time.monotonic()

    def advance(self, size: int) -> None:
        self.done += size
        now = time.monotonic()
        if now - self.last >= (0.2 if self.live else 10.0):
            self.last = now
            self._write("\r" if self.live else "\n")

    def finish(self) -> None:
        self._write("\n")

    def _write(self, end: str) -> None:
        if self.shown:
            sys.stderr.write(f"{self._text():<70}{end}")
            sys.stderr.flush()

    def _text(self) -> str:
        rate = (self.done - self.start) / max(time.monotonic() - self.began, 1e-9)
        text = f"{self.name}: {self.done / 1e6:.1f} MB, {rate / 1e6:.1f} MB/s"
        if self.total is None or self.done >= self.total or not rate:
            return text
        left = (self.total - self.done) / rate
        return f"{text}, of {self.total / 1e6:.1f} MB, {left:.0f} s left"
