"""``make serving``, or ``python -m benchmarks.serving``: the options, and results as they come."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks.serving import servers, soak
from benchmarks.serving.measuring import Bench, Compared
from cbrank import provenance
from cbrank.cli.options import several
from cbrank.cli.progress import follow
from cbrank.tables import Cell, Row, Table, markdown

_NAMES = {data.name: data for data in servers.DATA}


def _check_name(name: str) -> str:
    if name in _NAMES:
        return name
    raise ValueError(f"unknown data {name!r}: there are {', '.join(_NAMES)}.")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@several("--only", _check_name, "Data to learn from and to send; all that are there if not given.")
@click.option(
    "--rounds", type=click.IntRange(1), default=5, show_default=True, help="How often to measure."
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.05),
    default=2.0,
    show_default=True,
    help="Of each measurement.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Mixed load with labels that come later for so long, in the place of the ratios.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    default=200.0,
    show_default=True,
    help="Rows a second of the mixed load.",
)
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of models and stores, on the disk to measure; else one that is removed.",
)
def main(
    only: list[str],
    rounds: int,
    seconds: float,
    minutes: float | None,
    rate: float,
    store: Path | None,
) -> None:
    """Measure `cbrank serve` beside an endpoint that only echoes the same JSON on the same stack.

    Both run in processes of their own, one worker each, and are measured in turns. Ratios are medians
    over the rounds, with the least and the greatest. The process that sends shares the machine with
    them: leave it alone meanwhile. Progress goes to standard error, the table to standard output.
    """
    chosen = [_NAMES[name] for name in only or _NAMES]
    there = [data for data in chosen if not data.why_not()]
    for data in chosen:
        if data not in there:
            click.echo(f"{data.name}: {data.why_not()}", err=True)
    with tempfile.TemporaryDirectory(dir=store) as name:
        folder = Path(name)
        if minutes:
            for data in there[:1]:
                _soak(data, folder, rate, minutes)
            return
        sync = servers.sync_milliseconds(folder)
        results = {data.name: _ratios(data, folder, rounds, seconds) for data in there}
    busiest = max((bench.busiest for bench in results.values()), default=0.0)
    compared = {_NAMES[name].text: bench.compared for name, bench in results.items()}
    click.echo(_page(compared, sync, busiest))


def _ratios(data: servers.Served, folder: Path, rounds: int, seconds: float) -> Bench:
    click.echo(f"{data.name}: training ...", err=True)
    model, rows = data.train(folder)
    store = folder / f"{data.name}.store"
    with servers.serve(model, store) as server, servers.echo(folder) as echo:
        bench = Bench(server, echo, model, rows, data.label, seconds)
        bench.warm_up()
        follow(data.name, bench.measure(rounds), dict.fromkeys(bench.tasks(rounds), 1))
    return bench


def _page(results: dict[str, list[Compared]], sync: float, busiest: float) -> str:
    """Write the results as Markdown."""
    machine = provenance.machine()
    versions = provenance.versions(["uvicorn", "starlette", "httptools", "uvloop", "msgspec"])
    said = (
        f"`python -m benchmarks.serving` on {machine['cpus']} cores ({machine['cpu']}), which the "
        "servers share with the process that sends; that one was at work for at most "
        f"{busiest:.0%} of the time. The disk takes "
        f"{sync:.2f} ms to have 4 KiB for sure. "
        + ", ".join(f"{name} {number}" for name, number in versions.items())
        + "."
    )
    return "\n".join([said, "", *(markdown(_table(*result)) for result in results.items())])


def _table(name: str, results: list[Compared]) -> Table:
    return Table(
        key=name,
        title=f"A model of {name}",
        note="Medians of the rounds; the ratio with its least and greatest.",
        corner="measured",
        columns=("served", "beside it", "ratio", "target"),
        rows=tuple(Row(result.name, (*_cells(result),)) for result in results),
    )


def _cells(result: Compared) -> Iterator[Cell]:
    digits = 2 if result.unit == "ms" else 0
    for at, what in ((0, ""), (1, f" ({result.other})")):
        value = sorted(pair[at] for pair in result.pairs)[len(result.pairs) // 2]
        yield Cell(text=f"{value:,.{digits}f} {result.unit}{what}")
    low, high = result.spread
    yield Cell(text=f"{result.ratio:.2f} ({low:.2f} to {high:.2f})", bold=result.reached())
    bound = "most" if result.most else "least"
    yield Cell(text="" if result.target is None else f"at {bound} {result.target:.2f}")


def _soak(data: servers.Served, folder: Path, rate: float, minutes: float) -> None:
    model, rows = data.train(folder)
    store = folder / f"{data.name}.store"
    with servers.serve(model, store, "--wait", soak.WAIT) as server:
        load = soak.Soak(server, store, rows, data.label, rate, minutes)
        load.run()
    click.echo(soak.RULE)
    found = [*soak.judged(load.found)]
    for each in found:
        click.echo(str(each))
    click.echo(f"{load.errors:,} requests were not answered as asked.")
    if any(each.flat is None for each in found):
        click.echo("Too short, or too little is known, to say more.")
    else:
        click.echo("Flat." if all(each.flat for each in found) else "Not flat.")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.serving")
