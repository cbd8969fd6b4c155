"""The 21 data sets of the paper, by name."""

import difflib

from cbrank.datasets.benchmark import BENCHMARK
from cbrank.datasets.entry import DataSet, Table
from cbrank.datasets.high_dimensional import HIGH_DIMENSIONAL

_SETS = {entry.name: entry for entry in BENCHMARK + HIGH_DIMENSIONAL}
_TABLES = ("benchmark", "high-dimensional")


def names(table: Table | None = None) -> list[str]:
    """Name the data sets of the paper, in its order.

    Parameters
    ----------
    table : {"benchmark", "high-dimensional"}, optional
        The paper's Table 1 or Table 2; both if left out.

    Returns
    -------
    list of str
        What `load` and `info` take.

    Raises
    ------
    ValueError
        If there is no such table.

    Examples
    --------
    >>> from cbrank import datasets
    >>> datasets.names("high-dimensional")
    ['farm-ads', 'rcv1', 'sector', 'real-sim', 'news20', 'reuters']
    """
    if table is not None and table not in _TABLES:
        raise ValueError(f"table must be one of {_TABLES} or None, got {table!r}.")
    return [name for name, entry in _SETS.items() if table in (None, entry.table)]


def info(name: str) -> DataSet:
    """Return what the registry records about a data set.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    DataSet
        Its counts, sources, licence and rule for the positive class.

    Raises
    ------
    ValueError
        If there is no such data set.

    Examples
    --------
    >>> from cbrank import datasets
    >>> datasets.info("magic04").note
    'The paper counts the class as a feature. Positive is gamma, the more frequent class.'
    """
    if name in _SETS:
        return _SETS[name]
    close = difflib.get_close_matches(str(name).lower(), _SETS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(_SETS)}."
    raise ValueError(f"unknown data set {name!r}: {hint}")
