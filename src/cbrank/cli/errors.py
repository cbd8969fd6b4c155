"""Whatever goes wrong becomes one sentence, with the options that would mend it.

The library names parameters, as `` `zero_based=True` ``; here they become the options of the
command that is running, as ``--zero-based``.
"""

import contextlib
import errno
import os
import re
import sys
import traceback
from collections.abc import Iterator
from typing import NoReturn

import click

_CLICK = click.ClickException, click.exceptions.Exit, click.Abort
_DEBUG = "CBRANK_DEBUG"
_PARAMETER = re.compile(r"`(\w+)(?:=([^`]*))?`")
# What has no option of its name: a limit that the command line sets, the folder of a study, and the
# passes of a cluster.
_OTHERWISE = {"widest": "--covariance full", "folder": "--out", "rounds": "--passes"}
# What the command line can do about errors of these types, which are not imported for it.
_CURES = {
    "NotWrittenError": " Mend that, and repeat the command with --resume.",
}


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
    cure = _CURES.get(type(error).__name__, "")
    if isinstance(error, MemoryError):
        return f"There is not enough memory: {str(error) or 'the model is too large'}."
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return in_flags(f"{where}{error.strerror.removesuffix('.')}.{cure}")
    if isinstance(error, ValueError | OSError | ImportError):
        return in_flags(str(error) + cure)
    return (
        f"internal error: {type(error).__name__}: {error}. This is a mistake in cbrank: please "
        f"report it, with what {_DEBUG}=1 shows."
    )


def in_flags(sentence: str) -> str:
    """Return a sentence of the library with options in the place of parameters.

    A parameter that is no option of the command that runs may be one of ``cbrank train``, which
    decides what columns mean; any other is left as it is.

    Examples
    --------
    >>> from cbrank.cli.train import command
    >>> with click.Context(command):
    ...     in_flags('give `zero_based=True`, `covariance="diagonal"` or `label=...`.')
    'give --zero-based, --covariance diagonal or --label.'
    """
    running, train = _commands()
    own, of_train = _flags(running), _flags(train)
    elsewhere = []

    def option(found: re.Match[str]) -> str:
        name, value = found[1], found[2]
        if name not in own and name in of_train:
            elsewhere.append(of_train[name])
        flag = (_OTHERWISE | of_train | own).get(name)
        if flag is None:
            return found[0]
        return flag if value in (None, "...", "True", "None") else f"{flag} {value.strip(chr(34))}"

    sentence = _PARAMETER.sub(option, sentence)
    if not elsewhere:
        return sentence
    are = "are options" if len(elsewhere) > 1 else "is an option"
    return f"{sentence} {' and '.join(elsewhere)} {are} of cbrank train."


def _flags(command: click.Command | None) -> dict[str, str]:
    """Return the options of a command by the names of their parameters."""
    options = command.params if command else []
    return {str(option.name): option.opts[0] for option in options if option.opts[0][0] == "-"}


def _commands() -> tuple[click.Command | None, click.Command | None]:
    """Return the command that is running, or that has just failed, and ``cbrank train``."""
    context = click.get_current_context(silent=True)
    if context is None:
        return None, None
    root = context.find_root()
    if not isinstance(root.command, click.Group):
        return context.command, None
    running: click.Command | None = context.command
    if context is root and root.invoked_subcommand:
        running = root.command.get_command(root, root.invoked_subcommand)
    return running, root.command.get_command(root, "train")
