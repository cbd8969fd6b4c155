"""Learning to rank from imbalanced streams."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cbrank import datasets, metrics, streams
    from cbrank.merging import merge
    from cbrank.modelfile import ModelFileError, load, save
    from cbrank.rankers import (
        AdaOAMRanker,
        CBRanker,
        CBRankerCV,
        FTRLAUCRanker,
        OAMRanker,
        OPAUCRanker,
        SCWRanker,
        SPAUCRanker,
        UniExpRanker,
    )

__version__ = "0.1.0"

__all__ = [
    "AdaOAMRanker",
    "CBRanker",
    "CBRankerCV",
    "FTRLAUCRanker",
    "ModelFileError",
    "OAMRanker",
    "OPAUCRanker",
    "SCWRanker",
    "SPAUCRanker",
    "UniExpRanker",
    "datasets",
    "load",
    "merge",
    "metrics",
    "save",
    "streams",
]


_HOMES = {
    "ModelFileError": "modelfile",
    "load": "modelfile",
    "merge": "merging",
    "save": "modelfile",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that the command line starts at once."""
    if name not in {*__all__, "merging", "modelfile", "rankers", "river", "uncertainty"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "rankers" if "Ranker" in name else _HOMES.get(name)
    if home:
        return getattr(importlib.import_module(f"cbrank.{home}"), name)
    return importlib.import_module(f"cbrank.{name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
