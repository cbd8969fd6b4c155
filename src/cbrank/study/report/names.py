"""What methods, data sets, scalings and measures are called, and in which order they come."""

from collections.abc import Collection, Iterable, Sequence
from typing import get_args

from cbrank.datasets.entry import Table as Kind
from cbrank.methods import METHODS, Look, names

KINDS: tuple[Kind, ...] = get_args(Kind)
(CEILING,) = names("ceiling")

SAMPLE_MARK = "†"
FAR_MARK = "‡"

SCALING_NAMES = {
    "unit": "rows of unit length",
    "standard": "standardised columns",
    "none": "raw columns",
}
SCALING_TEXTS = {
    "unit": (
        "Each row is divided by its Euclidean norm. The paper does not name its scaling; this one "
        "gives its figures. It needs no look at other rows, so it suits a stream, but it mixes "
        "the columns' units and throws the row's size away, which costs every method some AUC "
        "where that size tells something."
    ),
    "standard": (
        "Each column gets mean 0 and variance 1, measured on the training rows. This is what a "
        "practitioner does with a table at rest; on a stream it takes a first look at the data or "
        "running moments."
    ),
    "none": (
        "Columns as they come, each in its own unit. This is what a stream brings when nobody has "
        "prepared it, and the hardest case for a method with one step for all columns."
    ),
}
MEASURE_NAMES = {
    "auc": "AUC",
    "accuracy": "accuracy at OPTROC",
    "accuracy_held": "accuracy",
    "balanced_held": "balanced accuracy",
}

# For methods in a study's files that are not registered.
_SPARE_LOOKS = (
    Look("#1b7f8c", "#4fbccb", "H"),
    Look("#b22222", "#f07a7a", "*"),
    Look("#666600", "#b5b54a", "p"),
    Look("#a6761d", "#d9ab5a", "8"),
)


def scaling_name(scaling: str) -> str:
    """Say what a scaling does, in a few words."""
    return SCALING_NAMES.get(scaling, f"{scaling} scaling")


def plural(count: int, thing: str) -> str:
    """Count things."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def listed(items: Sequence[str]) -> str:
    """Join words as a sentence does."""
    *rest, last = items
    return f"{', '.join(rest)} and {last}" if rest else last


def marked(dataset: str, samples: Collection[str]) -> str:
    """Name a data set, with a mark if only a sample of it was at hand."""
    return f"{dataset} {SAMPLE_MARK}" if dataset in samples else dataset


def sample_note(samples: Collection[str]) -> str:
    """Explain the mark, where a table has one."""
    return f" {SAMPLE_MARK} Only a sample of the data set was at hand." if samples else ""


def in_order(items: Iterable[str], order: Iterable[str]) -> list[str]:
    """Sort names as they stand in `order`, and those not in it behind, by the alphabet."""
    places = {name: place for place, name in enumerate(order)}
    return sorted(set(items), key=lambda name: (places.get(name, len(places)), name))


def ordered_methods(methods: Iterable[str], kind: Kind | None = None) -> list[str]:
    """Sort methods: the paper's as in its tables, later rivals, unknown ones, the ceiling last."""
    present = set(methods)
    paper = dict.fromkeys(
        name for each in KINDS if kind in {None, each} for name in names("paper", kind=each)
    )
    return in_order(present - {CEILING}, (*paper, *names("rival"))) + sorted(present & {CEILING})


def online_methods(methods: Iterable[str]) -> list[str]:
    """Leave out the ceiling, which may look at the data as often as it likes."""
    return [name for name in methods if name != CEILING]


def paper_methods(methods: Iterable[str], kind: Kind) -> list[str]:
    """Keep the methods that the paper compares on this kind of data sets."""
    return [name for name in methods if name in names("paper", kind=kind)]


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return how each method is drawn: all registered ones, and others in the spare looks."""
    unknown = sorted(set(methods) - set(METHODS))
    spare = {name: _SPARE_LOOKS[at % len(_SPARE_LOOKS)] for at, name in enumerate(unknown)}
    return {name: method.look for name, method in METHODS.items()} | spare
