"""Libraries that only some features need: imported at their use, with the cure if missing."""

import importlib
import sys
from typing import Any

_UNWANTED = set[str]()


def do_without(module: str) -> None:
    """Let this process do without a library wherever there is another way.

    Parameters
    ----------
    module : str
        Its name; it must not have been needed yet.
    """
    _UNWANTED.add(module)


def is_wanted(module: str) -> bool:
    """Say whether a library may be imported where there is another way.

    Parameters
    ----------
    module : str
        Its name.

    Returns
    -------
    bool
        True unless `do_without` was called; True as well if the library is imported already.

    Examples
    --------
    >>> is_wanted("sklearn")
    True
    """
    return module in sys.modules or module not in _UNWANTED


def can_import(module: str) -> bool:
    """Say whether a library is installed.

    Parameters
    ----------
    module : str
        Its name.

    Returns
    -------
    bool
        Whether it can be imported, with all that it needs itself.

    Examples
    --------
    >>> can_import("json"), can_import("no_such_library")
    (True, False)
    """
    try:
        importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    return True


def need(module: str, purpose: str, extra: str) -> Any:
    """Import a library that cbrank does not install unless it is asked to.

    Parameters
    ----------
    module : str
        Its name.
    purpose : str
        What needs it, as the subject of a sentence.
    extra : str
        The extra of cbrank that installs it.

    Returns
    -------
    module
        The library.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed; the message says what to do.

    Examples
    --------
    >>> need("json", "an example", "report").dumps([1])
    '[1]'
    >>> need("no_such_library", "an example", "report")
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: an example needs no_such_library: pip install 'cbrank[report]'.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{purpose} needs {error.name}: pip install 'cbrank[{extra}]'.", name=error.name
        ) from error
