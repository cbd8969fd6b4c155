"""Who is first by average rank, in words."""

from cbrank.datasets.entry import Table as Kind
from cbrank.study.report import paper
from cbrank.study.report.grids import Grid, Ranking, Score, grid, ranking
from cbrank.study.report.looks import papers
from cbrank.study.report.overview import MEASURED, mean_score
from cbrank.study.report.results import Study
from cbrank.study.report.words import MEASURES, listed, plural, scaling_words
from cbrank.tables import fixed


def headline(study: Study, kind: Kind, scaling: str) -> str:
    """Say which of the paper's methods is first, as the page's first sentence."""
    rankings = _rankings(study, kind, scaling)
    own = ", the paper's scaling" * (scaling == "unit")
    if not rankings:
        return f"With {scaling_words(scaling)}{own}, there is nothing to rank yet."
    first = _first(rankings, among=" of the paper's methods")
    same = ", as in the paper" * (scaling == "unit" and _like_paper(rankings, kind))
    return f"With {scaling_words(scaling)}{own}, {first} over {_sets(rankings, kind)}{same}."


def leaders(study: Study, kind: Kind, scaling: str) -> str:
    """Say who is first, and between which methods the mean AUC runs."""
    rankings = _rankings(study, kind, scaling)
    if not rankings:
        return f"With {scaling_words(scaling)}, there is nothing to rank on {kind} data sets yet."
    same = ", as in the paper" * (scaling == "unit" and _like_paper(rankings, kind))
    spread = _spread(grid(study, kind, scaling, "auc"), rankings.get("auc"))
    first = f"{_first(rankings)} over {_sets(rankings, kind)}"
    return f"With {scaling_words(scaling)}, {first}{same}.{spread}"


def unlike_paper(study: Study, kind: Kind) -> str:
    """Say who is first by the paper's figures for these data sets, where it is another."""
    rankings = _rankings(study, kind, "unit")
    theirs = _paper_rankings(rankings, kind)
    if not theirs or _like_paper(rankings, kind):
        return ""
    return f"By the paper's own figures for these {kind} data sets, {_first(theirs)}."


def _rankings(study: Study, kind: Kind, scaling: str) -> dict[str, Ranking]:
    grids = {measure: grid(study, kind, scaling, measure) for measure in MEASURED}
    rankings = {m: ranking(g, papers(g.methods, kind)) for m, g in grids.items()}
    return {measure: ranks for measure, ranks in rankings.items() if len(ranks.ranks) > 1}


def _sets(rankings: dict[str, Ranking], kind: Kind) -> str:
    return plural(len(next(iter(rankings.values())).datasets), f"{kind} data set")


def named(ranks: Ranking) -> str:
    """Name who is first, all of them on a tie, and the rank."""
    return f"{listed(ranks.first())} ({fixed(min(ranks.ranks.values()), 2)})"


def _first(rankings: dict[str, Ranking], among: str = "") -> str:
    firsts = {measure: ranks.first() for measure, ranks in rankings.items()}
    same = firsts[next(iter(firsts))]
    if any(names != same for names in firsts.values()):
        parts = [f"{named(ranks)} on {MEASURES[m]}" for m, ranks in rankings.items()]
        return f"first{among} by average rank are {listed(parts)}"
    where = [f"{MEASURES[m]} ({fixed(min(r.ranks.values()), 2)})" for m, r in rankings.items()]
    verb = "is" if len(same) == 1 else "are"
    return f"{listed(same)} {verb} first{among} by average rank on {listed(where)}"


def _spread(grid: Grid, ranks: Ranking | None) -> str:
    if ranks is None:
        return ""
    means = {method: mean_score(grid, ranks, method) for method in ranks.ranks}
    low, high = (pick(means, key=lambda method: means[method]) for pick in (min, max))
    return f" Mean AUC runs from {fixed(means[low])} ({low}) to {fixed(means[high])} ({high})."


def _like_paper(rankings: dict[str, Ranking], kind: Kind) -> bool:
    theirs = _paper_rankings(rankings, kind)
    return bool(theirs) and all(
        ranks.first() == rankings[measure].first() for measure, ranks in theirs.items()
    )


def _paper_rankings(rankings: dict[str, Ranking], kind: Kind) -> dict[str, Ranking]:
    """Rank the same methods on the same data sets by the paper's figures."""
    theirs = {
        table.measure: _paper_ranking(table, rankings[table.measure])
        for table in paper.TABLES
        if table.table == kind and table.measure in rankings
    }
    return {measure: ranks for measure, ranks in theirs.items() if ranks.ranks}


def _paper_ranking(table: paper.PaperTable, ours: Ranking) -> Ranking:
    scores = {key: Score(mean, sd, 1) for key, (mean, sd) in table.figures.items()}
    known = {dataset for dataset, _ in scores}
    whole = Grid(
        table=table.table,
        scaling="unit",
        measure=table.measure,
        datasets=tuple(dataset for dataset in ours.datasets if dataset in known),
        methods=tuple(ours.ranks),
        scores=scores,
        samples=frozenset(),
    )
    return ranking(whole, whole.methods)
