"""Rankers that learned apart, merged: Gaussians with the prior counted once, one buffer, one count."""

import copy
import time
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hostile import HOSTILE, assert_sound, hostile_forms, table
from hypothesis import given, settings
from hypothesis import strategies as st
from learners import CBR, make
from real_data import real
from scipy import sparse, stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cbrank
from cbrank import CBRanker, CBRankerCV, OAMRanker, kernels, merge
from cbrank.learning.front import in_scales
from cbrank.merging import tempered
from cbrank.merging.buffers import _chances

FIXED = [name for name in CBR if "auto" not in name]
# How near trees come to lists, where not to rounding: without class means, the units in which learners
# are mixed go by buffered rows, which each merge makes fewer.
NEAR = {"cbr-auto-diagonal": 0.03}


def parts(cuts, y):
    bounds = [0, *cuts, len(y)]
    return [slice(a, b) for a, b in pairwise(bounds) if a < b]


def learned(name, X, y, cuts, **parameters):
    """Return a ranker for each part of the rows."""
    return [
        make(name, random_state=part, **parameters).partial_fit(X[rows], y[rows], classes=[0, 1])
        for part, rows in enumerate(parts(cuts, y))
    ]


def gone_on(prior, X, y, cuts):
    return [copy.deepcopy(prior).partial_fit(X[rows], y[rows]) for rows in parts(cuts, y)]


def precision(ranker):
    covariance = ranker.covariance_
    return np.linalg.inv(covariance if covariance.ndim == 2 else np.diag(covariance))


def mean(ranker):
    return copy.deepcopy(ranker).set_params(average=False).coef_[0]


def assert_same(one, other, rtol=1e-8):
    for ours, theirs in ((one.coef_, other.coef_), (mean(one), mean(other))):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=rtol * np.abs(ours).max())
    deviations = np.sqrt(one.covariance_ if one.covariance_.ndim == 1 else np.diag(one.covariance_))
    outer = deviations**2 if one.covariance_.ndim == 1 else np.outer(deviations, deviations)
    np.testing.assert_allclose(one.covariance_ / outer, other.covariance_ / outer, atol=rtol)
    assert one.n_seen_.tolist() == other.n_seen_.tolist()
    assert (one.n_pairs_, one.n_updates_) == (other.n_pairs_, other.n_updates_)
    assert_same_record(one, other)


def assert_same_record(one, other):
    for name in ("progressive_auc_", "progressive_auc_weight_", "recent_auc_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)
    assert one.progressive_auc_interval_ == pytest.approx(
        other.progressive_auc_interval_, nan_ok=True
    )
    ours, theirs = one.progressive_auc_history_, other.progressive_auc_history_
    for name in ours.dtype.names:
        np.testing.assert_array_equal(ours[name], theirs[name])


def buffered(ranker):
    """Return the buffered rows of each class in the order in which they are met."""
    labels, rows = ranker.buffered_rows()
    rows = rows.toarray() if sparse.issparse(rows) else rows
    held = []
    for label, filled in enumerate(kernels.buffers.filled(ranker._learned.state.buffer)):
        slots = np.flatnonzero(filled) - ranker._learned.state.buffer.oldest[label]
        held.append(rows[labels == label][np.argsort(slots % filled.size)])
    return held


# Models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["none", "standard"])
@pytest.mark.parametrize("name", FIXED)
def test_gaussians_multiply_with_the_prior_counted_once(name, scaling):
    X, y = real("german", scaling=scaling)
    shards = learned(name, X, y, [100, 400, 420])
    merged, identity = merge(shards), np.eye(X.shape[1])
    total = identity + sum(precision(shard) - identity for shard in shards)
    np.testing.assert_allclose(precision(merged), total, rtol=1e-6, atol=1e-6)
    for of in (mean, lambda ranker: ranker.coef_[0]):
        shift = sum(precision(shard) @ of(shard) for shard in shards)
        np.testing.assert_allclose(of(merged), np.linalg.solve(total, shift), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", CBR)
def test_a_tree_gives_what_a_list_gives(name):
    X, y = real("german")
    a, b, c, d = learned(name, X, y, [250, 320, 700])  # rows of fewer than 64 would wait
    flat = merge([a, b, c, d])
    assert_same(flat, merge([merge([a, b]), merge([c, d])]), NEAR.get(name, 1e-8))
    assert_same(flat, merge([a, merge([b, merge([c, d])])]), NEAR.get(name, 1e-8))
    assert flat.C_ == merge([merge([a, b]), merge([c, d])]).C_


@pytest.mark.parametrize("name", CBR)
def test_a_tree_gives_the_probabilities_of_a_list_where_there_are_class_means(name):
    X, y = real("german")
    a, b, c = learned(name, X, y, [300, 650])
    flat = merge([a, b, c])
    # With a diagonal covariance the unit of scores is told by buffered rows, in each merge anew.
    near = 1e-8 if flat.covariance_.ndim == 2 else 0.1
    for tree in (merge([merge([a, b]), c]), merge([a, merge([b, c])])):
        np.testing.assert_allclose(tree.predict_proba(X), flat.predict_proba(X), atol=near)


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 120), min_size=1, max_size=6).map(sorted), data=st.data())
def test_any_shards_in_any_grouping(cuts, data):
    X, y = real("svmguide3", 120)
    name = data.draw(st.sampled_from(FIXED))
    shards = learned(name, X, y, cuts)
    whole, size = merge(shards), data.draw(st.integers(1, len(shards)))
    assert_same(whole, merge([merge(shards[:size]), *shards[size:]]))
    assert whole.n_seen_.tolist() == np.bincount(y).tolist()
    covariance = whole.covariance_
    if covariance.ndim == 2:
        np.testing.assert_array_equal(covariance, covariance.T)
        assert (np.linalg.eigvalsh(covariance) > 0).all()
    else:
        assert (covariance > 0).all()
    assert (covariance <= 1 + 1e-12).all()


@pytest.mark.parametrize("name", CBR)
def test_one_ranker_merged_is_itself(name):
    X, y = real("german")
    [ranker] = learned(name, X, y, [])
    assert_same(merge([ranker]), ranker)


@pytest.mark.parametrize("name", CBR)
def test_a_ranker_that_went_on_from_the_prior_is_itself(name):
    X, y = real("german")
    prior = make(name).partial_fit(X[:400], y[:400])
    [later] = gone_on(prior, X[400:], y[400:], [])
    assert_same(merge([later], prior=prior), later)
    assert merge([later], prior=prior).C_ == later.C_


@pytest.mark.parametrize("name", CBR)
def test_rankers_that_learned_nothing_more_merge_to_their_prior(name):
    X, y = real("german")
    kept = {"forgetting": 0.0} if "auto" in name else {}  # a learner that forgets begins anew
    prior = make(name, **kept).partial_fit(X, y)
    same = [copy.deepcopy(prior) for _ in range(3)]
    merged = merge(same, prior=prior)
    assert_same(merged, prior)
    for ours, theirs in zip(buffered(merged), buffered(prior), strict=True):
        assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs))


@pytest.mark.parametrize("name", CBR)
def test_a_round_in_a_tree(name):
    X, y = real("german")
    prior = merge(learned(name, X, y, [300, 600]))
    a, b, c = gone_on(prior, X, y, [300, 600])
    near = NEAR.get(name, 1e-6)
    assert_same(merge([a, b, c], prior), merge([merge([a, b], prior), c], prior), near)
    assert merge([a, b, c], prior).n_seen_.tolist() == (2 * np.bincount(y)).tolist()


def further_round(prior, X, y, cuts):
    shards = gone_on(prior, X, y, cuts)
    return tempered(merge(shards, prior), prior, len(shards))


def test_a_tempered_round_of_one_shard_is_a_pass():
    X, y = real("german")
    prior = make("cbr").partial_fit(X[:400], y[:400])
    [later] = gone_on(prior, X[400:], y[400:], [])
    assert_same(further_round(prior, X[400:], y[400:], []), later)


def test_a_tempered_round_averages_what_all_shards_mend():
    X, y = real("german", scaling="standard")
    prior = make("cbr-diagonal").partial_fit(X[:400], y[:400])
    [later] = gone_on(prior, X[400:], y[400:], [])
    same = [later] * 16
    exact = merge(same, prior)
    round_ = tempered(exact, prior, len(same))
    far, near = (np.linalg.norm(mean(ranker) - mean(prior)) for ranker in (exact, round_))
    assert np.linalg.norm(mean(later) - mean(prior)) < near < far
    np.testing.assert_array_equal(exact.covariance_, round_.covariance_)


def test_rounds_on_text_come_nearer_to_one_pass_over_all():
    X, y = real("farm-ads", scaling="unit")
    X, y, rows, test = X[:3000], y[:3000], slice(0, 2400), slice(2400, None)
    cuts = list(range(300, 2400, 300))
    aucs = [merge(learned("cbr-diagonal", X[rows], y[rows], cuts))]
    for _ in range(2):
        aucs.append(further_round(aucs[-1], X[rows], y[rows], cuts))
    first, second, third = (ranker.score(X[test], y[test]) for ranker in aucs)
    assert first < second < third


@pytest.mark.parametrize("name", ["cbr-diagonal", "cbr-precision", "cbr-drop", "cbr-auto-diagonal"])
def test_sparse_rankers_merge_as_dense_ones(name):
    X, y = real("german")
    X[X < 2] = 0
    dense = merge(learned(name, X, y, [200, 500]))
    thin = merge(learned(name, sparse.csr_array(X), y, [200, 500]))
    assert_same(dense, thin)
    for ours, theirs in zip(buffered(dense), buffered(thin), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", CBR)
def test_swapped_labels_mirror_the_merged_model(name):
    X, y = real("german")
    merged = merge(learned(name, X, y, [200, 500]))
    mirrored = merge(learned(name, X, 1 - y, [200, 500]))
    # Not to the bit: scales are means over the buffered rows of both classes, added up in another order.
    np.testing.assert_allclose(merged.coef_, -mirrored.coef_, rtol=1e-12, atol=1e-14)


def test_columns_far_apart_and_alike_keep_the_covariance_sound():
    X, y = real("german")
    X = np.column_stack([X * 10.0 ** np.linspace(-4, 4, X.shape[1]), X[:, 0], X[:, 0] + X[:, 1]])
    shards = learned("cbr", X, y, range(50, 1000, 50), C=1024.0)
    merged = merge([merge(shards[:7]), merge(shards[7:])])
    np.testing.assert_array_equal(merged.covariance_, merged.covariance_.T)
    np.linalg.cholesky(merged.covariance_)
    assert np.isfinite(merged.coef_).all()


@hostile_forms
@pytest.mark.parametrize("kind", HOSTILE)
def test_rankers_of_hostile_columns_merge_to_sound_ones(kind, covariance, as_rows):
    for C in (2.0**-6, 1e3):
        shards = []
        for seed in range(4):
            X, y = table(kind, seed)
            ranker = CBRanker(C, covariance=covariance, random_state=0)
            shards.append(ranker.partial_fit(as_rows(X), y))
        merged = merge(shards)
        for other in (merge([merge(shards[:2]), merge(shards[2:])]), merge(shards[::-1])):
            assert_sound(other)
            deviations = np.sqrt(np.diag(merged.covariance_) if covariance == "full" else 1.0)
            np.testing.assert_allclose(
                other.coef_ / deviations, merged.coef_ / deviations, rtol=1e-3, atol=1e-3
            )
        assert_sound(merged)
        X, y = table(kind, 9)
        later = [copy.deepcopy(merged).partial_fit(as_rows(X[p::3]), y[p::3]) for p in range(3)]
        again = merge(later, prior=merged)
        assert_sound(again)
        assert_sound(tempered(again, merged, 3))
        assert_sound(again.partial_fit(as_rows(X), y))


def test_a_shard_that_met_another_scale_does_not_drown_in_it():
    X, y = real("german")
    usual, strange = (make("cbr").partial_fit(rows, y) for rows in (X, X * 1e-60))
    merged = merge([usual, strange])
    np.testing.assert_allclose(merged.coef_, usual.coef_, rtol=1e-6)


def spoilt(change):
    """Return rankers of which the second has a covariance that no ranker learns."""
    X, y = table("constant")
    rankers = [CBRanker(1.0).partial_fit(X, y) for _ in range(3)]
    change(rankers[1]._learned.state.models[0].Sigma)
    return rankers


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda Sigma: Sigma.fill(0.0), "variance of feature 0 is 0.0"),
        (lambda Sigma: Sigma.fill(np.nan), "variance of feature 0 is nan"),
        (lambda Sigma: Sigma.__setitem__((3, 3), -1.0), "variance of feature 3 is -1.0"),
        (lambda Sigma: Sigma.__setitem__((3, 3), np.inf), "variance of feature 3 is inf"),
        (lambda Sigma: Sigma.__setitem__((3, 4), np.nan), "has numbers that are not finite"),
    ],
)
def test_a_covariance_that_is_none_is_refused_by_name(change, words):
    rankers = spoilt(change)
    with pytest.raises(ValueError, match=rf"rankers\[1\] has a covariance that is none, .*{words}"):
        merge(rankers)
    with pytest.raises(ValueError, match="prior has a covariance that is none"):
        merge([rankers[0]], prior=rankers[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda Sigma: Sigma.fill(1.0),
        lambda Sigma: Sigma.__setitem__((slice(0, 4), slice(0, 4)), 1e-300),
        lambda Sigma: Sigma.__setitem__((3, 4), 1e200),
        lambda Sigma: Sigma.__isub__(1e9 * (1 - np.eye(len(Sigma)))),
        lambda Sigma: Sigma.__imul__(1e300),
    ],
)
def test_a_covariance_that_is_singular_or_forged_is_merged_in_no_time(change):
    rankers = spoilt(change)
    began = time.monotonic()
    merged = merge(rankers)
    assert time.monotonic() - began < 1.0
    assert np.isfinite(merged.coef_).all()
    np.testing.assert_array_equal(merged.covariance_, merged.covariance_.T)
    assert (np.diag(merged.covariance_) > 0).all()


@pytest.mark.parametrize("name", ["spambase", "magic04", "cod-rna"])
def test_eight_shards_lose_little(name):
    X, y = real(name, 30_000)
    rows, test = slice(0, len(y) * 4 // 5), slice(len(y) * 4 // 5, None)
    cuts = np.linspace(0, rows.stop, 9).astype(int)[1:-1]
    whole = make("cbr").partial_fit(X[rows], y[rows])
    merged = merge(learned("cbr", X[rows], y[rows], cuts))
    assert merged.score(X[test], y[test]) > whole.score(X[test], y[test]) - 0.004


# Buffers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("cuts", [[500], [230, 260, 990], [205, 206, 207]])
def test_a_queue_holds_the_latest_rows_as_after_one_pass(cuts, rounds, as_rows):
    X, y = real("german")
    whole = make("cbr-diagonal").partial_fit(as_rows(X), y)
    prior = None
    if rounds == 2:
        prior = make("cbr-diagonal").partial_fit(as_rows(X[:200]), y[:200])
        later = [cut - 200 for cut in cuts]
        shards = gone_on(prior, as_rows(X[200:]), y[200:], later)
    else:
        shards = learned("cbr-diagonal", as_rows(X), y, cuts)
    for ours, theirs in zip(buffered(merge(shards, prior)), buffered(whole), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("cuts", [[500], [230, 260, 990], [205, 206, 207]])
def test_a_window_holds_the_rows_as_after_one_pass(cuts, rounds, as_rows):
    X, y = real("german")
    order = np.argsort(X[:, 0] + np.sin(np.arange(len(y))), kind="stable")  # classes come in runs
    X, y = as_rows(X[order]), y[order]

    def windowed(begin, end, ranker=None):
        if ranker is None:
            ranker = make("cbr-diagonal", buffer_size=60)
            ranker.start(X.shape[1], np.array([0, 1]), sparse=sparse.issparse(X))
            state = ranker._learned.state
            buffer = kernels.buffers.with_room(state.buffer, 9, 60, reservoir=False)
            ranker._learned.state = state._replace(buffer=buffer)
        return copy.deepcopy(ranker).partial_fit(X[begin:end], y[begin:end])

    prior = windowed(0, 200) if rounds == 2 else None
    edges = [0 if prior is None else 200, *cuts, len(y)]
    shards = [windowed(begin, end, prior) for begin, end in pairwise(edges)]
    merged, whole = merge(shards, prior), windowed(0, len(y))
    assert merged._learned.state.buffer.size.max() > 9
    for ours, theirs in zip(buffered(merged), buffered(whole), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for label, slots in enumerate(kernels.buffers.filled(merged._learned.state.buffer)):
        held = kernels.buffers.filled(whole._learned.state.buffer)[label]
        came = np.sort(whole._learned.state.buffer.came[label, held])
        np.testing.assert_array_equal(
            np.sort(merged._learned.state.buffer.came[label, slots]), came
        )


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_reservoir_is_a_uniform_sample_of_all_rows(rounds):
    n, slots, draws = 60, 10, 200
    X, y = np.arange(2.0 * n).reshape(-1, 1) / n, np.tile([0, 1], n)
    met = Counter()
    for seed in range(draws):
        fresh = CBRanker(1e-3, policy="reservoir", buffer_size=slots, random_state=seed)
        prior = None
        if rounds == 2:
            prior = copy.deepcopy(fresh).partial_fit(X[:50], y[:50])
            shards = gone_on(prior, X[50:], y[50:], [12])
            for shard in shards:
                shard._learned.state.buffer.random[0] += np.uint64(seed)
        else:
            shards = [
                copy.deepcopy(fresh)
                .set_params(random_state=3 * seed + part)
                .partial_fit(X[r], y[r])
                for part, r in enumerate(parts([20, 26], y))
            ]
        rows = np.concatenate(buffered(merge(shards, prior))).ravel()
        assert len(rows) == len(set(rows)) == 2 * slots
        met.update((rows * n).round().astype(int).tolist())
    counts = np.array([met[row] for row in range(2 * n)])
    # Sampled without replacement, so the statistic is a little smaller than chi-square's.
    assert stats.chisquare(counts).pvalue > 0.001


def test_a_merged_reservoir_depends_on_the_rankers_alone():
    X, y = real("german")
    shards = learned("cbr-reservoir", X, y, [300])
    for ours, theirs in zip(buffered(merge(shards)), buffered(merge(shards)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_reservoirs_of_very_many_rows_merge_as_fast_as_those_of_few():
    X, y = real("german")
    shards = learned("cbr-reservoir", X, y, [200, 400])
    for shard in shards:
        shard._learned.state.buffer.seen[:] *= 10**7
    began = time.monotonic()
    merged = merge(shards)
    assert time.monotonic() - began < 1.0
    assert merged.n_seen_.sum() == len(y) * 10**7
    assert merged._learned.state.buffer.size.tolist() == [merged.buffer_size] * 2


@pytest.mark.parametrize(
    ("crowd", "rows", "drawn"), [(9, 4, 3), (9, 9, 4), (9, 0, 4), (99, 95, 50)]
)
def test_chances_are_hypergeometric(crowd, rows, drawn):
    chances = _chances(crowd, rows, drawn)
    expected = stats.hypergeom(crowd, rows, drawn).pmf(np.arange(len(chances)))
    np.testing.assert_allclose(chances, expected, rtol=1e-12, atol=1e-15)


# What can be merged, and what becomes of it -----------------------------------------------------


@pytest.mark.parametrize("name", CBR)
def test_a_merged_ranker_goes_on_and_can_be_saved(name, tmp_path):
    X, y = real("german")
    merged = merge(learned(name, X[:800], y[:800], [300]))
    cbrank.save(merged, tmp_path / "model")
    opened = cbrank.load(tmp_path / "model").partial_fit(X[800:], y[800:])
    np.testing.assert_array_equal(merged.partial_fit(X[800:], y[800:]).coef_, opened.coef_)
    assert np.isfinite(merged.intercept_).all()
    assert 0.5 < merged.progressive_auc_ < 1


@pytest.mark.parametrize("name", CBR)
def test_merging_neither_changes_nor_keeps_the_rankers(name):
    X, y = real("german")
    shards = learned(name, X, y, [300])
    before = [copy.deepcopy(shard) for shard in shards]
    merge(shards).partial_fit(X, y)
    for shard, old in zip(shards, before, strict=True):
        np.testing.assert_array_equal(shard.coef_, old.coef_)
        np.testing.assert_array_equal(shard.covariance_, old.covariance_)
        np.testing.assert_array_equal(
            np.concatenate(buffered(shard)), np.concatenate(buffered(old))
        )


def test_a_shard_of_one_class_counts_and_fills_its_buffer():
    X, y = real("german")
    both = make("cbr").partial_fit(X, y)
    one = make("cbr").partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    merged = merge([both, one])
    np.testing.assert_allclose(merged.coef_, both.coef_, rtol=1e-9)
    assert merged.n_seen_.tolist() == [700, 600]


def test_rankers_with_a_cross_validated_c_merge_as_plain_ones():
    X, y = real("german")
    shards = [CBRankerCV(Cs=[0.5], cv=2, random_state=0).fit(X[p::2], y[p::2]) for p in range(2)]
    plain = [CBRanker(0.5, random_state=0).fit(X[p::2], y[p::2]) for p in range(2)]
    assert type(merge(shards)) is CBRanker
    np.testing.assert_array_equal(merge(shards).coef_, merge(plain).coef_)


@pytest.mark.parametrize("name", ["cbr-auto", "cbr-auto-diagonal"])
def test_learners_are_merged_one_by_one(name):
    rng = np.random.RandomState(0)
    X, y = rng.uniform(-1.6, 1.6, (1000, 8)), rng.randint(0, 2, 1000)
    X[:, :2] += 0.3 * y[:, None]  # the spread is near 1, so that units of all columns are 1
    shards = learned(name, X, y, [250, 500, 750])
    merged = merge(shards)
    count = 3 if "diagonal" in name else 2  # and in a stream one that forgets
    models = [len(shard.learned().models) for shard in (*shards, merged)]
    assert models == [count + 1] * 4 + [count]
    for place in range(count):
        alone = merge([alone_with(shard, place) for shard in shards])
        assert_same(alone_with(merged, place), alone)
    held = [shard.learned().record for shard in shards]
    rows = [record.learned[0] for record in held]
    evidence = np.average([record.evidence[:count] for record in held], axis=0, weights=rows)
    np.testing.assert_allclose(merged.learned().record.evidence, evidence, rtol=1e-12)


def alone_with(ranker, place):
    """Return one of the learners of a ranker with C "auto" as a ranker of its own."""
    state = ranker.learned()
    C = ranker._method(state).learners[place].C
    buffered = {"buffer_size": 200, "policy": ranker.policy, "covariance": ranker.covariance}
    own = CBRanker(C, random_state=0, **buffered).start(ranker.n_features_in_, np.arange(2))
    record = own.learned().record._replace(
        position=state.record.position * [1, 0],
        **{name: getattr(state.record, name) for name in ("sums", "history", "learned")},
    )
    assert state.front is None or (state.front.inverse == 1.0).all()
    changed = {"models": state.models[place : place + 1], "buffer": state.buffer, "record": record}
    return own.like(own.learned()._replace(**changed))


def test_the_learner_that_forgets_begins_anew():
    X, y = (np.concatenate([part] * 3) for part in real("german"))
    shards = learned("cbr-auto", X, y, [1500])
    assert [len(shard.learned().models) for shard in shards] == [3, 3]
    merged = merge(shards)
    assert len(merged.learned().models) == 2
    models = merged.partial_fit(X, y).learned().models
    assert len(models) == 3
    assert merged._method(merged.learned()).learners[2].forgetting > 0.0


def test_a_merged_ranker_of_shuffled_rows_has_no_learner_that_forgets():
    X, y = real("german")
    shards = [make("cbr-auto").learn_shuffled(X[part::2], y[part::2]) for part in range(2)]
    merged = merge(shards).learn_shuffled(X, y)
    assert len(merged.learned().models) == 2


# Columns in units of their own --------------------------------------------------------------------


def test_shards_whose_columns_have_other_units_merge_in_those_of_the_first():
    X, y = real("german")
    shards = learned("cbr-auto", X, y, [200, 500])
    merged = merge(shards)
    inverse = [shard.learned().front.inverse for shard in (*shards, merged)]
    assert not all((own == inverse[0]).all() for own in inverse[1:-1])
    np.testing.assert_array_equal(inverse[-1], inverse[0])
    assert_same(merged, in_units(merge([shards[0], *map(in_units, shards[1:])])))
    assert merged.score(X, y) > min(shard.score(X, y) for shard in shards)


def in_units(ranker):
    """Return a ranker that says the same, its columns being in other units."""
    other, rng = copy.deepcopy(ranker), np.random.RandomState(0)
    state = other.learned()
    units = state.front.inverse * 2.0 ** rng.randint(-3, 4, state.width)
    other._learned.state = in_scales(state, units)
    return other


@pytest.mark.parametrize("shards", [[30, 30], [30, 200], [200, 30], [30, 20, 30, 40], [10, 10]])
def test_rows_that_wait_are_learned_by_the_merged_ranker(shards):
    X, y = real("german")
    ends = np.cumsum([0, *shards])
    apart = [
        make("cbr-auto").partial_fit(X[a:b], y[a:b], classes=[0, 1]) for a, b in pairwise(ends)
    ]
    merged = merge(apart)
    assert merged.n_seen_.tolist() == np.bincount(y[: ends[-1]]).tolist()
    assert merged.waits == (ends[-1] < 64)
    if max(shards) < 64:  # as if one ranker had met them in this order
        whole = make("cbr-auto").partial_fit(X[: ends[-1]], y[: ends[-1]])
        np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X))
    elif len(shards) == 2:  # the long one first
        long, short = sorted(range(2), key=lambda part: -shards[part])
        a, b = ends[short], ends[short + 1]
        whole = copy.deepcopy(apart[long]).partial_fit(X[a:b], y[a:b])
        np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize("cuts", [[300], [100, 130], [60], []])
def test_rows_that_wait_in_the_prior_are_counted_once(cuts):
    X, y = real("german")
    prior = make("cbr-auto").partial_fit(X[:40], y[:40])
    merged = merge(gone_on(prior, X[40:500], y[40:500], cuts), prior=prior)
    assert merged.n_seen_.tolist() == np.bincount(y[:500]).tolist()
    rows = merged.progressive_auc_history_["rows"]
    assert (np.diff(rows) > 0).all()
    assert rows[-1] <= 500
    assert merged.score(X[500:], y[500:]) > 0.7


# The record -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CBR)
def test_the_auc_is_that_of_all_blocks_and_of_the_latest(name):
    X, y = real("german")
    shards = learned(name, X, y, [250, 500])
    merged = merge(shards)
    weights = [shard.progressive_auc_weight_ for shard in shards]
    mean = np.average([shard.progressive_auc_ for shard in shards], weights=weights)
    assert merged.progressive_auc_ == pytest.approx(mean, rel=1e-12)
    assert merged.progressive_auc_weight_ == pytest.approx(sum(weights), rel=1e-12)
    first, last = (shard.recent_auc_ for shard in shards[::2])
    assert abs(merged.recent_auc_ - last) < abs(merged.recent_auc_ - first) or first == last
    history = np.concatenate([shard.progressive_auc_history_ for shard in shards])
    np.testing.assert_array_equal(merged.progressive_auc_history_["auc"], history["auc"])
    assert (np.diff(merged.progressive_auc_history_["rows"]) > 0).all()


def test_the_auc_of_a_further_round_counts_the_prior_once():
    X, y = real("german")
    prior = make("cbr").partial_fit(X[:400], y[:400])
    shards = gone_on(prior, X[400:], y[400:], [300])
    merged = merge(shards, prior)
    known = prior.progressive_auc_ * prior.progressive_auc_weight_
    new = [s.progressive_auc_ * s.progressive_auc_weight_ - known for s in shards]
    weight = sum(s.progressive_auc_weight_ for s in shards) - prior.progressive_auc_weight_
    assert merged.progressive_auc_ == pytest.approx((known + sum(new)) / weight, rel=1e-12)
    rows = merged.progressive_auc_history_["rows"]
    assert (np.diff(rows) > 0).all()
    assert (rows[: len(prior.progressive_auc_history_)] <= 400).all()


def calibration_error(probabilities, y):
    bins = np.searchsorted(np.quantile(probabilities, np.arange(0.1, 1.0, 0.1)), probabilities)
    here = [bins == one for one in range(10)]
    return sum(abs((probabilities[i] - y[i]).sum()) for i in here) / len(y)


@pytest.mark.parametrize("name", ["cbr", "cbr-diagonal", "cbr-auto", "cbr-auto-diagonal"])
def test_probabilities_of_eight_shards_are_as_calibrated_as_those_of_one_pass(name):
    X, y = real("magic04", scaling="standard")
    errors = []
    for seed in range(3):
        mixed = np.random.RandomState(seed).permutation(len(y))
        rows, test = mixed[: len(y) * 4 // 5], mixed[len(y) * 4 // 5 :]
        cuts = np.linspace(0, len(rows), 9).astype(int)[1:-1]
        whole = make(name).partial_fit(X[rows], y[rows])
        merged = merge(learned(name, X[rows], y[rows], cuts))
        said = [ranker.predict_proba(X[test])[:, 1] for ranker in (merged, whole)]
        errors.append([calibration_error(probabilities, y[test]) for probabilities in said])
    of_merged, of_whole = np.mean(errors, axis=0)
    assert of_merged < of_whole + 0.015


def test_of_very_many_names_the_first_that_differs_is_told():
    names = [f"word{place}" for place in range(2000)]
    rows = pd.DataFrame(np.eye(2, 2000), columns=names)
    one = CBRanker(1.0, covariance="diagonal").partial_fit(rows, [0, 1])
    other = CBRanker(1.0, covariance="diagonal").partial_fit(
        rows.rename(columns={"word7": "it"}), [0, 1]
    )
    bare = CBRanker(1.0, covariance="diagonal").partial_fit(rows.to_numpy(), [0, 1])
    with pytest.raises(
        ValueError, match=r"feature_names_in_\[7\] 'it' and rankers\[0\] has 'word7':"
    ):
        merge([one, other])
    with pytest.raises(ValueError, match=r"has feature_names_in_ None and .{1,200}$"):
        merge([one, bare])


def refused(change):
    X, y = real("german", 200)
    one = make("cbr").partial_fit(X, y)
    return [one, change(X, y)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: make("cbr", eta=0.8).partial_fit(X, y), r"rankers\[1\] has eta 0.8"),
        (lambda X, y: make("cbr", C=2.0).partial_fit(X, y), "has C 2.0 and rankers.0. has 0.0625"),
        (lambda X, y: make("cbr-auto").partial_fit(X, y), "has C 'auto'"),
        (lambda X, y: make("cbr-diagonal").partial_fit(X, y), "has covariance 'diagonal'"),
        (lambda X, y: make("cbr").partial_fit(X[:, 1:], y), "has n_features_in_ 23"),
        (lambda X, y: make("cbr").partial_fit(X, y + 1), r"has classes_ \[1, 2\]"),
        (lambda X, y: make("cbr"), "learned nothing yet"),
        (lambda X, y: OAMRanker().fit(X, y), "OAMRanker.*only a CBRanker"),
        (lambda X, y: make_pipeline(StandardScaler(), make("cbr")).fit(X, y), "only a CBRanker"),
    ],
)
def test_rankers_that_differ_are_refused_by_name(change, words):
    with pytest.raises(ValueError, match=words):
        merge(refused(change))


def test_other_refusals():
    X, y = real("german", 200)
    one = make("cbr-diagonal").partial_fit(X, y)
    with pytest.raises(ValueError, match="no rankers"):
        merge([])
    with pytest.raises(ValueError, match=r"rankers\[0\] has learned nothing yet"):
        merge([CBRankerCV()])
    with pytest.raises(ValueError, match="rows kept 'sparse'"):
        merge([one, make("cbr-diagonal").partial_fit(sparse.csr_array(X), y)])
    with pytest.raises(ValueError, match=r"rankers\[0\] has seen fewer rows than the prior"):
        merge([make("cbr-diagonal").partial_fit(X[:99], y[:99])], prior=one)
    with pytest.raises(ValueError, match="prior has eta"):
        merge([one], prior=make("cbr-diagonal", eta=0.9).partial_fit(X, y))


def test_rankers_that_forget_merge_in_one_round_only():
    X, y = real("german")
    shards = learned("cbr", X, y, [500], forgetting=0.01)
    merged = merge(shards)
    np.linalg.cholesky(merged.covariance_)
    with pytest.raises(ValueError, match=r"forgetting is 0\.01.*cannot be counted once"):
        merge(gone_on(merged, X, y, [500]), prior=merged)
