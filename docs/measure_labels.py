"""Print which groupings of classes give the paper's figures (docs/labels.md).

    CBRANK_DATA=FOLDER python docs/measure_labels.py CACHE > docs/_labels_table.md

The paper turns sets of several classes into tasks of two and does not say how. Each grouping of a set is
learned by all methods of the paper, with rows of unit length and the paper's grid; its distance is the root mean
square of our figures, AUC and accuracy, less the paper's. First all groupings that the accuracies allow, with
a third of the grid's values, 2,000 rows and three runs; then the nearest by the whole protocol, under two seeds.
CACHE keeps what was measured: the same command goes on after an interruption. ``--sets`` measures some of them.
"""

import argparse
import sys
import warnings
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from joblib import Memory
from scipy.sparse import issparse
from scipy.special import softmax
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

import cbrank
from cbrank import datasets
from cbrank.datasets import Sample
from cbrank.datasets.store import find
from cbrank.methods import METHODS, names
from cbrank.study.measures import measure
from cbrank.study.report.against_paper import Gap, paper_scores
from cbrank.study.report.published import TABLES
from cbrank.study.report.scores import Score
from cbrank.study.selection import choose, cross_validation
from cbrank.study.settings import Settings

SEEDS = (0, 1)
COARSE, GRID = tuple(range(-10, 11, 3)), tuple(range(-10, 11))  # powers of two
OTHERWISE = 0.02  # deviation of our figures from the paper's where labels are known, runs apart
SHARES = 0.05, 0.1, 0.25, 0.4  # of rows, at most, in random groups of many classes
GROUPS = 6  # of each
FEATURES = {
    "": lambda X: X,
    "with the row number": lambda X: np.column_stack([np.arange(1.0, len(X) + 1), X]),
}
OTHERS = {"glass": ["with the row number"]}  # which make as many as the paper counts


class Subject(NamedTuple):
    """A data set, and what is done to its columns before its rows get unit length."""

    name: str
    features: str = ""

    def __str__(self):
        return ", ".join(part for part in self if part)

    @property
    def entry(self):
        return datasets.info(self.name)

    @property
    def methods(self):
        return names("paper", kind=self.entry.table)


class Effort(NamedTuple):
    """Powers of two of the grid, most rows, runs for each seed, and groupings kept."""

    grid: tuple[int, ...]
    rows: int
    runs: int
    kept: int = 0


def efforts(subject):
    """Return the effort for all groupings, and that for the nearest."""
    rows, size = Settings().rows(subject.entry.table), subject.entry.rows
    runs = 10 if size <= 1000 else 5 if size <= 8000 else 2
    return Effort(COARSE, 2000, 3), Effort(GRID, rows, runs, 4)


# What the paper prints, and which groupings it allows -----------------------------------------------


def paper(subject):
    """Return the paper's figures, those of AUC first."""
    tables = [table for table in TABLES if table.kind == subject.entry.table]
    found = [paper_scores(table).means for table in tables]
    return [means[subject.name, method] for means in found for method in subject.methods]


def most_common_share(subject):
    """Return how many rows the larger class may have: labels that all rows get are right for these."""
    accuracies = paper(subject)[len(subject.methods) :]
    return min(s.mean + 3 * s.deviation / np.sqrt(s.runs) for s in accuracies)


def share_by_figures(subject):
    """Return the share of the smaller class, were the scores of each normal with the same deviation.

    The median over the methods; for each, the share at which its AUC goes with its accuracy.
    """
    aucs, accuracies = np.split(np.array([score.mean for score in paper(subject)]), 2)
    shares = np.linspace(0.001, 0.5, 500)
    apart = np.sqrt(2) * norm.ppf(aucs)[:, None]
    threshold = apart / 2 + np.log(1 / shares - 1) / apart
    right = shares * norm.sf(threshold - apart) + (1 - shares) * norm.cdf(threshold)
    return np.median(shares[np.abs(right - accuracies[:, None]).argmin(axis=1)])


def groupings(subject):
    """Return the groups of classes with at most half of the rows, or random ones of many classes."""
    y, entry = load(subject)[1], subject.entry
    if entry.classes == 2:
        return [()]
    classes, counts = np.unique(y, return_counts=True)
    sizes = dict(zip(classes.tolist(), (counts / len(y)).tolist(), strict=True))
    if entry.classes > 10:
        groups = {(each,) for each in sizes} | {registered(subject)} | random_groups(sizes)
        return sorted(groups, key=lambda group: (len(group), group))
    first, wanted = classes[0], range(1, entry.classes)
    groups = [group for size in wanted for group in combinations(sizes, size)]
    share = {group: round(sum(sizes[each] for each in group), 9) for group in groups}
    return [g for g in groups if share[g] < 0.5 or (share[g] == 0.5 and first in g)]


def random_groups(sizes):
    """Draw groups of classes: each class that still fits joins."""
    found, random = set(), np.random.RandomState(0)
    for share in np.repeat(SHARES, GROUPS):
        group, room = [], share
        for each in random.permutation(list(sizes)).tolist():
            if sizes[each] <= room:
                room -= sizes[each]
                group.append(each)
        found.add(tuple(sorted(group)))
    return found


def registered(subject):
    """Return the classes that the registry calls positive."""
    classes, y = load(subject)[1], datasets.load(subject.name).y
    return tuple(np.unique(classes[y == 1]).tolist())


def share_of(subject, group):
    """Return the share of the rows that a group has."""
    y = load(subject)[1]
    return float(np.isin(y, group).mean() if group else y.mean())


# Our figures --------------------------------------------------------------------------------------------


@cache
def load(subject):
    two = subject.entry.classes == 2
    X, y, _ = datasets.load(subject.name, labels="paper" if two else "original")
    return FEATURES[subject.features](X), y


def figures(subject, group, grid, rows, seed, run):
    """Return a run's AUC of each method, then the accuracies at the optimal operating point."""
    settings = Settings(seed, grid)
    X, y = load(subject)
    y = np.isin(y, group).astype(np.int64) if group else y
    at = settings.run_seed(subject.name, run)
    order = np.random.RandomState(at).permutation(len(y))
    if issparse(X):
        order = order[:rows]
    train, test = np.split(order, [len(order) - len(order) // 5])
    train = train[:rows]
    X_train, X_test = normalize(X[train]), normalize(X[test])
    if issparse(X):
        columns = np.unique(X_train.indices)
        X_train, X_test = X_train[:, columns], X_test[:, columns]
    found = []
    for name in subject.methods:
        folds = cross_validation(X_train, y[train])
        value = choose(METHODS[name], folds, settings.grid("unit"), at).parameter
        ranker = METHODS[name].new(value, at).fit(X_train, y[train])
        found.append(measure(y[test], ranker.decision_function(X_test), 0.0)[:2])
    return np.transpose(found).ravel()


class Fit(NamedTuple):
    """A grouping with our figures: a row for each run of each seed."""

    subject: Subject
    group: tuple[int, ...]
    runs: np.ndarray

    def distance(self, seed=None):
        """Return the root mean square of our figures less the paper's, of one seed or of both."""
        theirs = [score.mean for score in paper(self.subject)]
        runs = self.runs if seed is None else np.split(self.runs, len(SEEDS))[seed]
        return float(np.sqrt(np.mean((runs.mean(axis=0) - theirs) ** 2)))

    def near(self):
        """Count the figures within two standard errors of the paper's."""
        ours = zip(self.runs.mean(axis=0), self.runs.std(axis=0, ddof=1), strict=True)
        scores = [Score(*each, len(self.runs)) for each in ours]
        pairs = zip(scores, paper(self.subject), strict=True)
        return sum(not Gap(self.subject.name, "", *pair).is_far for pair in pairs)


class Search(NamedTuple):
    """What a search found: the groupings that were tried, and the nearest, in order."""

    tried: list[Fit]
    nearest: list[Fit]


def search(subject, measured):
    def fit(group, effort, seeds):
        each = [(seed, run) for seed in seeds for run in range(effort.runs)]
        runs = [measured(subject, group, effort.grid, effort.rows, *at) for at in each]
        print(f"{subject}, {group}, {effort.runs} runs", file=sys.stderr)
        return Fit(subject, group, np.array(runs))

    groups, most = groupings(subject), most_common_share(subject)
    coarse, full = efforts(subject)
    if groups == [()]:
        return Search([], [fit((), full, SEEDS)])
    allowed = [g for g in groups if 1 - most <= share_of(subject, g) <= most]
    tried = sorted((fit(group, coarse, [0]) for group in allowed), key=Fit.distance)
    kept = [each.group for each in tried[: full.kept]]
    if (own := registered(subject)) not in kept:
        kept.append(own)
    nearest = sorted((fit(group, full, SEEDS) for group in kept), key=Fit.distance)
    return Search(tried, nearest)


def probabilities(fits):
    """Return how probable each grouping is if one of these is the paper's and all are alike before.

    The paper's runs are taken to vary together as ours do; what our methods do otherwise than the
    paper's adds to each figure an error of its own.
    """
    likelihoods = []
    for fit in fits:
        scores = paper(fit.subject)
        gap = fit.runs.mean(axis=0) - [score.mean for score in scores]
        covariance = np.cov(fit.runs.T) * (1 / len(fit.runs) + 1 / scores[0].runs)
        covariance += OTHERWISE**2 * np.eye(len(gap))
        size = np.linalg.slogdet(covariance)[1]
        likelihoods.append(-(gap @ np.linalg.solve(covariance, gap) + size) / 2)
    return softmax(likelihoods)


# Tables ---------------------------------------------------------------------------------------------------


def named(fit):
    group, own = fit.group, registered(fit.subject)
    text = ", ".join(map(str, group)) if len(group) <= 4 else f"{len(group)} classes"
    return f"**{text}**" if group == own else text


def print_reference(found):
    print(
        "| set of two classes | smaller class | by the figures "
        "| distance | seed 0 | seed 1 | within two standard errors |"
    )
    print("|:--|--:|--:|--:|--:|--:|--:|")
    for subject, each in found.items():
        share = share_of(subject, ())
        shares = f"{min(share, 1 - share):.1%} | {share_by_figures(subject):.1%}"
        print(f"| {subject} | {shares} | {distances(each.nearest[0])} |")


def print_counts(found):
    print(
        "| set | classes | groupings | smaller class, at least | by the figures | tried "
        "| their distances: least | median | greatest |"
    )
    print("|:--|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in datasets.names():
        several = datasets.info(name).classes > 2
        for subject in [each for each in found if each.name == name] or [Subject(name)] * several:
            tried = found[subject].tried if subject in found else []
            far = [fit.distance() for fit in tried]
            span = [f"{at(far):.3f}" for at in (min, np.median, max)] if far else [""] * 3
            shares = f"{1 - most_common_share(subject):.1%} | {share_by_figures(subject):.1%}"
            classes = subject.entry.classes
            count = f"2^{classes - 1} - 1" if classes > 10 else 2 ** (classes - 1) - 1
            heads = f"{subject} | {classes} | {count} | {shares} | {len(tried) or 'none'}"
            print(f"| {heads} | {' | '.join(span)} |")


def print_nearest(found):
    print(
        "| set | positive classes | share | distance | seed 0 | seed 1 "
        "| within two standard errors | probability |"
    )
    print("|:--|:--|--:|--:|--:|--:|--:|--:|")
    for subject, each in found.items():
        name = str(subject)
        for fit, probable in zip(each.nearest, probabilities(each.nearest), strict=True):
            share = f"{share_of(subject, fit.group):.1%}"
            print(f"| {name} | {named(fit)} | {share} | {distances(fit)} | {probable:.0%} |")
            name = ""


def distances(fit):
    found = [f"{fit.distance(seed):.3f}" for seed in (None, *range(len(SEEDS)))]
    return " | ".join([*found, f"{fit.near()} of {len(paper(fit.subject))}"])


def print_figures(found):
    for table in dict.fromkeys(subject.entry.table for subject in found):
        some = [each for subject, each in found.items() if subject.entry.table == table]
        methods = names("paper", kind=table)
        print(f"| set | positive | {' | '.join(methods)} |\n|:--|:--|{'--:|' * len(methods)}")
        for each in some:
            subject = each.nearest[0].subject
            print(f"| {subject} | the paper | {pairs([s.mean for s in paper(subject)])} |")
            own = [fit for fit in each.nearest[2:] if fit.group == registered(subject)]
            for fit in each.nearest[:2] + own:
                print(f"| | {named(fit)} | {pairs(fit.runs.mean(axis=0))} |")
        print()


def pairs(values):
    return " | ".join(f"{a:.3f} / {b:.3f}" for a, b in np.reshape(values, (2, -1)).T)


def subjects():
    """Return what can be measured here: the sets that are there in full."""
    entries = {name: find(datasets.info(name)) for name in datasets.names()}
    full = [name for name, at in entries.items() if at and not isinstance(at.contents, Sample)]
    return [Subject(name, each) for name in full for each in ("", *OTHERS.get(name, []))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cache")
    parser.add_argument("--sets", nargs="*")
    given = parser.parse_args()
    measured = Memory(given.cache, verbose=0).cache(figures)
    some = [each for each in subjects() if not given.sets or str(each) in given.sets]
    with np.errstate(all="ignore"), threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = {subject: search(subject, measured) for subject in some}
    several = {s: each for s, each in found.items() if s.entry.classes > 2}
    print("**Sets of two classes**, whose labels are known.\n")
    print_reference({s: each for s, each in found.items() if s not in several})
    print("\n**Groupings**, and how far those that were tried are at first.\n")
    print_counts(several)
    print("\n**The nearest**, and in bold the one that `load` gives.\n")
    print_nearest(several)
    print(
        "\n**Figures**: AUC / accuracy of the paper, of the two nearest and of the one in bold.\n"
    )
    print_figures(several)
    print(f"cbrank {cbrank.__version__}, NumPy {np.__version__}; seeds 0 and 1.")


if __name__ == "__main__":
    sys.exit(main())
