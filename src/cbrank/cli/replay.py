"""``cbrank replay``: a model from the labelled rows that a service has kept."""

import contextlib
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.files import as_json as in_json
from cbrank.cli.files import check_outputs
from cbrank.cli.options import AS_JSON, QUIET, parameter_options
from cbrank.cli.results import result_of
from cbrank.cli.train import LEARNER, OF_LINES, SHAPES
from cbrank.parameters import LINEAR, OF_TABLES

if TYPE_CHECKING:
    from cbrank.training import Model

_OF_TABLES = {parameter.name for parameter in OF_TABLES}


@click.command(name="replay")
@click.argument(
    "store", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="STORE"
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="MODEL",
    help="Where the model goes.",
)
@click.option(
    "--shape",
    type=click.Choice([*SHAPES]),
    help="Learn anew, with effects of this shape; see cbrank train.",
)
@parameter_options((*OF_TABLES, *LINEAR))
@AS_JSON
@QUIET
def command(
    store: Path, output: Path, shape: str | None, as_json: bool, quiet: bool, **parameters: Any
) -> None:
    """Make a model from the labelled rows that a service has kept.

    STORE is the folder of cbrank serve, which may be running. Without parameters, learning goes on
    from the model that the rows kept began with, and gives the model that is served, to the bit.
    With --shape or any parameter of cbrank train, a new ranker learns from these rows alone: how
    would it have done? A service with --keep-events keeps all rows, any other those since its last
    snapshot but one.

    \b
    cbrank replay clicks.store -o clicks.model
    cbrank replay clicks.store --shape linear -o line.model
    """  # noqa: D301
    from cbrank.optional import need  # noqa: PLC0415

    need("msgspec", "cbrank replay", "serve")
    from cbrank.serving.replay import replay  # noqa: PLC0415

    check_outputs(("-o", output))
    given = {name: parameters[name] for name in LEARNER if parameters[name] is not None}
    anew = (lambda model: _like(model, shape or "auto", given)) if given or shape else None
    with contextlib.ExitStack() as stack:
        progress = _Progress(stack, is_shown=not (quiet or as_json))
        model, events = replay(store, anew, progress)
    model.write(output)
    auc = float(model.ranker.progressive_auc_)
    if as_json:
        positives = int(model.ranker.n_seen_[1])
        found = result_of(model, output, rows=events, positives=positives, skipped=0, auc=auc)
        click.echo(in_json(found))
    elif not quiet:
        honest = (
            "" if math.isnan(auc) else f" AUC of rows before they were learned from: {auc:.4f}."
        )
        click.echo(f"{output}: learned from {events:,} rows.{honest}", err=True)


def _like(model: "Model", shape: str, given: dict[str, Any]) -> "Model":
    """Return a model for the same columns that has learned nothing."""
    from cbrank.rankers import AdditiveRanker, CBRanker  # noqa: PLC0415
    from cbrank.streams import StreamScaler  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    others = OF_LINES if model.takes_tables() else _OF_TABLES
    given = {name: value for name, value in given.items() if name not in others}
    if model.takes_tables():
        return Model(AdditiveRanker(**SHAPES[shape] | given, random_state=0), None, model.columns)
    scaler = None if model.scaler is None else StreamScaler(model.scaler.kind)
    return Model(CBRanker(**given, random_state=0), scaler, model.columns)


class _Progress:
    """A bar on standard error, with the time that remains."""

    def __init__(self, stack: contextlib.ExitStack, *, is_shown: bool) -> None:
        self._stack, self._is_shown, self._done = stack, is_shown, 0
        self._bar: Any = None

    def __call__(self, done: int, total: int, _model: Any) -> None:
        """Show how many of all events are done."""
        if not self._is_shown:
            return
        if self._bar is None:
            bar = click.progressbar(length=total, label="Learning", file=sys.stderr)
            self._bar = self._stack.enter_context(bar)
        self._bar.update(done - self._done)
        self._done = done
