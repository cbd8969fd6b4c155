"""``cbrank inspect``: what a model has seen, and its weights."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli import files
from cbrank.cli.options import AS_JSON, KINDS_IN_WORDS, MODEL, picture

if TYPE_CHECKING:
    from cbrank.inspection.contents import Contents
    from cbrank.inspection.weights import Weights

_LABEL = 17
_LONGEST = 40


@click.command(name="inspect")
@MODEL
@click.option(
    "--top",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="How many weights to show; 0 for all.",
)
@click.option(
    "--ages",
    is_flag=True,
    help="Measure how long a model keeps that was learned in order; this takes seconds.",
)
@click.option(
    "--importance",
    is_flag=True,
    help="Show how far each column moves scores, as shares that sum to 1; of an AdditiveRanker.",
)
@AS_JSON
@picture("--picture", "Draw the weights with their deviations")
def command(
    model: Path, top: int, ages: bool, importance: bool, as_json: bool, picture: Path | None
) -> None:
    """Show what a model has seen and its weights, largest effect first.

    The effect of a feature is the size of its weight times the spread (standard deviation) of the
    feature among the rows the model has buffered: how far the feature moves scores. CBR also knows
    the standard deviation of each weight: where weight/deviation is far from 0, the sign is sure.

    Of an AdditiveRanker, columns are shown, with the effect of each, and where what it
    adds to scores is lowest and highest; --picture draws up to 12 curves and bars, and maps
    of up to three pairs. --importance shows how
    far each column moves scores, its curve and the splits of trees by it taken together.

    A model that was learned in order is shown as it ranks rows that come much later. --ages tells the AUC of
    rows by how many rows came between them and the last row learned: of the next block, and up to an
    eighth, a fourth and half of the stream later.

    \b
    Examples:
      cbrank inspect clicks.model
      cbrank inspect clicks.model --ages
      cbrank inspect clicks.model --importance
      cbrank inspect clicks.model --top 0 --json
      cbrank inspect clicks.model --picture weights.svg
    """  # noqa: D301
    from cbrank.inspection.contents import Contents  # noqa: PLC0415
    from cbrank.inspection.weights import by_effect  # noqa: PLC0415

    files.refuse_closed_output()
    contents = Contents.open(model)
    files.check_outputs(("--picture", picture), model=model)
    if importance:
        _show_importances(contents, top, as_json, ages)
        return
    if hasattr(contents.ranker, "effects"):
        _show_columns(contents, top, as_json, picture, ages)
        return
    total = contents.ranker.n_features_in_
    weights = by_effect(contents.ranker, top or total)
    names = contents.names(weights.features.tolist())
    if picture:
        from cbrank.inspection.pictures import draw_weights  # noqa: PLC0415

        draw_weights(picture, names, weights, f"{type(contents.ranker).__name__}: {model.name}")
    if as_json:
        keys = [head.replace("/", "_over_") for head in _HEADS]
        rows = [dict(zip(keys, row, strict=False)) for row in _rows(names, weights)]
        click.echo(files.as_json(_facts(contents, ages) | {"weights": rows}))
        return
    more = (
        [f"... and {total - len(names):,} more: --top 0 shows all."] if total > len(names) else []
    )
    click.echo("\n".join([*_summary(contents, ages), "", *_table(names, weights), *more]))


def _show_columns(
    contents: "Contents", top: int, as_json: bool, picture: Path | None, ages: bool
) -> None:
    from cbrank.inspection.display import (  # noqa: PLC0415
        draw_curves,
        ends_of,
        maps_of,
        panels_of,
    )

    total = sum(term.kind != "text" for term in contents.ranker.effects().terms)
    panels = panels_of(contents.ranker, n=max(top or total, _DRAWN if picture else 0))
    if picture:
        draw_curves(picture, panels[:_DRAWN] + maps_of(contents.ranker))
    shown = panels[: top or total]
    ends = [ends_of(panel) for panel in shown]
    if as_json:
        rows = [
            {"name": panel.name, "kind": panel.kind, "effect": panel.moves}
            | {name: {"at": at, "adds": adds} for name, (at, adds) in zip(_ENDS, both, strict=True)}
            for panel, both in zip(shown, ends, strict=True)
        ]
        click.echo(files.as_json(_facts(contents, ages) | {"terms": rows}))
        return
    width = max([6, *(min(len(panel.name), _LONGEST) for panel in shown)])
    lines = [f"{'column':<{width}}  {'kind':<8}{'effect':>10}   {_ENDS[0]:<30}{_ENDS[1]}"]
    for panel, both in zip(shown, ends, strict=True):
        told = [_short(f"{adds:+.3g} at {at}", 28) for at, adds in both]
        line = (
            f"{_short(panel.name):<{width}}  {KINDS_IN_WORDS[panel.kind]:<8}{panel.moves:>10.4g}   "
        )
        lines.append(f"{line}{told[0]:<30}{told[1]}")
    left = total - len(shown) if len(shown) == top else 0
    more = [f"... and {left:,} more: --top 0 shows all."] if left else []
    click.echo("\n".join([*_summary(contents, ages), "", *lines, *more]))


def _show_importances(contents: "Contents", top: int, as_json: bool, ages: bool) -> None:
    if not hasattr(contents.ranker, "feature_importances_"):
        name = type(contents.ranker).__name__
        raise click.UsageError(f"--importance is of an AdditiveRanker, and this is a {name}.")
    sizes = contents.ranker.feature_importances_.tolist()
    names = contents.ranker.encoder_.names()
    order = sorted(range(len(names)), key=lambda at: -sizes[at])[: top or None]
    if as_json:
        rows = [{"name": names[at], "importance": sizes[at]} for at in order]
        click.echo(files.as_json(_facts(contents, ages) | {"importances": rows}))
        return
    width = max([6, *(min(len(names[at]), _LONGEST) for at in order)])
    lines = [f"{_short(names[at]):<{width}}{sizes[at]:>12.4f}" for at in order]
    left = len(names) - len(order)
    more = [f"... and {left:,} more: --top 0 shows all."] if left else []
    head = f"{'column':<{width}}{'importance':>12}"
    click.echo("\n".join([*_summary(contents, ages), "", head, *lines, *more]))


_DRAWN = 12
_ENDS = "lowest", "highest"
_HEADS = "feature", "weight", "effect", "deviation", "weight/deviation"


def _rows(names: list[str], weights: "Weights") -> list[tuple[Any, ...]]:
    parts: list[Any] = [names, weights.weights.tolist(), weights.effects.tolist()]
    if weights.deviations is not None:
        parts += [weights.deviations.tolist(), (weights.weights / weights.deviations).tolist()]
    return list(zip(*parts, strict=True))


def _table(names: list[str], weights: "Weights") -> list[str]:
    rows = _rows(names, weights)
    width = max([len(_HEADS[0]), *(min(len(name), _LONGEST) for name in names)])
    count = 5 if weights.deviations is not None else 3
    head = f"{_HEADS[0]:<{width}}" + "".join(f"{name:>18}" for name in _HEADS[1:count])
    lines = [
        f"{_short(name):<{width}}" + "".join(f"{value:>18.6g}" for value in values)
        for name, *values in rows
    ]
    return [head, *lines]


def _short(name: str, longest: int = _LONGEST) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"


def _facts(contents: "Contents", ages: bool) -> dict[str, Any]:
    """Return what the model is and has seen, and how long it keeps if that is asked for."""
    from cbrank.training.ages import ages_of, as_facts  # noqa: PLC0415

    facts = contents.summary()
    return facts | {"auc_by_age": as_facts(ages_of(contents.ranker))} if ages else facts


def _ages(found: list[dict[str, float]]) -> str:
    if not found:
        return "not known: rows were shuffled, are not kept (C is a number) or were too few"
    told = [
        f"{age['auc']:.4f} ± {age['error']:.4f} ({age['rows']:,.0f} rows later)" for age in found
    ]
    return ", ".join(told)


def _summary(contents: "Contents", ages: bool) -> list[str]:
    facts = _facts(contents, ages)
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    given = {name: value for name, value in facts["parameters"].items() if value is not None}
    parts = {
        "file": f"{facts['file']}, {facts['bytes']:,} bytes",
        "written by": versions,
        "class": facts["class"],
        "parameters": ", ".join(f"{name}={value!r}" for name, value in given.items()),
        "C chosen": f"{facts['C']:g}" if given.get("C") == "auto" else None,
        "features": f"{facts['features']:,}",
        "scaling": facts["scaler"] or "none",
        **_columns(facts["columns"]),
        "rows": f"{facts['rows']:,}: " + ", ".join(_counts(facts)),
        "pairs": facts["pairs"] and f"{facts['pairs']:,}",
        "updates": facts["updates"] and f"{facts['updates']:,}",
        "progressive AUC": _auc(facts),
        "AUC by age": _ages(facts["auc_by_age"]) if ages else None,
        "intercept": f"{facts['intercept']:.6g}",
        "diverged": "a step was too large, and learning ended there" if facts["diverged"] else None,
    }
    return [f"{name:<{_LABEL}}{value}" for name, value in parts.items() if value]


def _auc(facts: dict[str, Any]) -> str | None:
    overall, recent = facts["progressive_auc"], facts["recent_auc"]
    if overall is None:
        return None
    # Where one class has been alone for very long, nothing recent is known.
    return f"{overall:.4f}" + (f", recent {recent:.4f}" if recent is not None else "")


def _counts(facts: dict[str, Any]) -> list[str]:
    return [
        f"{count:,} {'positive' if label == facts['positive'] else 'negative'} ({label!r})"
        for label, count in facts["labels"].items()
    ]


def _columns(columns: dict[str, Any] | None) -> dict[str, str]:
    if columns is None:
        return {}
    categories = [f"{name}={how if isinstance(how, str) else ','.join(how)}"
                  for name, how in columns["categorical"].items()]  # fmt: skip
    return {
        "label column": columns["label"],
        "id column": columns["id"],
        "categories": " ".join(categories),
        "dropped": ", ".join(columns["dropped"]),
    }
