"""The command ``cbrank``, and ``python -m cbrank``: a process of its own."""

import os
import signal
import sys

_ALLOCATOR = "PYTHONMALLOC"


def _prepare_service() -> None:
    """Do what must be done before anything slow is imported, and before Python has begun.

    A service reads its tokens again at SIGHUP. It takes a second to start, in which the signal must not end it;
    the tokens are not yet read then, so that there is nothing to do.

    Python's own allocator returns memory in blocks of 1 MiB, of which each is kept by a single object in it: after
    a burst of large requests a service would keep a hundred MiB. That of the C library returns pages, and
    can be chosen only when Python starts.
    """
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if sys.platform == "linux" and sys.executable and _ALLOCATOR not in os.environ:
        environment = os.environ | {_ALLOCATOR: "malloc"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)


if sys.argv[1:2] == ["serve"]:
    _prepare_service()

from cbrank.cli import main
from cbrank.optional import do_without


def run() -> None:
    """Run a command; to learn and to score takes no scikit-learn, whose import takes long."""
    do_without("sklearn")
    main(prog_name="cbrank")


if __name__ == "__main__":
    run()
