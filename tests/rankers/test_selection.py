"""Feature selection: which weights are served, what memory holds, and that nothing else changes."""

import pickle
import tracemalloc

import numpy as np
import oracles
import pytest
from commands import call, error
from hypothesis import given
from hypothesis import strategies as st
from real_data import real
from record_oracles import blocks
from scipy import sparse
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import cbrank
from cbrank import CBRanker, CBRankerCV
from cbrank.learning import selection

pytestmark = pytest.mark.usefixtures("small_working_sets")
RULES = ["weight", "confidence", "evidence"]


@pytest.fixture(scope="module")
def small_working_sets():
    """Let working sets be as small as these streams are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cbrank.learning.slots.FLOOR", 0)
        yield


def made(K, **parameters):
    fixed = {"C": 0.1, "covariance": "diagonal", "random_state": 0, "max_features": K}
    return CBRanker(**fixed | parameters)


def strengths(rule, weights, G):
    """Return how much each feature is wanted."""
    return {
        "weight": np.abs(weights),
        "confidence": np.where(weights != 0, G, 0),
        "evidence": np.abs(weights) * np.sqrt(G),
    }[rule]


def best(values, count):
    """Return the places of the largest values, of equal ones the first."""
    return np.argsort(-values, kind="stable")[:count]


def plain(X, y, K, rule, *, average, reserve=selection.RESERVE, **options):
    """Return the weights that are served, by a plain reading: at the end of blocks all but the best are forgotten."""

    def select(rows, mu, averaged, G):
        lost = np.ones(mu.size, bool)
        learned = (mu != 0) | (averaged != 0) | (G != 1)
        if rows not in blocks(rows) or learned.sum() <= reserve * K:
            return ~lost
        lost[best(strengths(rule, averaged if average else mu, G), reserve * K)] = False
        return lost

    learned = oracles.cbr_diagonal(X, y, 0.1, select=select, **options)
    whole = learned.average if average else learned.mu
    weights = np.zeros(whole.size)
    kept = best(strengths(rule, whole, learned.G), K)
    weights[kept] = whole[kept]
    return weights, learned


def words(rows, columns, seed, length=6):
    """Return made-up rows of a few words out of many, of which the first 20 tell the classes apart."""
    random = np.random.RandomState(seed)
    y = random.randint(0, 2, rows)
    indices = np.minimum(random.pareto(0.4, (rows, length)) * 4, columns - 1).astype(np.int64)
    indices[:, 0] = 2 * random.randint(0, 10, rows) + (y ^ (random.rand(rows) < 0.1))
    at = np.repeat(np.arange(rows), length), indices.ravel()
    X = sparse.csr_array((np.ones(rows * length), at), shape=(rows, columns))
    return X, y


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_selection_is_its_plain_reading(as_rows, rule, average, monkeypatch):
    monkeypatch.setattr("cbrank.learning.slots.RESERVE", 3)
    X, y = real("spambase", 400, "standard")
    expected, learned = plain(X, y, 4, rule, average=average, reserve=3, buffer_size=20)
    ranker = made(4, selection=rule, average=average, buffer_size=20).partial_fit(as_rows(X), y)
    np.testing.assert_allclose(ranker.coef_[0], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ranker.covariance_, 1 / learned.G, rtol=1e-9)
    np.testing.assert_array_equal(ranker.get_support(), expected != 0)
    std = ranker.decision_function(as_rows(X[:9]), return_std=True)[1]
    np.testing.assert_allclose(std, np.sqrt(X[:9] ** 2 @ (1 / learned.G)))


@given(st.data())
def test_any_stream_has_at_most_so_many_weights_and_chunks_do_not_matter(data):
    seed, K = data.draw(st.integers(0, 10**6)), data.draw(st.integers(1, 12))
    cuts = data.draw(st.lists(st.integers(1, 299), max_size=8, unique=True))
    C, rule = data.draw(st.sampled_from([0.01, 1.0, "auto"])), data.draw(st.sampled_from(RULES))
    X, y = words(300, 4000, seed)
    form = made(
        K, C=C, selection=rule, diagonal_update=data.draw(st.sampled_from(["paper", "drop"]))
    )
    ranker, whole = form, pickle.loads(pickle.dumps(form)).partial_fit(X, y)
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), 300], strict=True):
        ranker.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
        assert np.count_nonzero(ranker.coef_) <= K
        assert ranker.get_support(indices=True).size == ranker.get_support().sum() <= K
    np.testing.assert_array_equal(ranker.coef_, whole.coef_)
    np.testing.assert_array_equal(ranker.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("C", [0.1, "auto"])
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", ["dense", "text"])
def test_as_many_weights_as_columns_are_cbr_diag_to_the_bit(kind, learn, C):
    X, y = real("german", 700) if kind == "dense" else words(1500, 5000, 3)
    one, other = (getattr(made(K, C=C), learn)(X, y) for K in (X.shape[1], None))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.covariance_, other.covariance_)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.progressive_auc_ == other.progressive_auc_
    if kind == "text":  # rows go by slots all the same
        assert one._learned.state.selects
        np.testing.assert_array_equal(
            one.preference_proba(X[:9], X[9:18]), other.preference_proba(X[:9], X[9:18])
        )
        for ours, theirs in zip(one.buffered_rows(), other.buffered_rows(), strict=True):
            np.testing.assert_array_equal(
                np.asarray(ours @ np.eye(5000) if sparse.issparse(ours) else ours),
                theirs.toarray() if sparse.issparse(theirs) else theirs,
            )


def test_probabilities_are_of_what_is_served():
    X, y = real("reuters", 4000, "unit")
    ranker = made(20, C=0.03).partial_fit(X[:3000], y[:3000])
    scores = ranker.decision_function(X[3000:]).reshape(-1, 1)
    best_fit = LogisticRegression(C=1e6).fit(scores, y[3000:]).predict_proba(scores)[:, 1]

    def log_loss(p):
        return -np.log(np.where(y[3000:] == 1, p, 1 - p)).mean()

    assert log_loss(ranker.predict_proba(X[3000:])[:, 1]) < log_loss(best_fit) + 0.02


@pytest.mark.parametrize("C", [0.1, "auto"])
def test_a_model_file_goes_on_as_if_it_had_never_stopped(C, tmp_path):
    X, y = words(1000, 10**8, 5)
    whole = made(10, C=C).partial_fit(X[:500], y[:500])
    cbrank.save(whole, tmp_path / "half")
    assert (tmp_path / "half").stat().st_size < 2**22
    half = cbrank.load(tmp_path / "half")
    assert half.n_features_in_ == 10**8
    whole, half = (each.partial_fit(X[500:], y[500:]) for each in (whole, half))
    support = whole.get_support(indices=True)
    np.testing.assert_array_equal(half.get_support(indices=True), support)
    np.testing.assert_array_equal(half.weights(support), whole.weights(support))
    np.testing.assert_array_equal(half.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("change", ["twice", "beyond", "slots", "short", "columns"])
def test_a_forged_front_is_refused(change):
    X, y = words(200, 500, 1)
    arrays, facts = made(3).partial_fit(X, y).get_state()
    arrays = {name: array.copy() for name, array in arrays.items()}
    columns, slots = arrays["front.columns"], arrays["front.slots"]
    if change == "twice":
        columns[1] = columns[0]
    elif change == "beyond":
        columns[-1] = 500
    elif change == "slots":
        slots[0] = slots[1]
    elif change == "short":
        arrays["front.slots"], arrays["front.columns"] = slots[:3], columns[:3]
    else:
        facts = facts | {"front": {"columns": "many"}}
    with pytest.raises(ValueError, match=r"columns|points beyond"):
        CBRanker.from_state(arrays, facts)


def test_very_many_columns_take_no_memory_and_no_time():
    ranker = made(50)
    ranker.partial_fit(*words(2000, 10**8, 0))
    width = ranker._learned.state.width
    tracemalloc.start()
    for seed in range(1, 8):
        X, y = words(2000, 10**8, seed)
        ranker.partial_fit(X, y)
        ranker.predict_proba(X)
        assert ranker.get_support(indices=True).size == 50
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**25
    assert ranker._learned.state.width <= 2 * width
    assert (ranker.get_support(indices=True) < 20).sum() > 15  # those that matter


def test_columns_that_come_later_are_selected_too():
    X, y = words(600, 300, 2)
    narrow = sparse.csr_array(X[:300, :150])
    ranker = made(5).partial_fit(narrow, y[:300])
    ranker.resize(300)
    ranker.partial_fit(X[300:], y[300:])
    expected = made(5).partial_fit(
        sparse.csr_array((narrow.data, narrow.indices, narrow.indptr), shape=(300, 300)), y[:300]
    )
    np.testing.assert_array_equal(ranker.coef_, expected.partial_fit(X[300:], y[300:]).coef_)


def test_further_passes_keep_to_the_features_of_the_first():
    X, y = words(500, 3000, 4)
    once, thrice = (made(5, n_passes=passes).fit(X, y) for passes in (1, 3))
    assert thrice._learned.state.width == once._learned.state.width
    assert np.count_nonzero(thrice.coef_) <= 5


@pytest.mark.parametrize("C", [0.1, "auto"])
def test_merging_aligns_features(C):
    X, y = words(1200, 2000, 6)
    parts = [slice(0, 400), slice(400, 800), slice(800, 1200)]
    every, some = (
        [made(K, C=C).partial_fit(X[part], y[part]) for part in parts] for K in (None, 2000)
    )
    np.testing.assert_allclose(
        cbrank.merge(some).coef_, cbrank.merge(every).coef_, rtol=1e-12, atol=1e-15
    )
    merged = cbrank.merge([made(6, C=C).partial_fit(X[part], y[part]) for part in parts])
    assert np.count_nonzero(merged.coef_) == 6
    merged.partial_fit(X, y)
    assert np.count_nonzero(merged.coef_) == 6
    with pytest.raises(ValueError, match="max_features"):
        cbrank.merge([some[0], every[1]])


def test_a_put_away_model_selects_too():
    X, y = words(6000, 10**7, 7)
    ranker = made(10, C="auto", horizon="later").partial_fit(X, y)
    assert ranker.get_support(indices=True).size == 10
    assert ranker.score(X, y) > 0.6


def test_it_is_a_selector_in_a_pipeline():
    X, y = words(1000, 2000, 8)
    chosen = SelectFromModel(made(20), threshold=1e-300)
    pipeline = make_pipeline(chosen, LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(pipeline[0].get_support(), pipeline[0].estimator_.get_support())
    assert pipeline[1].n_features_in_ == 20


def test_cross_validation_keeps_to_as_many_features():
    X, y = words(400, 500, 9)
    ranker = CBRankerCV(Cs=[0.01, 1.0], covariance="diagonal", max_features=4, random_state=0)
    assert ranker.fit(X, y).get_support().sum() == 4
    assert ranker.to_cbranker().max_features == 4


def test_what_makes_no_sense_is_refused():
    X, y = words(50, 30, 0)
    with pytest.raises(ValueError, match="`max_features` needs"):
        CBRanker(max_features=3).fit(X, y)
    ranker = made(3).partial_fit(X, y)
    with pytest.raises(ValueError, match="max_features was 3"):
        ranker.set_params(max_features=4).partial_fit(X, y)


def test_the_command_line_selects_too(tmp_path):
    data, model, again = (str(tmp_path / name) for name in ("rows.svm", "few.model", "more.model"))
    rows = "1 3:1 99000000:1\n0 4:1 98000000:1\n" * 40
    (tmp_path / "rows.svm").write_text(rows)
    wide = "--covariance", "diagonal", "--max-width", "99000000"
    call("train", data, "-o", model, *wide, "--max-features", "2", "--selection", "weight")
    call("update", model, data, "-o", again)
    for path in (model, again):
        ranker = cbrank.load(path)[-1]
        assert ranker.selection == "weight"
        assert ranker.get_support(indices=True).size == 2
    out, _ = call("score", model, data)
    assert len(out.split()) == 80
    narrow = "train", data, "-o", model, *wide[2:], "--max-features", "2"
    assert "--covariance diagonal" in error(*narrow, "--covariance", "full")
    told = call("train", "-", "--label", "y", "-o", model, "--max-features", "2", code=2)
    assert "--max-features: for svmlight text" in told[1]
