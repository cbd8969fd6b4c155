"""Learning to rank from imbalanced streams."""

import importlib
from typing import TYPE_CHECKING, Any

from cbrank.methods import ESTIMATORS
from cbrank.version import __version__ as __version__

if TYPE_CHECKING:
    from cbrank import datasets, metrics, streams
    from cbrank.merging import merge as merge
    from cbrank.merging import prepare as prepare
    from cbrank.modelfile import ModelFileError as ModelFileError
    from cbrank.modelfile import dumps as dumps
    from cbrank.modelfile import load as load
    from cbrank.modelfile import loads as loads
    from cbrank.modelfile import save as save
    from cbrank.rankers import *

# The modules of the public names; a name without one is itself a module.
_HOMES = dict.fromkeys(ESTIMATORS, "rankers") | {
    "ModelFileError": "modelfile",
    "dumps": "modelfile",
    "load": "modelfile",
    "loads": "modelfile",
    "merge": "merging",
    "prepare": "merging",
    "save": "modelfile",
}

__all__ = ["datasets", "metrics", "streams"]
__all__ += list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that the command line starts at once."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"cbrank.{_HOMES[name]}"), name)
    if name in {*__all__, "merging", "modelfile", "rankers", "river", "uncertainty"}:
        return importlib.import_module(f"cbrank.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
