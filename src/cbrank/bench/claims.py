"""What was promised, and whether it holds."""

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass

from cbrank.bench.findings import BLOCKED, PLAIN, Findings

_ORDER = {"≥": operator.ge, ">": operator.gt, "≤": operator.le, "<": operator.lt}


@dataclass(frozen=True)
class Claim:
    """A number that was promised.

    Attributes
    ----------
    text : str
        What it is.
    sign : {"≥", ">", "≤", "<"}
        How it should compare with `wanted`.
    wanted, measured : float
        The numbers; NaN if not measured.
    """

    text: str
    sign: str
    wanted: float
    measured: float

    @property
    def verdict(self) -> str:
        """Whether it holds."""
        if math.isnan(self.measured) or math.isnan(self.wanted):
            return "not measured"
        return "holds" if _ORDER[self.sign](self.measured, self.wanted) else "falls short"


def claims(findings: Findings) -> list[Claim]:
    """Compare what was measured with what was promised."""
    return [
        *_dimension(findings),
        *_covtype(findings),
        *_text(findings),
        *_rest(findings),
    ]


def _dimension(findings: Findings) -> Iterator[Claim]:
    for d, sign, wanted in (
        (20, "≥", 0.9), (54, ">", 1.0), (200, "≥", 2.5), (1000, "≥", 6.0), (2000, "≥", 15.0),
    ):  # fmt: skip
        for noise in ("easy", "noisy"):
            times = findings.times(f"d{d}-{noise}", PLAIN, BLOCKED)
            yield Claim(f"{d:,} features, {noise}: plain loop over CBR", sign, wanted, times)
    for noise in ("easy", "noisy"):
        share = findings.matrix_share(f"d5000-{noise}")
        yield Claim(f"5,000 features, {noise}: share of the matrix-product rate", ">", 0.4, share)
        result = findings.ok(f"d5000-{noise}", BLOCKED)
        memory = result.memory / 1024 if result else math.nan
        yield Claim(f"5,000 features, {noise}: GiB more while learning", "<", 24.0, memory)
    gaps = [
        result.difference
        for workload in findings.workloads("dimension")
        if (result := findings.ok(workload.name, PLAIN))
    ]
    worst = max(gaps, default=math.nan)
    yield Claim("Largest relative difference of CBR from the plain loop", "≤", 1e-10, worst)


def _covtype(findings: Findings) -> Iterator[Claim]:
    for name, words in (("covtype-raw", "raw"), ("covtype-standard", "standardised")):
        for M, wanted in ((50, 1.0), (10, 1 / 3)):
            times = findings.times(name, f"CBR {M}", "River LR")
            yield Claim(f"covtype {words}, {M} buffered: a row over River LR's", "≤", wanted, times)
        for peer in ("River LR", "Vowpal Wabbit", "SGD averaged"):
            text = f"covtype {words}, 10 buffered: AUC above {peer}'s"
            yield Claim(text, ">", findings.auc(name, peer), findings.auc(name, "CBR 10"))


def _text(findings: Findings) -> Iterator[Claim]:
    for name in ("farm-ads", "reuters", "news20"):
        yield Claim(f"{name}: a pair over a row of SGD", "≤", 0.2, findings.pair(name))


def _rest(findings: Findings) -> Iterator[Claim]:
    yield Claim(
        "Cross-validation over its fits divided by the cores", "≤", 1.15, findings.selection()
    )
    for name, words in (("covtype-raw", "raw"), ("covtype-standard", "standardised")):
        yield Claim(f'covtype {words}: C="auto" over a fixed C', "≤", 3.0, findings.auto(name))
    for kind in ("dense", "sparse"):
        text = f"Memory of a {kind} fit over the caller's matrix"
        yield Claim(text, "<", 0.5, findings.copied(kind))
