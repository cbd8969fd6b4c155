"""C chosen within the pass: learners that share rows and buffers, half of them dropped at a time."""

import copy
import itertools

import numpy as np
import oracles
import pytest
from learners import assert_same
from real_data import real
from record_oracles import blocks
from scipy import sparse

import cbrank
from cbrank import CBRanker, kernels
from cbrank.rankers.halving import left_after_cut
from cbrank.rankers.record import rows_left
from cbrank.rankers.record import shuffled as is_shuffled


def auto(**parameters):
    return CBRanker(C="auto", **{"random_state": 0} | parameters)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize("name", ["german", "svmguide3"])
def test_every_learner_is_the_ranker_with_that_c(name, policy, covariance):
    X, y = real(name, 1000)
    ranker = auto(policy=policy, covariance=covariance).fit(X, y)
    options = {"policy": policy, "covariance": covariance, "buffer_size": 200, "random_state": 0}
    assert ranker._halving.C[ranker._numbers()[0]] == ranker.C_
    for number, model in ranker._learners():  # none forgets where rows are shuffled
        alone = CBRanker(C=ranker._halving.C[number], **options).fit(X, y)
        for ours, theirs in zip(model, alone._model, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_the_leader_has_the_best_evidence():
    X, y = real("german", 500)
    ranker = auto(average=True).fit(X, y)
    alone = [CBRanker(C=C, buffer_size=200, random_state=0).fit(X, y) for C in ranker.Cs_]
    found = [one._record.evidence[0, 1] for one in alone]
    np.testing.assert_array_equal(ranker.progressive_auc_path_, found)
    assert ranker.Cs_[np.argmax(found)] == ranker.C_


def test_the_better_half_goes_on():
    X, y = real("magic04", 4800)
    ranker, left, paths = auto(forgetting=0.0), {}, {}
    for end in range(100, 4801, 100):
        ranker.partial_fit(X[end - 100 : end], y[end - 100 : end], classes=[0, 1])
        left[end], paths[end] = {*ranker._halving.alive.tolist()}, ranker.progressive_auc_path_
    # Blocks end at 517, 1048 and 2114 rows, the first after 512 and so on.
    ends = (500, 600, 1000, 1100, 2100, 2200, 4800)
    assert [len(left[end]) for end in ends] == [5, 3, 3, 2, 2, 1, 1]
    for before, after in ((500, 600), (1000, 1100), (2100, 2200)):
        gone = left[before] - left[after]
        assert left[after] < left[before]
        assert max(paths[after][[*gone]]) <= max(paths[after][[*left[after]]])
    for before, after in itertools.pairwise(sorted(paths)):  # the path of who left stays as it was
        left_out = sorted({*range(5)} - left[before])
        np.testing.assert_array_equal(paths[after][left_out], paths[before][left_out])


def in_window(y, least):
    """Return the places of the rows of each class that a window of so many rows holds, after all of them."""
    window = oracles.Window(least, 20 * least)
    for label in y:
        window.add(int(label), np.zeros(0))
    return [window.places(label) for label in range(2)]


@pytest.mark.parametrize("best", range(5))
def test_those_next_to_the_best_go_on(best):
    X, y = real("german", 20)
    halving = auto().partial_fit(X, y)._halving
    others = [number for number in (4, 3, 0, 1, 2) if number != best]
    kept = left_after_cut(halving, np.array([best, *others])).tolist()
    wanted = {number for number in (best - 1, best, best + 1) if 0 <= number < 5}
    assert len(kept) == 3
    assert kept[0] == best
    assert wanted <= {*kept}


def test_the_buffer_shrinks_further_while_things_stay_the_same():
    X, y = real("magic04", 5000)
    end = next(end for end in blocks(5000) if end >= 4096)
    for C in (2.0**-4, "auto"):
        assert CBRanker(C=C, random_state=0).fit(X[:end], y[:end])._buffer.size.tolist() == [16, 16]
        # Only with C="auto" is there a learner that forgets, which tells whether they do.
        stream = CBRanker(C=C, random_state=0).partial_fit(X[:end], y[:end])
        assert stream._buffer.least[0] == (16 if C == "auto" else 50)
    rare = np.sort(np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:200]])
    X, y = np.tile(X[rare], (4, 1)), np.tile(y[rare], 4)
    assert CBRanker(C=0.1, random_state=0).fit(X[:5000], y[:5000])._buffer.size.tolist() == [16, 16]
    few = np.r_[np.flatnonzero(y == 0)[:4400], np.flatnonzero(y == 1)[:200]]
    assert CBRanker(C=0.1, random_state=0).fit(X[few], y[few])._buffer.size.tolist() == [50, 50]
    wide = np.random.RandomState(0).randn(5000, 120)
    assert CBRanker(C=0.1).fit(wide, wide[:, 0] > 0)._buffer.size.tolist() == [50, 50]


@pytest.mark.parametrize(
    ("covariance", "rows"), [("full", np.asarray), ("diagonal", sparse.csr_array)]
)
def test_the_buffer_grows_again_where_things_change(rows, covariance):
    X, y = real("magic04", 6800, scaling="standard")
    y[4800:] = 1 - y[4800:]
    ranker = auto(covariance=covariance)
    for begin in range(0, len(y), 100):
        part = slice(begin, begin + 100)
        ranker.partial_fit(rows(X[part]), y[part], classes=[0, 1])
        if begin == 4700:
            assert ranker._buffer.size.min() == 16
            gone_on = copy.deepcopy(ranker).partial_fit(rows(X[4800:]), y[4800:])
    assert ranker._halving.alive[0] == ranker._halving.forgetful
    assert ranker._buffer.size.min() == 50
    assert_same(ranker, gone_on)
    labels, held = ranker.buffered_rows()
    held, window = held.toarray() if sparse.issparse(held) else held, in_window(y, 50)
    for label in (0, 1):
        latest = X[window[label]]
        np.testing.assert_array_equal(np.sort(held[labels == label], 0), np.sort(latest, 0))


@pytest.mark.parametrize("capacity", [1, 2, 3, 5])
def test_a_queue_with_other_room_holds_the_latest_rows_in_order(capacity):
    X = np.arange(1.0, 11.0).reshape(-1, 1)
    for seen in range(1, len(X)):
        queue = CBRanker(C=1.0, buffer_size=3).partial_fit(
            X[:seen], np.zeros(seen, int), classes=[0, 1]
        )
        changed = kernels.buffers.with_room(queue._buffer, capacity, capacity, reservoir=False)
        size = changed.size[0]
        assert size == min(seen, 3, capacity)
        assert changed.rows.shape == (2, capacity, 1)
        order = (changed.oldest[0] + np.arange(size)) % capacity
        np.testing.assert_array_equal(changed.rows[0, order], X[seen - size : seen])
        assert changed.seen.tolist() == [seen, 0]
        # A reservoir with more room would take in the next rows at once, and be no sample of all.
        changed = kernels.buffers.with_room(queue._buffer, capacity, capacity, reservoir=True)
        assert changed.rows.shape == (2, min(capacity, 3), 1)


@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize(
    ("covariance", "rows"),
    [("full", np.asarray), ("diagonal", np.asarray), ("diagonal", sparse.csr_array)],
)
def test_the_buffer_shrinks_once_there_have_been_many_rows(rows, covariance, policy):
    X, y = real("magic04", 1200)
    end = next(end for end in blocks(1200) if end >= 1024)
    ranker = auto(covariance=covariance, policy=policy)
    ranker.partial_fit(rows(X[: end - 1]), y[: end - 1])
    assert ranker._buffer.size.min() == 200
    ranker.partial_fit(rows(X[end - 1 : end]), y[end - 1 : end])
    labels, held = ranker.buffered_rows()
    held, window = held.toarray() if sparse.issparse(held) else held, in_window(y[:end], 50)
    for label in (0, 1):
        own, came = held[labels == label], X[:end][y[:end] == label]
        if policy == "fifo":
            np.testing.assert_array_equal(own, X[window[label]])
            continue
        places = [np.flatnonzero((came == row).all(axis=1))[0] for row in own]
        assert len(places) == 50
        assert len({*places}) >= 49  # two rows of the set are equal
        assert min(places) < len(came) - 50
    one = copy.deepcopy(ranker).partial_fit(rows(X[end:]), y[end:])
    for row, label in zip(X[end:], y[end:], strict=True):
        ranker.learn_one(row, label)
    assert_same(ranker, one, rtol=1e-9, atol=1e-12)
    alone = CBRanker(C=1.0).partial_fit(rows(X), y)
    assert alone._buffer.size.tolist() == [50, 50]


def test_one_more_learner_forgets_in_a_stream_and_none_where_rows_are_shuffled():
    X, y = real("svmguide3", scaling="standard")
    streamed, shuffled = auto().partial_fit(X, y), auto().fit(X, y)
    assert 9 in streamed._halving.alive
    assert 9 not in shuffled._halving.alive
    assert 9 in shuffled.partial_fit(X, y)._halving.alive  # as it goes on in a stream
    chunks = auto()
    for begin in range(0, len(y), 300):
        chunks.learn_shuffled(X[begin : begin + 300], y[begin : begin + 300], classes=[0, 1])
    assert 9 not in chunks._halving.alive
    assert_same(chunks, auto().learn_shuffled(X, y), rtol=1e-9, atol=1e-12)
    again = chunks.learn_again(X, y)
    assert is_shuffled(again._record)
    assert 9 in again.partial_fit(X, y)._halving.alive
    assert 9 not in auto(forgetting=0.0).partial_fit(X, y)._halving.alive


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_dropping_does_not_depend_on_chunks(covariance, rows):
    X, y = real("svmguide3", 1200)
    X, y = np.tile(X, (2, 1)), np.tile(y, 2)
    weights = np.random.RandomState(0).choice([0.0, 1.0, 2.0], len(y))
    whole = auto(covariance=covariance).partial_fit(rows(X), y, sample_weight=weights)
    chunked = auto(covariance=covariance)
    for begin in range(0, len(y), 77):
        part = slice(begin, begin + 77)
        chunked.partial_fit(rows(X)[part], y[part], classes=[0, 1], sample_weight=weights[part])
    assert chunked.C_ == whole.C_
    np.testing.assert_array_equal(chunked.progressive_auc_path_, whole.progressive_auc_path_)
    np.testing.assert_allclose(chunked.coef_, whole.coef_, rtol=1e-10)


def test_every_learner_meets_the_same_buffered_rows():
    X, y = real("german", 700)
    ranker = auto(policy="reservoir").partial_fit(X, y)
    alone = CBRanker(C=1.0, policy="reservoir", buffer_size=200, random_state=0).partial_fit(X, y)
    for ours, theirs in zip(ranker._buffer, alone._buffer, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_stream_keeps_the_way_its_c_is_found(german):
    X, y = german
    for go_on in (
        lambda ranker: ranker.partial_fit(X, y),
        lambda ranker: ranker.learn_one(X[0], y[0]),
    ):
        with pytest.raises(ValueError, match="C was 'auto' when this stream began"):
            go_on(auto().partial_fit(X, y).set_params(C=1.0))
        with pytest.raises(ValueError, match="C was a number when this stream began"):
            go_on(CBRanker(C=1.0).partial_fit(X, y).set_params(C="auto"))
    assert auto().fit(X, y).set_params(C=1.0).C_ == auto().fit(X, y).C_
    assert not hasattr(CBRanker(C=1.0).fit(X, y), "Cs_")
    assert CBRanker(C=1.0).fit(X, y).C_ == 1.0


def test_features_that_come_late_reach_every_learner():
    X, y = real("german", 300, "standard")
    X[:100, -5:] = 0.0
    whole = auto(covariance="diagonal").partial_fit(sparse.csr_array(X), y)
    grown = auto(covariance="diagonal").partial_fit(sparse.csr_array(X[:100, :-5]), y[:100])
    grown.resize(X.shape[1])
    grown.partial_fit(sparse.csr_array(X[100:]), y[100:])
    for ranker in (grown, whole):
        ranker._others.features[:] = ranker._others.features[np.argsort(ranker._halving.alive[1:])]
    np.testing.assert_allclose(grown._others.features, whole._others.features, rtol=1e-9)


def test_nobody_leaves_without_evidence():
    X, y = real("german", scaling="standard")
    negatives = X[y == 0]
    ranker = auto(forgetting=0.0).partial_fit(
        np.tile(negatives, (8, 1)), np.zeros(8 * len(negatives), int), [0, 1]
    )

    def left_at_the_end_of_the_block():
        rows = np.arange(rows_left(ranker._record)) % len(negatives)
        return len(ranker.partial_fit(negatives[rows], np.zeros(len(rows), int))._halving.alive)

    assert left_at_the_end_of_the_block() == 5
    assert ranker.C_ == 2.0**-4
    rare = np.flatnonzero(y == 1)[:15]
    ranker.partial_fit(X[rare], y[rare])
    assert left_at_the_end_of_the_block() == 5
    ranker.learn_one(X[y == 1][20], 1)
    assert left_at_the_end_of_the_block() == 3


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"forgetting": 0.0, "buffer_size": 50},
        {"forgetting": 0.0, "covariance": "diagonal"},
    ],
)
def test_wide_rows_that_repeat_do_not_depend_on_chunks(parameters):
    rng = np.random.RandomState(0)
    kinds = rng.standard_normal((4, 200))
    which = rng.randint(4, size=600)
    y = (which + rng.randint(4, size=600) > 3).astype(int)
    whole, chunked = auto(**parameters).partial_fit(kinds[which], y), auto(**parameters)
    for begin in range(0, 600, 37):
        chunked.partial_fit(kinds[which][begin : begin + 37], y[begin : begin + 37], [0, 1])
    np.testing.assert_array_equal(chunked.progressive_auc_path_, whole.progressive_auc_path_)
    np.testing.assert_array_equal(chunked._halving.alive, whole._halving.alive)
    np.testing.assert_allclose(chunked.coef_, whole.coef_, rtol=1e-6)


@pytest.mark.parametrize("kept", [20, 10])
def test_a_file_with_a_buffer_of_an_earlier_size_opens_and_goes_on(kept, tmp_path):
    X, y = real("magic04", 5000)
    ranker = CBRanker(random_state=0).partial_fit(X[:4400], y[:4400])
    ranker._buffer = kernels.buffers.with_room(ranker._buffer, kept, kept, reservoir=False)
    cbrank.save(ranker, tmp_path / "model")
    opened = cbrank.load(tmp_path / "model")
    assert opened._buffer.rows.shape[1] == kept
    assert_same(opened.partial_fit(X[4400:], y[4400:]), ranker.partial_fit(X[4400:], y[4400:]))
    assert opened._buffer.least[0] == 16


def test_a_number_for_C_leaves_nothing_of_the_choice_behind(german, tmp_path):
    X, y = german
    ranker = CBRanker(random_state=0).fit(X, y).set_params(C=1.0).fit(X, y)
    assert_same(ranker, CBRanker(C=1.0, random_state=0).fit(X, y))
    cbrank.save(ranker, tmp_path / "model")
    assert cbrank.load(tmp_path / "model").C_ == 1.0


def test_the_C_of_a_choice_that_was_not_made_is_not_there(german):
    ranker = CBRanker(C=1.0).fit(*german).set_params(C="auto")
    with pytest.raises(AttributeError, match='only if C was "auto" when it began'):
        _ = ranker.C_
