"""AdditiveRanker in ONNX: the scores, probabilities and labels of the ranker, from another runtime."""

import copy
import json
import zlib

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from additive_tables import part, table
from hypothesis import given
from hypothesis import strategies as st
from made_up_tables import tables
from real_data import real, real_table

import cbrank
from cbrank import AdditiveRanker
from cbrank.features.forests import DAYS, MONTH, NUMBER, WEEKDAY, WORD
from cbrank.features.kinds import numbers_of, times_of
from cbrank.features.table import Times, in_words
from cbrank.learning import blocks
from cbrank.onnx import to_onnx
from cbrank.streams import StreamScaler

onnx = pytest.importorskip("onnx", reason="exporting needs onnx")
runtime = pytest.importorskip("onnxruntime", reason="running what is exported needs onnxruntime")


def facts_of(model):
    return {entry.key: entry.value for entry in model.metadata_props}


def columns_of(model):
    return json.loads(facts_of(model)["columns"])


def answers(model, inputs):
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


def buckets(words):
    return np.array([zlib.crc32(word.encode("utf-8", "surrogatepass")) % 32 for word in words])


def inputs_of(ranker, model, rows):
    """Cells as the ranker reads them, which the graph leaves to its caller."""
    decisions = ranker.encoder_.decided()
    read = dict(zip(rows.names, zip(rows.columns, decisions, strict=True), strict=True))
    found = {}
    for port in columns_of(model):
        name = port["name"]
        if port["kind"] == "bucket":
            found[name] = buckets(found[name.removesuffix(": bucket")])
            continue
        column, (_, reason, *_) = read[name]
        if port["kind"] == "number":
            found[name] = numbers_of(column, reason)
        elif port["kind"] == "time":
            found[name] = times_of(column, reason).seconds
        else:
            words = in_words(column)
            known = [*words.values, ""]  # noqa: PD011
            found[name] = np.array(known, object)[words.codes]
    return found


def sizes_of_sums(ranker, X):
    """What scores would be if nothing in them cancelled out."""
    method, state = ranker._now()
    mixed = ranker._served_of(method, state)
    every = np.hstack([mixed.weights, *mixed.beside])
    rows = blocks.encoded(state, ranker.encoder_.read(X))
    parts = [rows.X, *rows.beside] if state.beside else [rows]
    return abs(sp.hstack([*map(sp.csr_array, parts)])) @ np.abs(every)


def assert_equal(ranker, found, X):
    """Check what the graph gives; scores are sums, which are rounded by the size of their parts."""
    score, probability, label = found
    expected = ranker.decision_function(X)
    size = sizes_of_sums(ranker, X) + np.abs(ranker.intercept_) + 1e-300
    np.testing.assert_array_less(np.abs(score - expected) / size, 1e-9)
    np.testing.assert_allclose(probability, ranker.predict_proba(X)[:, 1], rtol=1e-9, atol=1e-15)
    sure = np.abs(expected) > 1e-9 * size
    np.testing.assert_array_equal(label[sure], ranker.predict(X).astype(str)[sure])


def check(ranker, X, **names):
    """Check that a ranker, exported, scores rows as it does itself; return the model."""
    model = to_onnx(ranker, **names)
    assert_equal(ranker, answers(model, inputs_of(ranker, model, ranker.encoder_.read(X))), X)
    return model


# Real tables --------------------------------------------------------------------------------------


def by_hand(model, X):
    """The columns of a frame as somebody would feed them who has no cbrank."""
    found = {}
    for port in columns_of(model):
        cells = X[port["name"]]
        if port["kind"] == "number":
            found[port["name"]] = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64)
        else:
            assert port["kind"] == "word"
            found[port["name"]] = cells.fillna("").str.strip().to_numpy(object)
    return found


@pytest.mark.parametrize("name", ["adult", "telco", "hypothyroid", "elec", "weather"])
def test_real_tables(name):
    X, y = real_table(name)
    order = np.random.RandomState(0).permutation(len(y))[:3000]
    X, y = X.iloc[order], y.iloc[order]
    ranker = AdditiveRanker(random_state=0).partial_fit(X[:2500], y[:2500])
    rows = X.sample(frac=1.0, random_state=1)
    model = to_onnx(ranker)
    assert_equal(ranker, answers(model, by_hand(model, rows)), rows)
    gaps = rows.mask(np.random.RandomState(2).random_sample(rows.shape) < 0.2)
    assert_equal(ranker, answers(model, by_hand(model, gaps)), gaps)


@pytest.mark.parametrize("name", ["glass", "german", "svmguide3", "diabetes", "vehicle", "segment"])
def test_embedded_sets(name):
    X, y = real(name, rows=600)
    model = check(AdditiveRanker(random_state=0).fit(X, y), X)
    assert [port.name for port in model.graph.input] == [f"x{at}" for at in range(X.shape[1])]


def test_free_text_is_refused():
    X, y = real_table("sms-spam")
    ranker = AdditiveRanker(random_state=0).partial_fit(X[:400], y[:400])
    with pytest.raises(ValueError, match="column 'message' holds free text, for which ONNX has no"):
        to_onnx(ranker)


# Made-up tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"C": 0.1},
        {"covariance": "diagonal"},
        {"kinds": {"few": "word"}, "class_weight": "balanced"},
        {"operating_point": "accuracy"},
    ],
)
def test_all_that_comes_in_tables(parameters):
    X, y = table(2600)
    ranker = AdditiveRanker(random_state=0, **parameters)
    for end in (1, 3, 200, 700, 2600):  # rows that wait, and columns that grow
        before = sum(ranker.n_seen_) if hasattr(ranker, "classes_") else 0
        ranker.partial_fit(part(X, slice(before, end)), y[before:end], classes=[0, 1])
        model = check(ranker, X)
    assert {port["kind"] for port in columns_of(model)} == {"number", "word", "time"}
    late, _ = table(500, seed=1)
    late["unit"][:4] = [np.inf, -np.inf, 1.7e308, 5e-324]
    late["word"][:4] = ["never met", "?", "N/A", None]
    late["when"][:2] = np.datetime64("NaT")
    check(ranker, late)


def test_rankers_that_were_merged():
    X, y = table(1800)
    first = AdditiveRanker(C=0.1, random_state=0).partial_fit(part(X, slice(600)), y[:600])
    others = [
        copy.deepcopy(first).partial_fit(part(X, some), y[some])
        for some in (slice(600, 1200), slice(1200, 1800))
    ]
    check(cbrank.merge(others, prior=first), X)


def readable(cell):
    """Bytes that are no UTF-8 cannot be handed over to the runtime from Python."""
    return cell.decode("latin-1") if isinstance(cell, bytes) else cell


@given(tables(), st.data())
def test_any_table(columns, data):
    rows = len(columns["c0"])
    columns = {name: [*map(readable, cells)] for name, cells in columns.items()}
    y = data.draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows))
    ranker = AdditiveRanker(pieces=data.draw(st.integers(1, 9)), random_state=0)
    learn = data.draw(st.sampled_from(["fit", "partial_fit"]))
    if learn == "fit" and len({*y}) == 2:
        ranker.fit(columns, y)
    else:
        ranker.partial_fit(columns, y, classes=[0, 1])
    kinds = {*ranker.encoder_.kinds_.values()}
    many = any(group.source.kind == "ids" for group in ranker._now()[1].beside)
    if "text" in kinds or many or kinds <= {"drop", "empty"}:
        with pytest.raises(ValueError, match=r"free text|many categories|all columns are left out"):
            to_onnx(ranker)
        return
    check(ranker, columns)
    others = data.draw(st.permutations(range(rows)))
    mixed = {name: [cells[at] for at in others] for name, cells in columns.items()}
    mixed["c0"] = mixed["c0"][::-1]
    check(ranker, mixed)


# Trees --------------------------------------------------------------------------------------------


def forests_of(ranker, model):
    """The trees of a ranker, of which its graph has all."""
    forests = [group.source for group in ranker._learned.state.beside]
    found = [node for node in model.graph.node if node.op_type == "TreeEnsembleRegressor"]
    assert len(found) == len(forests)
    return forests


def at_thresholds(ranker, forests, name, X):
    """Rows whose numbers are those at which trees part a column, and their neighbours."""
    place = ranker.encoder_.names().index(name)
    owns = [(known.columns.owner[known.column] == place) & (known.left >= 0) for known in forests]
    ends = np.unique(
        np.hstack([known.threshold[own] for known, own in zip(forests, owns, strict=True)])
    )
    cells = np.hstack([ends, np.nextafter(ends, np.inf), np.nextafter(ends, -np.inf)])
    assert len(cells) > 30
    rows = np.arange(len(cells)) % len(X[name])
    return part(X, rows) | {name: cells}


@pytest.mark.parametrize(("learn", "rows"), [("fit", 300), ("fit", 2500), ("partial_fit", 6000)])
def test_trees(learn, rows):
    X, y = table(rows)
    ranker = AdditiveRanker(max_categories=20, horizon="next", random_state=0)
    getattr(ranker, learn)(X, y)
    model = check(ranker, X)
    forests = forests_of(ranker, model)
    assert len(forests) == 1 + (learn == "partial_fit")
    parts = {
        (known.columns.part[at]) for known in forests for at in {*known.column[known.left >= 0]}
    }
    assert parts >= {NUMBER, WORD, DAYS, MONTH, WEEKDAY}
    check(ranker, at_thresholds(ranker, forests, "unit", X))
    late, _ = table(400, seed=1)
    late["unit"][:6] = [np.nan, 1.7e308, -1.7e308, 5e-324, np.inf, -np.inf]
    late["when"][3::7] = np.datetime64("NaT")
    check(ranker, late)
    for name, cells in late.items():  # all of a column missing
        gaps = np.full(400, np.datetime64("NaT") if name == "when" else None)
        check(ranker, late | {name: gaps if cells.dtype.kind in "OM" else np.full(400, np.nan)})


def test_trees_of_numbers_that_became_words():
    random = np.random.RandomState(0)
    numbers, others = random.standard_normal(1500), random.standard_normal(4500)
    cells = np.array([*numbers.tolist(), *random.choice(["low", "high", "7"], 3000)], object)
    y = np.where(others > 0.0, np.append(numbers > 0.5, cells[1500:] == "low"), others < -1.0)
    X = {"c": cells, "d": others}
    ranker = AdditiveRanker(C=2.0**-8, trees=100, horizon="next", random_state=0)
    ranker.partial_fit(part(X, slice(1500)), y[:1500])
    [forest] = forests_of(ranker, check(ranker, part(X, slice(1500))))
    ranker.partial_fit(part(X, slice(1500, None)), y[1500:])
    assert ranker.encoder_.kinds_["c"] == "word"
    assert ranker._learned.state.beside[0].source is forest
    assert 0 in forest.columns.owner[forest.column[forest.left >= 0]]
    check(ranker, X)


def test_trees_that_part_missing_values_from_all_others():
    random = np.random.RandomState(0)
    cells = np.where(random.random_sample(2000) < 0.5, np.nan, random.standard_normal(2000))
    X = {"c": cells, "d": random.standard_normal(2000)}
    ranker = AdditiveRanker(random_state=0).fit(X, np.isnan(cells) ^ (X["d"] > 1.0))
    [forest] = forests_of(ranker, to_onnx(ranker))
    assert np.isneginf(forest.threshold).any()
    X["c"][:9] = -np.inf
    check(ranker, X)


def test_trees_that_never_part():
    X = {"same": np.where(np.arange(2000) % 300, 1.0, 2.0)}
    ranker = AdditiveRanker(random_state=0).partial_fit(X, np.arange(2000) % 3 == 0)
    model = check(ranker, X)
    [group] = ranker._learned.state.beside
    assert (group.source.left < 0).all()
    assert "TreeEnsembleRegressor" not in {node.op_type for node in model.graph.node}


# Kinds of columns ---------------------------------------------------------------------------------


def learned(column, rows=400, **parameters):
    """A ranker of one made-up column, by whose place in the list labels go, and noise."""
    random = np.random.RandomState(0)
    cells = np.empty(rows, object)
    cells[:] = [column[at % len(column)] for at in range(rows)]
    y = (np.arange(rows) % len(column) + random.randint(0, 3, rows)) % 3 == 0
    X = {"c": cells.tolist(), "noise": random.standard_normal(rows)}
    return AdditiveRanker(random_state=0, **parameters).partial_fit(X, y)


def scores(ranker, cells):
    """Scores of cells by the graph, and by the ranker."""
    X = {"c": [*cells], "noise": [0.0] * len(cells)}
    model = check(ranker, X)
    return answers(model, inputs_of(ranker, model, ranker.encoder_.read(X)))[0]


def test_words_that_mean_a_gap():
    ranker = learned(["x", "y", "z", None, "w"])
    empty, *others = scores(ranker, ["", "?", "NA", "n/A", "NULL", "None", "naN", "<NA>", "-", "x"])
    assert {*others[:-1]} == {empty}
    assert others[-1] != empty


def test_words_that_were_asked_for_never_mean_a_gap():
    ranker = learned(["NA", "y", "z", None, "w"], kinds={"c": "word"})
    empty, known, new = scores(ranker, ["", "NA", "na"])
    assert empty != known
    assert new != known


def test_words_that_are_too_many_share_features():
    ranker = learned([f"größe {at}" for at in range(100)], max_categories=8, C=2.0**-8)
    model = to_onnx(ranker)
    assert [port["type"] for port in columns_of(model)] == ["string", "int64", "double"]
    [told] = [port.doc_string for port in model.graph.input if port.name == "c: bucket"]
    assert told.startswith("CRC-32 of the UTF-8 bytes of the word in column 'c', modulo 32")
    found = scores(ranker, [*(f"größe {at}" for at in range(100)), "never met", "?", ""])
    assert len({*found}) > 20


def test_values_that_stand_apart():
    ranker = learned([*np.linspace(0.0, 1.0, 40).tolist(), -999.0, None, 1e6, 1e6, -999.0])
    assert "is a category of its own" in ranker.encoder_.decisions()[0]
    scores(ranker, [-999.0, 1e6, -998.9, np.nan, 0.5, np.inf, -np.inf])


def test_a_column_of_numbers_that_became_words():
    random = np.random.RandomState(0)
    numbers = random.standard_normal(1000)
    words = random.choice(["low", "high", "7"], 3000)
    cells = np.array([*numbers.tolist(), *words], object)
    X = {"c": cells, "d": random.randint(0, 2, 4000)}
    y = random.random_sample(4000) < 0.5
    ranker = AdditiveRanker(random_state=0)
    ranker.partial_fit(part(X, slice(1000)), y[:1000])
    assert ranker.encoder_.kinds_["c"] == "number"
    ranker.partial_fit(part(X, slice(1000, None)), y[1000:])
    assert ranker.encoder_.kinds_["c"] == "word"
    check(ranker, X)


def test_times_of_all_centuries():
    longest = 2.0**55 / 1e6
    random = np.random.RandomState(0)
    seconds = np.concatenate(
        [
            np.arange(-9.0, 9.0, 0.25),
            86400.0 * np.arange(-800000, 800000, 373) - 0.5,
            random.uniform(-longest, longest, 4000),
            [longest, -longest, np.nextafter(longest, 0), 1e300, np.inf, -np.inf, np.nan],
        ]
    )
    hours = np.arange(2000) * 9000 * 3600
    X = {"when": (hours - 1_000_000_000).astype("M8[s]"), "noise": random.standard_normal(2000)}
    y = (hours // 86400 % 7 == 2) ^ (hours // 3600 % 24 > 12) ^ (random.random_sample(2000) < 0.1)
    ranker = AdditiveRanker(random_state=0).partial_fit(X, y)
    assert len(ranker.encoder_.known()[0].parts[0].features) == 12
    model = to_onnx(ranker)
    score, _, _ = answers(model, {"when": seconds, "noise": np.zeros(len(seconds))})
    rows = ranker.encoder_.read({"when": seconds, "noise": np.zeros(len(seconds))})
    rows.columns[0] = Times(seconds)
    expected = ranker.encoder_.encode_dense(rows)[:, : ranker.weights().size] @ ranker.weights()
    np.testing.assert_allclose(score, expected + ranker.intercept_, rtol=1e-9, atol=1e-9)


def test_columns_that_say_nothing():
    X = {"one": ["x"] * 300, "same": [1.0] * 300, "none": [None] * 300}
    ranker = AdditiveRanker(random_state=0).partial_fit(X, [0, 1, 1] * 100)
    model = check(ranker, X)
    assert [port["name"] for port in columns_of(model)] == ["one", "same"]
    assert json.loads(facts_of(model)["left_out"]) == ["none"]
    score, *_ = answers(model, {"one": np.array(["x", ""], object), "same": np.array([1.0, 7.0])})
    assert score.tolist() == [*ranker.intercept_] * 2


# Names, labels, metadata --------------------------------------------------------------------------


def test_columns_of_any_name():
    X, y = table(300)
    names = ["score", "label", "probability", "a b, ü\n", "MatMul_9", "constant_12", "score_"]
    ranker = AdditiveRanker(random_state=0).partial_fit(
        dict(zip(names, X.values(), strict=True)), np.where(y, "ja", "no")
    )
    model = check(ranker, dict(zip(names, X.values(), strict=True)))
    assert [port.name for port in model.graph.input] == names
    outputs = [port.name for port in model.graph.output]
    assert outputs == ["score__", "probability_", "label_"]


def test_names_and_labels_can_be_said():
    X = np.random.RandomState(0).standard_normal((300, 2))
    ranker = AdditiveRanker(random_state=0).partial_fit(X, X[:, 0] > 0)
    model = to_onnx(ranker, features=["age", "income"], labels=["stays", "goes"])
    inputs = {"age": X[:, 0], "income": X[:, 1]}
    label = answers(model, inputs)[2]
    np.testing.assert_array_equal(label == "goes", ranker.predict(X))
    facts = facts_of(model)
    assert facts.keys() == {"columns", "left_out", "labels", "version"}
    assert json.loads(facts["labels"]) == ["stays", "goes"]
    assert facts["version"] == model.producer_version == cbrank.__version__
    assert "probability of 'goes'" in model.doc_string
    assert {entry.domain: entry.version for entry in model.opset_import} == {
        "": 17,
        "ai.onnx.ml": 3,
    }
    with pytest.raises(ValueError, match="`features` has 1 names for 2 columns"):
        to_onnx(ranker, features=["age"])
    for names in (["age", "age"], ["age", ""]):
        with pytest.raises(ValueError, match="need names that differ and are not empty"):
            to_onnx(ranker, features=names)
    with pytest.raises(ValueError, match="takes tables as they are: leave out `scaler`"):
        to_onnx(ranker, StreamScaler("standard"))
    to_onnx(ranker, StreamScaler("none"))


def test_the_graph_is_the_same_each_time_and_its_operators_are_standard():
    X, y = table(250)
    ranker = AdditiveRanker(random_state=0).fit(X, y)
    model = to_onnx(ranker)
    assert forests_of(ranker, model)
    assert model.SerializeToString() == to_onnx(ranker).SerializeToString()
    assert {node.domain for node in model.graph.node} == {"", "ai.onnx.ml"}
    X = part(X, slice(50))
    inputs = inputs_of(ranker, model, ranker.encoder_.read(X))
    reference = pytest.importorskip("onnx.reference").ReferenceEvaluator(model)
    with np.errstate(invalid="ignore"):
        score, probability, label = reference.run(None, inputs)
    assert_equal(ranker, (score, probability, label), X)
