"""Learning on a Dask cluster: what ``cbrank train --scheduler`` does."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cbrank.cli.errors import in_flags
from cbrank.cli.learning import tell_columns
from cbrank.cli.progress import Reporter, reporter
from cbrank.cli.results import evaluated, result_of, too_good

if TYPE_CHECKING:
    from cbrank.cli.column_file import ColumnFile
    from cbrank.dask import DaskRanker, Files
    from cbrank.training import Model

_READING = ("format", "separator", "decimal", "encoding")  # what workers can do each for itself


def learn_on_cluster(
    model: "Model",
    asked: dict[str, Any],
    output: Path,
    options: dict[str, Any],
    widest: int | None,
) -> None:
    """Learn from files, each a partition of its own, and write the model; as `learn` otherwise."""
    from sklearn.base import clone  # noqa: PLC0415

    from cbrank.dask import DaskRanker  # noqa: PLC0415
    from cbrank.dask.cluster import connected  # noqa: PLC0415
    from cbrank.streams.position import mark  # noqa: PLC0415
    from cbrank.training.checkpoint import last_run  # noqa: PLC0415

    _refuse_impossible(options)
    files = _files(model, options, widest)
    silent = options["quiet"] or options["as_json"]
    with (
        reporter(options["quiet"], options["as_json"]) as report,
        connected(options["scheduler"]) as client,
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        if not client.scheduler_info()["workers"]:
            report.note("the cluster has no workers yet; this waits for the first.")
        files.look(client)
        ranker = DaskRanker(
            clone(model.ranker).set_params(shuffle=options["shuffle"]),
            rounds=options["passes"],
            client=client,
            progress=not silent,
        ).fit(files)
        learned = _learned(ranker, files, model)
        if learned.takes_tables():
            _tell_columns(learned, files, report, options["column_file"])
        for warning in caught:
            report.note(in_flags(str(warning.message)))
        marks = [mark(path) for path in files.paths]
        learned.write(output, last_run=last_run(asked, marks))
        (negatives, positives), auc = ranker.n_seen_.tolist(), ranker.progressive_auc_
        for sentence in too_good(learned, auc):
            report.note(sentence)
        counts = {"rows": negatives + positives, "positives": positives, "skipped": 0}
        found = result_of(learned, output, **counts, auc=auc)
        rest = files.held_out(client, learned.for_later()) if files.holdout else None
        held = evaluated(*rest, last=files.last) if rest else {}
        report.done(held | found | {"shuffled": options["shuffle"]})


def _files(model: "Model", options: dict[str, Any], widest: int | None) -> "Files":
    from cbrank.dask import Files  # noqa: PLC0415

    return Files(
        options["data"],
        model.columns,
        scale=model.scaler.kind if model.scaler else "none",
        widest=widest,
        **{name: options[name] for name in ("holdout", "last", "seed", "strict", *_READING)},
    )


def _refuse_impossible(options: dict[str, Any]) -> None:
    """Refuse all that a cluster cannot do, in one message."""
    kept = [f"--{name}" for name in ("checkpoint", "every", "resume") if options[name]]
    found = []
    if kept:
        found.append(
            f"{', '.join(kept)} (files are learned from at the same time, so that there is no place "
            "to go on from; the cluster itself makes up for workers that it loses)"
        )
    if options["on_error"] == "skip":
        found.append(
            "--on-error skip (skipped rows are counted over all files, which workers read apart: "
            "mend the rows first)"
        )
    if "-" in options["data"]:
        found.append("standard input (workers read files, each its own)")
    if found:
        raise click.UsageError(f"not for a cluster: {'; '.join(found)}.")


def _learned(ranker: "DaskRanker", files: "Files", model: "Model") -> "Model":
    """Return the model as `cbrank train` would write it."""
    from cbrank.streams import StreamScaler  # noqa: PLC0415
    from cbrank.training import Model  # noqa: PLC0415

    local, scaler = ranker.to_local().set_params(shuffle=model.ranker.shuffle), files.scaler
    if scaler.kind == "unit":
        facts = {"kind": scaler.kind, "n_features_in": local.n_features_in_}
        scaler = StreamScaler.from_state({"rows": ranker.n_seen_.sum(keepdims=True)}, facts)
    elif scaler.kind != "none":
        scaler.resize(local.n_features_in_)
    return Model(local, None if scaler.kind == "none" else scaler, ranker.columns_)


def _tell_columns(
    model: "Model", files: "Files", report: Reporter, file: "ColumnFile | None"
) -> None:
    from copy import deepcopy  # noqa: PLC0415

    from cbrank.streams import open_stream  # noqa: PLC0415

    columns = deepcopy(model.columns)
    with open_stream(
        files.paths, columns=columns, learn=False, labels=False, **files.reading
    ) as stream:
        tell_columns(model, next(stream).X, report, file)  # type: ignore[arg-type]
