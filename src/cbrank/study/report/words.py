"""How the report calls scalings and measures."""

from collections.abc import Sequence

SCALINGS = {
    "unit": "rows of unit length",
    "standard": "standardised columns",
    "none": "raw columns",
}
MEANINGS = {
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
MEASURES = {
    "auc": "AUC",
    "accuracy": "accuracy at OPTROC",
    "accuracy_held": "accuracy",
    "balanced_held": "balanced accuracy",
}


def scaling_words(scaling: str) -> str:
    """Say what a scaling does, in a few words."""
    return SCALINGS.get(scaling, f"{scaling} scaling")


def plural(count: int, thing: str) -> str:
    """Count things."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def listed(items: Sequence[str]) -> str:
    """Join words as a sentence does."""
    *rest, last = items
    return f"{', '.join(rest)} and {last}" if rest else last
