"""Whether a study's figures bear out what the paper claims.

A claim says that some methods are ahead of others: by AUC, by accuracy at OPTROC, or by time. Rules are in
`RULES`, as the report tells them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import exp, isfinite, log, sqrt
from statistics import fmean, median, stdev
from typing import Literal

from scipy.stats import wilcoxon

from cbrank.datasets.entry import Table as Kind
from cbrank.study.report.against_paper import FAR, paper_scores
from cbrank.study.report.claims import CLAIMS, Claim
from cbrank.study.report.names import plural
from cbrank.study.report.published import TABLES
from cbrank.study.report.significance import LEVEL
from cbrank.study.report.study import Study
from cbrank.study.report.time_tables import mean_times
from cbrank.study.times_file import SCALING
from cbrank.tables import ABSENT, Cell, Row, Table, signed

RULES = (
    "On each data set two methods are compared: the weakest of those that a claim is about, or their "
    "best where it is about the best of them, and the strongest of the others, by their means. By a score, "
    "one is ahead or behind if the mean of the runs' differences is more than two of its standard errors; "
    "by time, if the other takes at least a tenth longer or less; else they are level. A claim about "
    "every data set does not hold if the methods are behind on one; it holds if they are behind on none "
    "and ahead on more than half of the data sets that the paper names. A claim that an improvement is "
    "not reliable holds where the claim of one on every data set does not, and the reverse. A claim about most "
    "data sets holds or does not hold as Wilcoxon's signed-rank test over data sets finds the methods ahead "
    "or behind, at a level of 5 %. All else cannot be told. Scores on samples of data sets are left out. "
    "Runs share rows, so their standard errors are somewhat too small."
)

STANDINGS = ("ahead", "level", "behind")
_NAMED = 3  # data sets in a cell

Verdict = Literal["holds", "does not hold", "cannot be told"]
Values = dict[int, float]  # by run; higher is better

_SAME_TIME = log(1.1)
_DENIED: dict[Verdict, Verdict] = {"holds": "does not hold", "does not hold": "holds"}


@dataclass(frozen=True)
class Case:
    """A data set: how far ahead a method is (of times, the logarithm of their ratio), and how it stands."""

    dataset: str
    gain: float
    standing: Literal["ahead", "level", "behind"]


@dataclass(frozen=True)
class Judgement:
    """A verdict, the cases it rests on, and the p value where a test decides."""

    verdict: Verdict
    cases: tuple[Case, ...]
    p: float | None = None

    def count(self, standing: str) -> int:
        """Count the data sets with a standing."""
        return sum(case.standing == standing for case in self.cases)


# Verdicts -----------------------------------------------------------------------------------------


def judge(claim: Claim, study: Study) -> Judgement:
    """Hold a claim against a study.

    Parameters
    ----------
    claim : Claim
        The claim.
    study : Study
        The study; it may lack data sets, methods or times.

    Returns
    -------
    Judgement
        The verdict and what it rests on.
    """
    cases = tuple(_cases(claim, study))
    if claim.most:
        return Judgement(*_of_most(cases))
    verdict = _of_every(cases, len(claim.datasets))
    return Judgement(_DENIED.get(verdict, verdict) if claim.denied else verdict, cases)


def _of_every(cases: Iterable[Case], wanted: int) -> Verdict:
    standings = Counter(case.standing for case in cases)
    if standings["behind"]:
        return "does not hold"
    return "holds" if 2 * standings["ahead"] > wanted else "cannot be told"


def _of_most(cases: tuple[Case, ...]) -> tuple[Verdict, tuple[Case, ...], float | None]:
    gains = [case.gain for case in cases]
    if not any(gains):
        return "cannot be told", cases, None
    tests = [
        wilcoxon(gains, zero_method="zsplit", alternative=side) for side in ("greater", "less")
    ]
    ahead, behind = (2 * float(test.pvalue) < LEVEL for test in tests)
    verdict: Verdict = "holds" if ahead else "does not hold" if behind else "cannot be told"
    return verdict, cases, min(1.0, *(2 * float(test.pvalue) for test in tests))


def _cases(claim: Claim, study: Study) -> Iterable[Case]:
    values = _times(claim, study) if claim.measure == "time" else _of_runs(claim, study)
    for dataset in claim.datasets:
        if all((dataset, method) in values for method in (*claim.ahead, *claim.others)):
            of_set = {m: values[dataset, m] for m in (*claim.ahead, *claim.others)}
            one, other = _pair(claim, {m: fmean(of_set[m].values()) for m in of_set})
            yield from _case(dataset, of_set[one], of_set[other], claim)


def _pair(claim: Claim, means: Mapping[str, float]) -> tuple[str, str]:
    """Choose whom to compare on a data set."""
    pick = max if claim.best else min
    return (
        pick(claim.ahead, key=lambda m: means[m]),
        max(claim.others, key=lambda m: means[m]),
    )


def _case(dataset: str, one: Values, other: Values, claim: Claim) -> Iterable[Case]:
    gains = [one[run] - other[run] for run in one if run in other]
    if claim.measure == "time":
        yield Case(dataset, gains[0], _standing(gains[0], _SAME_TIME))
    elif len(gains) > 1:
        error = stdev(gains) / sqrt(len(gains))
        # Twelve digits: what is equal must not differ by the rounding of a sum.
        yield Case(dataset, gain := round(fmean(gains), 12), _standing(gain, FAR * error))


def _standing(gain: float, level: float) -> Literal["ahead", "level", "behind"]:
    return "ahead" if gain > level else "behind" if gain < -level else "level"


def _of_runs(claim: Claim, study: Study) -> dict[tuple[str, str], Values]:
    values: dict[tuple[str, str], Values] = {}
    for result in study.chosen(claim.kind, SCALING):
        score = getattr(result, claim.measure)
        if isfinite(score) and result.sample != 1:
            values.setdefault((result.dataset, result.method), {})[int(result.run)] = score
    return values


def _times(claim: Claim, study: Study) -> dict[tuple[str, str], Values]:
    """Return minus the logarithm of each time, as if those ahead took so much less as they may take longer."""
    return {
        (dataset, method): {0: -log(seconds) + log(claim.factor) * (method in claim.ahead)}
        for (dataset, method), seconds in mean_times(study, claim.kind).items()
    }


# Words --------------------------------------------------------------------------------------------


def claims_table(study: Study, kind: Kind) -> Table:
    """Show each claim about a kind of data sets with its verdict.

    Parameters
    ----------
    study : Study
        The study.
    kind : {"benchmark", "high-dimensional"}
        The data sets.

    Returns
    -------
    Table
        A row for each claim.
    """
    return Table(
        key=f"claims-{kind}",
        title=f"The paper's claims about {kind} data sets",
        note="Accuracy at OPTROC. Counts are of data sets on which the methods that the claim is about are "
        "ahead, level and behind; plain loop: the same with CBR as a plain loop. Median: of the differences "
        "or, for times, of how many times as long the others take, with Wilcoxon's p where the claim is about "
        "most data sets. The paper: on how many data sets its own tables have them ahead.",
        corner="Claim",
        columns=("Verdict", "By", "Ahead", "Level", "Behind", "Median", "The paper"),
        rows=tuple(_row(claim, study) for claim in CLAIMS if claim.kind == kind),
    )


def _row(claim: Claim, study: Study) -> Row:
    found = judge(claim, study)
    ahead, level, behind = (_count(found.count(each)) for each in STANDINGS)
    lost = [case.dataset for case in found.cases if case.standing == "behind"]
    cells = (
        Cell(text=found.verdict, below=_plain_loop(claim, study)),
        Cell(text="AUC" if claim.measure == "auc" else claim.measure),
        ahead,
        level,
        replace(behind, below=", ".join(lost[:_NAMED]) + ", …" * (len(lost) > _NAMED)),
        _median(claim, found),
        _by_paper(claim),
    )
    return Row(claim.text, cells)


def _count(number: int) -> Cell:
    return Cell(text=str(number), value=number)


def _by_paper(claim: Claim) -> Cell:
    """Count the data sets on which the paper's own means are ahead."""
    found = [t for t in TABLES if (t.kind, t.measure) == (claim.kind, claim.measure)]
    if not found:
        return Cell(text=ABSENT)
    theirs, ahead = paper_scores(found[0]), 0
    methods = (*claim.ahead, *claim.others)
    for dataset in claim.datasets:
        means = {method: theirs.mean(dataset, method) for method in methods}
        one, other = _pair(claim, means)
        ahead += means[one] > means[other]
    return Cell(text=f"{ahead} of {len(claim.datasets)}", value=ahead)


def _median(claim: Claim, found: Judgement) -> Cell:
    if not found.cases:
        return Cell(text=ABSENT)
    gain = median(case.gain for case in found.cases)
    below = "" if found.p is None else f"p = {found.p:.2g}"
    if claim.measure == "time":
        ratio = exp(gain) / claim.factor
        return Cell(text=f"{ratio:.2g} times", below=below, value=ratio)
    return Cell(text=signed(gain), below=below, value=gain)


def _plain_loop(claim: Claim, study: Study) -> str:
    if not (plain := claim.by_plain_loop):
        return ""
    found = judge(plain, study)
    counts = ", ".join(str(found.count(standing)) for standing in STANDINGS)
    return f"plain loop: {found.verdict} ({counts})"


def verdicts(study: Study) -> str:
    """Count the verdicts in a sentence.

    Parameters
    ----------
    study : Study
        The study.

    Returns
    -------
    str
        The sentence.
    """
    found = Counter(judge(claim, study).verdict for claim in CLAIMS)
    return (
        f"Of {plural(len(CLAIMS), 'claim')} of the paper, {found['holds']} hold, "
        f"{found['does not hold']} do not and {found['cannot be told']} cannot be told."
    )
