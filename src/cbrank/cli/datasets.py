"""``cbrank datasets``: what the paper's data sets are, where they lie, and how to get them."""

import json
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.files import refuse_closed_output
from cbrank.cli.options import AS_JSON

if TYPE_CHECKING:
    from cbrank.datasets import DataSet

_LABEL = 10
_GROUPINGS = {
    "source": "the two classes of the source",
    "inferred": "inferred: the paper does not say which classes are positive; its figures fit these",
    "chosen": "chosen here: the paper does not say which classes are positive",
}


@click.group(name="datasets")
def command() -> None:
    """List, describe and fetch the paper's data sets."""
    refuse_closed_output()


@command.command(name="list")
@AS_JSON
def show(as_json: bool) -> None:
    """List the data sets, what they hold and where they are found."""
    from cbrank import datasets  # noqa: PLC0415

    entries = [datasets.info(name) for name in datasets.names()]
    if as_json:
        click.echo(json.dumps([_facts(entry) for entry in entries], indent=2))
        return
    click.echo(f"{'name':<11}{'rows':>8}{'features':>10}{'positive':>10}  {'grouping':<10}found")
    for entry in entries:
        counts = f"{entry.rows:>8}{entry.features:>10}{_share(entry):>10}"
        click.echo(f"{entry.name:<11}{counts}  {entry.grouping:<10}{_place(entry)}")


@command.command(name="info")
@click.argument("name")
@AS_JSON
def describe(name: str, as_json: bool) -> None:
    """Show all that is known of a data set."""
    entry = _entry(name)
    if as_json:
        click.echo(json.dumps(_facts(entry), indent=2))
        return
    for label, value in {
        "name": f"{entry.name}: {entry.title}",
        "table": f"the paper's {entry.table} data sets",
        "rows": f"{entry.rows} (the paper counts {entry.paper_rows})",
        "features": f"{entry.features} (the paper counts {entry.paper_features})",
        "positive": f"{_share(entry) or 'not counted yet'}; {_rule(entry)}",
        "grouping": _GROUPINGS[entry.grouping],
        "note": entry.note or "none",
        "licence": entry.licence,
        "source": " ".join(part.address for part in entry.parts),
        "found": _place(entry),
    }.items():
        lines = textwrap.wrap(value, 88, break_long_words=False, break_on_hyphens=False)
        click.echo(f"{label:<{_LABEL}}" + f"\n{' ' * _LABEL}".join(lines))


@command.command(name="fetch")
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--all", "everything", is_flag=True, help="All 21 data sets.")
def get(names: tuple[str, ...], everything: bool) -> None:
    """Get data sets from their public addresses, those that are not here whole."""
    from cbrank import datasets  # noqa: PLC0415

    if bool(names) == everything:
        raise click.UsageError("give names of data sets, or --all.")
    wanted = datasets.names() if everything else [_entry(name).name for name in names]
    failures = [name for name in wanted if not _fetched(name)]
    if failures:
        raise click.ClickException(f"not fetched: {', '.join(failures)}.")


def _fetched(name: str) -> bool:
    from cbrank import datasets  # noqa: PLC0415

    try:
        click.echo(f"{name}: {datasets.fetch(name)}")
    except OSError as error:
        click.echo(f"{name}: {error}", err=True)
        return False
    return True


def _entry(name: str) -> "DataSet":
    from cbrank import datasets  # noqa: PLC0415

    try:
        return datasets.info(name)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="NAME") from error


def _facts(entry: "DataSet") -> dict[str, Any]:
    """Return the registry's entry with the file that would be loaded."""
    from cbrank.datasets.store import find  # noqa: PLC0415

    found = find(entry)
    return asdict(entry) | {
        "found": found and found.origin,
        "path": found and str(found.path),
        "found_rows": found and found.contents.rows,
    }


def _place(entry: "DataSet") -> str:
    facts = _facts(entry)
    if not facts["found"]:
        return "not here"
    rows = facts["found_rows"]
    return f"{facts['found']}{'' if rows == entry.rows else f', a sample of {rows} rows'}"


def _share(entry: "DataSet") -> str:
    return "" if entry.positives is None else f"{entry.positives / entry.rows:.1%}"


def _rule(entry: "DataSet") -> str:
    rules = {
        "greater": "the rows of the greater label",
        "quarter": "a fixed random group of classes with at most a quarter of the rows",
    }
    if isinstance(entry.positive, tuple):
        return f"the rows of classes {', '.join(map(str, entry.positive))}"
    return rules.get(str(entry.positive), f"the rows of class {entry.positive}")
