"""A common start of rankers that learn apart."""

from itertools import pairwise

import numpy as np
import pytest
from learners import arrays
from made_tables import people
from real_data import real
from scipy import sparse

import cbrank
from cbrank import AdditiveRanker, CBRanker, dumps, loads, merge, prepare
from cbrank.features.forests import Forest

X, y = people(6000)
T, t = people(4000, seed=1)
START = prepare(AdditiveRanker(random_state=0), X[:2000], y[:2000])


def forests(ranker):
    groups = [group.source for group in ranker.learned().beside]
    return [source for source in groups if isinstance(source, Forest)]


def shards(*bounds, start=START):
    """Return what workers make of their rows that have the start as bytes."""
    data = dumps(start)
    return [loads(data).partial_fit(X[a:b], y[a:b]) for a, b in pairwise(bounds)]


def test_it_has_decided_and_learned_nothing():
    assert START.n_seen_.tolist() == [0, 0]
    assert START.n_pairs_ == START.n_updates_ == 0
    assert START.encoder_.width_ > 10
    assert len(forests(START)) == 1
    np.testing.assert_array_equal(START.classes_, np.unique(y))


def test_the_ranker_given_stays_as_it_is():
    ranker = AdditiveRanker(random_state=0).partial_fit(X[:300], y[:300])
    before = arrays(ranker)
    prepare(ranker, X[:2000], y[:2000])
    for name, array in arrays(ranker).items():
        np.testing.assert_array_equal(array, before[name])


def test_rankers_that_go_on_have_the_same_features_and_trees():
    both = shards(2000, 4000, 6000)
    [one], [other] = map(forests, both)
    assert [*one.arrays()] == [*other.arrays()]
    for name, array in one.arrays().items():
        if name != "words":
            np.testing.assert_array_equal(array, other.arrays()[name])


def test_what_is_merged_ranks_better_than_its_parts():
    parts = shards(2000, 3000, 4000, 5000, 6000)
    merged = merge(parts)
    assert merged.n_seen_.sum() == 4000
    assert merged.score(T, t) > max(part.score(T, t) for part in parts) + 0.005


def test_a_tree_of_merges_is_one_merge():
    parts = shards(2000, 3000, 4000, 6000)
    scores = merge(parts).decision_function(T)
    first = merge(parts[:2])
    np.testing.assert_allclose(merge([first, parts[2]]).decision_function(T), scores, rtol=1e-6)
    np.testing.assert_allclose(merge(parts, prior=START).decision_function(T), scores, rtol=1e-6)


def test_the_order_of_shards_does_not_matter_for_what_is_known():
    parts = shards(2000, 3000, 4000, 6000)
    one, other = merge(parts), merge(parts[::-1])
    assert one.progressive_auc_ == pytest.approx(other.progressive_auc_, abs=1e-12)
    np.testing.assert_array_equal(one.n_seen_, other.n_seen_)
    assert one.score(T, t) == pytest.approx(other.score(T, t), abs=0.003)


def test_shards_may_have_no_row_or_one_or_one_class():
    parts, alone = shards(2000, 4000, 6000), y[:2000] == y.max()
    scores = merge(parts).decision_function(T)
    with_none = merge([*parts, START]).decision_function(T)
    np.testing.assert_allclose(with_none - with_none.mean(), scores - scores.mean(), atol=1e-9)
    few = [*shards(0, 1), loads(dumps(START)).partial_fit(X[:2000][alone], y[:2000][alone])]
    merged = merge(parts + few)
    assert merged.n_seen_.sum() == 4001 + alone.sum()
    assert merged.score(T, t) > merge(parts).score(T, t) - 0.02


def test_a_merged_ranker_grows_trees_again():
    merged = merge(shards(2000, 4000, 6000))
    assert not any(forest.shared for forest in forests(merged))
    assert len(forests(merged)) == 1
    assert len(forests(merged.partial_fit(X[:1500], y[:1500]))) == 2  # at the 4,096th row


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("parameters", [{}, {"C": 0.1}, {"covariance": "diagonal"}])
def test_lines_have_a_start_too(parameters, as_rows):
    rows, labels = real("segment", 1200, "standard")
    rows, ranker = as_rows(rows), CBRanker(random_state=0, **parameters)
    start = prepare(ranker, rows[:400], labels[:400])
    assert start.n_seen_.tolist() == [0, 0]
    parts = [
        loads(dumps(start)).partial_fit(rows[some], labels[some])
        for some in (slice(400, 800), slice(800, 1200))
    ]
    merged = merge(parts)
    assert merged.n_seen_.sum() == 800
    assert merged.score(rows[:400], labels[:400]) > 0.9


def test_what_cannot_be_a_sample_is_refused():
    with pytest.raises(ValueError, match="class"):
        prepare(CBRanker(), [[0.0], [1.0]], [1, 1])
    with pytest.raises(ValueError, match="trees"):
        prepare(AdditiveRanker(trees=-1), X[:300], y[:300])


def test_rankers_that_decided_apart_are_told_how_to_begin():
    apart = [AdditiveRanker().partial_fit(X[a : a + 2000], y[a : a + 2000]) for a in (0, 2000)]
    with pytest.raises(ValueError, match=r"cbrank\.prepare"):
        merge(apart)


def test_bytes_are_those_of_the_file(tmp_path):
    ranker = CBRanker().partial_fit([[0.0, 1.0], [1.0, 1.0]], ["no", "yes"])
    path = tmp_path / "model"
    cbrank.save(ranker, path)
    assert dumps(ranker) == path.read_bytes()
    with path.open("rb") as file:
        assert dumps(cbrank.load(file)) == dumps(ranker)
    with path.open("wb") as file:
        cbrank.save(ranker, file)
    assert path.read_bytes() == dumps(ranker)
    for data, told in (
        (b"", "is empty"),
        (b"junk", "not a cbrank"),
        (dumps(ranker)[:-1], "damaged"),
    ):
        with pytest.raises(cbrank.ModelFileError, match=f"The data.*{told}"):
            loads(data)
