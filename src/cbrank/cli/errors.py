"""Whatever goes wrong becomes one sentence."""

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Iterator
from typing import NoReturn

import click

_CLICK = click.ClickException, click.exceptions.Exit, click.Abort
_DEBUG = "CBRANK_DEBUG"


@contextlib.contextmanager
def in_one_sentence() -> Iterator[None]:
    """End the program with one sentence and no traceback, whatever is raised.

    A ValueError or OSError says what is wrong with data, model or machine; anything else is a
    mistake of ours. ``CBRANK_DEBUG=1`` shows where it came from.
    """
    try:
        yield
    except _CLICK:
        raise
    except KeyboardInterrupt:
        click.echo("\nInterrupted.", err=True)
        sys.exit(130)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.EPIPE:
            _end_as_pipes_do()
        if os.environ.get(_DEBUG):
            click.echo(traceback.format_exc(), err=True)
        raise click.ClickException(_sentence(error)) from error


def _end_as_pipes_do() -> NoReturn:
    """End as other tools do whose reader went away, such as head: in silence."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + 13)


def _sentence(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"There is not enough memory: {str(error) or 'the model is too large'}."
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.removesuffix('.')}."
    if isinstance(error, ValueError | OSError | ImportError):
        return str(error)
    return (
        f"internal error: {type(error).__name__}: {error}. This is a mistake in cbrank: please "
        f"report it, with what {_DEBUG}=1 shows."
    )
