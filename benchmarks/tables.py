"""Tables of what was measured: peers side by side, sweeps, single rows, and others in brief."""

import math
from statistics import median

from benchmarks.interleaved import Result
from benchmarks.results_folder import FAST, FAST_10, PLAIN, PLAIN_10, Results
from benchmarks.single_rows import CALLERS, KINDS
from benchmarks.targets import Target, short
from benchmarks.workloads import Workload
from cbrank.tables import ABSENT, Cell, Row, Table, fixed


def target_table(aims: list[Target]) -> Table:
    """Set targets beside what was measured."""
    rows = [
        Row(aim.text, (text(aim.aim or ABSENT), number(aim.measured),
                       text(aim.verdict)))
        for aim in aims
    ]  # fmt: skip
    return Table(
        key="targets",
        title="Targets",
        note="Costs are compared chunk by chunk within one run, one thread, after warm-up.",
        corner="",
        columns=("target", "measured", ""),
        rows=tuple(rows),
    )


def single_table(results: Results) -> Table:
    """Show calls with one row."""
    rows = []
    for caller in CALLERS:
        found = [results.lines("single-rows", caller=caller, kind=kind) for kind in KINDS]
        if all(found):
            cells = [number(lines[0]["cost"]) for lines in found]
            cells += [number(results.single_ratio(caller, kind)) for kind in KINDS]
            rows.append(Row(caller, tuple(cells)))
    return Table(
        key="single-rows",
        title="One row at a time",
        note=(
            "Microseconds of a call with one row of 20 columns, a third of the pairs firing, the least "
            "of many rounds; then divided by River LR's. River's `predict_proba_one` stands beside `predict_proba`."
        ),
        corner="",
        columns=(*KINDS.values(), *[f"{words} / River LR" for words in KINDS.values()]),
        rows=tuple(rows),
    )


def brief_tables(results: Results) -> list[Table]:
    """Show streams in time, curves and the service, in brief."""
    in_time = [
        Row(
            f"{line['stream']}, {line['title']}",
            (
                text(fixed(line["window_auc"], 4)),
                text(fixed(line["auc"], 4)),
                number(line["cost"]),
                number(
                    results.line_ratio(
                        "streams",
                        {"stream": line["stream"], "method": line["method"]},
                        {"stream": line["stream"], "method": "river-lr"},
                    )
                ),
            ),
        )
        for line in results.lines("streams")
    ]
    fitted = [
        Row(
            line["title"],
            (
                text(fixed(line["auc"], 4)),
                number(line["cost"]),
                text(f"{1e6 / line['cost']:,.0f}"),
                number(
                    results.line_ratio("curves", {"method": line["method"]}, {"method": "lightgbm"})
                ),
            ),
        )
        for line in results.lines("curves")
    ]
    served = [
        Row(
            line["request"],
            (
                text(f"{median(ours for ours, _ in line['pairs']):,.0f}"),
                text(f"{median(echo for _, echo in line['pairs']):,.0f}"),
                number(median(ours / echo for ours, echo in line["pairs"])),
            ),
        )
        for line in results.lines("service")
    ]
    learned = next((line["rows"] for line in results.lines("curves")), 0)
    return [
        Table(
            key="streams",
            title="Streams in time",
            note=(
                "Each row is predicted, then learned from, in the order of the file; the time is that "
                "of both. `make streams` measures more."
            ),
            corner="",
            columns=("AUC, windows", "AUC, whole", "µs a row", "cost / River LR"),
            rows=tuple(in_time),
        ),
        Table(
            key="curves",
            title="Curves",
            note=(
                f"The table adult, {learned:,} rows learned from; AUC on others. `make beyond` measures "
                "more."
            ),
            corner="",
            columns=("AUC", "µs a row", "rows/s", "cost / LightGBM"),
            rows=tuple(fitted),
        ),
        Table(
            key="service",
            title="The service",
            note=(
                "Requests a second, each with one row, over 64 connections, beside an endpoint that "
                "echoes them on the same stack. `make serving` measures more."
            ),
            corner="",
            columns=("`cbrank serve`", "echo", "ratio"),
            rows=tuple(served),
        ),
    ]


def one_hot_table(results: Results) -> Table:
    """Compare words as columns with dense columns."""
    names = {
        "one-hot-30": "30 dense columns, noisy",
        "one-hot-dense": "adult, dense array",
        "one-hot-sparse": "adult, sparse matrix",
    }
    found = [result for name in names for result in results.of(name) if result.status == "ok"]
    return Table(
        key="one-hot",
        title="Words as columns",
        note="The table adult with a column for each word, beside dense columns; full covariance.",
        corner="",
        columns=("columns", "not zero", "pairs fired", "µs a row", "AUC"),
        rows=tuple(
            Row(
                f"{names[result.workload]}, {result.peer.removesuffix(', sparse rows')}",
                (
                    text(f"{result.features:.0f}"),
                    text(f"{result.nonzeros:.0f}"),
                    text(f"{result.fired:.0%}"),
                    number(result.cost),
                    text(fixed(result.auc, 4)),
                ),
            )
            for result in found
        ),
    )


def auto_table(results: Results) -> Table:
    """Show what a short stream costs with C="auto" and with a fixed C."""
    found = [result for result in results.of("short") if result.status == "ok"]
    return Table(
        key="short",
        title="A short stream",
        note="500 rows of 54 features in two calls, a third of the pairs firing.",
        corner="",
        columns=("milliseconds", "AUC"),
        rows=tuple(
            Row(result.peer, (number(1e3 * result.seconds), text(fixed(result.auc, 4))))
            for result in found
        ),
    )


def peer_table(results: Results, workload: Workload) -> Table:
    """Set the peers of a workload side by side, by cost."""
    lines = sorted(
        (result for result in results.of(workload.name) if result.status == "ok"),
        key=lambda result: result.cost,
    )
    ours = ("CBR 50", "CBR 10") if workload.group == "tabular" else ("CBR-diag 50", "CBR-diag 10")
    best = max((r.auc for r in lines if not math.isnan(r.auc)), default=math.nan)
    first = lines[0] if lines else Result(workload.name, "")
    note = (
        f"{first.rows:,.0f} rows of {first.features:,.0f} features"
        + (f", {first.nonzeros:.0f} of them not zero" if workload.group == "text" else "")
        + f", one pass; AUC on {first.held:,.0f} others. Batch LR sees all rows at once."
    )
    return Table(
        key=f"peers-{workload.name}",
        title=workload.title,
        note=note,
        corner="",
        columns=("AUC", "µs a row", "rows/s", *[f"cost / {name}'s" for name in ours], "MiB added"),
        rows=tuple(
            Row(
                result.peer,
                (
                    Cell(text=fixed(result.auc, 4), bold=result.auc == best),
                    number(result.cost),
                    text(f"{1e6 / result.cost:,.0f}"),
                    *[
                        number(results.cost_ratio(workload.name, result.peer, name))
                        for name in ours
                    ],
                    text(f"{result.memory:.1f}"),
                ),
            )
            for result in lines
        ),
    )


def dimension_table(results: Results) -> Table:
    """Compare CBR with the plain loop at every number of features."""
    rows = []
    for workload in results.workloads("dimension"):
        fast, plain = results.ok(workload.name, FAST), results.ok(workload.name, PLAIN)
        if fast and plain:
            ten = results.ok(workload.name, PLAIN_10)
            cells = (
                text(f"{fast.fired:.1%}"),
                number(fast.cost),
                number(plain.cost),
                number(results.cost_ratio(workload.name, PLAIN, FAST)),
                number(results.cost_ratio(workload.name, PLAIN_10, FAST_10)),
                text(f"{results.matrix_share(workload.name):.1%}"),
                text(f"{max(plain.difference, ten.difference if ten else 0.0):.0e}"),
            )
            rows.append(Row(workload.title, cells))
    return Table(
        key="dimension",
        title="Against the plain loop",
        note=(
            "50 rows buffered, and 10 where it says so. The share is of the machine's rate of matrix "
            "products, measured beside every chunk; the difference is the largest of mean and "
            "covariance, relative."
        ),
        corner="",
        columns=(
            "pairs fired",
            "CBR, µs a row",
            "plain loop",
            "ratio",
            "ratio, 10",
            "matrix rate",
            "difference",
        ),
        rows=tuple(rows),
    )


def start_table(results: Results) -> Table:
    """Show how long a new process takes to its first fit."""
    lines = [line for line in results.folder.measured("start") or [] if not line["note"]]
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


def missing_table(results: Results) -> Table:
    """Name the peers that could not run and the measurements that failed, with the reason."""
    lines = [
        (result.peer, f"{result.status}: {result.note}", result.workload)
        for result in results.folder.results()
        if result.status != "ok"
    ]
    failures = results.folder.failures()
    lines += [("cbrank", f"failed: {reason}", name) for name, reason in failures.items()]
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
            Row(peer, (text(", ".join(where)), text(reason)))
            for (peer, reason), where in places.items()
        ),
    )


def text(words: str) -> Cell:
    """Return a cell with words."""
    return Cell(text=words)


def number(value: float) -> Cell:
    """Return a cell with a number of three digits."""
    return Cell(text=short(value))


def _seconds(value: float | None) -> Cell:
    return Cell(text=ABSENT if value is None else f"{value:.1f}")
