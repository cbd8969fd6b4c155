"""The findings in a few sentences, computed from the results."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, median

from cbrank.datasets.entry import Table as Kind
from cbrank.methods import names
from cbrank.study.report.against_paper import Gap, agreement, comparable, paper_scores
from cbrank.study.report.names import (
    CEILING,
    MEASURE_NAMES,
    listed,
    online_methods,
    ordered_methods,
    paper_methods,
    plural,
    scaling_name,
)
from cbrank.study.report.published import TABLES, PaperTable
from cbrank.study.report.scores import Ranking, Scores, mean_scores, ranking
from cbrank.study.report.study import Study
from cbrank.study.report.summary_tables import MEASURED, Distance, distances, mean_score
from cbrank.study.report.verdicts import verdicts
from cbrank.tables import fixed, signed


def headline(study: Study) -> str:
    """Say which of the paper's methods is first, where the paper looked first."""
    kind, scaling = study.cases()[0]
    rankings = _rankings(study, kind, scaling)
    own = ", the paper's scaling" * (scaling == "unit")
    if not rankings:
        return f"With {scaling_name(scaling)}{own}, there is nothing to rank yet."
    first = _first(rankings, among=" of the paper's methods")
    same = ", as in the paper" * (scaling == "unit" and _like_paper(rankings, kind))
    return f"With {scaling_name(scaling)}{own}, {first} over {_sets(rankings, kind)}{same}."


def points(study: Study) -> list[str]:
    """Say what else came out."""
    found = [_leaders(study, *case) for case in study.cases()[1:]]
    found += filter(None, [_unlike_paper(study, kind) for kind in study.kinds()])
    found.append(verdicts(study))
    return [*found, *_rivals(study), *_from_paper(study), *_from_ceiling(study), *_failed(study)]


# Who is first ---------------------------------------------------------------------------------------


def _leaders(study: Study, kind: Kind, scaling: str) -> str:
    """Say who is first, and between which methods the mean AUC runs."""
    rankings = _rankings(study, kind, scaling)
    if not rankings:
        return f"With {scaling_name(scaling)}, there is nothing to rank on {kind} data sets yet."
    same = ", as in the paper" * (scaling == "unit" and _like_paper(rankings, kind))
    spread = _spread(mean_scores(study, kind, scaling, "auc"), rankings.get("auc"))
    first = f"{_first(rankings)} over {_sets(rankings, kind)}"
    return f"With {scaling_name(scaling)}, {first}{same}.{spread}"


def _unlike_paper(study: Study, kind: Kind) -> str:
    """Say who is first by the paper's figures for these data sets, where it is another."""
    rankings = _rankings(study, kind, "unit")
    theirs = _paper_rankings(rankings, kind)
    if not theirs or _like_paper(rankings, kind):
        return ""
    return f"By the paper's own figures for these {kind} data sets, {_first(theirs)}."


def _rankings(study: Study, kind: Kind, scaling: str) -> dict[str, Ranking]:
    means = {m: mean_scores(study, kind, scaling, m) for m in MEASURED}
    rankings = {m: ranking(s, paper_methods(s.methods, kind)) for m, s in means.items()}
    return {measure: ranks for measure, ranks in rankings.items() if len(ranks.ranks) > 1}


def _sets(rankings: dict[str, Ranking], kind: Kind) -> str:
    return plural(len(next(iter(rankings.values())).datasets), f"{kind} data set")


def _named(ranks: Ranking) -> str:
    """Name who is first, all of them on a tie, and the rank."""
    return f"{listed(ranks.first())} ({fixed(min(ranks.ranks.values()), 2)})"


def _first(rankings: dict[str, Ranking], among: str = "") -> str:
    firsts = {measure: ranks.first() for measure, ranks in rankings.items()}
    same = firsts[next(iter(firsts))]
    if any(names != same for names in firsts.values()):
        parts = [f"{_named(ranks)} on {MEASURE_NAMES[m]}" for m, ranks in rankings.items()]
        return f"first{among} by average rank are {listed(parts)}"
    where = [f"{MEASURE_NAMES[m]} ({fixed(min(r.ranks.values()), 2)})" for m, r in rankings.items()]
    verb = "is" if len(same) == 1 else "are"
    return f"{listed(same)} {verb} first{among} by average rank on {listed(where)}"


def _spread(scores: Scores, ranks: Ranking | None) -> str:
    if ranks is None:
        return ""
    means = {method: mean_score(scores, ranks, method) for method in ranks.ranks}
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
        for table in TABLES
        if table.kind == kind and table.measure in rankings
    }
    return {measure: ranks for measure, ranks in theirs.items() if ranks.ranks}


def _paper_ranking(table: PaperTable, ours: Ranking) -> Ranking:
    theirs = paper_scores(table)
    known = tuple(dataset for dataset in ours.datasets if dataset in theirs.datasets)
    return ranking(replace(theirs, datasets=known), tuple(ours.ranks))


# What else came out ---------------------------------------------------------------------------------


def _rivals(study: Study) -> Iterator[str]:
    others, firsts = set[str](), []
    for kind, scaling in study.cases():
        scores = mean_scores(study, kind, scaling, "auc")
        ranks = ranking(scores, online_methods(scores.methods))
        others |= (more := set(ranks.ranks) - set(names("paper", kind=kind)))
        if more and len(ranks.ranks) > 1:
            firsts.append(f"{_named(ranks)} with {scaling_name(scaling)}{_elsewhere(kind)}")
    if firsts:
        together = listed(ordered_methods(others))
        yield f"Ranked together with {together}, first by AUC are: {'; '.join(firsts)}."


def _elsewhere(kind: Kind) -> str:
    return "" if kind == "benchmark" else f" on {kind} data sets"


def _from_paper(study: Study) -> Iterator[str]:
    found = comparable(study)
    if sentence := agreement(study):
        yield sentence
    if found:
        middle = median(abs(gap.difference) for gap in found)
        methods = ordered_methods({gap.method for gap in found})
        means = [f"{method} {signed(_mean(found, method))}" for method in methods]
        yield (
            f"Over all {plural(len(found), 'figure')} that the paper reports for the same data, "
            f"the median distance is {fixed(middle)}. Ours less the paper's, on average: "
            f"{listed(means)}."
        )


def _mean(found: Sequence[Gap], method: str) -> float:
    return fmean(gap.difference for gap in found if gap.method == method)


def _from_ceiling(study: Study) -> Iterator[str]:
    parts = [_nearest(d) for kind in study.kinds() for d in distances(study, kind)]
    if any(parts):
        yield (
            f"Nearest to {CEILING}, the ceiling of a linear scorer, by mean AUC: "
            f"{'; '.join(filter(None, parts))}."
        )


def _nearest(distance: Distance) -> str:
    known = replace(distance.scores, datasets=tuple(distance.datasets))
    ranks = ranking(known, online_methods(known.methods))
    if not ranks.ranks:
        return ""
    means = {method: distance.mean(method) for method in ranks.ranks}
    best = max(means, key=lambda method: means[method])
    where = f"{scaling_name(known.scaling)}{_elsewhere(known.kind)}"
    return f"{best} with {where}, {signed(means[best])}"


def _failed(study: Study) -> Iterator[str]:
    if study.failures:
        yield f"{plural(len(study.failures), 'run')} failed and count nowhere; they are listed below."
