"""What was measured, as tables."""

import math

from cbrank.bench.claims import Claim, claims
from cbrank.bench.findings import BLOCKED, PLAIN, Findings
from cbrank.bench.race import Result
from cbrank.bench.workloads import Workload
from cbrank.tables import ABSENT, Cell, Row, Table, fixed


def tables(findings: Findings) -> list[Table]:
    """Make all tables that the measurements allow."""
    races = [*findings.workloads("tabular"), *findings.workloads("text")]
    made = [
        claim_table(claims(findings)),
        *[race_table(findings, workload) for workload in races],
        dimension_table(findings),
        start_table(findings),
        missing_table(findings),
    ]
    return [table for table in made if table.rows]


def claim_table(promised: list[Claim]) -> Table:
    """Set what was promised beside what was measured."""
    rows = [
        Row(claim.text, (_text(f"{claim.sign} {short(claim.wanted)}"), _number(claim.measured),
                         _text(claim.verdict)))
        for claim in promised
    ]  # fmt: skip
    return Table(
        key="claims",
        title="What was promised",
        note="Costs are compared chunk by chunk within one run, one thread, after warm-up.",
        corner="",
        columns=("wanted", "measured", ""),
        rows=tuple(rows),
    )


def race_table(findings: Findings, workload: Workload) -> Table:
    """Set the peers of a workload side by side."""
    results = sorted(
        (result for result in findings.of(workload.name) if result.status == "ok"),
        key=lambda result: result.cost,
    )
    ours = ("CBR 50", "CBR 10") if workload.group == "tabular" else ("CBR-diag 50", "CBR-diag 10")
    best = max((r.auc for r in results if not math.isnan(r.auc)), default=math.nan)
    first = results[0] if results else Result(workload.name, "")
    note = (
        f"{first.rows:,.0f} rows of {first.features:,.0f} features"
        + (f", {first.nonzeros:.0f} of them not zero" if workload.group == "text" else "")
        + f", one pass; AUC on {first.held:,.0f} others. Batch LR sees all rows at once."
    )
    return Table(
        key=f"race-{workload.name}",
        title=workload.title,
        note=note,
        corner="",
        columns=(
            "AUC",
            "µs a row",
            "rows/s",
            *[f"cost over {name}'s" for name in ours],
            "MiB more",
        ),
        rows=tuple(
            Row(
                result.peer,
                (
                    Cell(text=fixed(result.auc, 4), bold=result.auc == best),
                    _number(result.cost),
                    _text(f"{1e6 / result.cost:,.0f}"),
                    *[_number(findings.times(workload.name, result.peer, name)) for name in ours],
                    _text(f"{result.memory:.1f}"),
                ),
            )
            for result in results
        ),
    )


def dimension_table(findings: Findings) -> Table:
    """Compare CBR with the plain loop at every number of features."""
    rows = []
    for workload in findings.workloads("dimension"):
        blocked, plain = findings.ok(workload.name, BLOCKED), findings.ok(workload.name, PLAIN)
        if blocked and plain:
            times = findings.times(workload.name, PLAIN, BLOCKED)
            share = findings.matrix_share(workload.name)
            cells = (
                _text(f"{blocked.fired:.1%}"),
                _number(blocked.cost),
                _number(plain.cost),
                _number(times),
                _text(f"{share:.1%}"),
                _text(f"{plain.difference:.0e}"),
            )
            rows.append(Row(workload.title, cells))
    return Table(
        key="dimension",
        title="Against the plain loop",
        note=(
            "50 rows buffered. The share is of the machine's rate of matrix products, measured "
            "beside every chunk; the difference is the largest of mean and covariance, relative."
        ),
        corner="",
        columns=(
            "pairs fired",
            "CBR, µs a row",
            "plain loop",
            "ratio",
            "matrix rate",
            "difference",
        ),
        rows=tuple(rows),
    )


def start_table(findings: Findings) -> Table:
    """Show how long a new process takes to its first fit."""
    lines = [line for line in findings.record.step("start") or [] if not line["note"]]
    return Table(
        key="start",
        title="Start",
        note=(
            "Seconds from a new process to the end of its first fit, of 60 rows: with nothing "
            "compiled yet, and with the compiled code on disk."
        ),
        corner="",
        columns=("first on a machine", "later"),
        rows=tuple(
            Row(line["peer"], (_seconds(line["cold"]), _seconds(line["warm"]))) for line in lines
        ),
    )


def missing_table(findings: Findings) -> Table:
    """Name the peers that could not run and the measurements that failed, with the reason."""
    results = [r for r in findings.record.results() if r.status != "ok"]
    lines = [(r.peer, f"{r.status}: {r.note}", r.workload) for r in results]
    lines += [
        ("cbrank", f"failed: {why}", step) for step, why in findings.record.failures().items()
    ]
    places: dict[tuple[str, str], list[str]] = {}
    for peer, reason, place in lines:
        places.setdefault((peer, reason), []).append(place)
    return Table(
        key="missing",
        title="Not measured",
        note="",
        corner="",
        columns=("where", "why"),
        rows=tuple(
            Row(peer, (_text(", ".join(where)), _text(reason)))
            for (peer, reason), where in places.items()
        ),
    )


def _text(text: str) -> Cell:
    return Cell(text=text)


def _number(value: float) -> Cell:
    return Cell(text=short(value))


def _seconds(value: float | None) -> Cell:
    return Cell(text=ABSENT if value is None else f"{value:.1f}")


def short(value: float) -> str:
    """Write a number with three digits that matter."""
    if math.isnan(value):
        return ABSENT
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
