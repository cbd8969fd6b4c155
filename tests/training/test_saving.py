"""A finished training is never lost: whatever was learned can be saved, or is refused at once."""

import io
import json
from typing import Any

import numpy as np
import pytest
from learners import make
from scipy import sparse
from tables import run

from cbrank.modelfile import gather, restore
from cbrank.modelfile.container import LARGEST_HEADER
from cbrank.streams import Columns, FileMark, StreamScaler, open_stream
from cbrank.streams.position import MOST_FILES, Position
from cbrank.training import Checkpoint, Every, Model, Progress, Run
from cbrank.training import run as running
from cbrank.training.checkpoint import last_run


def header_of(path):
    return int.from_bytes(path.read_bytes()[:8], "little")


def learned(text, columns, ranker="cbr", **options):
    model = Model(make(ranker), None, columns)
    for chunk in open_stream(io.BytesIO(text.encode()), columns=columns, **options):
        model.learn(chunk)
    return model, chunk.position


# Headers do not grow ------------------------------------------------------------------------------


def test_a_checkpoint_knows_of_very_many_files(tmp_path):
    model, _ = learned("1 1:1\n0 1:2\n", Columns())
    marks = tuple(FileMark(f"day {day}", day, f"{day:064x}") for day in range(20_000))
    position = Position((*marks, FileMark("-", None, None)), file=19_999, rows=2)
    checkpoint = Checkpoint(tmp_path / "run.ckpt", {"passes": 1}, Every())
    checkpoint.write(model, Progress(position, rows=2))
    assert header_of(checkpoint.path) < 2**13
    opened = checkpoint.open()
    assert opened
    _, progress = opened
    assert [mark[1:] for mark in progress.position.files] == [mark[1:] for mark in position.files]
    assert progress.position.file == 19_999
    model.write(tmp_path / "model", last_run=last_run({"passes": 1}, position.files))
    assert header_of(tmp_path / "model") < 2**13


def test_more_files_than_a_checkpoint_knows_are_refused_at_once(tmp_path, monkeypatch):
    (tmp_path / "rows").write_text("1 1:1\n0 1:2\n")
    monkeypatch.setattr(running, "MOST_FILES", 1)
    checkpoint = Checkpoint(tmp_path / "run.ckpt", {}, Every())
    model = Model(make("cbr"), None, Columns())
    with pytest.raises(ValueError, match="A checkpoint knows of up to 1 files"):
        list(Run(model, [str(tmp_path / "rows")] * 2, checkpoint=checkpoint))
    assert MOST_FILES > 100_000


def test_very_many_dropped_columns_and_listed_categories_are_kept(tmp_path):
    dropped = [f"a column with a long name, {number}" for number in range(20_000)]
    listed = [f"a category with a long name, {number}" for number in range(20_000)]
    header = ",".join(f'"{name}"' for name in dropped)
    gaps = "," * (len(dropped) - 1)
    rows = "".join(f'{number},"{listed[-number]}",{gaps},{number % 2}\n' for number in (1, 2, 3, 4))
    (tmp_path / "rows.csv").write_text(f"x,kind,{header},y\n{rows}")
    columns = Columns("y", drop=dropped, categorical={"kind": listed})
    asked = {"command": "train", "drop": dropped, "categorical": [["kind", listed]]}
    checkpoint = Checkpoint(tmp_path / "run.ckpt", asked, Every(rows=2))
    run = Run(
        Model(make("cbr-diagonal"), None, columns),
        [str(tmp_path / "rows.csv")],
        checkpoint=checkpoint,
    )
    for _ in run:
        run.keep()
    assert header_of(checkpoint.path) < 2**14
    kept = checkpoint.open()
    assert kept
    assert kept[1].rows == 4
    asked["drop"] = dropped[1:]
    with pytest.raises(ValueError, match="checkpoint of a run with drop='sha256:"):
        Checkpoint(checkpoint.path, asked, Every()).open()
    run.finish(tmp_path / "model", last_run=last_run(asked, run.files))
    assert header_of(tmp_path / "model") < 2**14
    opened = Model.open(tmp_path / "model")
    assert opened.columns.drop == dropped
    assert opened.columns.categorical == {"kind": listed}


# Numbers stay finite ------------------------------------------------------------------------------

HUGE = [1e145, 1e146, 1e160, -1e160, 1e200, 1e308, -1.7e308, 5e-324, 0.0, 1.0]


@pytest.mark.parametrize("kind", ["standard", "maxabs", "unit"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_whatever_is_finite_can_be_scaled_and_saved(kind, form):
    rng = np.random.default_rng(0)
    for _ in range(50):
        scaler, rows = StreamScaler(kind), rng.choice(HUGE, (20, 4))
        scaled = scaler.learn_transform(form(rows))
        assert np.isfinite(getattr(scaled, "data", scaled)).all()
        again = restore("scaler", *gather(scaler=scaler))
        scaled = again.transform(form(rng.choice(HUGE, (20, 4))))
        assert np.isfinite(scaled.data if sparse.issparse(scaled) else scaled).all()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("counts", [3.0]), ("counts", [-1.0]), ("means", [1e200]), ("means", [-1e200]),
        ("squares", [-1.0]), ("squares", [1.7e308]), ("rows", [0]), ("rows", [-1]),
    ],
)  # fmt: skip
def test_statistics_that_no_rows_give_are_refused(name, values):
    arrays, facts = gather(scaler=StreamScaler().fit([[1.0], [2.0]]))
    dtype = arrays[f"scaler.{name}"].dtype
    with pytest.raises(ValueError, match="StreamScaler of 1 features makes no sense"):
        restore("scaler", arrays | {f"scaler.{name}": np.array(values, dtype)}, facts)


@pytest.mark.parametrize("scale", ["standard", "maxabs", "unit"])
@pytest.mark.parametrize("cell", ["1e160", "-1.7e308"])
def test_one_huge_cell_does_not_lose_the_training(scale, cell, tmp_path):
    rows = "".join(f"{number % 5},{number % 3},{number % 2}\n" for number in range(50))
    (tmp_path / "rows.csv").write_text(f"a,b,y\n{rows}{cell},1,0\n{rows}")
    line = ["--label", "y", "--scale", scale, "-o", tmp_path / "m", "--quiet"]
    result = run("train", tmp_path / "rows.csv", *line)
    assert (result.exit_code, result.output) == (0, "")
    assert run("score", tmp_path / "m", tmp_path / "rows.csv", "--quiet").exit_code == 0


# What cannot be saved is refused at once ----------------------------------------------------------


def test_a_ranker_that_cannot_be_saved_is_refused_after_the_first_chunk(tmp_path):
    (tmp_path / "rows").write_text("1 1:1\n0 1:2\n" * 10_000)
    odd = np.random.RandomState(np.random.SFC64(1))
    model = Model(make("cbr-diagonal", random_state=odd), None, Columns())
    run = Run(model, [str(tmp_path / "rows")])
    with pytest.raises(ValueError, match="use a number or RandomState"):
        list(run)
    assert run.model.ranker.n_seen_.sum() == 8192


def test_columns_are_told_in_plain_types():
    drop: list[Any] = [np.int64(1), 2]
    columns = Columns(np.str_("y"), drop=drop, id=np.int32(3), max_width=np.int64(9))
    arrays, facts = columns.get_state()
    again = Columns.from_state(arrays, json.loads(json.dumps(facts)))
    assert (again.label, again.drop, again.id, again.max_width) == ("y", [1, 2], 3, 9)
    for odd in ({"label": 0}, {"id": 1.5}, {"drop": [True]}, {"label": b"y"}):
        with pytest.raises(ValueError, match="must be a column's name, or its number from 1 on"):
            Columns(**odd)


@pytest.mark.parametrize(
    ("text", "columns", "sentence"),
    [
        ("y" * 1001 + ",a\n1,2\n", {"label": 1}, "has a name of 1,001 characters"),
        ("y,a\n" + "l" * 1001 + ",2\n0,1\n", {"label": "y"}, "has 1,001 characters"),
    ],
)
def test_names_that_a_header_has_no_room_for_are_refused(text, columns, sentence):
    with pytest.raises(ValueError, match=sentence):
        learned(text, Columns(**columns))
    with pytest.raises(ValueError, match="The positive label"):
        Columns(positive="l" * 1001)


def test_more_categories_than_a_file_may_name_are_refused():
    with pytest.raises(ValueError, match="65,537 listed categories; at most 65,536 are allowed"):
        Columns("y", categorical={"a": [str(number) for number in range(65_537)]})
    with pytest.raises(ValueError, match="16,385 categorical columns"):
        Columns("y", categorical={str(number): "onehot" for number in range(16_385)})
    with pytest.raises(ValueError, match="drop may name 262,144 columns"):
        Columns("y", drop=[*range(1, 2**18 + 2)])


def test_the_header_has_room_for_what_train_can_say():
    assert LARGEST_HEADER > 30 * 1000 * 14


# Rows that were left out --------------------------------------------------------------------------


def test_rows_left_out_leave_the_same_model_with_and_without_a_checkpoint(tmp_path):
    for name, rows in {
        "one.csv": "x,city,y\n1,a,0\n2,b,1\n", "two.csv": "x,city,y\n1,c,maybe\n2,d,perhaps\n",
        "three.csv": "x,city,y\n1,e,0\n2,d,1\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_text(rows)
    paths = [str(tmp_path / name) for name in ("one.csv", "two.csv", "three.csv")]
    options = {"on_error": "skip", "max_errors": 9}

    def begin():
        return Model(make("cbr"), StreamScaler(), Columns("y", categorical={"city": "onehot"}))

    whole = Run(begin(), paths, **options)
    list(whole)
    whole.finish(tmp_path / "whole")
    stopped = Run(begin(), paths[:2], checkpoint=Checkpoint(tmp_path / "c", {}, Every()), **options)
    list(stopped)
    assert stopped.model.ranker.n_features_in_ == 3
    assert stopped.model.columns.width_ == 5
    stopped.model.write(tmp_path / "half")
    half = Model.open(tmp_path / "half")
    assert half.ranker.n_features_in_ == half.scaler.n_features_in_ == half.columns.width_ == 5
    rest = Run(half, paths[2:], **options)
    list(rest)
    rest.finish(tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
