"""Parameters, labels and names as JSON and arrays, given back with their exact types."""

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbrank.features.table import MOST_TABLE_COLUMNS
from cbrank.texts import Texts

_PLAIN = (type(None), bool, str)
_NOT_FINITE = {"inf", "-inf", "nan"}
_ITEMS = {"b": bool, "i": int, "u": int, "f": float, "U": str, "S": bytes}
_DTYPE = re.compile(r"[<>|][biufUS]\d{1,5}")
_PLACE = re.compile(r"-?[0-9]{1,18}")
_LARGEST = 2**20  # bytes of an array of labels


def to_json(value: Any) -> Any:
    """Return a value as JSON; what JSON does not know is an object that names its type.

    Examples
    --------
    >>> import numpy as np
    >>> to_json(0.5), to_json({1: 0.5}), to_json(np.float32(0.5))
    (0.5, {'dict': [[1, 0.5]]}, {'numpy': ['<f4', 0.5]})
    >>> from_json(to_json(np.array(["no", "yes"])))
    array(['no', 'yes'], dtype='<U3')
    """
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return {"array": [_name(value.dtype), [_scalar(item) for item in value.tolist()]]}
    if isinstance(value, np.random.RandomState):
        return {"random_state": _random_state_to_json(value)}
    if type(value) is dict:
        return {"dict": [[_scalar(key), _scalar(item)] for key, item in value.items()]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_scalar(item) for item in value]}
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if type(value) in _PLAIN or (type(value) is int and -(2**63) <= value < 2**64):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if isinstance(value, np.generic):
        return {"numpy": [_name(value.dtype), _scalar(value.item())]}
    raise ValueError(f"{value!r} is a {type(value).__name__}, which a model file cannot hold.")


def _name(dtype: np.dtype[Any]) -> str:
    if dtype != object and (not _DTYPE.fullmatch(dtype.str) or dtype.str[1:] == "f16"):
        raise ValueError(f"A model file cannot hold values of type {dtype}.")
    return dtype.str


def from_json(value: Any) -> Any:
    """Return the value that `to_json` was given; anything else is a ValueError."""
    match value:
        case {"array": [str(name), [*items]], **others} if not others:
            return _array(name, [_from_scalar(item) for item in items])
        case {"random_state": [*state], **others} if not others:
            return _random_state_from_json(state)
        case {"dict": [*pairs], **others} if not others:
            return dict(_pair(pair) for pair in pairs)
        case {"list": [*items], **others} if not others:
            return [_from_scalar(item) for item in items]
        case {"tuple": [*items], **others} if not others:
            return tuple(_from_scalar(item) for item in items)
    return _from_scalar(value)


def _from_scalar(value: Any) -> Any:
    match value:
        case None | bool() | float() | str():
            return value
        case int() if -(2**63) <= value < 2**64:
            return value
        case {"float": str(text), **others} if not others and text in _NOT_FINITE:
            return float(text)
        case {"bytes": str(text), **others} if not others:
            return bytes.fromhex(text)
        case {"numpy": [str(name), item], **others} if not others and name != "|O":
            return _array(name, [_from_scalar(item)])[0]
    raise ValueError(f"{str(value)[:50]} is not a value of a model file")


def _pair(pair: Any) -> tuple[Any, Any]:
    match pair:
        case [key, item]:
            return _from_scalar(key), _from_scalar(item)
    raise ValueError(f"{str(pair)[:50]} is not a pair")


def _array(name: str, items: list[Any]) -> NDArray[Any]:
    """Return an array of this type whose items are exactly these."""
    if name == "|O":
        array = np.empty(len(items), object)
        array[:] = items
        return array
    try:
        dtype = np.dtype(name) if _DTYPE.fullmatch(name) else None
    except TypeError:
        dtype = None
    sound = dtype is not None and len(items) * dtype.itemsize <= _LARGEST
    if dtype is None or not sound or any(type(item) is not _ITEMS[dtype.kind] for item in items):
        raise ValueError(f"{str(items)[:50]} are not values of type {name}")
    try:
        with np.errstate(over="ignore"):
            array = np.array(items, dtype)
    except OverflowError:
        raise ValueError(f"{str(items)[:50]} are not values of type {name}") from None
    if array.dtype != dtype or array.tolist() != items:
        raise ValueError(f"{str(items)[:50]} are not values of type {name}")
    return array


def _random_state_to_json(random: np.random.RandomState) -> list[Any]:
    state = random.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ValueError(
            f"random_state is a RandomState around {state['bit_generator']}, which a model file "
            "cannot hold: use a number or RandomState(number)."
        )
    inner = state["state"]
    return [inner["key"].tolist(), inner["pos"], state["has_gauss"], state["gauss"]]


def _random_state_from_json(state: list[Any]) -> np.random.RandomState:
    match state:
        case [[*key], int(position), 0 | 1 as has_gauss, float(gauss)]:
            sound = len(key) == 624 and 0 <= position <= 624
            if sound and all(type(word) is int and 0 <= word < 2**32 for word in key):
                random = np.random.RandomState(0)
                words = np.array(key, np.uint32)
                random.set_state(("MT19937", words, position, int(has_gauss), gauss))
                return random
    raise ValueError("its random state is not one of MT19937")


def take(facts: dict[str, Any], name: str, kind: type) -> Any:
    """Return an entry of facts that must be there and of this type."""
    if type(facts.get(name)) is not kind:
        raise ValueError(f"its {name!r} is missing, or is no {kind.__name__}")
    return facts[name]


def under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return arrays by names that begin with `prefix`."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def within(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays whose names begin with `prefix`, without it."""
    start = f"{prefix}."
    return {
        name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
    }


def texts_to_arrays(texts: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return texts as two arrays, for lists too long for the header.

    Parameters
    ----------
    texts : iterable of str
        The texts.

    Returns
    -------
    dict of str to ndarray
        ``text``, all of it in UTF-8, and ``ends``, where each ends.

    Examples
    --------
    >>> texts_from_arrays(texts_to_arrays(["age", "income"]))
    ['age', 'income']
    """
    return Texts.of(texts).arrays()


def is_of_words(value: Any) -> bool:
    """Say whether a value is a dictionary of texts by name or place, which may be long.

    Examples
    --------
    >>> is_of_words({"age": "number", 1: "word"}), is_of_words({0: 1.0}), is_of_words({})
    (True, False, False)
    """
    return (
        type(value) is dict
        and len(value) > 0
        and all(type(key) in (str, int) and type(word) is str for key, word in value.items())
    )


def words_to_arrays(words: dict[Any, str]) -> dict[str, NDArray[Any]]:
    """Return a dictionary of texts by name or place as arrays.

    Examples
    --------
    >>> words_from_arrays(words_to_arrays({"age": "number", 1: "word"}))
    {'age': 'number', 1: 'word'}
    """
    texts = Texts.of(str(text) for pair in words.items() for text in pair)
    return texts.arrays() | {"places": np.array([type(key) is int for key in words], np.bool_)}


def words_from_arrays(arrays: dict[str, NDArray[Any]]) -> dict[Any, str]:
    """Return the dictionary that `words_to_arrays` was given; anything else is a ValueError."""
    places = arrays.get("places", np.zeros(0))
    texts = Texts.checked({name: array for name, array in arrays.items() if name != "places"})
    if places.dtype != np.bool_ or (2 * places.size,) != (len(texts),) or places.ndim != 1:
        raise ValueError("it has not one word for each name")
    if places.size > MOST_TABLE_COLUMNS:
        raise ValueError(f"it has words for {places.size} columns, of at most {MOST_TABLE_COLUMNS}")
    rest = iter(texts)
    found = {
        _place(name) if is_place else name: word
        for is_place, name, word in zip(places.tolist(), rest, rest, strict=True)
    }
    if len(found) < places.size:
        raise ValueError("it has two words for one name")
    return found


def _place(text: str) -> int:
    if not _PLACE.fullmatch(text):
        raise ValueError(f"{text[:50]!r} is not the place of a column")
    return int(text)


def texts_from_arrays(arrays: dict[str, NDArray[Any]]) -> list[str]:
    """Return the texts that `texts_to_arrays` was given; anything else is a ValueError.

    Parameters
    ----------
    arrays : dict of str to ndarray
        The two arrays.

    Returns
    -------
    list of str
        The texts.

    Examples
    --------
    >>> texts_from_arrays({"text": np.frombuffer(b"ab", np.uint8), "ends": np.array([0, 2])})
    ['', 'ab']
    """
    return list(Texts.checked(arrays))
