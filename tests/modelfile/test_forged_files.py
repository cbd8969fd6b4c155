"""Model files that were forged and given a checksum that fits: refused in words, or harmless."""

import copy
import io
from typing import Any

import numpy as np
import pytest
from file_memory import allowed, can_measure, measured
from forged_models import MEANINGS, TABLE, TEXT, packed, unpacked
from forged_models import _trained as trained
from forgery import seen_by
from learners import assert_same, make
from real_data import real
from scipy import sparse
from tables import make as make_model
from tables import run

import cbrank
from cbrank.features.table import MOST_TABLE_COLUMNS
from cbrank.modelfile import ModelFileError, gather, restore, write
from cbrank.streams import Columns, FileMark, Position, StreamScaler, open_stream
from cbrank.streams.categories import Met
from cbrank.texts import Texts, has_twins
from cbrank.training import Checkpoint, Every, Model, Progress

needs_memory = pytest.mark.skipif(not can_measure(), reason="this system does not tell peaks")


@pytest.mark.slow
@needs_memory
def test_a_few_thousand_forged_files_give_sentences():
    from fuzz_model_files import run as fuzz  # noqa: PLC0415

    tally = fuzz(3000, seed=0, keep=False)
    assert not tally.broken
    assert tally.opened > 500


# Room to work in ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cbr-diagonal", "cbr-auto-diagonal"])
def test_room_to_work_in_is_not_kept(name):
    ranker = seen_by(make(name))
    arrays, facts = gather(model=ranker)
    fields = [name for name in arrays if name.endswith(".features")]
    assert len(fields) == len(ranker.learned().models)
    assert all(arrays[field].shape[-1] == 3 for field in fields)
    assert_same(restore("model", arrays, facts), ranker)


# Sizes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameter"), [("cbr-diagonal", "buffer_size"), ("opauc-sketch", "rank")]
)
def test_a_size_is_that_of_the_arrays_not_of_junk_beside_them(name, parameter):
    arrays, facts = gather(model=seen_by(make(name)))
    for place in ("parameters", "began_with"):
        facts["model"][place][parameter] = 10**6
    with pytest.raises(ModelFileError, match=r"of shape \(2, .*1000000"):
        restore("model", arrays, facts)
    with pytest.raises(ModelFileError, match="it has an array junk, which no such"):
        restore("model", arrays | {"model.junk": np.zeros(10**6, np.uint8)}, facts)


def test_a_size_that_is_not_said_is_the_usual_one():
    arrays, facts = gather(model=seen_by(make("cbr-diagonal", buffer_size=50)))
    for place in ("parameters", "began_with"):
        del facts["model"][place]["buffer_size"]
    with pytest.raises(ModelFileError, match="what it began with makes no sense"):
        restore("model", arrays, facts)
    facts["model"]["began_with"]["buffer_size"] = 50
    assert restore("model", arrays, facts).buffer_size == "auto"


def test_labels_of_a_huge_type_take_no_memory(tmp_path):
    arrays, facts = gather(model=seen_by(make("oam")))
    facts["model"]["classes"] = {"array": ["<U99999", ["a"] * 50_000]}
    with pytest.raises(ModelFileError, match="not values of type <U99999"):
        restore("model", arrays, facts)


def test_rows_of_a_buffer_have_their_features_in_order():
    arrays, facts = gather(model=seen_by(make("cbr-diagonal", buffer_size=3)))
    arrays["model.buffer.indices"] = arrays["model.buffer.indices"][..., ::-1].copy()
    with pytest.raises(ModelFileError, match="feature twice, or out of order"):
        restore("model", arrays, facts)


# Pipelines ----------------------------------------------------------------------------------------


def pipeline(*steps):
    """Return arrays and facts of a pipeline of these steps, whatever they are."""
    arrays, facts = {}, []
    for number, step in enumerate(steps):
        own, said = gather(part=step)
        arrays |= {name.replace("part.", f"model.{number}.", 1): own[name] for name in own}
        facts.append([f"step {number}", said["part"]])
    return arrays, {"model": {"class": "Pipeline", "steps": facts}}


def test_a_step_of_a_pipeline_hands_on_rows():
    ranker, columns = seen_by(make("cbr")), Columns("y")
    for first in (ranker, columns):
        with pytest.raises(ModelFileError, match="'step 0' of its pipeline gives no rows"):
            restore("model", *pipeline(first, ranker))


def test_a_scaler_is_as_wide_as_the_ranker():
    scaler = StreamScaler("unit").fit(np.eye(3))
    with pytest.raises(ModelFileError, match="is not as wide as its ranker"):
        restore("model", *pipeline(scaler, seen_by(make("cbr"), width=4)))
    assert restore("model", *pipeline(scaler, seen_by(make("cbr"), width=3)))


def test_a_pipeline_has_few_steps():
    scaler = StreamScaler("unit").fit(np.eye(4))
    with pytest.raises(ModelFileError, match="more than 100 steps"):
        restore("model", *pipeline(*[scaler] * 101, seen_by(make("cbr"))))


# Columns ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return the columns of a model, as arrays and facts."""
    columns = Columns("y", id="id", categorical={"city": "onehot"}, drop=["plan", "page"])
    path = tmp_path_factory.mktemp("table") / "model"
    trained(TABLE, columns, "cbr", "standard").write(path)
    return unpacked(path.read_bytes())


def put(facts, value, *keys):
    facts = copy.deepcopy(facts)
    place = facts
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return facts


COLUMNS: dict[str, list[Any]] = {
    "label": [1, True, [], {}, 0, -1],
    "id": [2, False, ["a"]],
    "positive": [1, [], "+1.0", " yes"],
    "negative": [{}, 0.5],
    "zero_based": [None, 1, "no"],
    "max_width": [0, -1, 2**31, 1.5, None, "9", True],
    "width": [0, 3, 5, -1, 2**24, 1.0, None],
    "sparse": [True, None, 0, "no"],
}


@pytest.mark.parametrize("fact", COLUMNS)
def test_facts_of_columns_are_checked(fact, table):
    arrays, facts = table
    for value in COLUMNS[fact]:
        with pytest.raises(ModelFileError):
            Model.restore("forged", arrays, put(facts, value, "columns", "facts", fact))
    own = dict(facts["columns"]["facts"])
    del own[fact]
    with pytest.raises(ModelFileError, match="its Columns makes no sense"):
        Model.restore("forged", arrays, put(facts, own, "columns", "facts"))


def forged_columns(**changes):
    arrays, facts = gather(
        columns=trained(TABLE, Columns("y", id="id", **MEANINGS["listed"]), "cbr", None).columns
    )
    for name, array in changes.items():
        arrays[f"columns.{name.replace('__', '.')}"] = np.asarray(array)
    return arrays, facts


@pytest.mark.parametrize(
    "changes",
    [
        {"tables": np.array([[0, 2], [24, 0]])},
        {"tables": np.array([[0, 2], [25, 0]])},
        {"tables": np.array([[0, 2], [0, -2]])},
        {"tables": np.array([[0, 3], [0, -1]])},
        {"tables": np.array([[0, 2, 0], [0, -1, 0]])},
        {"tables": np.array([[0, 2**62], [0, 2**62]])},
        {"tables": np.zeros((2**15, 2), np.int64)},
        {"owners": np.zeros(3, np.int32)},
        {"owners": np.full(3, 2, np.int32)},
        {"owners": np.full(3, -1, np.int32)},
        {"owners": np.ones(3)},
        {"drop": np.array([1])},
        {"drop": np.array([-1])},
        {"drop": np.zeros(2**18 + 1, np.int64)},
        {"junk": np.zeros(1)},
        {"names__ends": np.array([2, 1])},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_arrays_of_columns_are_checked(changes):
    assert restore("columns", *forged_columns())
    with pytest.raises(ModelFileError):
        restore("columns", *forged_columns(**changes))


def test_one_name_for_two_columns_or_categories_is_refused():
    arrays, facts = forged_columns()
    texts = list(
        Texts.checked({"text": arrays["columns.names.text"], "ends": arrays["columns.names.ends"]})
    )
    assert texts == ["age", "page", "plan", "city", "q", "p", "a", "b", "c"]
    for at, name in [(0, "id"), (0, "page"), (0, "city"), (2, "city"), (7, "a"), (0, "y")]:
        changed = [*texts[:at], name, *texts[at + 1 :]]
        more = {f"columns.names.{key}": value for key, value in Texts.of(changed).arrays().items()}
        with pytest.raises(ModelFileError):
            restore("columns", arrays | more, facts)


@pytest.mark.parametrize(("fact", "column"), [("label", "city"), ("label", "page"), ("id", "page")])
def test_a_column_of_two_roles_is_refused(fact, column):
    arrays, facts = forged_columns()
    with pytest.raises(ModelFileError, match=f"column '{column}' cannot be"):
        restore("columns", arrays, put(facts, column, "columns", "facts", fact))


def test_a_ranker_goes_with_the_columns_beside_it(table):
    arrays, facts = table
    arrays = {name: array for name, array in arrays.items() if not name.startswith("model.")}
    wider = gather(model=seen_by(make("cbr"), width=7))
    with pytest.raises(ModelFileError, match=r"its columns make . features, and its ranker has 7"):
        Model.restore("forged", arrays | wider[0], facts | wider[1])
    words = gather(model=make("cbr").partial_fit(np.eye(4)[:2], ["a", "b"]))
    with pytest.raises(ModelFileError, match="other classes than its columns"):
        Model.restore("forged", arrays | words[0], facts | words[1])
    empty, sound = gather(columns=Columns("y")), gather(model=seen_by(make("cbr"), width=4))
    with pytest.raises(ModelFileError, match="its columns have learned from no rows"):
        Model.restore("forged", sound[0] | empty[0], facts | sound[1] | empty[1])


# Many names ---------------------------------------------------------------------------------------


def test_very_many_categories_are_found_as_few_are():
    values = [f"c{number}" for number in range(40_000)]
    columns = Columns("y", categorical={"a": "onehot", "b": "onehot"})
    rows = "a,b,x,y\n" + "".join(
        f"{value},{value[::-1]},1,{at % 2}\n" for at, value in enumerate(values)
    )
    for _ in open_stream(io.BytesIO(rows.encode()), columns=columns):
        pass
    again = restore("columns", *gather(columns=columns))
    assert again.feature_names() == columns.feature_names()
    assert again.feature_name(70_000) == columns.feature_names()[70_000]
    asked = b"a,b,x,y\nc39999,99993c,2,0\nnew,0c,3,1\nc0,new,4,0\n"
    for learn in (False, True, True):
        one, two = (
            next(iter(open_stream(io.BytesIO(asked), columns=known, learn=learn))).X
            for known in (columns, again)
        )
        assert (one != two).nnz == 0
    assert again.feature_names() == columns.feature_names()
    third = restore("columns", *gather(columns=again))
    assert third.feature_names() == columns.feature_names()


def test_very_many_categories_are_not_there_twice():
    texts = Texts.of([*(f"c{number}" for number in range(40_000)), "c7"])
    with pytest.raises(ValueError, match="one category twice"):
        Met(texts, np.zeros(len(texts), np.int32))
    assert Met(texts, np.arange(len(texts), dtype=np.int32)).find(40_000, "c7") == 40_000


def test_texts_are_a_sequence():
    texts = Texts.of(["", "ä€😀\udc80", "b"])
    assert [texts[0], texts[-1], *texts[1:]] == ["", "b", "ä€😀\udc80", "b"]
    assert list(texts + texts[:1]) == ["", "ä€😀\udc80", "b", ""]
    assert has_twins(texts + texts[:1])
    assert not has_twins(texts)


# Checkpoints --------------------------------------------------------------------------------------


def checkpoint_of(tmp_path):
    (tmp_path / "rows").write_text(TEXT)
    model = Model(make("cbr"), None, Columns())
    for chunk in open_stream(tmp_path / "rows", columns=model.columns):
        model.learn(chunk)
    checkpoint = Checkpoint(tmp_path / "run.ckpt", {"passes": 2}, Every())
    checkpoint.write(model, Progress(chunk.position, rows=20, positives=10))
    return checkpoint


def test_the_progress_of_a_checkpoint_is_checked(tmp_path):
    checkpoint = checkpoint_of(tmp_path)
    arrays, facts = unpacked(checkpoint.path.read_bytes())
    odd = [None, True, -1, 2**63, 1.5, "1", [], {}]
    changes = [(name, value) for name in ("passes", "rows", "positives") for value in odd]
    changes += [("auc_before", value) for value in (2.0, -1.0, 0, None)]
    changes += [("weight_before", value) for value in (1e300, -1.0, 0, None)]
    changes += [("pairs_before", 5)]
    changes += [("position", value) for value in (1, [], "a", {}, {"files": []})]
    changes += [("order", value) for value in (1, [], "a", {}, {"positives": 1})]
    for name, value in changes:
        write(checkpoint.path, arrays, put(facts, value, "run", "progress", name))
        with pytest.raises(ModelFileError, match="does not say where its run stopped"):
            checkpoint.open()
    for name in ("file", "offset", "line", "rows", "errors"):
        for value in odd:
            write(checkpoint.path, arrays, put(facts, value, "run", "progress", "position", name))
            with pytest.raises(ModelFileError, match="does not say where its run stopped"):
                checkpoint.open()
    for name, array in {
        "sizes": np.array([-2]), "heads": np.zeros((2, 32), np.uint8), "sizes ": np.zeros(1),
    }.items():  # fmt: skip
        write(checkpoint.path, arrays | {f"run.{name.strip()}": array}, facts)
        with pytest.raises(ModelFileError, match="its files make no sense"):
            checkpoint.open()


@pytest.mark.parametrize(
    "mark", [["a", 1, None], ["a", None, "b"], [1, None, None], ["a", -1, "0" * 64], ["a", 1, "0"]]
)
def test_a_position_in_no_files_is_refused(mark):
    facts = Position((FileMark("a", 1, "0" * 64),)).to_json()
    assert Position.from_json(facts).to_json() == facts
    with pytest.raises(ValueError, match="not a position in a stream"):
        Position.from_json(facts | {"files": [mark]})


# Whatever else a command believes -----------------------------------------------------------------


@pytest.mark.parametrize(
    "versions", [None, [], "1", {"cbrank": 1}, {"a\nb": "c"}, {"a": "b" * 200}]
)
def test_versions_are_words(versions, tmp_path):
    arrays, facts = gather(model=seen_by(make("cbr")))
    (tmp_path / "m").write_bytes(packed(arrays, facts | {"versions": versions}))
    result = run("inspect", tmp_path / "m")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "does not say what wrote it" in result.stderr


def test_values_within_values_are_refused(tmp_path):
    arrays, facts = unpacked(packed(*gather(model=seen_by(make("cbr")))))
    deep = []
    for _ in range(20):
        deep = [deep]
    with pytest.raises(ValueError, match="values within values"):
        packed(arrays, facts | {"deep": deep})


def test_a_model_of_one_label_says_so(tmp_path):
    text = "row,age,income,clicked\na,2,4,yes\nb,4,0,yes\n"
    model = make_model(tmp_path, text=text, positive="yes")
    for line in (
        ["score", model, tmp_path / "test.csv", "--label"],
        ["evaluate", model, tmp_path / "test.csv"],
    ):
        result = run(*line)
        assert result.exit_code == 1
        assert "the model has seen one label only, 'yes'" in result.stderr
    assert run("inspect", model).exit_code == 0


def test_update_tells_of_a_ranker_without_a_step_size_C(tmp_path):
    model = make_model(tmp_path, ranker=make("uniexp"))
    result = run("update", model, tmp_path / "train.csv", "-o", tmp_path / "out")
    assert result.exit_code == 0
    assert "2 features.\n" in result.stdout


# Memory -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    (folder / "rows.csv").write_text(TABLE)
    (folder / "rows.svm").write_text(TEXT)
    columns = Columns("y", id="id", **MEANINGS["listed"])
    trained(TABLE, columns, "cbr-auto-diagonal", None).write(folder / "table")
    trained(TEXT, Columns(), "uniexp", "unit").write(folder / "text")
    return folder


def assert_within(uses, path, small, data):
    for use, (took, said) in measured(uses, path, small, data).items():
        size = path.stat().st_size * (2 if use == "merge" else 1)
        assert took <= allowed(size), f"{use}: {took / 2**20:.0f} MiB, {said}"


@needs_memory
def test_a_wide_model_takes_a_few_times_its_size(folder):
    path = folder / "wide"
    trained(f"1 1:1 {2**22}:2\n0 2:1\n", Columns(), "uniexp", "unit").write(path)
    uses = ["open", "score", "learn", "inspect", "cli-score", "cli-update", "export"]
    assert_within(uses, path, folder / "text", folder / "rows.svm")


@needs_memory
def test_a_full_covariance_takes_a_few_times_its_size(folder):
    for name, width in (("full", 2000), ("small", 4)):
        rows = np.eye(2, width)
        cbrank.save(make("cbr", buffer_size=1).partial_fit(rows, [0, 1]), folder / name)
    uses = ["open", "score", "learn", "inspect", "export", "merge"]
    assert_within(uses, folder / "full", folder / "small", folder / "rows.svm")


@pytest.mark.slow
@needs_memory
def test_a_table_of_the_most_columns_takes_a_few_times_its_size(folder):
    for name, width in (("widest", MOST_TABLE_COLUMNS), ("narrow", 4)):
        ranker = cbrank.AdditiveRanker(pieces=1, C=0.1, buffer_size=2)
        cbrank.save(ranker.partial_fit(np.ones((2, width)), [0, 1]), folder / name)
    assert_within(["open"], folder / "widest", folder / "narrow", folder / "rows.csv")


@needs_memory
def test_names_that_nobody_shows_take_no_memory(folder):
    arrays, facts = unpacked((folder / "table").read_bytes())
    many = 400
    names = ["age", *(f"c{number}" for number in range(many))]
    arrays |= {f"columns.names.{key}": value for key, value in Texts.of(names).arrays().items()}
    arrays["columns.tables"] = np.tile([[24, 0]], (many, 1))
    arrays |= {"columns.owners": np.zeros(0, np.int32), "columns.drop": np.zeros(0, np.int64)}
    path = folder / "hashed"
    for width in (1 + many * 2**24, 7):
        facts["columns"]["facts"] |= {"width": width, "numeric": 1}
        path.write_bytes(packed(arrays, facts))
        assert_within(["inspect", "cli-score"], path, folder / "table", folder / "rows.csv")


@needs_memory
def test_very_many_categories_take_a_few_times_their_size(folder):
    path, many = folder / "many", 500_000
    columns = trained(TABLE, Columns("y", id="id", **MEANINGS["onehot"]), "uniexp", None).columns
    columns.width_ += many - len(columns._met)
    columns._met = Met(Texts.of(f"{number:x}" for number in range(many)), np.zeros(many, np.int32))
    rows = sparse.csr_array(([1.0, 2.0], [0, 1], [0, 1, 2]), shape=(2, columns.width_))
    Model(make("uniexp").partial_fit(rows, [0, 1]), None, columns).write(path)
    uses = ["inspect", "cli-score", "cli-update"]
    assert_within(uses, path, folder / "table", folder / "rows.csv")


# What comes before the features -------------------------------------------------------------------


def with_front(rows):
    """Return arrays and facts of a ranker whose rows wait, or whose columns have their scales."""
    X, y = real("german", rows)
    arrays, facts = gather(model=make("cbr-auto").partial_fit(X[:, :4], y))
    return {name: array.copy() for name, array in arrays.items()}, copy.deepcopy(facts)


def at_first(name, value):
    """Put a value at the first place of an array of the front."""
    return lambda arrays, facts: arrays[f"model.front.{name}"].flat.__setitem__(0, value)


def instead(name, make_array):
    """Put another array in the place of one of the front."""

    def change(arrays, facts):
        arrays[f"model.front.{name}"] = make_array(arrays.get(f"model.front.{name}"))

    return change


def without(name):
    return lambda arrays, facts: arrays.pop(f"model.front.{name}")


def said(value):
    return lambda arrays, facts: facts["model"].update(front=value)


SCALES = "has not the scales of its columns"
POWERS = "scales of its columns are not powers of 2"
ROWS = "rows that wait are not rows of its columns"
LABELS = "rows that wait have no sound labels"
FRONTS = {
    **{f"a scale of {value}": (at_first("inverse", value), POWERS)
       for value in (3.0, 0.0, -1.0, -0.5, np.nan, np.inf, -np.inf, 2.0**300, 2.0**-300, 5e-324)},
    "no scales": (without("inverse"), SCALES),
    "too few scales": (instead("inverse", lambda held: held[:-1]), SCALES),
    "scales of two axes": (instead("inverse", lambda held: held[None]), SCALES),
    "scales of another type": (instead("inverse", lambda held: held.astype(np.float32)), SCALES),
    "scales in integers": (instead("inverse", lambda held: np.ones(held.size, np.int64)), SCALES),
    "an array beside them": (instead("junk", lambda _: np.zeros(1)), SCALES),
    "an encoder beside them": (
        lambda arrays, facts: arrays.update({"model.encoder.ints": np.zeros(1, np.int64)}),
        "arrays that no such front has",
    ),
    "nothing said": (said({}), "does not say whether rows wait"),
    "nothing": (said(None), "does not say whether rows wait"),
    "a word": (said({"waits": "yes"}), "does not say whether rows wait"),
    "a number": (said({"waits": 1}), "does not say whether rows wait"),
}  # fmt: skip
WAITING = {
    **{f"{value} in a row": (at_first("rows", value), ROWS) for value in (np.nan, np.inf, -np.inf)},
    "narrow rows": (instead("rows", lambda held: held[:, :-1]), ROWS),
    "rows of one axis": (instead("rows", np.ravel), ROWS),
    "rows of another type": (instead("rows", lambda held: held.astype(np.float32)), ROWS),
    "fewer rows than labels": (instead("rows", lambda held: held[:-1]), LABELS),
    "more rows than labels": (instead("rows", lambda held: np.tile(held, (2, 1))), LABELS),
    "no rows": (without("rows"), SCALES),
    "no labels": (without("labels"), SCALES),
    "no weights": (without("weights"), SCALES),
    **{f"a label of {value}": (at_first("labels", value), LABELS) for value in (2, -1, 2**62)},
    "labels of another type": (instead("labels", lambda held: held.astype(np.int32)), LABELS),
    "labels of two axes": (instead("labels", lambda held: held[None]), LABELS),
    **{f"a weight of {value}": (at_first("weights", value), LABELS)
       for value in (0.0, -1.0, np.nan, np.inf)},
    "weights of another type": (instead("weights", lambda held: held.astype(np.int64)), LABELS),
    "rows that do not wait": (said({"waits": False}), SCALES),
    "rows that were learned": (
        lambda arrays, facts: [
            arrays[f"model.buffer.{name}"].fill(1) for name in ("seen", "size")
        ],
        "has learned while rows wait",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rows", [20, 100], ids=["waiting", "scaled"])
@pytest.mark.parametrize("forgery", FRONTS)
def test_forged_scales_of_columns_are_refused_with_the_reason(forgery, rows):
    change, reason = FRONTS[forgery]
    arrays, facts = with_front(rows)
    change(arrays, facts)
    with pytest.raises(ModelFileError, match=reason):
        restore("model", arrays, facts)


@pytest.mark.parametrize("forgery", WAITING)
def test_forged_rows_that_wait_are_refused_with_the_reason(forgery):
    change, reason = WAITING[forgery]
    arrays, facts = with_front(20)
    change(arrays, facts)
    with pytest.raises(ModelFileError, match=reason):
        restore("model", arrays, facts)


def test_more_rows_than_wait_are_refused():
    arrays, facts = with_front(63)
    assert restore("model", arrays, facts).waits
    for name in ("rows", "labels", "weights"):
        held = arrays[f"model.front.{name}"]
        arrays[f"model.front.{name}"] = np.concatenate([held, held[:1]])
    with pytest.raises(ModelFileError, match=LABELS):
        restore("model", arrays, facts)


def test_a_ranker_with_scales_that_says_that_rows_wait_is_refused():
    arrays, facts = with_front(100)
    facts["model"]["front"] = {"waits": True}
    with pytest.raises(ModelFileError, match=SCALES):
        restore("model", arrays, facts)


@pytest.mark.parametrize("name", ["cbr", "cbr-auto-diagonal", "oam"])
def test_a_ranker_that_has_no_front_has_none_in_a_file(name):
    arrays, facts = gather(model=seen_by(make(name)))
    width = facts["model"]["n_features"]
    with pytest.raises(ModelFileError, match="it has a front, which no such ranker has"):
        restore("model", arrays | {"model.front.inverse": np.ones(width)}, facts)
    facts["model"]["front"] = {"waits": False}
    with pytest.raises(ModelFileError, match="it has a front, which no such ranker has"):
        restore("model", arrays, facts)


@pytest.mark.parametrize("inverse", [2.0**200, 2.0**-200])
@pytest.mark.parametrize("rows", [20, 100], ids=["waiting", "scaled"])
def test_the_farthest_scales_do_no_harm(rows, inverse):
    arrays, facts = with_front(rows)
    arrays["model.front.inverse"][:] = inverse
    ranker = restore("model", arrays, facts)
    X, y = real("german", 300)
    ranker.partial_fit(X[:, :4], y)
    assert np.isfinite(ranker.predict_proba(X[:, :4])).all()


@pytest.mark.parametrize("learners", [-1, 0, 1, 4, 10**9])
@pytest.mark.parametrize("rows", [20, 100], ids=["waiting", "scaled"])
def test_learners_are_as_many_as_a_ranker_has(rows, learners):
    arrays, facts = with_front(rows)
    facts["model"]["learners"] = learners
    with pytest.raises(ModelFileError, match=f"has {learners} learners, which no such ranker has"):
        restore("model", arrays, facts)
    facts["model"]["learners"] = 2  # which shuffled rows leave, and there are three
    with pytest.raises(ModelFileError, match="it has an array model2"):
        restore("model", arrays, facts)


# The record ---------------------------------------------------------------------------------------


def with_record(name="cbr-auto", rows=100):
    """Return arrays and facts of a ranker in the midst of a block of its record."""
    X, y = real("german", rows)
    return gather(model=make(name).partial_fit(X, y))


def first(value):
    """Put a value at the first place of an array."""

    def change(array):
        array.flat[0] = value

    return change


def last(value):
    """Put a value at the last place of an array."""

    def change(array):
        array.flat[-1] = value

    return change


def upright(array):
    array[0, :3], array[1, :3] = [0.0, 5e-324, 1.0], [0.0, 1.0, 2.0]


RECORDS = {
    "a label that is none": ("labels", first(2), "record.labels is not from 0 to 1"),
    "more rows than room": ("position", last(33), "the block of its record is not one"),
    "an AUC above 1": ("evidence", first(1.5), "record.evidence is not from 0 to 1"),
    "an AUC below 0": ("evidence", first(-0.5), "record.evidence is not from 0 to 1"),
    "blocks better than they can be": ("sums", lambda sums: sums.__setitem__((0, 1), 1e6), "above 1"),
    "a block better than it can be": ("history", lambda rows: rows.__setitem__((0, 1), 2.0), "above 1"),
    "a block without rows": ("history", last(0.0), "a block of its record has no rows"),
    "endless history": ("history", first(1e300), "record.history is not from 0 to"),
    "another memory": ("memory", first(1.0), "neither the latest rows nor all"),
    "an endless curve": ("curve", first(1e300), "record.curve is not"),
    "an endless shape": ("shape", first(1e300), "record.shape is not"),
    "an upright shape": ("shape", upright, "is upright"),
    "far places": ("places", first(1e300), "record.places is not"),
    "far places served": ("served", first(-1e300), "record.served is not"),
    "negative counts": ("counts", lambda counts: counts.__setitem__((1, 3), -1.0), "less than nothing"),
    "endless counts": ("counts", lambda counts: counts.__setitem__((0, 3), 1e300), "or too much"),
    "counts at no place": ("counts", lambda counts: counts.__setitem__((2, 3), 1e9), "places that ther"),
    "negative weight": ("weight", first(-1.0), "record.weight is not"),
    "negative level": ("level", first(-1.0), "record.level is not"),
    "negative errors": ("errors", last(-5.0), "knows less than nothing"),
    "endless errors": ("errors", first(1e300), "record.errors is not"),
    "negative share": ("share", first(-1.0), "record.share is not"),
    "negative information": ("information", lambda some: np.negative(some, out=some), "less than nothin"),
    "odd information": ("information", lambda some: some.__setitem__((0, 3), 50.0), "not symmetric"),
    "endless information": ("information", last(1e300), "record.information is not"),
}  # fmt: skip


@pytest.mark.parametrize("forgery", RECORDS)
def test_a_forged_record_is_refused_with_its_reason(forgery):
    field, change, reason = RECORDS[forgery]
    arrays, facts = with_record()
    change(arrays[f"model.record.{field}"])
    with pytest.raises(ModelFileError, match=reason):
        restore("model", arrays, facts)


def test_a_block_has_little_room_and_a_history_an_end():
    arrays, facts = with_record()
    for field in ("places", "served", "tested", "labels"):
        array = arrays[f"model.record.{field}"]
        arrays[f"model.record.{field}"] = np.zeros((*array.shape[:-1], 2000), array.dtype)
    with pytest.raises(ModelFileError, match="the block of its record is not one"):
        restore("model", arrays, facts)
    arrays, facts = with_record()
    arrays["model.record.history"] = np.ones((2049, 3))
    with pytest.raises(ModelFileError, match="more blocks than it keeps"):
        restore("model", arrays, facts)


@pytest.mark.parametrize("name", ["cbr-auto", "cbr"])
def test_a_buffer_has_the_room_that_a_ranker_gives_it(name):
    X, y = real("german", 100)
    arrays, facts = gather(model=make(name, buffer_size="auto").partial_fit(X, y))
    room = arrays["model.buffer.rows"].shape[1]
    many = arrays | {
        f"model.buffer.{field}": np.repeat(arrays[f"model.buffer.{field}"], 30, axis=1)
        for field in ("rows", "came")
    }
    with pytest.raises(ModelFileError, match=f"room for {30 * room} rows"):
        restore("model", many, facts)
    for kept in (7, 1000):
        with pytest.raises(ModelFileError, match=f"room for {room} rows"):
            restore("model", arrays | {"model.buffer.least": np.array([kept])}, facts)


@pytest.mark.parametrize("kept", [0, 8])
def test_a_buffer_keeps_some_rows_and_no_more_than_it_has_room_for(kept):
    X, y = real("german", 100)
    arrays, facts = gather(model=make("cbr", buffer_size=7).partial_fit(X, y))
    arrays["model.buffer.least"] = np.array([kept])
    with pytest.raises(ModelFileError, match="keeps more rows than it has room for, or none"):
        restore("model", arrays, facts)
