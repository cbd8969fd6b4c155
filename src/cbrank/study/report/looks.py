"""How each method is named, ordered and drawn, the same everywhere in the report."""

from collections.abc import Iterable

from cbrank.datasets.entry import Table
from cbrank.plotting import Look
from cbrank.study.report import paper
from cbrank.study.report.results import in_order

CEILING = "Batch LR"
RIVALS = ("SCW", "FTRL-AUC", "SPAUC")


# Okabe and Ito's colours and Tol's muted ones, told apart by colour-blind readers; markers differ
# as well, so that no picture depends on colour alone.
_LOOKS = {
    "CBR_FIFO": Look("#0072b2", "#4ea3dd", "o"),
    "CBR_RS": Look("#56b4e9", "#8fd0f5", "s"),
    "CBR-diag_FIFO": Look("#332288", "#9a92ea", "o"),
    "Uni-Exp": Look("#e69f00", "#f0b432", "^"),
    "OPAUC": Look("#009e73", "#2cc79b", "D"),
    "OPAUCr": Look("#44aa99", "#63c9b8", "D"),
    "OAM_seq": Look("#d55e00", "#ff8a3d", "v"),
    "AdaOAM": Look("#cc79a7", "#e29dc3", "P"),
    "SCW": Look("#882255", "#d97bab", "X"),
    "FTRL-AUC": Look("#999933", "#c2c260", "<"),
    "SPAUC": Look("#7a4f2a", "#c29468", ">"),
    CEILING: Look("#5b6570", "#a9b3bd", "_"),
}
_SPARE = (
    Look("#6a3d9a", "#b48ee0", "h"),
    Look("#1b7f8c", "#4fbccb", "d"),
    Look("#b22222", "#f07a7a", "*"),
    Look("#666600", "#b5b54a", "p"),
    Look("#a6761d", "#d9ab5a", "8"),
)


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Give every method its look; methods not known here share out the spare ones."""
    unknown = sorted(set(names) - set(_LOOKS))
    spare = {name: _SPARE[place % len(_SPARE)] for place, name in enumerate(unknown)}
    return _LOOKS | spare


def ordered(names: Iterable[str], table: Table | None = None) -> list[str]:
    """Sort methods: the paper's in its order, the later rivals, others, and the ceiling last."""
    tables = (table,) if table else tuple(paper.METHODS)
    first = dict.fromkeys(name for t in tables for name in paper.METHODS[t])
    names = set(names)
    return in_order(names - {CEILING}, (*first, *RIVALS)) + sorted(names & {CEILING})


def online(names: Iterable[str]) -> list[str]:
    """Leave out the ceiling, which may look at the data as often as it likes."""
    return [name for name in names if name != CEILING]


def papers(names: Iterable[str], table: Table) -> list[str]:
    """Keep the methods that the paper compares on these data sets."""
    return [name for name in names if name in paper.METHODS[table]]
