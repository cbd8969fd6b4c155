"""The findings in a few sentences, computed from the results."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, median

from cbrank.datasets.entry import Table as Kind
from cbrank.study.report import leaders, paper
from cbrank.study.report.ceiling import Distance, distances
from cbrank.study.report.grids import grid, ranking
from cbrank.study.report.looks import CEILING, online, ordered
from cbrank.study.report.results import Study
from cbrank.study.report.scores import Gap, gaps
from cbrank.study.report.words import listed, plural, scaling_words
from cbrank.tables import fixed, signed


def headline(study: Study) -> str:
    """Say who is first by average rank where the paper looked first."""
    kind = study.tables()[0]
    return leaders.headline(study, kind, study.scalings(kind)[0])


def points(study: Study) -> list[str]:
    """Say what else came out."""
    found = [leaders.leaders(study, *case) for case in _cases(study)[1:]]
    found += filter(None, [leaders.unlike_paper(study, kind) for kind in study.tables()])
    return [*found, *_rivals(study), *_from_paper(study), *_from_ceiling(study), *_failed(study)]


def _cases(study: Study) -> list[tuple[Kind, str]]:
    return [(kind, scaling) for kind in study.tables() for scaling in study.scalings(kind)]


def _rivals(study: Study) -> Iterator[str]:
    others, firsts = set[str](), []
    for kind, scaling in _cases(study):
        scores = grid(study, kind, scaling, "auc")
        ranks = ranking(scores, online(scores.methods))
        others |= (more := set(ranks.ranks) - set(paper.METHODS[kind]))
        if more and len(ranks.ranks) > 1:
            firsts.append(f"{leaders.named(ranks)} with {scaling_words(scaling)}{_elsewhere(kind)}")
    if firsts:
        names = listed(ordered(others))
        yield f"Ranked together with {names}, first by AUC are: {'; '.join(firsts)}."


def _elsewhere(kind: Kind) -> str:
    return "" if kind == "benchmark" else f" on {kind} data sets"


def paper_gaps(study: Study) -> list[Gap]:
    """Collect all figures that the paper has too, samples left out."""
    found = []
    for table in paper.TABLES:
        if "unit" in study.scalings(table.table):
            scores = grid(study, table.table, "unit", table.measure)
            beside = gaps(scores, table).values()
            found += [gap for gap in beside if gap.dataset not in scores.samples]
    return found


def _from_paper(study: Study) -> Iterator[str]:
    found = paper_gaps(study)
    if not found:
        return
    near, middle = sum(not gap.far for gap in found), median(abs(g.difference) for g in found)
    methods = ordered({gap.method for gap in found})
    means = [f"{method} {signed(_mean(found, method))}" for method in methods]
    yield (
        f"Of {plural(len(found), 'figure')} that the paper reports for the same data, {near} lie "
        f"within two of its standard deviations; the median distance is {fixed(middle)}. "
        f"Ours less the paper's, on average: {listed(means)}."
    )


def _mean(found: Sequence[Gap], method: str) -> float:
    return fmean(gap.difference for gap in found if gap.method == method)


def _from_ceiling(study: Study) -> Iterator[str]:
    parts = [_nearest(d) for kind in study.tables() for d in distances(study, kind)]
    if any(parts):
        yield (
            f"Nearest to {CEILING}, the ceiling of a linear scorer, by mean AUC: "
            f"{'; '.join(filter(None, parts))}."
        )


def _nearest(distance: Distance) -> str:
    known = replace(distance.grid, datasets=tuple(distance.datasets))
    ranks = ranking(known, online(known.methods))
    if not ranks.ranks:
        return ""
    means = {method: distance.mean(method) for method in ranks.ranks}
    best = max(means, key=lambda method: means[method])
    where = f"{scaling_words(known.scaling)}{_elsewhere(known.table)}"
    return f"{best} with {where}, {signed(means[best])}"


def _failed(study: Study) -> Iterator[str]:
    if study.failures:
        yield f"{plural(len(study.failures), 'run')} failed and count nowhere; they are listed below."
