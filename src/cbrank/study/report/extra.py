"""The libraries that only the report needs."""

import importlib
from typing import Any


def need(module: str) -> Any:
    """Import a library of the ``report`` extra.

    Parameters
    ----------
    module : str
        Its name.

    Returns
    -------
    module
        The library.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed; the message says what to do.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"the report needs {error.name}: pip install 'cbrank[report]'", name=error.name
        ) from error
