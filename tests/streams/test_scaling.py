"""The streaming scaler: the same bits for any chunks, right statistics, safe extremes."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler, normalize
from sklearn.utils.estimator_checks import parametrize_with_checks

from cbrank import CBRanker
from cbrank.streams import StreamScaler

KINDS = ["standard", "unit", "maxabs", "none"]
RNG = np.random.RandomState(0)
X = RNG.standard_normal((90, 7)) * (RNG.random_sample((90, 7)) < 0.6) * np.logspace(-4, 4, 7)
every_kind = pytest.mark.parametrize("kind", KINDS)
both_forms = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])


@parametrize_with_checks([StreamScaler(kind) for kind in KINDS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


def learned(rows, cuts, kind):
    scaler = StreamScaler(kind)
    ends = [*sorted(cuts), rows.shape[0]]
    starts = [0, *ends[:-1]]
    pieces = [scaler.learn_transform(rows[a:b]) for a, b in zip(starts, ends, strict=True) if b > a]
    return np.vstack([dense(piece) for piece in pieces]), scaler


@every_kind
@both_forms
@given(cuts=st.lists(st.integers(0, 90), max_size=6))
def test_any_chunks_give_the_same_bits(kind, form, cuts):
    rows = form(X)
    whole, scaler = learned(rows, [], kind)
    pieces, other = learned(rows, cuts, kind)
    assert whole.tobytes() == pieces.tobytes()
    for name, known in scaler.get_state()[0].items():
        assert known.tobytes() == other.get_state()[0][name].tobytes()


@both_forms
@pytest.mark.parametrize("last", [1, 2, 33, 90])
def test_a_row_is_scaled_by_the_statistics_that_include_it(form, last):
    expected = {
        "standard": StandardScaler(with_mean=form is np.asarray).fit_transform(form(X[:last])),
        "maxabs": MaxAbsScaler().fit_transform(X[:last]),
        "unit": normalize(X[:last]),
        "none": X[:last],
    }
    for kind in KINDS:
        found, scaler = learned(form(X[:last]), [], kind)
        np.testing.assert_allclose(found[-1], dense(expected[kind])[-1], rtol=1e-9, atol=1e-12)
        again = dense(scaler.transform(form(X[:last])))
        np.testing.assert_allclose(again, dense(expected[kind]), rtol=1e-9, atol=1e-12)
        assert scaler.n_rows_seen_ == last


@every_kind
@both_forms
def test_rows_are_never_changed(kind, form):
    rows = form(X)
    before = dense(rows).copy()
    scaler = StreamScaler(kind).fit(rows)
    scaler.transform(rows)
    scaler.learn_transform(rows)
    np.testing.assert_array_equal(dense(rows), before)


@every_kind
def test_sparse_rows_may_widen_and_equal_rows_that_were_wide_from_the_start(kind):
    narrow, wide = X.copy(), X
    narrow[:50, 4:] = 0
    wide = sparse.csr_array(narrow)
    whole, _ = learned(wide, [], kind)
    scaler = StreamScaler(kind)
    first = scaler.learn_transform(wide[:50, :4])
    second = scaler.learn_transform(wide[50:])
    assert first.shape == (50, 4)
    assert whole[:50, :4].tobytes() == first.toarray().tobytes()
    assert whole[50:].tobytes() == second.toarray().tobytes()
    assert scaler.n_features_in_ == 7
    unseen = sparse.csr_array(np.ones((1, 9)))
    assert scaler.transform(unseen).shape == (1, 9)
    if kind in ("standard", "maxabs"):
        assert scaler.transform(unseen).toarray()[0, 8] == 1
    assert scaler.transform(unseen[:, :2]).shape == (1, 2)


@both_forms
def test_columns_that_never_change_are_safe(form):
    rows = form(
        np.column_stack([np.full(20, 0.1), np.full(20, 1e9), np.zeros(20), np.arange(20.0)])
    )
    found, scaler = learned(rows, [7], "standard")
    assert np.isfinite(found).all()
    centred = form is np.asarray
    np.testing.assert_allclose(found[:, :3], 0 if centred else dense(rows)[:, :3], atol=1e-6)
    assert np.isfinite(dense(scaler.transform(rows))).all()


@every_kind
@both_forms
def test_huge_and_tiny_values_stay_finite(kind, form):
    rows = np.array(
        [[1e308, 1e-308, 5e-324], [-1.7e308, 1e200, 0], [1.7e308, -1e160, 1], [1, 1, 1]]
    )
    found, scaler = learned(form(rows), [2], kind)
    assert np.isfinite(found).all()
    assert np.isfinite(dense(scaler.transform(form(rows)))).all()


@every_kind
@both_forms
def test_stored_and_taken_back_goes_on_to_the_same_bits(kind, form):
    rows = form(X)
    whole, _ = learned(rows, [], kind)
    scaler = StreamScaler(kind)
    scaler.learn_transform(rows[:40])
    arrays, facts = scaler.get_state()
    copies = {name: np.array(known) for name, known in arrays.items()}
    again = StreamScaler.from_state(copies, json.loads(json.dumps(facts)))
    assert whole[40:].tobytes() == dense(again.learn_transform(rows[40:])).tobytes()


def test_duplicate_entries_count_once():
    twice = sparse.csr_array(([1.0, 2.0, 5.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    once = sparse.csr_array([[3.0, 0.0], [0.0, 5.0]])
    for kind in KINDS:
        found = StreamScaler(kind).learn_transform(twice).toarray()
        np.testing.assert_array_equal(found, StreamScaler(kind).learn_transform(once).toarray())


def test_it_works_in_a_pipeline(german):
    rows, y = german
    ranker = make_pipeline(StreamScaler(), CBRanker(random_state=0)).fit(rows * 1000 + 5, y)
    assert ranker.score(rows * 1000 + 5, y) > 0.75


@every_kind
def test_a_kind_cannot_change_and_an_error_changes_nothing(kind):
    scaler = StreamScaler(kind).fit(X)
    known = {name: array.copy() for name, array in scaler._known.items()}
    for learn, bad in (
        (scaler.learn_transform, X * np.nan),
        (scaler.fit, X[:, :3] * np.nan),
        (scaler.fit, np.ma.array(X[:, :3], mask=X[:, :3] > 0)),
        (scaler.partial_fit, X[:, :3]),
    ):
        with pytest.raises(ValueError, match=r"NaN|masked at row|3 features"):
            learn(bad)
        assert scaler.n_features_in_ == 7
        for name, array in known.items():
            np.testing.assert_array_equal(scaler._known[name], array)
    if kind in ("standard", "maxabs"):
        scaler.set_params(kind="unit")
        for use in (scaler.transform, scaler.learn_transform):
            with pytest.raises(ValueError, match="kind cannot become 'unit' in the middle"):
                use(X)


def test_gaps_and_unknown_kinds_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        StreamScaler().fit([[np.nan]])
    with pytest.raises(ValueError, match="kind"):
        StreamScaler("robust").fit([[1.0]])


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("standard", {"means": np.zeros(9)}),
        ("standard", {"means": np.array([np.nan])}),
        ("maxabs", {"largest": np.zeros(1, np.int64)}),
        ("unit", {"means": np.zeros(1)}),
    ],
)
def test_a_state_that_would_send_a_kernel_astray_is_refused(kind, changes):
    scaler = StreamScaler(kind).fit([[1.0]])
    arrays, facts = scaler.get_state()
    with pytest.raises(ValueError, match="makes no sense"):
        StreamScaler.from_state(arrays | changes, facts)
