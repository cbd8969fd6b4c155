"""The methods that the study compares, one line each."""

import difflib
import pkgutil
from typing import Any, Literal, NamedTuple

from cbrank.datasets.entry import Table

Group = Literal["paper", "ceiling", "rival"]

_BOTH: tuple[Table, ...] = ("benchmark", "high-dimensional")
_BENCHMARK: tuple[Table, ...] = ("benchmark",)
_TEXT: tuple[Table, ...] = ("high-dimensional",)
_PASS = {"shuffle": False}  # the run has shuffled the rows already
_CBR = _PASS | {"average": False, "buffer_size": 50, "eta": 0.7}


class Method(NamedTuple):
    """A learner with all its parameters but one.

    Attributes
    ----------
    name : str
        Its name in tables and on the command line.
    ranker : str
        The class that learns, of `cbrank.rankers` unless a module is named.
    tuned : {"C", "step"}
        The parameter that cross-validation picks.
    tables : tuple of {"benchmark", "high-dimensional"}
        The tables of data sets that it runs on.
    group : {"paper", "ceiling", "rival"}
        The paper's own methods, the best a linear scorer can do, and later rivals.
    parameters : dict
        The parameters that stay fixed.
    """

    name: str
    ranker: str
    tuned: Literal["C", "step"]
    tables: tuple[Table, ...]
    group: Group
    parameters: dict[str, Any]

    def new(self, value: float, seed: int) -> Any:
        """Return the ranker, not fitted, with `value` for the tuned parameter."""
        module, _, name = self.ranker.rpartition(":")
        ranker = pkgutil.resolve_name(f"{module or 'cbrank.rankers'}:{name}")
        return ranker(**{self.tuned: value}, **self.parameters, random_state=seed)


METHODS = {
    method.name: method
    for method in (
        Method("CBR_RS", "CBRanker", "C", _BENCHMARK, "paper", _CBR | {"policy": "reservoir"}),
        Method("CBR_FIFO", "CBRanker", "C", _BENCHMARK, "paper", _CBR),
        Method("CBR-diag_FIFO", "CBRanker", "C", _TEXT, "paper", _CBR | {"covariance": "diagonal"}),
        Method("Uni-Exp", "UniExpRanker", "step", _BOTH, "paper", _PASS),
        Method("OPAUC", "OPAUCRanker", "step", _BENCHMARK, "paper", _PASS),
        Method("OPAUCr", "OPAUCRanker", "step", _TEXT, "paper", _PASS | {"rank": 50}),
        Method("OAM_seq", "OAMRanker", "C", _BOTH, "paper", _PASS),
        Method("AdaOAM", "AdaOAMRanker", "step", _BENCHMARK, "paper", _PASS),
        Method("Batch LR", "cbrank.study.ceiling:BatchRanker", "C", _BOTH, "ceiling", {}),
        Method("SCW", "SCWRanker", "C", _BENCHMARK, "rival", _PASS),
        Method("SCW-diag", "SCWRanker", "C", _TEXT, "rival", _PASS | {"covariance": "diagonal"}),
        Method("FTRL-AUC", "FTRLAUCRanker", "step", _BOTH, "rival", _PASS),
        Method("SPAUC", "SPAUCRanker", "step", _BOTH, "rival", _PASS),
    )
}


def names(*groups: Group) -> list[str]:
    """Name the methods of the groups.

    Examples
    --------
    >>> names("ceiling", "rival")
    ['Batch LR', 'SCW', 'SCW-diag', 'FTRL-AUC', 'SPAUC']
    """
    return [name for name, method in METHODS.items() if method.group in groups]


def find(name: str) -> str:
    """Return the name of a method as it is spelt in the tables.

    Raises
    ------
    ValueError
        If there is no such method.

    Examples
    --------
    >>> find("cbr_fifo")
    'CBR_FIFO'
    """
    spelt = {known.lower(): known for known in METHODS}
    if name.lower() in spelt:
        return spelt[name.lower()]
    close = difflib.get_close_matches(name.lower(), spelt, n=1)
    hint = f"did you mean {spelt[close[0]]!r}?" if close else f"there are {', '.join(METHODS)}."
    raise ValueError(f"unknown method {name!r}: {hint}")
