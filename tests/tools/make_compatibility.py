"""Write one small model file of every kind for later versions to open: run this before a release.

python tests/tools/make_compatibility.py writes tests/compatibility/VERSION/ for the version at hand. The
folders of versions that were released are never written again.
"""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from learners import RANKERS, SPARSE, make
from scipy import sparse

import cbrank
from cbrank.streams import Columns, StreamScaler, open_stream
from cbrank.training import Checkpoint, Every, Model, Progress

FOLDER = Path(__file__).parents[1] / "compatibility"
ROWS, WIDTH, LEARNED = 24, 3, 16


def rows():
    """A few rows with gaps, and their labels; part of them is learned, part is for later."""
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((ROWS, WIDTH)).round(3), np.arange(ROWS) % 3 // 2
    X[rng.random_sample(X.shape) < 0.4] = 0.0
    return X, y


def models():
    """Every ranker, dense and sparse, in the middle of a stream, and some of their variations."""
    X, y = rows()
    X, y = X[:LEARNED], y[:LEARNED]
    for name, ranker in RANKERS.items():
        small = {"buffer_size": 4} if hasattr(ranker, "buffer_size") else {}
        for form, learned in {"dense": X, "sparse": sparse.csr_array(X)}.items():
            if form == "dense" or name in SPARSE:
                yield f"{name}-{form}", make(name, **small).partial_fit(learned, y)
    yield "fitted", make("cbr", buffer_size=4, class_weight="balanced").fit(X, y)
    yield "one-class", make("cbr", buffer_size=4).partial_fit(X[:1], y[:1], classes=[0, 1])
    labels = np.where(y, "yes", "no")
    named = pd.DataFrame(X, columns=["age", "income", "größe"])
    weighted = make("cbr", buffer_size=4, class_weight={"no": 0.5, "yes": 2.0})
    yield "named", weighted.set_params(random_state=np.random.RandomState(1)).fit(named, labels)


def expected(model):
    """What a model says, and what it says after it has learned the rest."""
    X, y = rows()
    labels = model.classes_[y]
    said = {"scores": model.decision_function(_like(model, X)).tolist()}
    said |= {"intercept": model.intercept_.tolist(), "classes": model.classes_.tolist()}
    said |= {"probabilities": model.predict_proba(_like(model, X))[:, 1].tolist()}
    model.partial_fit(_like(model, X[LEARNED:]), labels[LEARNED:])
    later = {"later_scores": model.decision_function(_like(model, X)).tolist()}
    return said | later | {"later_intercept": model.intercept_.tolist()}


TABLE = b"id,age,city,y\na,31,Oslo,no\nb,44,Rome,yes\nc,27,Oslo,no\nd,50,Bergen,yes\n"
ASKED = {"command": "train", "passes": 1}


def write_trained(folder):
    """Write what the command line leaves: a model with scaler and columns, and a checkpoint."""
    columns = Columns("y", id="id", categorical={"city": "onehot"})
    model = Model(make("cbr", buffer_size=4), StreamScaler("standard"), columns)
    [chunk] = open_stream(io.BytesIO(TABLE), columns=columns)
    model.learn(chunk)
    model.write(folder / "trained.model", last_run={"asked": ASKED, "files": [[1, "0"]]})
    progress = Progress(chunk.position, rows=4, positives=2)
    Checkpoint(folder / "trained.ckpt", ASKED, Every()).write(model, progress)
    (folder / "trained.json").write_text(json.dumps(trained_scores(model)) + "\n")


def trained_scores(model):
    """What such a model says of the rows it has seen."""
    [chunk] = open_stream(io.BytesIO(TABLE), columns=model.columns, learn=False, labels=False)
    return model.scores(chunk.X).tolist()


def _like(model, X):
    """Give rows the names that the model asks for."""
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pd.DataFrame(X, columns=names)


def main():
    folder = FOLDER / cbrank.__version__
    if folder.exists():
        sys.exit(f"{folder} has been written: raise the version in src/cbrank/__init__.py first.")
    folder.mkdir(parents=True)
    said = {}
    for name, model in models():
        cbrank.save(model, folder / f"{name}.cbrank")
        said[name] = expected(model)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in said.items())
    (folder / "expected.json").write_text(f"{{\n{lines}\n}}\n")
    write_trained(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{len(said)} model files in {folder}, {size / 1024:.0f} KB in all")


if __name__ == "__main__":
    main()
