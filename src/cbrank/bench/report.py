"""A benchmark's tables, figures and what a terminal shows of it."""

from cbrank.bench.claims import claims
from cbrank.bench.figures import figures
from cbrank.bench.findings import Findings
from cbrank.bench.record import Record
from cbrank.bench.tables import missing_table, short, tables
from cbrank.plotting import Picture
from cbrank.tables import Table, markdown


def write(record: Record) -> None:
    """Write ``tables/``, ``figures/`` and ``report.md``, which shows them all.

    Parameters
    ----------
    record : Record
        A benchmark's folder.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed; the message says so.
    """
    findings = Findings(record)
    for name in ("tables", "figures"):
        (record.folder / name).mkdir(exist_ok=True)
    made = tables(findings)
    for table in made:
        path = record.folder / "tables" / f"{table.key}.md"
        path.write_text(markdown(table), encoding="utf-8")
    drawn = figures(findings, record.folder / "figures")
    (record.folder / "report.md").write_text(_page(record, made, drawn), encoding="utf-8")


def summary(record: Record) -> str:
    """Write what was promised and what was reached, for a terminal."""
    findings = Findings(record)
    lines = []
    for claim in claims(findings):
        wanted = f"{claim.sign} {short(claim.wanted)}"
        lines.append(f"{claim.text:<58}{short(claim.measured):>10}{wanted:>11}  {claim.verdict}")
    for row in missing_table(findings).rows:
        lines.append(f"{row.name} on {row.cells[0].text}: {row.cells[1].text}")
    return "\n".join(lines)


def _page(record: Record, made: list[Table], drawn: list[Picture]) -> str:
    facts, machine = record.facts, record.facts["machine"]
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
    own = f"pareto-{table.key.removeprefix('race-')}"
    return drawing.key == own or (table.key == "dimension" and drawing.key.startswith("cost-d"))


def _shown(drawing: Picture) -> str:
    return f"![{drawing.alt}](figures/{drawing.key}.svg)"
