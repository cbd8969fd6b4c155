"""The state of `Columns` in a model file: written, and read with every check.

A model file may come from anyone, so that nothing in it is believed. The arrays are:

* ``names``: all names as `Texts`, one after the other: numeric columns, columns dropped by name,
  categorical columns, listed categories, one-hot categories
* ``tables``: for each categorical column its bits (0 if not hashed) and its number of listed
  categories (-1 for "onehot")
* ``owners``: for each one-hot category the number of its column
* ``drop``: the numbers of dropped columns, 0 for one that is dropped by name
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cbrank.streams.categories import MOST_BITS, MOST_LISTED, MOST_TABLES, ONEHOT, Met
from cbrank.streams.labels import canonical
from cbrank.streams.rows import MOST_COLUMNS, WIDEST
from cbrank.texts import Texts, has_twins

Arrays = Mapping[str, NDArray[Any]]
Facts = Mapping[str, Any]

# A limit to the memory for opening a forged file: dropped columns take some 80 bytes each.
MOST_DROPPED = 2**18

_OPEN = -1  # the number of listed categories of a one-hot column, which is open to new ones
_FEW = 2**18  # names of numeric columns; more than this stay in arrays, smaller than a list


class Kept(NamedTuple):
    """The whole state of `Columns`."""

    label: str | int | None
    id: str | int | None
    positive: str | None
    negative: str | None
    drop: Sequence[str | int]
    categorical: dict[str, str | list[str]]
    zero_based: bool
    max_width: int
    numeric: Sequence[str] | None
    met: Met
    width: int
    sparse: bool | None


# Writing ----------------------------------------------------------------------------------------

_PLAIN = "label", "id", "positive", "negative", "zero_based", "max_width", "width", "sparse"


def state_of(kept: Kept) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the state as arrays, and as facts whose size does not grow with the columns."""
    met, owners = kept.met.arrays()
    names = Texts.of(_names(kept)) + met
    arrays = {f"names.{name}": array for name, array in names.arrays().items()}
    tables = [_table(how) for how in kept.categorical.values()]
    arrays["tables"] = np.array(tables, np.int64).reshape(-1, 2)
    arrays["owners"] = owners
    numbers = [0 if isinstance(column, str) else column for column in kept.drop]
    arrays["drop"] = np.array(numbers, np.int64)
    numeric = None if kept.numeric is None else len(kept.numeric)
    return arrays, {name: getattr(kept, name) for name in _PLAIN} | {"numeric": numeric}


def _names(kept: Kept) -> Iterator[str]:
    yield from kept.numeric or ()
    yield from (column for column in kept.drop if isinstance(column, str))
    yield from kept.categorical
    for how in kept.categorical.values():
        yield from () if isinstance(how, str) else how


def _table(how: str | list[str]) -> tuple[int, int]:
    if isinstance(how, str):
        return (0, _OPEN) if how == ONEHOT else (int(how.removeprefix("hash:")), 0)
    return 0, len(how)


# Reading ----------------------------------------------------------------------------------------


def kept_in(arrays: Arrays, facts: Facts) -> Kept:
    """Return the state in arrays and facts, checked one by one and together."""
    kept = _taken(arrays, facts)
    _refuse_bad_facts(kept)
    _refuse_twins(kept)
    return kept


def _taken(arrays: Arrays, facts: Facts) -> Kept:
    names = Texts.checked({name: arrays[f"names.{name}"] for name in ("text", "ends")})
    tables, owners, drop = (arrays[name] for name in ("tables", "owners", "drop"))
    numeric = facts["numeric"]
    types = [array.dtype for array in (tables, owners, drop)]
    if len(arrays) != 5 or types != list(map(np.dtype, (np.int64, np.int32, np.int64))):
        raise ValueError("its columns have other arrays than they should")
    if not (owners.ndim == drop.ndim == 1 and (numeric is None or _counts(numeric, 0))):
        raise ValueError("its columns have other arrays than they should")
    counts = _listed(tables)
    sizes = [numeric or 0, int((drop == 0).sum()), len(tables), int(counts[counts > 0].sum())]
    if sum(sizes) + len(owners) != len(names) or len(drop) > MOST_DROPPED:
        raise ValueError(f"its columns have {len(names)} names, which do not fit their numbers")
    first, second, third, fourth = np.cumsum(sizes).tolist()
    dropped, listed = iter(names[first:second]), iter(names[third:fourth])
    categorical = {
        name: _how(bits, count, listed)
        for name, (bits, count) in zip(names[second:third], tables.tolist(), strict=True)
    }
    if len(categorical) < len(tables):
        raise ValueError("its columns have one name twice")
    return Kept(
        **{name: facts[name] for name in _PLAIN},
        numeric=None if numeric is None else _few_or_many(names[:first]),
        drop=[number or next(dropped) for number in drop.tolist()],
        categorical=categorical,
        met=_met(names[fourth:], owners, counts),
    )


def _listed(tables: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many categories each table lists; refuse inconsistent tables."""
    sound = tables.ndim == 2 and tables.shape[1] == 2 and len(tables) <= MOST_TABLES
    if sound:
        bits, counts = tables[:, 0], tables[:, 1]
        sound = bool(((bits >= 0) & (bits <= MOST_BITS) & (counts >= _OPEN)).all())
        sound = sound and not counts[bits > 0].any() and counts.max(initial=0) <= MOST_LISTED
        if sound and counts.sum() <= MOST_LISTED:
            return counts
    raise ValueError("its columns have tables that make no sense")


def _few_or_many(names: Texts) -> Sequence[str]:
    if len(names) > MOST_COLUMNS:
        raise ValueError(f"its columns have {len(names)} names, which are too many")
    return list(names) if len(names) <= _FEW else names


def _how(bits: int, count: int, listed: Iterator[str]) -> str | list[str]:
    if bits:
        return f"hash:{bits}"
    return ONEHOT if count == _OPEN else [next(listed) for _ in range(count)]


def _met(texts: Texts, owners: NDArray[np.int32], counts: NDArray[np.int64]) -> Met:
    if ((owners < 0) | (owners >= len(counts))).any() or (counts[owners] != _OPEN).any():
        raise ValueError("its columns have met categories of no open column")
    return Met(texts, owners)


def _refuse_bad_facts(kept: Any) -> None:
    after = kept.numeric is not None  # the header was seen, and columns have names
    for name in ("label", "id"):
        told = getattr(kept, name)
        if not (told is None or type(told) is str or (_counts(told, 1) and not after)):
            raise ValueError(f"its columns have {name}={told!r}, which is no column")
    if not all(type(column) is str or (_counts(column, 1) and not after) for column in kept.drop):
        raise ValueError("its columns drop what is no column")
    for label in (kept.positive, kept.negative):
        if label is not None and (type(label) is not str or canonical(label) != label):
            raise ValueError(f"its columns have the label {label!r}, which is none")
    if kept.negative is not None and kept.positive in (None, kept.negative):
        raise ValueError("its columns do not have two labels")
    if type(kept.zero_based) is not bool or not (kept.sparse is None or type(kept.sparse) is bool):
        raise ValueError("its columns have facts that are neither true nor false")
    if not (_counts(kept.max_width, 1) and _counts(kept.width, 0)):
        raise ValueError("its columns have a width that is no number")
    if kept.numeric is None and (kept.width > (kept.max_width if kept.sparse else 0)):
        raise ValueError("its columns are wider than they can be")
    if kept.sparse is not False and (after or len(kept.met)):
        raise ValueError("its columns are those of a table and of svmlight text")


def _counts(number: Any, least: int) -> bool:
    return type(number) is int and least <= number <= WIDEST


def _refuse_twins(kept: Kept) -> None:
    """Refuse a numeric column that occurs twice, or has a second role."""
    numeric = kept.numeric or ()
    if has_twins(numeric):
        raise ValueError("its columns have one name twice")
    others = {*kept.drop, *kept.categorical, kept.label, kept.id}
    if any(name in others for name in numeric):
        raise ValueError("its columns have one that is numeric and something else too")
