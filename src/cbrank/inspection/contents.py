"""A model file opened to be looked at."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cbrank import modelfile
from cbrank.rankers.base import Ranker
from cbrank.streams import Columns, StreamScaler
from cbrank.training.model import Model


@dataclass(frozen=True)
class Contents:
    """What is in a model file, also in one that was saved from Python and knows no columns.

    Attributes
    ----------
    path : Path
        The file.
    ranker : ranker
        What learns and scores.
    scaler : StreamScaler or None
        What scales rows first, if anything does.
    columns : Columns or None
        What the columns of a file mean.
    facts : dict
        What else the file says.
    parameters : dict
        Those of the ranker in the file. The opened one is for rows that come much later.
    """

    path: Path
    ranker: Ranker
    scaler: StreamScaler | None
    columns: Columns | None
    facts: dict[str, Any]
    parameters: dict[str, Any]

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a model file."""
        return cls.of(path, *modelfile.read(path))

    @classmethod
    def of(cls, path: Path, arrays: dict[str, Any], facts: dict[str, Any]) -> Self:
        """Take what was read from a file."""
        if "columns" in facts:
            model = Model.restore(path, arrays, facts)
            return cls._for_later(path, facts, model.ranker, model.scaler, model.columns)
        try:
            steps = modelfile.restore_steps("model", arrays, facts)
        except modelfile.ModelFileError as error:
            raise modelfile.ModelFileError(
                f"{path} does not hold a sound model: {error}."
            ) from None
        scaler, ranker = [None, *steps][-2:]
        if len(steps) > 2 or not isinstance(scaler, StreamScaler | None):
            raise modelfile.ModelFileError(f"{path} is not one ranker with at most one scaler.")
        return cls._for_later(path, facts, ranker, scaler, None)

    @classmethod
    def _for_later(
        cls,
        path: Path,
        facts: dict[str, Any],
        ranker: Ranker,
        scaler: StreamScaler | None,
        columns: Columns | None,
    ) -> Self:
        parameters = ranker.get_params(deep=False)
        ranker.rank_later_rows()
        return cls(path, ranker, scaler, columns, facts, parameters)

    def feature_names(self) -> Sequence[str] | None:
        """Return the names of all features, or None where they have none."""
        if self.columns is not None:
            numeric, only = self.columns.numeric_, not self.columns.categorical
            return numeric if numeric is None or only else self.columns.feature_names()
        named = getattr(self.ranker, "feature_names_in_", None)
        return None if named is None else [str(name) for name in named]

    def names(self, features: Iterable[int]) -> list[str]:
        """Return the names of some features, or their numbers from 1 where they have none."""
        if self.columns is not None:
            return [self.columns.feature_name(at) for at in features]
        named = getattr(self.ranker, "feature_names_in_", None)
        return [str(at + 1) if named is None else str(named[at]) for at in features]

    def labels(self) -> list[str]:
        """Return the two labels, the positive one last."""
        if self.columns is not None and len(self.columns.classes_) == 2:
            return self.columns.classes_
        return [str(label) for label in self.ranker.classes_.tolist()]

    def summary(self) -> dict[str, Any]:
        """Return what the model is and has seen, for JSON."""
        ranker, seen = self.ranker, self.ranker.n_seen_.tolist()
        return {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            "versions": self.facts.get("versions", {}),
            "class": type(ranker).__name__,
            "parameters": self.parameters,
            "C": getattr(ranker, "C_", None),
            "features": int(ranker.n_features_in_),
            "scaler": None if self.scaler is None else self.scaler.kind,
            "columns": self._columns(),
            "rows": sum(seen),
            "labels": dict(zip(self.labels(), seen, strict=True)),
            "positive": self.labels()[1],
            "pairs": getattr(ranker, "n_pairs_", None),
            "updates": getattr(ranker, "n_updates_", None),
            "progressive_auc": _or_none(ranker.progressive_auc_),
            "recent_auc": _or_none(ranker.recent_auc_),
            "intercept": float(ranker.intercept_[0]),
            "diverged": ranker.diverged_,
        }

    def _columns(self) -> dict[str, Any] | None:
        columns = self.columns
        if columns is None or columns.numeric_ is None:
            return None
        return {
            "label": columns.label,
            "id": columns.id,
            "numeric": columns.numeric_,
            "categorical": columns.categorical,
            "dropped": columns.drop,
        }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
