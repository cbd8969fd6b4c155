"""Targets, tables and the page that shows them, and what a terminal shows of it."""

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.figures import figures
from benchmarks.interleaved import Result
from benchmarks.results_folder import FAST, PLAIN, Results, ResultsFolder
from benchmarks.workloads import Workload
from cbrank.atomic import atomic_write_text
from cbrank.plotting import Picture
from cbrank.tables import ABSENT, Cell, Row, Table, fixed, markdown

_ORDER = {"≥": operator.ge, ">": operator.gt, "≤": operator.le, "<": operator.lt}


def write(folder: ResultsFolder) -> None:
    """Write ``tables/``, ``figures/`` and ``report.md``, which shows them all.

    Without matplotlib there are no figures.

    Parameters
    ----------
    folder : ResultsFolder
        A benchmark's folder.
    """
    results = Results(folder)
    for name in ("tables", "figures"):
        (folder.path / name).mkdir(exist_ok=True)
    made = tables(results)
    for table in made:
        atomic_write_text(folder.path / "tables" / f"{table.key}.md", markdown(table))
    drawn = figures(results, folder.path / "figures") if find_spec("matplotlib") else []
    atomic_write_text(folder.path / "report.md", _page(folder, made, drawn))


def summary(folder: ResultsFolder) -> str:
    """Set targets beside what was measured, for a terminal, and name what could not be measured."""
    results = Results(folder)
    lines = []
    for target in targets(results):
        limit = f"{target.sign} {short(target.limit)}"
        lines.append(f"{target.text:<64}{short(target.measured):>9}{limit:>12}  {target.verdict}")
    for row in missing_table(results).rows:
        lines.append(f"{row.name} on {row.cells[0].text}: {row.cells[1].text}")
    return "\n".join(lines)


def _page(folder: ResultsFolder, made: list[Table], drawn: list[Picture]) -> str:
    facts, machine = folder.facts, folder.facts["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    head = (
        f"Measured by `{facts['command']}` with seed {facts['settings']['seed']}, finished "
        f"{facts['finished']}, on {machine['cpu']} with {machine['cpus']} cores, one thread; "
        f"{versions}."
    )
    parts = [head]
    for table in made:
        parts += [f"## {table.title}", markdown(table).strip()]
        parts += [_shown(drawing) for drawing in drawn if _goes_with(drawing, table)]
    rest = [drawing for drawing in drawn if not any(_goes_with(drawing, table) for table in made)]
    parts += ["## Cost against rows buffered and rows seen", *map(_shown, rest)] if rest else []
    return "\n\n".join(parts) + "\n"


def _goes_with(drawing: Picture, table: Table) -> bool:
    own = f"pareto-{table.key.removeprefix('peers-')}"
    return drawing.key == own or (table.key == "dimension" and drawing.key.startswith("cost-d"))


def _shown(drawing: Picture) -> str:
    return f"![{drawing.alt}](figures/{drawing.key}.svg)"


# Targets ------------------------------------------------------------------------------------------


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
        The numbers; NaN if not measured.
    """

    text: str
    sign: str
    limit: float
    measured: float

    @property
    def verdict(self) -> str:
        """Whether the target is met."""
        if math.isnan(self.measured) or math.isnan(self.limit):
            return "not measured"
        return "met" if _ORDER[self.sign](self.measured, self.limit) else "missed"


def targets(results: Results) -> list[Target]:
    """Compare what was measured with what is aimed at."""
    return [
        *_dimension_targets(results),
        *_covtype_targets(results),
        *_text_targets(results),
        *_other_targets(results),
    ]


def _dimension_targets(results: Results) -> Iterator[Target]:
    for d, sign, limit in (
        (20, "≥", 0.9), (54, ">", 1.0), (200, "≥", 2.5), (1000, "≥", 6.0), (2000, "≥", 15.0),
    ):  # fmt: skip
        for noise in ("easy", "noisy"):
            times = results.cost_ratio(f"d{d}-{noise}", PLAIN, FAST)
            yield Target(f"{d:,} features, {noise}: cost, plain loop / CBR", sign, limit, times)
    for noise in ("easy", "noisy"):
        share = results.matrix_share(f"d5000-{noise}")
        yield Target(f"5,000 features, {noise}: share of the matrix-product rate", ">", 0.4, share)
        result = results.ok(f"d5000-{noise}", FAST)
        memory = result.memory / 1024 if result else math.nan
        yield Target(f"5,000 features, {noise}: GiB added while learning", "<", 24.0, memory)
    gaps = [
        result.difference
        for workload in results.workloads("dimension")
        if (result := results.ok(workload.name, PLAIN))
    ]
    worst = max(gaps, default=math.nan)
    yield Target("Largest relative difference of CBR from the plain loop", "≤", 1e-10, worst)


def _covtype_targets(results: Results) -> Iterator[Target]:
    for name, words in (("covtype-raw", "raw"), ("covtype-standard", "standardised")):
        for M, limit in ((50, 1.0), (10, 1 / 3)):
            times = results.cost_ratio(name, f"CBR {M}", "River LR")
            yield Target(f"covtype {words}: cost, CBR {M} / River LR", "≤", limit, times)
        for peer in ("River LR", "Vowpal Wabbit", "SGD averaged"):
            text = f"covtype {words}: AUC of CBR 10 above that of {peer}"
            yield Target(text, ">", results.auc(name, peer), results.auc(name, "CBR 10"))


def _text_targets(results: Results) -> Iterator[Target]:
    for name in ("farm-ads", "reuters", "news20"):
        cost = results.pair_cost(name)
        yield Target(f"{name}: cost, pair of CBR-diag / row of SGD", "≤", 0.2, cost)


def _other_targets(results: Results) -> Iterator[Target]:
    time = results.selection_time()
    yield Target("Time, cross-validation / its fits shared by all cores", "≤", 1.15, time)
    for name, words in (("covtype-raw", "raw"), ("covtype-standard", "standardised")):
        text = f'covtype {words}: time, C="auto" / a fixed C'
        yield Target(text, "≤", 3.0, results.auto_time(name))
    for kind in ("dense", "sparse"):
        text = f"Memory, {kind} fit / the caller's matrix"
        yield Target(text, "<", 0.5, results.fit_memory(kind))


# Tables -------------------------------------------------------------------------------------------


def tables(results: Results) -> list[Table]:
    """Make all tables that the measurements allow."""
    made = [
        target_table(targets(results)),
        *[peer_table(results, workload) for workload in results.workloads("tabular", "text")],
        dimension_table(results),
        start_table(results),
        missing_table(results),
    ]
    return [table for table in made if table.rows]


def target_table(aims: list[Target]) -> Table:
    """Set targets beside what was measured."""
    rows = [
        Row(aim.text, (_text(f"{aim.sign} {short(aim.limit)}"), _number(aim.measured),
                       _text(aim.verdict)))
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
                    _number(result.cost),
                    _text(f"{1e6 / result.cost:,.0f}"),
                    *[
                        _number(results.cost_ratio(workload.name, result.peer, name))
                        for name in ours
                    ],
                    _text(f"{result.memory:.1f}"),
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
            cells = (
                _text(f"{fast.fired:.1%}"),
                _number(fast.cost),
                _number(plain.cost),
                _number(results.cost_ratio(workload.name, PLAIN, FAST)),
                _text(f"{results.matrix_share(workload.name):.1%}"),
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
    """Write a number with three significant digits."""
    if math.isnan(value):
        return ABSENT
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
