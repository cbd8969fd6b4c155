"""What was measured, as tables, figures and claims ask for it."""

import math
from statistics import median
from typing import Any

from cbrank.bench.machine import operations
from cbrank.bench.race import Result, ratio
from cbrank.bench.record import Record
from cbrank.bench.workloads import WORKLOADS, Workload

BLOCKED, PLAIN = "CBR 50, last mean", "Plain loop 50"


class Findings:
    """A benchmark's results by workload and peer.

    Parameters
    ----------
    record : Record
        A benchmark's folder.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self._results = {(r.workload, r.peer): r for r in record.results()}

    def workloads(self, group: str) -> list[Workload]:
        """Return the workloads of a group that were measured."""
        return [w for w in WORKLOADS if w.group == group and self.of(w.name)]

    def of(self, workload: str) -> list[Result]:
        """Return all results of a workload."""
        return [result for (name, _), result in self._results.items() if name == workload]

    def ok(self, workload: str, peer: str) -> Result | None:
        """Return a result if there is one with numbers."""
        result = self._results.get((workload, peer))
        return result if result and result.status == "ok" else None

    def times(self, workload: str, peer: str, than: str) -> float:
        """Return how many times the cost of a peer is that of another; NaN if one is missing."""
        one, other = self.ok(workload, peer), self.ok(workload, than)
        return ratio(one, other) if one and other else math.nan

    def auc(self, workload: str, peer: str) -> float:
        """Return an AUC, or NaN."""
        result = self.ok(workload, peer)
        return result.auc if result else math.nan

    def pair(self, workload: str) -> float:
        """Return the cost of a pair of the sparse diagonal as a share of SGD's of a row."""
        return self.times(workload, "CBR-diag 50", "SGD") / 50

    def matrix_share(self, workload: str) -> float:
        """Return the share of the machine's rate of matrix products that CBR reaches."""
        result = self.ok(workload, BLOCKED)
        if not result:
            return math.nan
        turns = [turn for turns in result.turns for turn in turns[1:]]
        d = int(result.features)
        return median(
            operations(d, 50, turn.rows, turn.updates) / turn.seconds / turn.rate for turn in turns
        )

    def auto(self, workload: str) -> float:
        """Return how many times a pass with C="auto" takes what one with a fixed C does."""
        one, other = self.ok(workload, "CBR as it comes"), self.ok(workload, "CBR 50")
        return one.seconds / other.seconds if one and other else math.nan

    def copied(self, kind: str) -> float:
        """Return the memory of a fit as a share of the caller's matrix."""
        memory: dict[str, Any] = (self.record.step("memory") or {}).get(kind, {})
        return max(memory["fit"], memory["partial_fit"]) / memory["matrix"] if memory else math.nan

    def selection(self) -> float:
        """Return the time of cross-validation as a share of its fits divided by the cores."""
        return float((self.record.step("selection") or {}).get("share", math.nan))
