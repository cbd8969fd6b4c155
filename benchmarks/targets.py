"""What is aimed at, beside what was measured."""

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from benchmarks.results_folder import FAST, FAST_10, PLAIN, PLAIN_10, Results
from benchmarks.single_rows import FEATURES
from benchmarks.workloads import SHORT
from cbrank.tables import ABSENT

_ORDER = {"≥": operator.ge, ">": operator.gt, "≤": operator.le, "<": operator.lt}
_SCALINGS = (("covtype-raw", "covtype raw"), ("covtype-standard", "covtype standardised"))


@dataclass(frozen=True)
class Target:
    """A number that is aimed at, and what was measured.

    Attributes
    ----------
    text : str
        What is measured; a slash divides.
    sign : {"≥", ">", "≤", "<"}
        How it should compare with the limit.
    limit, measured : float
        The numbers; NaN if there is no limit, or if it was not measured.
    noise : float
        By what share of itself the number may change from run to run without meaning anything.
    """

    text: str
    sign: str
    limit: float
    measured: float
    noise: float = 0.2

    @property
    def aim(self) -> str:
        """The limit, as text; empty if there is none."""
        return "" if math.isnan(self.limit) else f"{self.sign} {short(self.limit)}"

    @property
    def verdict(self) -> str:
        """Whether the target is met."""
        if math.isnan(self.measured):
            return "not measured"
        if math.isnan(self.limit):
            return ""
        return "met" if _ORDER[self.sign](self.measured, self.limit) else "missed"

    def worse(self, before: float) -> bool:
        """Say whether the number is worse than one before, by more than noise."""
        if self.sign in "≥>":
            return self.measured < before * (1.0 - self.noise)
        return self.measured > before * (1.0 + self.noise)


def short(value: float) -> str:
    """Write a number with three significant digits."""
    if math.isnan(value):
        return ABSENT
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def targets(results: Results) -> list[Target]:
    """Compare what was measured with what is aimed at, the middle of all first."""
    return [
        *_covtype_targets(results),
        *_sweep_targets(results),
        *_single_targets(results),
        *_text_targets(results),
        *_one_hot_targets(results),
        *_auto_targets(results),
        *_brief_targets(results),
        *_wide_targets(results),
        *_other_targets(results),
    ]


def _covtype_targets(results: Results) -> Iterator[Target]:
    for name, words in _SCALINGS:
        whole = results.time_ratio(name, "CBR default", "River LR")
        yield Target(f"{words}: time, CBR default / River LR", "≤", 0.5, whole)
        for M, limit in ((10, 0.33), (50, 1.2)):
            times = results.cost_ratio(name, f"CBR {M}", "River LR")
            yield Target(f"{words}: cost, CBR {M} / River LR", "≤", limit, times)
        for peer in ("River LR", "Vowpal Wabbit", "SGD averaged"):
            yield _above(results, name, words, "CBR default", peer)
        yield _above(results, name, words, "CBR 10", "River LR")


def _above(results: Results, workload: str, words: str, ours: str, peer: str) -> Target:
    text = f"{words}: AUC of {ours} above that of {peer}"
    # Hundredths of AUC are far apart where times are not, and no clock disturbs them.
    limit, measured = results.auc(workload, peer), results.auc(workload, ours)
    return Target(text, ">", limit, measured, noise=0.002)


def _sweep_targets(results: Results) -> Iterator[Target]:
    for d in (20, 54, 100):
        share = results.attained_share(f"d{d}-third")
        text = f"{d} features, a third fires: share of what the machine allows"
        yield Target(text, "≥", 0.4, share)
    for plain, fast, M in ((PLAIN, FAST, 50), (PLAIN_10, FAST_10, 10)):
        ratios = {
            workload.title: ratio
            for workload in results.workloads("dimension")
            if (known := results.ok(workload.name, plain)) and known.features <= SHORT
            if not math.isnan(ratio := results.cost_ratio(workload.name, plain, fast))
        }
        where = min(ratios, key=lambda title: ratios[title], default="")
        text = f"8 to {SHORT} features, {M} buffered, the least: cost, plain loop / CBR"
        yield Target(text, "≥", 1.0, ratios.get(where, math.nan))


def _single_targets(results: Results) -> Iterator[Target]:
    learn, ask = (results.lines("single-rows", caller="River LR", kind=k) for k in ("learn", "ask"))
    both = math.nan  # what the two limits allow together
    if learn and ask:
        both = (learn[0]["cost"] + 2.0 * ask[0]["cost"]) / (learn[0]["cost"] + ask[0]["cost"])
    for kind, limit, words in (
        ("learn", 1.0, "`learn_one`, 10 buffered / River LR's"),
        ("ask", 2.0, "`predict_proba` / River LR's `predict_proba_one`"),
        ("both", both, "the two in turns / River LR's"),
    ):
        ratio = results.single_ratio("CBR 10", kind)
        yield Target(f"One row of {FEATURES} columns: {words}", "≤", limit, ratio)


def _text_targets(results: Results) -> Iterator[Target]:
    for name in ("farm-ads", "reuters", "news20"):
        text = f"{name}: pair of CBR-diag / example of `SGDClassifier.fit`, one call"
        yield Target(text, "≤", 0.3, results.pair_cost(name))


def _one_hot_targets(results: Results) -> Iterator[Target]:
    for M in (50, 10):
        for kind, peer in (("sparse", f"CBR {M}, sparse rows"), ("dense", f"CBR {M}")):
            ours, other = results.ok(f"one-hot-{kind}", peer), results.ok("one-hot-30", f"CBR {M}")
            costs = zip(ours.costs, other.costs, strict=True) if ours and other else ()
            ratio = median(one / two for one, two in costs) if ours and other else math.nan
            text = f"adult one-hot, {kind}, {M} buffered: cost / 30 dense columns'"
            yield Target(text, "≤", 1.5, ratio)


def _auto_targets(results: Results) -> Iterator[Target]:
    for name, words, limit in (("short", "500 rows", 4.0), *((*each, 1.1) for each in _SCALINGS)):
        for auto, fixed, which in (
            ("CBR 50, C auto", "CBR 50", "50 buffered"),
            ("CBR default", "CBR fixed C", "defaults"),
        ):
            text = f'{words}, {which}: time, C="auto" / a fixed C'
            yield Target(text, "≤", limit, results.time_ratio(name, auto, fixed))


def _brief_targets(results: Results) -> Iterator[Target]:
    """Yield what commands of their own measure in depth, and aim at."""
    for stream in ("elec", "weather"):
        ours, other = ({"stream": stream, "method": name} for name in ("cbr-row", "river-lr"))
        ratio = results.line_ratio("streams", ours, other)
        text = f"{stream}: time, CBR row by row / River LR, predict and learn"
        yield Target(text, "≤", math.nan, ratio)
    for peer, title in (("lightgbm", "LightGBM"), ("river-arf", "River ARF")):
        ratio = results.line_ratio("curves", {"method": "curves"}, {"method": peer})
        yield Target(f"adult: time, curves / {title}", "≤", math.nan, ratio)
    for request, limit in (("score", 0.6), ("durable learn", 0.35)):
        pairs = [
            pair for line in results.lines("service", request=request) for pair in line["pairs"]
        ]
        ratio = median(ours / echo for ours, echo in pairs) if pairs else math.nan
        yield Target(f"Service, {request}: requests a second / echo's", "≥", limit, ratio)


def _wide_targets(results: Results) -> Iterator[Target]:
    for d, limit in ((200, 2.5), (1000, 6.0), (2000, 15.0)):
        for noise in ("easy", "noisy"):
            times = results.cost_ratio(f"d{d}-{noise}", PLAIN, FAST)
            yield Target(f"{d:,} features, {noise}: cost, plain loop / CBR", "≥", limit, times)
    for noise in ("easy", "noisy"):
        share = results.matrix_share(f"d5000-{noise}")
        yield Target(f"5,000 features, {noise}: share of the matrix rate", ">", 0.4, share)
        result = results.ok(f"d5000-{noise}", FAST)
        memory = result.memory / 1024 if result else math.nan
        yield Target(f"5,000 features, {noise}: GiB added while learning", "<", 24.0, memory)


def _other_targets(results: Results) -> Iterator[Target]:
    gaps = [
        result.difference
        for workload in results.workloads("dimension")
        for plain in (PLAIN, PLAIN_10)
        if (result := results.ok(workload.name, plain))
    ]
    worst = max(gaps, default=math.nan)
    text = "Largest relative difference of CBR from the plain loop"
    yield Target(text, "≤", 1e-10, worst, noise=math.inf)
    time = results.selection_time()
    yield Target("Time, cross-validation / its fits shared by all cores", "≤", 1.15, time)
    for kind in ("dense", "sparse"):
        text = f"Memory, {kind} fit / the caller's matrix"
        yield Target(text, "<", 0.5, results.fit_memory(kind))
