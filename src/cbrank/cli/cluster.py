"""Learning on a Dask cluster: what ``cbrank train --scheduler`` does."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.files import refuse_overwriting
from cbrank.cli.learning import last_run, refuse_unwritable
from cbrank.cli.telling import teller

if TYPE_CHECKING:
    from cbrank.dask import DaskCBRanker
    from cbrank.training import Model

scheduler = click.option(
    "--scheduler", metavar="ADDRESS", help="Use the Dask cluster whose scheduler is there."
)


def learn_on_cluster(
    asked: dict[str, Any],
    output: Path,
    options: dict[str, Any],
    begin: Callable[[], "Model"],
    widest: int | None,
) -> None:
    """Learn from files, each a partition of its own, and write the model; as `learn` otherwise."""
    from cbrank.dask import DaskCBRanker, Files  # noqa: PLC0415
    from cbrank.dask.connecting import connected  # noqa: PLC0415
    from cbrank.streams.position import mark  # noqa: PLC0415

    model = begin()
    _refuse_impossible(options, model)
    refuse_overwriting(("-o", output), data=options["data"])
    refuse_unwritable(output)
    files = Files(
        options["data"],
        model.columns,
        format=options["format"],
        scale="unit" if model.scaler else "none",
        widest=widest,
    )
    told = options["quiet"] or options["as_json"]
    with (
        teller(options["quiet"], options["as_json"]) as tell,
        connected(options["scheduler"]) as client,
        warnings.catch_warnings(record=True) as caught,
    ):
        if not client.scheduler_info()["workers"]:
            tell.note("the cluster has no workers yet; this waits for the first.")
        ranker = DaskCBRanker(
            **model.ranker.get_params() | {"shuffle": False},
            rounds=options["passes"],
            client=client,
            progress=not told,
        ).fit(files)
        for warning in caught:
            tell.note(str(warning.message))
        marks = [mark(path) for path in files.paths]
        _learned(ranker, model).write(output, last_run=last_run(asked, marks))
        tell.done(_result(ranker, output))


def _refuse_impossible(options: dict[str, Any], model: "Model") -> None:
    for name in ("checkpoint", "every", "resume"):
        if options[name]:
            raise click.UsageError(f"--{name} is not for a cluster: it goes on by itself.")
    if "-" in options["data"]:
        raise click.UsageError("a cluster reads files, not standard input.")
    if options["on_error"] == "skip":
        raise click.UsageError("--on-error skip is not for a cluster: mend the rows first.")
    if model.scaler and model.scaler.kind != "unit":
        raise click.UsageError(
            f"--scale {model.scaler.kind} is learned row by row, which partitions cannot do apart: "
            "say none or unit."
        )


def _learned(ranker: "DaskCBRanker", model: "Model") -> "Model":
    """Return the model as `cbrank train` would write it."""
    from cbrank.streams import StreamScaler  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    local, scaler = ranker.to_local().set_params(shuffle=model.ranker.shuffle), None
    if model.scaler:
        facts = {"kind": model.scaler.kind, "n_features_in": local.n_features_in_}
        scaler = StreamScaler.from_state({"rows": ranker.n_seen_.sum(keepdims=True)}, facts)
    return Model(local, scaler, ranker.columns_)


def _result(ranker: "DaskCBRanker", output: Path) -> dict[str, Any]:
    return {
        "rows": int(ranker.n_seen_.sum()),
        "positives": int(ranker.n_seen_[1]),
        "skipped": 0,
        "progressive_auc": round(ranker.progressive_auc_, 6) if ranker.n_pairs_ else None,
        "features": int(ranker.n_features_in_),
        "C": ranker.C_,
        "model": str(output),
    }
