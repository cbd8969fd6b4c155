"""The page: ratios with their targets, the machine's limits, history, then all other tables."""

import math
from dataclasses import replace
from importlib.util import find_spec

from benchmarks import history
from benchmarks.figures import figures
from benchmarks.results_folder import FAST, FAST_10, Results, ResultsFolder
from benchmarks.tables import (
    auto_table,
    brief_tables,
    dimension_table,
    missing_table,
    number,
    one_hot_table,
    peer_table,
    single_table,
    start_table,
    target_table,
    text,
)
from benchmarks.targets import short, targets
from cbrank.atomic import atomic_write_text
from cbrank.plotting import Picture
from cbrank.tables import ABSENT, Row, Table, markdown

_RATIOS = (
    "All of one run, one thread, after warm-up. Costs of a row are compared chunk by chunk; times "
    "are those of whole streams, with their first rows."
)
_RUNS = 6  # of the history that are shown


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
    """Set targets beside what was measured, for a terminal.

    Also name what could not be measured, and what is worse than in the benchmark before.
    """
    results = Results(folder)
    aims, lines = targets(results), []
    for target in aims:
        measured = f"{target.text:<72}{short(target.measured):>9}{target.aim:>12}"
        lines.append(f"{measured}  {target.verdict}".rstrip())
    for row in missing_table(results).rows:
        lines.append(f"{row.name} on {row.cells[0].text}: {row.cells[1].text}")
    return "\n".join([*lines, *history.worse(folder, aims)])


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
    own = {
        "targets": "ratios",
        "limits": "roofline",
        "dimension": "cost-d",
        "length": "cost-",
    }.get(table.key, f"pareto-{table.key.removeprefix('peers-')}.")
    return f"{drawing.key}.".startswith(own)


def _shown(drawing: Picture) -> str:
    return f"![{drawing.alt}](figures/{drawing.key}.svg)"


# Tables -------------------------------------------------------------------------------------------


def tables(results: Results) -> list[Table]:
    """Make all tables that the measurements allow."""
    made = [
        replace(target_table(targets(results)), title="Ratios", note=_RATIOS),
        limits_table(results),
        history_table(results.folder),
        single_table(results),
        *brief_tables(results),
        one_hot_table(results),
        auto_table(results),
        *[peer_table(results, workload) for workload in results.workloads("tabular", "text")],
        dimension_table(results),
        start_table(results),
        missing_table(results),
    ]
    return [table for table in made if table.rows]


def limits_table(results: Results) -> Table:
    """Show what the machine allows, and what the sweeps reach of it."""
    limits = results.limits()
    rows = []
    for line in limits.lines if limits else ():
        d = line["features"]
        noise = "third" if results.ok(f"d{d}-third", FAST) else "noisy"
        fast = results.ok(f"d{d}-{noise}", FAST)
        shares = [results.attained_share(f"d{d}-{noise}", peer) for peer in (FAST, FAST_10)]
        cells = (
            text(f"{8 * d * d / 1024:,.1f}"),
            number(line["loads"] / 1e9),
            number(line["changes"] / 1e9),
            text(f"{fast.fired:.0%}" if fast else ABSENT),
            number(limits.attainable(d, 50, fast.fired) / 1e9 if limits and fast else math.nan),
            number(results.rate(f"d{d}-{noise}", FAST, FAST) / 1e9),
            *[text(ABSENT if math.isnan(share) else f"{share:.0%}") for share in shares],
        )
        rows.append(Row(f"{d:,}", cells))
    matrix = f"{limits.matrix / 1e9:.1f}" if limits else ABSENT
    return Table(
        key="limits",
        title="Limits of the machine",
        note=(
            f"Matrix products: {matrix} Gflop/s, that is thousand million operations a second. Loads "
            "and changes (load, add, store) are GB/s in a block of the size of Sigma. What the "
            "machine allows the sweep is the least time of its operations at the matrix rate, or of "
            "its loads and stores if that is longer; `benchmarks/roofline.py` counts them."
        ),
        corner="features",
        columns=(
            "Sigma, KiB",
            "loads",
            "changes",
            "pairs fired",
            "allowed, Gflop/s",
            "CBR 50, Gflop/s",
            "share",
            "share, CBR 10",
        ),
        rows=tuple(rows),
    )


def history_table(folder: ResultsFolder) -> Table:
    """Show the ratios of the last benchmarks on this kind of machine."""
    aims = targets(Results(folder))
    new = history.current(folder, aims)
    runs = [run for run in history.read(folder.path) if run.machine == new.machine][-_RUNS:]
    rows = [
        Row(aim.text, tuple(number(run.ratios.get(aim.text, math.nan)) for run in runs))
        for aim in aims
        if any(aim.text in run.ratios for run in runs)
    ]
    return Table(
        key="history",
        title="History",
        note=f"The last benchmarks on {new.machine}; all of them are in `history.csv`.",
        corner="",
        columns=tuple(f"{run.started[:10]} {run.commit}".strip() for run in runs),
        rows=tuple(rows),
    )
