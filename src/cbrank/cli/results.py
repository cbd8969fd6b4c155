"""What a run has learned, as ``--json`` shows it, and how good it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbrank.cli.progress import Reporter, interval_of, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cbrank.training import Model, Run

# Rows of real tables are hardly ever ranked so well, unless a column was filled when the label was known.
_TOO_GOOD = 0.995


def held_out(run: "Run") -> dict[str, Any]:
    """Return how well the rows that were never learned from are ranked, as `cbrank evaluate` says it."""
    import numpy as np  # noqa: PLC0415

    from cbrank.inspection.scoring import judge  # noqa: PLC0415

    if run.holdout is None:
        return {}
    run.model.for_later()
    labels, scores, chances = [np.zeros(0, np.int8)], [np.zeros(0)], [np.zeros(0)]
    for chunk in run.held_out():
        assert chunk.y is not None
        labels.append(chunk.y.astype(np.int8))
        judged = judge(run.model, chunk.X)
        scores.append(judged.scores)
        chances.append(judged.probabilities)
    y, given = np.concatenate(labels), np.concatenate(chances)
    return evaluated(y, np.concatenate(scores), given, last=run.last)


def evaluated(
    y: "NDArray[np.int8]",
    scores: "NDArray[np.float64]",
    chances: "NDArray[np.float64]",
    *,
    last: bool,
) -> dict[str, Any]:
    """Return how well rows that were held out are ranked, as ``--json`` shows it."""
    from cbrank.inspection.evaluation import evaluate  # noqa: PLC0415

    facts = {"which": "last" if last else "random", "rows": len(y), "positives": int(y.sum())}
    if not len(y) or y.min() == y.max():
        return {"held_out": facts | {"auc": None}}
    found = evaluate(y, scores, chances)
    return {
        "held_out": facts
        | {
            "auc": shown(found.auc.auc),
            "auc_low": shown(found.auc.low),
            "auc_high": shown(found.auc.high),
            "average_precision": shown(found.average_precision),
        }
    }


def ages(model: "Model", report: Reporter) -> dict[str, Any]:
    """Tell how long a model keeps that is put away, if it was learned in order."""
    from cbrank.training.ages import ages_of, as_facts, in_words  # noqa: PLC0415

    found = ages_of(model.ranker)
    if sentence := in_words(found):
        report.note(f"{sentence}. Train it anew, or go on learning by cbrank update.")
    return {"auc_by_age": as_facts(found)}


def _widths(model: "Model") -> dict[str, int]:
    """Return how wide rows are: columns of a table, and the features that were made of them."""
    ranker: Any = model.ranker
    columns = int(ranker.n_features_in_)
    if not model.takes_tables():
        return {"features": columns}
    return {"columns": columns, "features": ranker.coef_.shape[1]}


def too_good(model: "Model", auc: float) -> list[str]:
    """Say which column moves scores most where rows are ranked too well to be true."""
    if not model.takes_tables() or not auc > _TOO_GOOD:
        return []
    ranker: Any = model.ranker
    effects = ranker.effects()
    name = effects.terms[int(effects.moves().argmax())].name
    said = (
        f"an AUC of {auc:.4f} is seldom true: {name!r} moves scores most. If it is not known before "
        "the label is, leave it out by --drop."
    )
    return [said]


def result_of(
    model: "Model", output: Path, *, rows: int, positives: int, skipped: int, auc: float
) -> dict[str, Any]:
    """Return what was learned, as ``--json`` shows it."""
    ranker = model.ranker
    return {
        "rows": rows,
        "positives": positives,
        "positive": model.columns.classes_[-1],
        "skipped": skipped,
        "progressive_auc": shown(auc),
        "progressive_auc_interval": interval_of(ranker, auc),
        "recent_auc": shown(ranker.recent_auc_),
        "recent_auc_interval": [shown(end) for end in ranker.recent_auc_interval_],
        **_widths(model),
        "C": getattr(ranker, "C_", getattr(ranker, "C", None)),
        "model": str(output),
    }


def result(run: "Run", output: Path) -> dict[str, Any]:
    rows, positives = run.progress.rows, run.progress.positives
    auc = run.progressive_auc()[1]
    found = result_of(
        run.model, output, rows=rows, positives=positives, skipped=run.skipped, auc=auc
    )
    return found | {"shuffled": run.shuffle}
