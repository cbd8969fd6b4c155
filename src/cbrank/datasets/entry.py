"""What the registry records about a data set."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cbrank.methods import Kind

Table = Kind
Positive = int | tuple[int, ...] | Literal["greater", "quarter"]
Grouping = Literal["source", "inferred", "chosen"]
Form = Literal["svmlight", "commas", "blanks", "matlab"]

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
UCI_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"
LIBSVM_LICENCE = "none stated (LIBSVM Data page)"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A public file: its address and how its rows become features and a label.

    Parameters
    ----------
    address : str
        Its address on the web.
    sha256 : str or None
        The checksum of the file, compared after a download; None if it is not recorded.
    form : {"svmlight", "commas", "blanks", "matlab"}
        Text in svmlight form; a table with commas or blanks between the columns and the label
        in the last; or a MATLAB file with the matrix ``fea`` and the labels ``gnd``.
    member : str
        The file's name where the address is a zip archive.
    drop : tuple of int
        Columns left out, counted from 0.
    labels : mapping of str to int
        Numbers for labels that are words, or other numbers for labels that are numbers; labels
        not named here stay as they are.

    Examples
    --------
    >>> from cbrank import datasets
    >>> datasets.info("ionosphere").parts[0].labels
    {'b': -1, 'g': 1}
    """

    address: str
    sha256: str | None = None
    form: Form = "svmlight"
    member: str = ""
    drop: tuple[int, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The counts that `DataSet` and `Sample` share; they are checked whenever a file is read."""

    rows: int
    features: int
    classes: int
    positive: Positive
    grouping: Grouping = "source"
    positives: int | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Sample(Contents):
    """Some rows of a data set, in a file of their own, loaded where the whole is missing.

    Parameters
    ----------
    rows, features, classes : int
        How many there are.
    positive : int, tuple of int, "greater" or "quarter"
        Which rows are positive; see `DataSet`.
    grouping : {"source", "inferred", "chosen"}
        Who says so; see `DataSet`.
    positives : int or None
        How many rows are positive; None if it has not been counted.
    note : str
        What else to know.
    file : str
        The file's name, without its ending.

    Examples
    --------
    >>> from cbrank import datasets
    >>> datasets.info("sector").sample.file
    'sector-part'
    """

    file: str


@dataclass(frozen=True, kw_only=True)
class DataSet(Contents):
    """A data set of the paper.

    Parameters
    ----------
    rows, features, classes : int
        How many there are.
    positive : int, tuple of int, "greater" or "quarter"
        Which rows are positive: numbers mean the rows with these labels; "greater", the rows
        with the greater of two labels, whether or not they are the minority; "quarter", the rows
        of a random group of classes, the same on every machine, that together hold at most a
        quarter of all rows.
    grouping : {"source", "inferred", "chosen"}
        Who says so: "source", the file, which has two classes. The paper does not say how it
        groups more classes: "inferred", a grouping whose results fit the figures that the
        paper prints (docs/labels.md says how well, and which others do); "chosen", a choice of
        ours, which these figures do not confirm.
    positives : int or None
        How many rows are positive; None if it has not been counted.
    note : str
        Why counts differ from the paper's, and what else to know.
    name, title : str
        The paper's name in lower case, and the name at the source.
    table : {"benchmark", "high-dimensional"}
        The paper's Table 1 (loaded dense) or Table 2 (loaded sparse).
    paper_rows, paper_features : int
        The paper's counts.
    parts : tuple of Part
        The public files; their rows are joined in this order.
    licence : str
        The terms of use.
    sample : Sample or None
        The sample that is loaded where the whole is missing, if there is one.

    Examples
    --------
    >>> from cbrank import datasets
    >>> segment = datasets.info("segment")
    >>> segment.title, segment.classes, segment.positive, segment.grouping
    ('Statlog Image Segmentation', 7, (1, 2, 3), 'inferred')
    """

    name: str
    title: str
    table: Table
    paper_rows: int
    paper_features: int
    parts: tuple[Part, ...]
    licence: str
    sample: Sample | None = None
