"""``cbrank score``: scores of rows, in their order."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.files import (
    check_outputs,
    open_output,
    read_chunks,
    refuse_overwriting_by_output,
)
from cbrank.cli.options import DATA, MODEL, QUIET, reading

if TYPE_CHECKING:
    from cbrank.streams import Chunk
    from cbrank.training import Model

Table = dict[str, list[Any]]


@click.command(name="score")
@MODEL
@DATA
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
    """Write the score of each row of DATA, in order.

    The higher the score, the likelier the row is positive. DATA is svmlight, CSV or Parquet, plain
    or compressed, or - for standard input, with the columns the model was trained on, in any order.
    Labels are not needed and not read. A single column is written without a header line; several
    are written as CSV with one.

    \b
    Examples:
      cbrank score clicks.model today.csv > scores.txt
      cbrank score clicks.model today.csv.gz --id row --std --label -o scores.csv
      zcat today.svm.gz | cbrank score clicks.model - --json --proba
    """  # noqa: D301
    from cbrank.inspection.scoring import refuse_without_confidence  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    opened = Model.open(model)
    check_outputs(("-o", output), model=model, data=data)
    if output is None:
        refuse_overwriting_by_output(model, data)
    if options["std"] or options["confidence"]:
        refuse_without_confidence(opened)
    if id_column is not None:
        opened.columns.pass_on(id_column)
    with open_output(output) as file:
        write = _write_json if options["as_json"] else _write_csv
        for table, first in _tables(opened, data, id_column, options):
            write(file, table, first)
            file.flush()


def _tables(
    model: "Model", data: tuple[str, ...], id_column: str | None, options: dict[str, Any]
) -> Iterator[tuple[Table, bool]]:
    """Return the columns to write for each chunk, and whether it is the first."""
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
        yield ids | say(model, chunk.X, **asked), first
        first = False
    if first and not options["quiet"]:
        click.echo("Note: there are no rows.", err=True)


def _file(chunk: "Chunk") -> str:
    return chunk.position.files[chunk.position.file].name


def _write_csv(file: Any, table: Table, first: bool) -> None:
    rows = csv.writer(file, lineterminator="\n")
    if first and len(table) > 1:
        rows.writerow(table)
    rows.writerows(zip(*table.values(), strict=True))


def _write_json(file: Any, table: Table, first: bool) -> None:  # noqa: ARG001
    for cells in zip(*table.values(), strict=True):
        file.write(json.dumps(dict(zip(table, cells, strict=True)), ensure_ascii=False) + "\n")
