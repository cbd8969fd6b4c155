"""What a model takes and gives: its columns and what it says of rows."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cbrank.serving.service import Service


NUMBER, WORD = "number", "word"


class Indices(Collection[str]):
    """The names of features of svmlight text: whole numbers in a row.

    Parameters
    ----------
    first : int
        The first of them.
    width : int
        How many there are.

    Examples
    --------
    >>> indices = Indices(1, 3)
    >>> [*indices], "3" in indices, "03" in indices
    (['1', '2', '3'], True, False)
    """

    def __init__(self, first: int, width: int) -> None:
        self._numbers = range(first, first + width)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return map(str, self._numbers)

    def __contains__(self, name: object) -> bool:
        text = str(name)
        sound = text.isascii() and text.isdecimal() and len(text) <= 10
        return sound and int(text) in self._numbers and str(int(text)) == text


def column_names(service: "Service") -> Collection[str]:
    """Return the names of the columns that a service's model takes, in order.

    Parameters
    ----------
    service : Service
        What scores.

    Returns
    -------
    collection of str
        Names; the indices of features if the model learned from svmlight text.
    """
    columns = service.model.columns
    if columns.numeric_ is None:
        return Indices(0 if columns.zero_based else 1, columns.width_)
    return dict.fromkeys([*columns.numeric_, *columns.categorical])


def column_kinds(service: "Service") -> dict[str, str]:
    """Return what each column of a service's model is.

    Parameters
    ----------
    service : Service
        What scores.

    Returns
    -------
    dict of str to str
        "number" or "word", which is all that is no number, by name.
    """
    model = service.model
    kinds: dict[str, str] = dict.fromkeys(column_names(service), NUMBER)
    if model.takes_tables():
        with service.lock:
            decided = model.ranker.encoder_.kinds_
        return {name: NUMBER if decided.get(name) == NUMBER else WORD for name in kinds}
    return kinds | dict.fromkeys(model.columns.categorical, WORD)


def output_names(service: "Service") -> list[str]:
    """Return what a service's model says of a row.

    Parameters
    ----------
    service : Service
        What scores.

    Returns
    -------
    list of str
        Keys of an answer to `score`.
    """
    return ["score", "proba", *(["std"] if service.served.with_std else []), "label"]
