"""How each method is named, ordered and drawn, the same everywhere in the report."""

from collections.abc import Iterable

from cbrank.datasets.entry import Table
from cbrank.methods import METHODS, Look, names
from cbrank.study.report import paper
from cbrank.study.report.results import in_order

(CEILING,) = names("ceiling")


_SPARE = (  # for methods that are not registered
    Look("#1b7f8c", "#4fbccb", "d"),
    Look("#b22222", "#f07a7a", "*"),
    Look("#666600", "#b5b54a", "p"),
    Look("#a6761d", "#d9ab5a", "8"),
)


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Give every method its look; methods not known here share out the spare ones."""
    unknown = sorted(set(methods) - set(METHODS))
    spare = {name: _SPARE[place % len(_SPARE)] for place, name in enumerate(unknown)}
    return {name: method.look for name, method in METHODS.items()} | spare


def ordered(methods: Iterable[str], table: Table | None = None) -> list[str]:
    """Sort methods: the paper's in its order, the later rivals, others, and the ceiling last."""
    tables = (table,) if table else tuple(paper.METHODS)
    first = dict.fromkeys(name for t in tables for name in paper.METHODS[t])
    present = set(methods)
    return in_order(present - {CEILING}, (*first, *names("rival"))) + sorted(present & {CEILING})


def online(methods: Iterable[str]) -> list[str]:
    """Leave out the ceiling, which may look at the data as often as it likes."""
    return [name for name in methods if name != CEILING]


def papers(methods: Iterable[str], table: Table) -> list[str]:
    """Keep the methods that the paper compares on these data sets."""
    return [name for name in methods if name in paper.METHODS[table]]
