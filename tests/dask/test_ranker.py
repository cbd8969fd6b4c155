"""`DaskRanker` on a real cluster of two worker processes: what it learns."""

import os
import pickle
import signal
import sys
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import cbrank
from cbrank import AdditiveRanker, CBRanker, merge

da = pytest.importorskip("dask.array", reason="the cluster needs the extra dask")
pytest.importorskip("distributed", reason="the cluster needs the extra dask")

from dask import delayed
from made_tables import people
from partitioning import (
    WIDTH,
    assert_close,
    assert_same,
    in_process,
    merged_by_hand,
    never,
    partitioned,
    some_rows,
)

from cbrank.dask import DaskRanker, Files
from cbrank.dask.blocks import Block
from cbrank.dask.tasks import Seed, head_of_table
from cbrank.streams import TableColumns

pytestmark = pytest.mark.slow

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find the tests

# What it learns -----------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
def test_partitions_are_learned_apart_and_merged_in_order(client, covariance, policy):
    parts, X, y = partitioned([90, 80, 85, 80, 80, 70])
    given = {"C": 0.5, "covariance": covariance, "policy": policy, "buffer_size": 90}
    ranker = DaskRanker(CBRanker(**given, shuffle=False), client=client).fit(X, y)
    assert_close(ranker, merged_by_hand(parts, **given))
    assert ranker.classes_.tolist() == [0, 1]
    assert ranker.n_features_in_ == WIDTH


def test_rows_learned_in_order_have_one_score_in_blocks_of_any_size(client):
    random = np.random.RandomState(0)
    X = random.randn(9000, 4)
    y = (X[:, 0] + random.randn(9000) > 0.5).astype(int)
    blocks = da.from_array(X, (3000, 4)), da.from_array(y, 3000)
    ranker = DaskRanker(CBRanker(random_state=0, shuffle=False), client=client).fit(*blocks)
    expected = ranker.to_local().set_params(horizon="later").decision_function(X)
    for size in (700, 4500):
        scores = client.compute(ranker.decision_function(da.from_array(X, (size, 4)))).result()
        np.testing.assert_array_equal(scores, expected)
    assert ranker.to_local().horizon == "auto"
    nearest = ranker.to_local().set_params(horizon="next").decision_function(X)
    assert not np.array_equal(nearest, expected)


def test_empty_one_class_and_unequal_partitions_are_fine(client):
    parts, _, _ = partitioned([1, 300, 7, 60, 40])
    (X, y), rest = parts[1], [parts[0], parts[2], parts[3], parts[4]]
    negatives = X[y == 0], y[y == 0]
    parts = [*rest[:2], (X[:0], y[:0]), negatives, *rest[2:], (X[:0], y[:0])]
    blocks = [delayed(X) for X, _ in parts], [delayed(y) for _, y in parts]
    ranker = DaskRanker(CBRanker(C=0.5, shuffle=False), client=client).fit(*blocks)
    assert_close(ranker, merged_by_hand(parts, C=0.5))
    assert ranker.n_seen_.sum() == sum(len(y) for _, y in parts)


def test_results_do_not_depend_on_the_number_of_workers(client):
    _, X, y = partitioned([50] * 9 + [3])
    given = {"C": "auto", "policy": "reservoir", "buffer_size": 10, "random_state": 3}
    expected = DaskRanker(CBRanker(**given), rounds=2, client=client).fit(X, y)
    for workers in (1, 3):
        with in_process(workers) as other:
            ranker = DaskRanker(CBRanker(**given), rounds=2, client=other)
            assert_same(ranker.fit(X, y), expected)


def fatal(X, marker):
    """Return rows; the first time, kill the worker that asks for them."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return X


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(client, tmp_path):
    parts, _, _ = partitioned([60] * 8)
    y = [delayed(y) for _, y in parts]
    ranker = DaskRanker(CBRanker(C=0.5, random_state=0), rounds=2, client=client)
    undisturbed = clone(ranker).fit([delayed(X) for X, _ in parts], y)
    pids = set(client.run(os.getpid).values())
    X = [delayed(X) for X, _ in parts]
    X[5] = delayed(fatal)(parts[5][0], str(tmp_path / "killed"))
    ranker.fit(X, y)
    assert (tmp_path / "killed").exists()
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != pids
    assert_same(ranker, undisturbed)


class Heavy(sp.csr_array):
    """Rows that cannot be unpickled in the process that made them."""

    def __reduce_ex__(self, _protocol):
        return unpacked, (os.getpid(), self.home, self.data, self.indices, self.indptr, self.shape)


def unpacked(_made_in, home, *arrays):
    assert os.getpid() != home, "a partition came to the client"
    return heavy(home, sp.csr_array(arrays[:3], shape=arrays[3]))


def heavy(home, X):
    X = Heavy(X)
    X.home = home
    return X


def test_no_partition_comes_to_the_client(client):
    parts, _, _ = partitioned([60] * 5)
    X = [delayed(heavy)(os.getpid(), sp.csr_array(X)) for X, _ in parts]
    y = [delayed(y) for _, y in parts]
    with pytest.raises(Exception, match="a partition came to the client"):
        client.compute(X[0]).result()
    ranker = (
        DaskRanker(CBRanker(random_state=0), rounds=2, client=client).fit(X, y).partial_fit(X, y)
    )
    assert ranker.n_seen_.sum() == 1200
    assert 0.5 < ranker.score(X, y) < 1
    assert client.compute(ranker.decision_function(X)).result().shape == (300,)


def test_rounds_go_on_from_the_merged_ranker(client):
    _, X, y = partitioned([70] * 4)
    ranker = DaskRanker(CBRanker(C=0.5, random_state=0, policy="reservoir"), client=client)
    twice = clone(ranker).set_params(rounds=2).fit(X, y)
    assert twice.n_seen_.sum() == 560
    once = clone(ranker).fit(X, y)
    for name in ("progressive_auc_", "progressive_auc_interval_", "recent_auc_"):
        assert getattr(twice, name) == pytest.approx(getattr(once, name))  # seen rows test nothing
    later = ranker.fit(X, y).partial_fit(X, y)
    np.testing.assert_array_equal(later.coef_, twice.coef_)
    np.testing.assert_array_equal(later.covariance_, twice.covariance_)
    assert later.n_seen_.tolist() == twice.n_seen_.tolist()


def test_passes_are_over_each_partition(client):
    parts, X, y = partitioned([70] * 3)
    ranker = DaskRanker(CBRanker(C=0.5, n_passes=2, shuffle=False), client=client).fit(X, y)
    doubled = [(np.concatenate([X, X]), np.concatenate([y, y])) for X, y in parts]
    assert_close(ranker, merged_by_hand(doubled, C=0.5))


def test_shuffling_and_the_reservoir_go_by_the_seed_and_the_partition(client):
    (part,), _, _ = partitioned([200])
    X, y = [delayed(part[0])] * 2, [delayed(part[1])] * 2
    inner = CBRanker(C=0.5, policy="reservoir", buffer_size=10, random_state=1)
    ranker = DaskRanker(inner, client=client)
    one, same, other = (
        clone(ranker).set_params(ranker__random_state=seed).fit(X, y) for seed in (1, 1, 2)
    )
    assert_same(one, same)
    assert (one.coef_ != other.coef_).any()
    single = ranker.fit(X[:1], y[:1])
    assert one.progressive_auc_ != single.progressive_auc_  # the second is shuffled otherwise


def test_weights_are_as_in_the_local_ranker(client):
    parts, X, y = partitioned([80, 60])
    weights = np.random.RandomState(0).randint(0, 3, 140).astype(float)
    ranker = DaskRanker(CBRanker(C=0.5, shuffle=False), client=client)
    ranker.fit(X, y, sample_weight=da.from_array(weights, chunks=50))
    rankers = [
        CBRanker(C=0.5).partial_fit(rows, labels, classes=[0, 1], sample_weight=some)
        for (rows, labels), some in zip(parts, np.split(weights, [80]), strict=True)
    ]
    assert_close(ranker, merge(rankers))


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_with_C_auto_learners_are_merged_one_by_one(client, covariance):
    parts, X, y = partitioned([100, 150, 90, 120, 200])
    given = {"covariance": covariance, "policy": "fifo"}
    ranker = DaskRanker(CBRanker(**given, shuffle=False), client=client).fit(X, y)
    by_hand = merged_by_hand(parts, **given)
    assert_close(ranker, by_hand)
    local = ranker.to_local()
    assert (local.C, ranker.C_) == ("auto", by_hand.C_)
    count = 3 if covariance == "diagonal" else 2
    assert len(local.learned().models) == count  # the one that forgets begins anew
    assert ranker.partial_fit(X, y).ranker_.C == "auto"
    assert len(ranker.ranker_.learned().models) == count


def test_of_rows_that_are_shuffled_nothing_is_forgotten(client):
    _, X, y = partitioned([400])
    for shuffle, learners in ((True, 2), (False, 3)):
        ranker = DaskRanker(CBRanker(shuffle=shuffle, random_state=0), client=client).fit(X, y)
        assert len(ranker.ranker_.learned().models) == learners  # one partition, not merged
        assert ranker.ranker_.forgetting_ == 0.0 or not shuffle


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("lengths", [[20, 30], [20, 30, 25, 10], [3, 0, 40, 600], [600, 20, 30]])
def test_rows_of_short_partitions_wait_for_others(client, lengths, rounds):
    parts, X, y = partitioned(lengths)
    inner = CBRanker(shuffle=False)
    ranker = DaskRanker(inner, rounds=rounds, client=client).fit(X, y)
    once = np.bincount(np.concatenate([y for _, y in parts]), minlength=2)
    assert ranker.to_local().waits == (sum(lengths) < 64)
    long = sum(length for length in lengths if length >= 64)
    # Rows that wait are no part of what a round goes on from, and are learned once.
    assert once.sum() <= ranker.n_seen_.sum() <= once.sum() + (rounds - 1) * sum(lengths)
    assert ranker.n_seen_.sum() >= once.sum() + (rounds - 1) * long
    if rounds == 1:
        assert ranker.n_seen_.tolist() == once.tolist()
    assert np.isfinite(ranker.coef_).all()


def test_a_ranker_whose_rows_wait_goes_on_from_partitions(client):
    _, X, y = partitioned([20, 20])
    ranker = DaskRanker(CBRanker(random_state=0), client=client).fit(X, y)
    assert ranker.to_local().waits
    _, X, y = partitioned([200, 150, 300, 100, 250], seed=1)
    ranker.partial_fit(X, y)
    assert ranker.n_seen_.sum() == 1040
    assert ranker.score(X, y) > 0.75


def test_rows_of_no_weight_are_no_rows(client):
    _, X, y = partitioned([60, 60])
    with pytest.raises(ValueError, match="All sample weights are zero"):
        DaskRanker(CBRanker(), client=client).fit(X, y, sample_weight=da.zeros_like(y, dtype=float))


# The ranker inside --------------------------------------------------------------------------------


def test_parameters_of_the_inner_ranker_are_reached_through_it():
    inner = CBRanker(C=2.0)
    ranker = DaskRanker(inner, rounds=3)
    own = {"ranker": inner, "rounds": 3, "client": None, "progress": True}
    assert ranker.get_params(deep=False) == own
    assert ranker.get_params() == own | {
        f"ranker__{name}": value for name, value in inner.get_params().items()
    }
    assert repr(ranker) == "DaskRanker(ranker=CBRanker(C=2.0), rounds=3)"
    copied = clone(ranker).set_params(ranker__C=0.5, rounds=1)
    assert (copied.ranker.C, copied.rounds) == (0.5, 1)
    assert (inner.C, ranker.rounds) == (2.0, 3)


def test_clones_keep_the_client_and_pickles_do_not(client):
    ranker = DaskRanker(CBRanker(C=2.0), client=client)
    assert clone(ranker).client is client
    assert clone(ranker).ranker.C == 2.0
    again = pickle.loads(pickle.dumps(ranker))
    assert (again.ranker.C, again.client) == (2.0, None)


def test_the_ranker_given_stays_as_it_is(client):
    _, X, y = partitioned([60] * 3)
    inner = CBRanker(random_state=0)
    ranker = DaskRanker(inner, client=client)
    for name in ("ranker_", "coef_", "n_features_in_", "columns_"):
        assert not hasattr(ranker, name)
    with pytest.raises(NotFittedError):
        ranker.to_local()
    ranker.fit(X, y).partial_fit(X, y)
    assert ranker.ranker is inner
    assert not hasattr(inner, "coef_")
    assert inner.get_params() == CBRanker(random_state=0).get_params()
    assert type(ranker.ranker_) is CBRanker
    assert_same(ranker, ranker.ranker_)
    assert not hasattr(ranker, "feature_names_in_")
    check_is_fitted(ranker)


def test_what_changes_in_the_inner_ranker_holds_from_the_next_call_on(client):
    _, X, y = partitioned([60] * 3)
    ranker = DaskRanker(CBRanker(0.5, random_state=0), client=client).fit(X, y)
    ranker.set_params(ranker__C=0.25).partial_fit(X, y)
    assert (ranker.C_, ranker.ranker_.C) == (0.25, 0.25)
    with pytest.raises(ValueError, match="buffer_size was 'auto' when this stream began and cann"):
        ranker.set_params(ranker__buffer_size=9).partial_fit([delayed(never)()], [delayed(never)()])


class Tagged(CBRanker):
    """A ranker with a parameter that nobody outside knows."""

    def __init__(self, C="auto", *, tag="none", random_state=None):
        super().__init__(C, shuffle=False, random_state=random_state)
        self.tag = tag


def test_a_parameter_of_the_inner_ranker_comes_through_that_nobody_knows(client):
    parts, X, y = partitioned([60] * 3)
    ranker = DaskRanker(Tagged(0.5), client=client).set_params(ranker__tag="mine").fit(X, y)
    assert type(ranker.ranker_).__name__ == "Tagged"  # a copy of the class came back
    assert ranker.to_local().tag == "mine"
    assert_close(ranker, merged_by_hand(parts, C=0.5))
    ranker.set_params(ranker__tag="yours").partial_fit(X, y)
    assert ranker.ranker_.tag == "yours"


@pytest.mark.parametrize(
    ("inner", "sentence"),
    [
        (cbrank.OPAUCRanker(), r"ranker is OPAUCRanker\(\): only a CBRanker, whose model is"),
        (cbrank.CBRankerCV(), "ranker is a CBRankerCV, which needs all rows at once to choose C"),
        ("CBRanker", "ranker is 'CBRanker': only a CBRanker"),
    ],
)
def test_rankers_that_cannot_learn_apart_are_refused(client, inner, sentence):
    with pytest.raises(ValueError, match=sentence):
        DaskRanker(inner, client=client).fit([delayed(never)()], [delayed(never)()])


def test_bad_parameters_are_refused_before_anything_is_computed(client):
    for name, bad in (("rounds", 0), ("ranker__C", -1.0), ("client", ""), ("ranker__policy", "")):
        ranker = DaskRanker(CBRanker(), client=client).set_params(**{name: bad})
        with pytest.raises(ValueError, match=f"The '{name.removeprefix('ranker__')}' parameter"):
            ranker.fit([delayed(never)()], [delayed(never)()])


def test_what_is_forgotten_cannot_be_gone_on_from(client):
    parts, X, y = partitioned([60] * 3)
    given = {"C": 0.5, "forgetting": 1e-3, "shuffle": False}
    ranker = DaskRanker(CBRanker(**given), client=client).fit(X, y)
    del given["shuffle"]
    assert_close(ranker, merged_by_hand(parts, **given))
    with pytest.raises(ValueError, match=r"forgetting is 0.001, and rankers .* go on with to_loc"):
        ranker.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"forgetting is 0.001, .* use rounds=1 and fit"):
        ranker.set_params(rounds=2).fit(X, y)


def test_the_local_ranker_goes_on_learning_and_is_saved(client, tmp_path):
    _, X, y = partitioned([60] * 3)
    ranker = DaskRanker(CBRanker(C=0.5), client=client).fit(X, y)
    local, coef = ranker.to_local(), ranker.coef_
    assert type(local) is CBRanker
    more = some_rows(50, seed=1)
    local.partial_fit(*more)
    assert local.n_seen_.sum() == 230
    np.testing.assert_array_equal(ranker.coef_, coef)
    cbrank.save(ranker.to_local(), tmp_path / "m")
    assert_same(cbrank.load(tmp_path / "m").partial_fit(*more), local)


def test_of_a_long_partition_the_first_rows_decide_what_columns_are():
    X, y = some_rows(9000)
    [(rows, labels, _)] = head_of_table(Block(0, X, y), Seed(0, shuffle=False), 4)
    np.testing.assert_array_equal(rows, X[:2048])
    np.testing.assert_array_equal(labels, y[:2048])


# Tables as they come ------------------------------------------------------------------------------


def test_tables_share_knots_and_rank_as_in_memory(client, tmp_path):
    dd = pytest.importorskip("dask.dataframe", reason="frames need dask[dataframe]")
    frame, y = people(16_000)
    T, t = people(4000, seed=1)
    both = dd.from_pandas(frame.assign(label=y), npartitions=3)
    X, labels = both.drop(columns="label"), both["label"]
    ranker = DaskRanker(AdditiveRanker(random_state=0), client=client).fit(X, labels)
    assert ranker.n_seen_.tolist() == np.bincount(y).tolist()
    alone = AdditiveRanker(random_state=0).fit(frame, y)
    assert ranker.to_local().score(T, t) > alone.score(T, t) - 0.01
    lazy = ranker.decision_function(X)
    np.testing.assert_allclose(
        client.compute(lazy).result().to_numpy(),
        ranker.to_local().decision_function(frame),
        atol=1e-9,
    )
    path = tmp_path / "rows.csv"
    frame.assign(label=y)[:2000].to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"TableColumns\(label"):
        DaskRanker(AdditiveRanker(), client=client).fit([path])
    ranker = DaskRanker(AdditiveRanker(random_state=0), client=client)
    ranker.fit(Files([path, path], TableColumns("label")))
    test = frame[2000:6000], y[2000:6000]
    alone = AdditiveRanker(random_state=0).fit(frame[:2000], y[:2000])
    assert ranker.score(*test) > alone.score(*test) - 0.02  # orders of few rows differ by as much
    assert ranker.partial_fit(path).n_seen_.sum() == 6000
