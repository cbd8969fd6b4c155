"""``cbrank score``: scores of rows, in their order, or the best of them."""

import csv
import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from cbrank.cli.files import (
    check_outputs,
    open_output,
    open_rows,
    read_chunks,
    refuse_overwriting_by_output,
)
from cbrank.cli.options import DATA, MODEL, MOST, QUIET, RowsOrShare, reading

if TYPE_CHECKING:
    from cbrank.streams import Chunk
    from cbrank.training import Model

Table = dict[str, list[Any]]


@click.command(name="score")
@MODEL
@DATA
@click.option(
    "--top",
    type=RowsOrShare(),
    metavar="ROWS|SHARE",
    help="The best rows only, such as 100 or 1%, best first, with the number of each.",
)
@click.option(
    "--explain",
    type=click.IntRange(1, MOST),
    metavar="COLUMNS",
    help="Also why: so many columns, those that move the row's score most.",
)
@click.option("--std", is_flag=True, help="Also the score's standard deviation (CBR).")
@click.option(
    "--confidence",
    is_flag=True,
    help="Also how sure it is that the score is above zero (CBR).",
)
@click.option("--proba", is_flag=True, help="Also the probability that the row is positive.")
@click.option("--label", is_flag=True, help="Also the label that the score stands for.")
@click.option(
    "--id",
    "id_column",
    metavar="COLUMN",
    help="Also this column, as it is; else the --id of training.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file, in place only when it is whole; else standard output.",
)
@click.option("--json", "as_json", is_flag=True, help="For machines: an object for each row.")
@reading
@QUIET
def command(
    model: Path, data: tuple[str, ...], id_column: str | None, output: Path | None, **options: Any
) -> None:
    """Write the score of each row of DATA, in order, or of the best rows.

    The higher the score, the likelier the row is positive. DATA is svmlight, CSV or Parquet, plain
    or compressed, or - for standard input, with the columns the model was trained on, in any order.
    Labels are not needed and not read. A single column is written without a header line; several
    are written as CSV with one.

    \b
    Examples:
      cbrank score clicks.model today.csv > scores.txt
      cbrank score clicks.model today.csv --top 100 --proba --explain 3
      cbrank score clicks.model today.csv.gz --id row --std --label -o scores.csv
      zcat today.svm.gz | cbrank score clicks.model - --json --proba
    """  # noqa: D301
    from cbrank.inspection.scoring import refuse_without_confidence  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    opened = Model.open(model).for_later()
    check_outputs(("-o", output), model=model, data=data)
    if output is None:
        refuse_overwriting_by_output(model, data)
    if options["std"] or options["confidence"]:
        refuse_without_confidence(opened)
    if id_column is not None:
        opened.columns.pass_on(id_column)
    chunks = _said(opened, data, id_column, options)
    why = _why(opened, options["explain"], options["as_json"])
    if options["top"] is None:
        tables = (table | why(chunk, range(len(table["score"]))) for chunk, table in chunks)
    else:
        most = _most(opened, data, options)
        tables = (table for table in [_best(chunks, most, why)])
    with open_output(output) as file:
        write = _write_json if options["as_json"] else _write_csv
        for number, table in enumerate(tables):
            write(file, table, first=number == 0)
            file.flush()


def _said(
    model: "Model", data: tuple[str, ...], id_column: str | None, options: dict[str, Any]
) -> Iterator[tuple["Chunk", Table]]:
    """Return chunks, and the columns to write for each."""
    from cbrank.inspection.scoring import say  # noqa: PLC0415

    asked = {name: options[name] for name in ("std", "confidence", "proba", "label")}
    first, with_ids = True, id_column is not None
    for chunk in read_chunks(model, data, options, labels=False):
        with_ids = with_ids or (first and chunk.ids is not None)
        if with_ids and chunk.ids is None:
            raise ValueError(
                f"{_file(chunk)} has no column {model.columns.id!r} to write beside scores."
            )
        ids = {"id": chunk.ids} if with_ids and chunk.ids is not None else {}
        yield chunk, ids | say(model, chunk.X, **asked)
        first = False
    if first and not options["quiet"]:
        click.echo("Note: there are no rows.", err=True)


def _file(chunk: "Chunk") -> str:
    return chunk.position.files[chunk.position.file].name


# Why ----------------------------------------------------------------------------------------------

Why = Callable[["Chunk", Any], Table]


def _why(model: "Model", columns: int | None, as_json: bool) -> Why:
    """Return what tells why some rows of a chunk have their scores, as a column to write."""
    if columns is None:
        return lambda _chunk, _places: {}
    from cbrank.inspection.explaining import Reasons, rows_at  # noqa: PLC0415

    reasons = Reasons(model, columns)

    def why(chunk: "Chunk", places: Any) -> Table:
        found = reasons.of(rows_at(chunk.X, list(places))) if len(places) else []
        if as_json:
            return {"why": [[reason._asdict() for reason in row] for row in found]}
        return {"why": ["; ".join(map(str, row)) for row in found]}

    return why


# The best rows ------------------------------------------------------------------------------------


def _most(model: "Model", data: tuple[str, ...], options: dict[str, Any]) -> int:
    """Return how many rows are asked for; if a share, the rows are counted first."""
    top = options["top"]
    if isinstance(top, int):
        return top
    assert isinstance(top, Fraction)
    with open_rows(model, data, options, labels=False) as stream:
        if stream.bytes_total is None:
            raise click.UsageError(
                "--top with a share has to count the rows first, and a pipe is read only once: "
                "give a file, or a number of rows."
            )
        rows = sum(chunk.X.shape[0] for chunk in stream)
    return max(1, int(top * rows + Fraction(1, 2)))


def _best(chunks: Iterator[tuple["Chunk", Table]], most: int, why: Why) -> Table:
    """Return the rows of highest score, best first, of equal ones the first first."""
    import numpy as np  # noqa: PLC0415

    kept, names, before = list[tuple[float, int, tuple[Any, ...]]](), list[str](), 0
    lowest = -np.inf
    for chunk, table in chunks:
        scores = np.array(table["score"])
        order = np.argsort(-scores, kind="stable")[:most]
        places = order[scores[order] > lowest].tolist()
        best = {name: [cells[at] for at in places] for name, cells in table.items()}
        best = {"row": [before + at + 1 for at in places]} | best | why(chunk, places)
        names, before = [*best], before + len(scores)
        for cells in zip(*best.values(), strict=True):
            kept.append((-cells[names.index("score")], cells[0], cells))
        if len(kept) >= 2 * most:
            kept.sort()
            del kept[most:]
            lowest = -kept[-1][0]
    rows = [cells for _, _, cells in sorted(kept)[:most]]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=False))


# Writing ------------------------------------------------------------------------------------------


def _write_csv(file: IO[str], table: Table, *, first: bool) -> None:
    rows = csv.writer(file, lineterminator="\n")
    if first and len(table) > 1:
        rows.writerow(table)
    rows.writerows(zip(*table.values(), strict=True))


def _write_json(file: IO[str], table: Table, *, first: bool) -> None:  # noqa: ARG001
    for cells in zip(*table.values(), strict=True):
        file.write(json.dumps(dict(zip(table, cells, strict=True)), ensure_ascii=False) + "\n")
