"""The rankers and the methods of the study, each registered once.

The public names, the warm-up, the study with its tables and figures, the command line's help, the
API reference and the tests go by this list. Nothing heavy is imported here.
"""

import pkgutil
from typing import Any, Literal, NamedTuple

# The paper's tables of data sets: loaded dense, or sparse.
Kind = Literal["benchmark", "high-dimensional"]
Group = Literal["paper", "ceiling", "rival"]


class Estimator(NamedTuple):
    """A ranker of the package.

    Attributes
    ----------
    module : str
        Its module in `cbrank.rankers`, which is also its short name.
    name : str
        Its class.
    variants : dict of str to dict
        Parameters that lead to kernels of their own, by a short name: "" for the defaults. Empty
        if the class learns by the kernels of another.
    """

    module: str
    name: str
    variants: dict[str, dict[str, Any]]

    def new(self, variant: str = "", **parameters: Any) -> Any:
        """Return a ranker of a variant, not fitted.

        Examples
        --------
        >>> ESTIMATORS["OPAUCRanker"].new("sketch")
        OPAUCRanker(rank=2)
        """
        return _class(self.name)(**self.variants[variant] | parameters)


_DEFAULTS: dict[str, dict[str, Any]] = {"": {}}
_DIAGONAL = {"covariance": "diagonal"}

ESTIMATORS = {
    estimator.name: estimator
    for estimator in (
        Estimator("cbr", "CBRanker", _DEFAULTS | {"diagonal": _DIAGONAL}),
        Estimator("cbr_cv", "CBRankerCV", {}),
        Estimator("additive", "AdditiveRanker", {}),
        Estimator("oam", "OAMRanker", _DEFAULTS | {"gradient": {"update": "gradient"}}),
        Estimator("opauc", "OPAUCRanker", _DEFAULTS | {"sketch": {"rank": 2}}),
        Estimator("adaoam", "AdaOAMRanker", _DEFAULTS),
        Estimator("uniexp", "UniExpRanker", _DEFAULTS),
        Estimator("scw", "SCWRanker", _DEFAULTS | {"diagonal": _DIAGONAL}),
        Estimator("ftrl", "FTRLAUCRanker", _DEFAULTS),
        Estimator("spauc", "SPAUCRanker", _DEFAULTS),
    )
}


class Look(NamedTuple):
    """How a method is drawn: its colour on light and on dark ground, and its marker."""

    colour: str
    dark: str
    marker: str


class Method(NamedTuple):
    """A method of the study: a learner with all its parameters but one.

    Attributes
    ----------
    name : str
        Its name in tables and on the command line.
    learner : str
        The class that learns: one of `ESTIMATORS`, or "module:class".
    tuned : {"C", "step"}
        The parameter that cross-validation picks.
    kinds : tuple of {"benchmark", "high-dimensional"}
        The kinds of data sets that it runs on.
    group : {"paper", "ceiling", "rival"}
        The paper's own methods, the best that a linear scorer can do, and later rivals.
    parameters : dict
        The parameters that stay fixed.
    look : Look
        How it is drawn.
    """

    name: str
    learner: str
    tuned: Literal["C", "step"]
    kinds: tuple[Kind, ...]
    group: Group
    parameters: dict[str, Any]
    look: Look

    def new(self, value: float, seed: int) -> Any:
        """Return the ranker, not fitted, with `value` for the tuned parameter.

        Examples
        --------
        >>> METHODS["OPAUC"].new(0.5, seed=0)
        OPAUCRanker(random_state=0, shuffle=False, step=0.5)
        """
        return _class(self.learner)(**{self.tuned: value}, **self.parameters, random_state=seed)


def _class(name: str) -> Any:
    return pkgutil.resolve_name(name if ":" in name else f"cbrank.rankers:{name}")


_DENSE: tuple[Kind, ...] = ("benchmark",)
_TEXT: tuple[Kind, ...] = ("high-dimensional",)
_BOTH = _DENSE + _TEXT
_PASS = {"shuffle": False}  # the run has shuffled the rows already
_CBR = _PASS | {"average": False, "buffer_size": 50, "eta": 0.7}  # as in the paper
_RESERVOIR = _CBR | {"policy": "reservoir"}

# Within a group, the order is that of columns and legends; the paper's methods stand as in its
# tables. Colours are Okabe and Ito's and Tol's muted ones, told apart by colour-blind readers;
# markers differ as well, so that no picture depends on colour alone.
METHODS = {
    method.name: method
    for method in (
        Method(
            "CBR_RS", "CBRanker", "C", _DENSE, "paper", _RESERVOIR,
            Look("#56b4e9", "#8fd0f5", "s"),
        ),
        Method(
            "CBR_FIFO", "CBRanker", "C", _DENSE, "paper", _CBR,
            Look("#0072b2", "#4ea3dd", "o"),
        ),
        Method(
            "CBR-diag_FIFO", "CBRanker", "C", _TEXT, "paper", _CBR | _DIAGONAL,
            Look("#332288", "#9a92ea", "o"),
        ),
        Method(
            "Uni-Exp", "UniExpRanker", "step", _BOTH, "paper", _PASS,
            Look("#e69f00", "#f0b432", "^"),
        ),
        Method(
            "OPAUC", "OPAUCRanker", "step", _DENSE, "paper", _PASS,
            Look("#009e73", "#2cc79b", "D"),
        ),
        Method(
            "OPAUCr", "OPAUCRanker", "step", _TEXT, "paper",
            _PASS | {"rank": 50, "sketch": "published"},
            Look("#44aa99", "#63c9b8", "D"),
        ),
        Method(
            "OAM_seq", "OAMRanker", "C", _BOTH, "paper", _PASS,
            Look("#d55e00", "#ff8a3d", "v"),
        ),
        Method(
            "AdaOAM", "AdaOAMRanker", "step", _DENSE, "paper", _PASS,
            Look("#cc79a7", "#e29dc3", "P"),
        ),
        Method(
            "Batch LR", "cbrank.study.ceiling:BatchRanker", "C", _BOTH, "ceiling", {},
            Look("#5b6570", "#a9b3bd", "_"),
        ),
        Method(
            "SCW", "SCWRanker", "C", _DENSE, "rival", _PASS,
            Look("#882255", "#d97bab", "X"),
        ),
        Method(
            "SCW-diag", "SCWRanker", "C", _TEXT, "rival", _PASS | _DIAGONAL,
            Look("#6a3d9a", "#b48ee0", "h"),
        ),
        Method(
            "OPAUCr-centred", "OPAUCRanker", "step", _TEXT, "rival",
            _PASS | {"rank": 50, "sketch": "centred"},
            Look("#2f6f4f", "#7cc7a0", "d"),
        ),
        Method(
            "FTRL-AUC", "FTRLAUCRanker", "step", _BOTH, "rival", _PASS,
            Look("#999933", "#c2c260", "<"),
        ),
        Method(
            "SPAUC", "SPAUCRanker", "step", _BOTH, "rival", _PASS,
            Look("#7a4f2a", "#c29468", ">"),
        ),
    )
}  # fmt: skip


def names(*groups: Group, kind: Kind | None = None) -> list[str]:
    """Name the methods of some groups, in their order.

    Parameters
    ----------
    *groups : {"paper", "ceiling", "rival"}
        The groups.
    kind : {"benchmark", "high-dimensional"}, optional
        Leave out methods that do not run on such data sets.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> names("ceiling")
    ['Batch LR']
    >>> names("paper", kind="high-dimensional")
    ['CBR-diag_FIFO', 'Uni-Exp', 'OPAUCr', 'OAM_seq']
    """
    return [
        method.name
        for method in METHODS.values()
        if method.group in groups and (kind is None or kind in method.kinds)
    ]


def find(name: str) -> str:
    """Return the name of a method as it is spelt in the tables.

    Parameters
    ----------
    name : str
        The name, in capitals or not.

    Returns
    -------
    str
        The name as it is registered.

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
    import difflib  # noqa: PLC0415

    close = difflib.get_close_matches(name.lower(), spelt, n=1)
    hint = f"did you mean {spelt[close[0]]!r}?" if close else f"there are {', '.join(METHODS)}."
    raise ValueError(f"unknown method {name!r}: {hint}")
