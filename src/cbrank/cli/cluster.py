"""Learning on a Dask cluster: what ``cbrank train --scheduler`` does."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.files import check_outputs
from cbrank.cli.progress import reporter, shown

if TYPE_CHECKING:
    from cbrank.dask import DaskRanker
    from cbrank.training import Model


def learn_on_cluster(
    model: "Model",
    asked: dict[str, Any],
    output: Path,
    options: dict[str, Any],
    widest: int | None,
) -> None:
    """Learn from files, each a partition of its own, and write the model; as `learn` otherwise."""
    from sklearn.base import clone  # noqa: PLC0415

    from cbrank.dask import DaskRanker, Files  # noqa: PLC0415
    from cbrank.dask.cluster import connected  # noqa: PLC0415
    from cbrank.streams.position import mark  # noqa: PLC0415
    from cbrank.training.checkpoint import last_run  # noqa: PLC0415

    _refuse_impossible(options, model)
    check_outputs(("-o", output), data=options["data"])
    files = Files(
        options["data"],
        model.columns,
        format=options["format"],
        scale="unit" if model.scaler else "none",
        widest=widest,
    )
    silent = options["quiet"] or options["as_json"]
    with (
        reporter(options["quiet"], options["as_json"]) as report,
        connected(options["scheduler"]) as client,
        warnings.catch_warnings(record=True) as caught,
    ):
        if not client.scheduler_info()["workers"]:
            report.note("the cluster has no workers yet; this waits for the first.")
        ranker = DaskRanker(
            clone(model.ranker).set_params(shuffle=False),  # rows in the order of their files
            rounds=options["passes"],
            client=client,
            progress=not silent,
        ).fit(files)
        for warning in caught:
            report.note(str(warning.message))
        marks = [mark(path) for path in files.paths]
        _learned(ranker, model).write(output, last_run=last_run(asked, marks))
        report.done(_result(ranker, output))


def _refuse_impossible(options: dict[str, Any], model: "Model") -> None:
    for name in ("checkpoint", "every", "resume"):
        if options[name]:
            raise click.UsageError(f"--{name} is not for a cluster: it goes on by itself.")
    if options["shuffle"] is not None:
        raise click.UsageError("--shuffle is not for a cluster: mix the rows of each file before.")
    if "-" in options["data"]:
        raise click.UsageError("a cluster reads files, not standard input.")
    if options["on_error"] == "skip":
        raise click.UsageError("--on-error skip is not for a cluster: mend the rows first.")
    if model.scaler and model.scaler.kind != "unit":
        raise click.UsageError(
            f"--scale {model.scaler.kind} is learned row by row, which separate partitions cannot do: "
            "use none or unit."
        )


def _learned(ranker: "DaskRanker", model: "Model") -> "Model":
    """Return the model as `cbrank train` would write it."""
    from cbrank.streams import StreamScaler  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    local, scaler = ranker.to_local().set_params(shuffle=model.ranker.shuffle), None
    if model.scaler:
        facts = {"kind": model.scaler.kind, "n_features_in": local.n_features_in_}
        scaler = StreamScaler.from_state({"rows": ranker.n_seen_.sum(keepdims=True)}, facts)
    return Model(local, scaler, ranker.columns_)


def _result(ranker: "DaskRanker", output: Path) -> dict[str, Any]:
    return {
        "rows": int(ranker.n_seen_.sum()),
        "positives": int(ranker.n_seen_[1]),
        "skipped": 0,
        "progressive_auc": shown(ranker.progressive_auc_),
        "recent_auc": shown(ranker.recent_auc_),
        "features": int(ranker.n_features_in_),
        "C": ranker.C_,
        "model": str(output),
    }
