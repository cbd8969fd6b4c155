"""The parameters of rankers, each stated once.

A table of `Parameter` says what a constructor takes. scikit-learn's checks of parameters, the
docstrings, the command line's options and the documentation follow from it, and a test compares it
with the constructor. Nothing heavy is imported here, for ``cbrank train --help`` needs it.
"""

import inspect
import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple


class Number(NamedTuple):
    """A number in a range."""

    type: type[int] | type[float]
    low: float | None = None
    high: float | None = None
    closed: Literal["left", "right", "both", "neither"] = "neither"  # which ends belong to it


class Other(NamedTuple):
    """A kind of value that scikit-learn has a check for."""

    words: str  # as documentation calls it
    check: Any  # as scikit-learn's `_parameter_constraints` has it


Kind = Number | Other | str | None  # a text is a word that may be given

FLAG = Other("bool", "boolean")
POSITIVE = Number(float, 0)
NOT_NEGATIVE = Number(float, 0, closed="left")
COUNT = Number(int, 1, closed="left")
ROWS = Number(int, 1, 2**20, closed="both")  # of a buffer, which has room for them all at once


class Parameter(NamedTuple):
    """One parameter of a ranker."""

    name: str
    kinds: tuple[Kind, ...]  # what it may be
    default: Any
    text: str  # what it means
    is_option: bool = True  # whether the command line has an option of this name
    option_help: str = ""  # what the option means, where that is not the first sentence of the text

    @property
    def help(self) -> str:
        """What an option of this name means, in a sentence.

        Examples
        --------
        >>> Parameter("eta", (POSITIVE,), 0.7, "Confidence wanted. More is slower.").help
        'Confidence wanted.'
        """
        return self.option_help or self.text.partition(". ")[0].removesuffix(".") + "."

    @property
    def type_text(self) -> str:
        """What it may be and its default, as numpydoc writes them.

        Examples
        --------
        >>> Parameter("C", (POSITIVE, "auto"), "auto", "Largest step.").type_text
        'float or "auto", default="auto"'
        """
        default = f'"{self.default}"' if isinstance(self.default, str) else _short(self.default)
        return f"{self._kinds_text()}, default={default}"

    def _kinds_text(self) -> str:
        texts = [f'"{kind}"' for kind in self.kinds if isinstance(kind, str)]
        if len(texts) == len(self.kinds):
            return f"{{{', '.join(texts)}}}"
        *most, last = map(_kind_text, self.kinds)
        return f"{', '.join(most)} or {last}" if most else last


Table = tuple[Parameter, ...]


def is_plainly(kinds: tuple[Kind, ...], value: Any) -> bool:
    """Say whether a value is beyond doubt of one of these kinds; of others scikit-learn judges.

    Parameters
    ----------
    kinds : tuple of Kind
        What a parameter may be.
    value : object
        Its value.

    Returns
    -------
    bool
        False if it is not, and where it takes more to tell.

    Examples
    --------
    >>> is_plainly((POSITIVE, "auto"), 0.5), is_plainly((POSITIVE, "auto"), -0.5)
    (True, False)
    """
    return any(_is_plainly(kind, value) for kind in kinds)


def _is_plainly(kind: Kind, value: Any) -> bool:
    match kind:
        case Number():
            return type(value) in (int, kind.type) and _is_between(value, kind)
        case Other(check="boolean"):
            return type(value) is bool
        case Other(check="random_state"):
            return type(value) is int and 0 <= value < 2**32
        case Other(check=type()):
            return type(value) is kind.check
        case _:
            return type(value) is type(kind) and value == kind


def _is_between(value: float, kind: Number) -> bool:
    low = -math.inf if kind.low is None else kind.low
    high = math.inf if kind.high is None else kind.high
    return (
        low < value < high
        or (value == kind.low and kind.closed in ("left", "both"))
        or (value == kind.high and kind.closed in ("right", "both"))
    )


def _kind_text(kind: Kind) -> str:
    match kind:
        case Number():
            return kind.type.__name__
        case Other():
            return kind.words
        case _:
            return str(kind) if kind is None else f'"{kind}"'


def _short(value: Any) -> str:
    """Return a value as people write it: 1/512 and not 0.001953125."""
    if isinstance(value, float) and len(repr(value)) > 6:
        share = Fraction(value)
        return str(share) if share.denominator <= 2**12 else repr(value)
    return repr(value)


# What every ranker has once it has learned, beside what its own docstring lists.
_SHARED_ATTRIBUTES = """\
classes_ : ndarray of shape (2,)
    The labels; the second is the positive class.
intercept_ : ndarray of shape (1,)
    What is added to scores so that zero is the operating point.
progressive_auc_ : float
    AUC of rows before they were learned from, in blocks, by the weights that were served at the beginning
    of their block; NaN before a block is full. Passes after the first do not count.
progressive_auc_interval_ : tuple of two floats
    Its 95% confidence interval.
progressive_auc_history_ : ndarray of shape (n_blocks,)
    The same block by block: fields `rows` (so far), `auc` and `weight`.
progressive_auc_weight_ : float
    Effective number of rows behind it.
recent_auc_, recent_auc_interval_ : float, tuple of two floats
    The same over about the last thousand rows.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the features, where `X` is a data frame with string columns."""


def documented(doc: str | None, table: Iterable[Parameter]) -> str | None:
    """Return a class's docstring with the sections of its parameters and of all its attributes."""
    if doc is None:  # python -OO
        return None
    lines = ["Parameters", "----------"]
    for parameter in table:
        lines.append(f"{parameter.name} : {parameter.type_text}")
        lines += textwrap.wrap(
            parameter.text, 96, initial_indent=4 * " ", subsequent_indent=4 * " "
        )
    before, heading, after = inspect.cleandoc(doc).partition("Attributes\n----------\n")
    if not heading:
        return "\n\n".join([before.rstrip(), "\n".join(lines)]) + "\n"
    own, _, rest = after.partition("\n\n")
    parts = [before.rstrip(), "\n".join(lines), heading + own + "\n" + _SHARED_ATTRIBUTES, rest]
    return "\n\n".join(parts) + "\n"


def constructor(table: Sequence[Parameter]) -> Callable[..., None]:
    """Return the constructor that keeps the parameters of a table: the first by place, the others by name."""
    by_name = inspect.Parameter.KEYWORD_ONLY
    kinds = [inspect.Parameter.POSITIONAL_OR_KEYWORD] + [by_name] * (len(table) - 1)
    places = [
        inspect.Parameter(parameter.name, kind, default=parameter.default)
        for parameter, kind in zip(table, kinds, strict=True)
    ]
    taken = inspect.Signature(places)

    def __init__(self: Any, *first: Any, **others: Any) -> None:
        try:
            given = taken.bind(*first, **others).arguments
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}.__init__() {error}") from None
        for parameter in table:
            setattr(self, parameter.name, given.get(parameter.name, parameter.default))

    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([own, *places])  # type: ignore[attr-defined]
    return __init__


# What all rankers have ----------------------------------------------------------------------------


def common(
    weighted: str, random: str = "the shuffling", class_weight: Literal["balanced"] | None = None
) -> Table:
    """Return the parameters that every ranker ends with.

    Parameters
    ----------
    weighted : str
        What weights of rows multiply.
    random : str
        What chance decides.
    class_weight : "balanced" or None
        The default.
    """
    return (
        Parameter(
            "operating_point",
            ("balanced", "accuracy"),
            "balanced",
            "Where `decision_function` is zero: where the true less the false positive rate is "
            "largest, or where most rows are predicted right.",
        ),
        Parameter(
            "class_weight",
            ("balanced", Other("dict", dict), None),
            class_weight,
            f"Factors of {weighted} for rows of each class, and costs of errors for the operating "
            "point. "
            'Under `partial_fit`, "balanced" goes by the running counts.',
            option_help="Weight of positive rows against 1; balanced goes by the running counts.",
        ),
        Parameter("shuffle", (FLAG,), True, "Whether `fit` takes the rows in random order.", False),
        Parameter("n_passes", (COUNT,), 1, "Passes of `fit` over the rows.", False),
        Parameter(
            "random_state",
            (Other("int, RandomState instance", "random_state"), None),
            None,
            f"Source of {random}.",
            False,
        ),
    )


# What several rankers have ------------------------------------------------------------------------


def step(default: float, text: str = "Learning rate.") -> Parameter:
    """Return the step of a gradient method."""
    return Parameter("step", (POSITIVE,), default, text)


def regularization(text: str = "Weight of the squared norm.") -> Parameter:
    """Return the weight of the squared norm."""
    return Parameter("regularization", (NOT_NEGATIVE,), 1e-4, text)


def eta(of: str) -> Parameter:
    """Return the confidence of confidence-weighted learning."""
    text = f"Confidence wanted of each {of}, between 0.5 and 1."
    return Parameter("eta", (Number(float, 0.5, 1),), 0.7, text)


# Rows of each class that a buffer of size "auto" keeps, once so many rows have come, and so many of the rarer
# class: few rows have much to tell one another, many make pairs enough by themselves (docs/defaults.md). With
# a number for C, the paper's algorithm, it begins with the second.
BUFFER_SIZES = ((0, 0, 200), (1024, 0, 50))
# If things stay the same, and with up to so many weights that are not zero. With more it takes more rows, in
# proportion to the entries of Sigma: 54 columns with a thousand weights in all lost 0.01 of AUC
# with as many rows as lines. Sweeps take eight rows at a time: 8 take a fifth less time than 10.
IF_STEADY = ((4096, 256, 16), (8192, 512, 8), (32768, 2048, 5))
_WEIGHTS = 64
# The most of the features of a table, at first and after 1,024 rows: there are many features, and more rows
# take longer and rank no better.
MOST_OF_CURVES = 50, 32


def buffer_size_after(rows: int, of_rarer: int, weights: int, *, steady: bool) -> int:
    """Return how many rows of each class a buffer of size "auto" keeps after so many.

    Examples
    --------
    >>> buffer_size_after(0, 0, 10, steady=True), buffer_size_after(5000, 100, 10, steady=True)
    (200, 50)
    >>> [buffer_size_after(10_000, 5_000, weights, steady=True) for weights in (10, 100, 1_000)]
    [8, 16, 50]
    >>> buffer_size_after(10_000, 5_000, 10, steady=False)
    50
    """
    times = max(1.0, weights / _WEIGHTS) ** 2
    steps: list[tuple[float, float, int]] = [*BUFFER_SIZES]
    if steady:
        steps += [(least * times, rare * times, kept) for least, rare, kept in IF_STEADY]
    return next(kept for least, rare, kept in reversed(steps) if rows >= least and of_rarer >= rare)


# In a stream a buffer holds a window (see ``kernels.buffers``), which has more rows of the commoner class: up to
# so many times as many, so many rows, and so many numbers.
_TIMES, _MOST_ROWS, _MOST_NUMBERS = 20, 1024, 2**17


def room_for(kept: int, weights: int) -> int:
    """Return for how many rows of each class a buffer of size "auto" that keeps some has room in a stream.

    Examples
    --------
    >>> [room_for(kept, 10) for kept in (5, 50, 200)], room_for(50, 100_000)
    ([100, 1000, 1024], 50)
    """
    return max(kept, min(_TIMES * kept, _MOST_ROWS, _MOST_NUMBERS // max(weights, 1)))


def is_buffer(kept: int, room: int) -> bool:
    """Say whether a buffer of size "auto" can keep so many rows with so much room."""
    return kept in {size for *_, size in BUFFER_SIZES + IF_STEADY} | {*MOST_OF_CURVES} and (
        kept <= room <= room_for(kept, 1)
    )


# Variance of a weight that is not learned (see ``kernels._awake``). No other weight has just this variance and
# a mean of just 0: one that moved has another mean.
ASLEEP = 1e-6

BUFFER_SIZE = Parameter("buffer_size", (ROWS,), 50, "Rows kept of each class.")
COVARIANCE = Parameter(
    "covariance",
    ("full", "diagonal"),
    "full",
    "Full covariance takes d x d numbers; the diagonal suits high dimensions and sparse rows.",
)

# CBRanker -----------------------------------------------------------------------------------------

# Of CBRanker, and of what is made of it: CBRankerCV and ``cbrank train``.
CBR: Table = (
    Parameter(
        "C",
        (POSITIVE, "auto"),
        "auto",
        "Largest step of a pair: how far one pair may move the mean. "
        'With "auto", two or three learners with a small to a large C share the rows and the buffers, '
        "and one more that forgets where rows come in their order. What is served is the mixture of all, each "
        "the heavier the better its progressive AUC. With a full covariance the prior variance of each "
        "weight then follows the spread of its column; with a number for C it is 1, as in the paper.",
        option_help="How far one pair may move the weights; auto mixes learners with several.",
    ),
    eta("pair"),
    Parameter(
        "buffer_size",
        (ROWS, "auto"),
        "auto",
        'Rows kept of each class. With "auto" they are 50, or 200 until 1,024 rows have come where C is '
        '"auto" too; of a table 50 at first and 32 later. While things stay the same there are fewer: 16 '
        "after 4,096 rows, 256 of them of the "
        "rarer class, 8 after twice and 5 after eight times as many; with w weights, more than 64, all "
        "that takes (w / 64)^2 times as many rows. Things stay the same where `fit` has shuffled the "
        'rows, and in a stream with C="auto" while the learner that forgets is behind. There these are the '
        "rows of the rarer class; of the other, all that came as late are kept, up to 20 times as many, so "
        "that what merely changes with time does not seem to tell the classes apart.",
    ),
    Parameter(
        "policy",
        ("fifo", "reservoir"),
        "fifo",
        "Whether the buffer holds the latest rows or a uniform sample of all.",
    ),
    COVARIANCE,
    Parameter(
        "diagonal_update",
        ("paper", "precision", "drop"),
        "paper",
        "Form of the diagonal update: the paper's Proposition 2 to the letter, its KL-consistent "
        "repair, or the diagonal of the full update.",
    ),
    Parameter(
        "average",
        (FLAG, "auto"),
        "auto",
        "Whether `coef_` is the polynomial-decay average of the means rather than the last mean. "
        'With "auto" it is the average; where C is "auto" too, both are in the mixture.',
        option_help="Average the weights over the stream, or take the last.",
    ),
    Parameter(
        "forgetting",
        (Number(float, 0, 1, closed="left"), "auto"),
        "auto",
        "Share of the evidence forgotten per row, for streams that change: 1e-3 is a memory of about "
        "1,000 rows. The covariance widens towards its start by as much, and the average keeps up. "
        'With "auto" nothing is forgotten; where C is "auto" too and rows come in their order, one '
        'learner that forgets 0.001 is in the mixture. With `policy` "fifo" the buffer forgets too.',
    ),
    Parameter(
        "horizon",
        ("auto", "next", "later"),
        "auto",
        'What scores are for after a stream that was learned in its order: the rows that come "next", or rows '
        'that come much "later", for which a sample of all rows is learned anew in random order. "auto" means '
        "later for a call that ranks more rows than an eighth of those learned, at least 4,096, and next for all "
        "other calls. After `fit`, and where C is a number, it makes no difference.",
        is_option=False,
    ),
    *common("C", "the shuffling and of the reservoir"),
)

# Of CBRanker and CBRankerCV.
SELECTION: Table = (
    Parameter(
        "max_features",
        (COUNT, None),
        None,
        "Most weights that are not zero. Learners keep eight times as many features, 4,096 at the least, by which memory is bounded "
        "however many columns there are, and serve the strongest. It needs a diagonal covariance.",
    ),
    Parameter(
        "selection",
        ("evidence", "weight", "confidence"),
        "evidence",
        "By what features are selected: the size of their weight in units of its standard deviation, its size "
        "alone, or its precision alone.",
    ),
)
LINEAR: Table = (*CBR, *SELECTION)

# AdditiveRanker -----------------------------------------------------------------------------------

_WIDE_COVARIANCE = Parameter(
    "covariance",
    ("auto", "full", "diagonal"),
    "auto",
    'Full covariance takes d x d numbers for d features; "auto" takes it unless there is free text, '
    "whose features are many, or there are more than 2,048 features to begin with.",
)

# What columns of a table become.
ENCODING: Table = (
    Parameter("pieces", (COUNT,), 8, "Pieces of the curve of a column of numbers."),
    Parameter(
        "kinds",
        (Other("dict", dict), None),
        None,
        'What columns are, where you know better: "number", "word", "time", "text" or "drop", by the '
        "name or the position of a column.",
        is_option=False,
    ),
    Parameter(
        "max_categories",
        (COUNT,),
        64,
        "Categories of a column that have features of their own; the words of a column with more share "
        "32.",
    ),
)
TREES = Parameter(
    "trees",
    (Number(int, 0, closed="left"), "auto"),
    "auto",
    'Boosted trees whose leaves are learned beside the curves; 0 for none. With "auto" they are 100, or 300 '
    "randomised ones where `fit` has few rows, and none where C is a number.",
    option_help="Trees beside the curves; 0 for none.",
)
OF_TABLES: Table = (ENCODING[0], TREES, *ENCODING[1:])
ADDITIVE: Table = (
    *OF_TABLES,
    *(_WIDE_COVARIANCE if parameter.name == "covariance" else parameter for parameter in CBR),
)
