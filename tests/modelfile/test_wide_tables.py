"""Tables of very many columns: what is known of them is in arrays, and what is too wide is refused first."""

import numpy as np
import pytest

import cbrank
from cbrank import AdditiveRanker
from cbrank.modelfile import ModelFileError, gather, restore, write
from cbrank.streams import TableColumns
from cbrank.training import Model, Run

FEW, MANY = 20, 200


def header_of(path):
    return int.from_bytes(path.read_bytes()[:8], "little")


def rows_of(columns, rows):
    random = np.random.RandomState(0)
    y = np.arange(rows) % 2
    X = random.randint(3, size=(rows, columns)) + y[:, None]
    return {f"a column with the name {at}": X[:, at] for at in range(columns)}, y


def learned(columns, rows, **parameters):
    X, y = rows_of(columns, rows)
    ranker = AdditiveRanker(C=0.1, buffer_size=5, random_state=0, **parameters)
    return ranker.partial_fit(X, y), X


@pytest.mark.parametrize("rows", [10, 280], ids=["waiting", "decided"])
def test_the_header_does_not_grow_with_the_columns(rows, tmp_path):
    sizes = []
    for columns in (FEW, MANY):
        asked = dict.fromkeys(rows_of(columns, 1)[0], "number")
        ranker, X = learned(columns, rows, kinds=asked)
        cbrank.save(ranker, tmp_path / "model")
        sizes.append(header_of(tmp_path / "model"))
        again = cbrank.load(tmp_path / "model")
        assert again.kinds == asked
        np.testing.assert_array_equal(again.decision_function(X), ranker.decision_function(X))
    assert sizes[1] - sizes[0] < 400  # digits of sizes and places


def test_kinds_may_be_given_by_position():
    ranker, X = learned(3, 280, kinds={0: "word", 2: "number", "a column with the name 1": "drop"})
    again = restore("model", *gather(model=ranker))
    assert again.kinds == ranker.kinds
    np.testing.assert_array_equal(again.decision_function(X), ranker.decision_function(X))


@pytest.mark.parametrize(
    "changes",
    [
        {"text": np.full(8, 0xFF, np.uint8)},
        {"text": np.zeros(8, np.int64)},
        {"ends": np.array([9, 8])},
        {"ends": np.array([1, 8])},
        {"places": np.array([True, False])},
        {"places": np.array([True])},
        {"places": np.array([0])},
        {"places": np.zeros((1, 1), bool)},
        {"junk": np.zeros(1)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_forged_kinds_are_refused(changes):
    arrays, facts = gather(model=learned(2, 10, kinds={"a column with the name 0": "word"})[0])
    own = {f"model.parameters.kinds.{name}": array for name, array in changes.items()}
    with pytest.raises(ModelFileError):
        restore("model", arrays | own, facts)


def test_parameters_that_are_none_or_are_there_twice_are_refused():
    arrays, facts = gather(model=learned(2, 10, kinds={"a column with the name 0": "word"})[0])
    kinds = {name: arrays[f"model.parameters.kinds.{name}"] for name in ("text", "ends", "places")}
    more = {f"model.parameters.nonsense.{name}": array for name, array in kinds.items()}
    with pytest.raises(ModelFileError, match="has no parameter 'nonsense'"):
        restore("model", arrays | more, facts)
    twice = {"text": np.tile(kinds["text"], 2), "places": np.tile(kinds["places"], 2)}
    twice["ends"] = np.append(kinds["ends"], kinds["ends"] + kinds["text"].size)
    more = {f"model.parameters.kinds.{name}": array for name, array in twice.items()}
    with pytest.raises(ModelFileError, match="two words for one name"):
        restore("model", arrays | more, facts)


# Refused before the first row ---------------------------------------------------------------------


@pytest.fixture
def narrow(monkeypatch):
    for module in ("features.encoder", "streams.table_columns"):
        monkeypatch.setattr(f"cbrank.{module}.MOST_TABLE_COLUMNS", FEW)


def test_a_table_of_too_many_columns_is_refused(narrow):
    X, y = rows_of(FEW + 1, 4)
    ranker = AdditiveRanker()
    with pytest.raises(ValueError, match="X has 21 columns; a table may have 20 at most"):
        ranker.partial_fit(X, y)
    assert not ranker.__sklearn_is_fitted__()
    arrays, facts = gather(model=AdditiveRanker().partial_fit(*rows_of(FEW, 4)))
    facts["model"]["front"]["encoder"]["columns"] = FEW + 1
    with pytest.raises(ModelFileError, match="its TableEncoder makes no sense"):
        restore("model", arrays, facts)


def test_a_file_of_too_many_columns_is_refused_by_its_header(narrow, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(",".join(f"c{at}" for at in range(FEW + 1)) + ",y\n" + "no row\n")
    model = Model(AdditiveRanker(), None, TableColumns("y"))
    with pytest.raises(ValueError, match=r"has 21 columns to learn from; .* may have 20 at most"):
        next(iter(Run(model, [str(path)])))
    path.write_text(path.read_text().replace("no row", "1," * (FEW + 1) + "1"))
    dropped = Model(AdditiveRanker(), None, TableColumns("y", kinds={"c1*": "drop"}))
    next(iter(Run(dropped, [str(path)])))
    assert dropped.ranker.n_features_in_ == FEW + 1 - 11


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "200 columns, of which 50 rows of each class are kept, take .* `buffer_size`"),
        ({"covariance": "full"}, "200 columns squared take"),
    ],
    ids=["rows kept", "full"],
)
def test_what_memory_will_not_hold_is_refused(parameters, message, monkeypatch):
    monkeypatch.setattr("cbrank.learning.room._LITTLE", 0)
    monkeypatch.setattr("cbrank.learning.room._available_bytes", lambda: 2.0**18)
    ranker = AdditiveRanker(**parameters)
    with pytest.raises(ValueError, match=message):
        ranker.partial_fit(*rows_of(MANY, 4))
    assert not ranker.__sklearn_is_fitted__()


def test_a_file_that_memory_will_not_serve_is_refused_when_it_is_used(monkeypatch):
    X, y = rows_of(MANY, 4)
    opened = restore("model", *gather(model=AdditiveRanker(trees=0).partial_fit(X, y)))
    monkeypatch.setattr("cbrank.learning.room._available_bytes", lambda: 2.0**18)
    with pytest.raises(ValueError, match="478 features squared"):  # what it began with, of 4 rows
        opened.decision_function(X)


def test_facts_that_are_too_long_are_refused():
    with pytest.raises(ValueError, match="The facts would take"):
        write("unused", {}, {"text": "a" * 2**20})
