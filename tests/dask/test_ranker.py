"""`DaskCBRanker` on a real cluster of two worker processes."""

import asyncio
import inspect
import io
import logging
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

import cbrank
from cbrank import CBRanker, merge

da = pytest.importorskip("dask.array", reason="the cluster needs the extra dask")
pytest.importorskip("distributed", reason="the cluster needs the extra dask")

import dask.dataframe as dd
import pandas as pd
from dask import delayed
from dask.distributed import Client, LocalCluster

from cbrank.dask import DaskCBRanker, choosing, following
from cbrank.dask.blocks import Block
from cbrank.dask.compiling import hearing, one_at_a_time
from cbrank.dask.learning import Seed
from cbrank.dask.tree import reduced

pytestmark = pytest.mark.slow

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find the tests

WIDTH = 4


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def in_process(workers):
    return Client(processes=False, n_workers=workers, threads_per_worker=1, dashboard_address=":0")


def some_rows(rows, seed=0):
    rng = np.random.RandomState(seed)
    y = (rng.random_sample(rows) < 0.3).astype(int)
    return rng.standard_normal((rows, WIDTH)) + y[:, None] * [1.0, 0.5, 0.0, 0.0], y


def partitioned(lengths, seed=0):
    """Return the same rows in memory, as a list of parts, and as dask arrays."""
    X, y = some_rows(sum(lengths), seed)
    ends = np.cumsum(lengths)[:-1]
    rows = da.from_array(X, chunks=(tuple(lengths), WIDTH))
    labels = da.from_array(y, chunks=(tuple(lengths),))
    return list(zip(np.split(X, ends), np.split(y, ends), strict=True)), rows, labels


def merged_by_hand(parts, **parameters):
    """Learn from each part in its order and merge: what the cluster does, without it."""
    rankers = [CBRanker(**parameters).partial_fit(X, y, classes=[0, 1]) for X, y in parts if len(y)]
    return reduced(rankers, merge)


def assert_same(one, other):
    """Say that two rankers are the same to the last bit."""
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.covariance_, other.covariance_)
    np.testing.assert_array_equal(one.n_seen_, other.n_seen_)
    assert (one.n_pairs_, one.n_updates_) == (other.n_pairs_, other.n_updates_)
    assert one.progressive_auc_ == other.progressive_auc_
    assert one.threshold_ == other.threshold_


def assert_close(one, other):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(one.covariance_, other.covariance_, rtol=1e-7, atol=1e-10)
    np.testing.assert_array_equal(one.n_seen_, other.n_seen_)
    assert one.n_pairs_ == other.n_pairs_


# What it learns -----------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
def test_partitions_are_learned_apart_and_merged_in_order(client, covariance, policy):
    parts, X, y = partitioned([90, 80, 85, 80, 80, 70])
    given = {"C": 0.5, "covariance": covariance, "policy": policy, "buffer_size": 90}
    ranker = DaskCBRanker(**given, shuffle=False, client=client).fit(X, y)
    assert_close(ranker, merged_by_hand(parts, **given))
    assert ranker.classes_.tolist() == [0, 1]
    assert ranker.n_features_in_ == WIDTH


def test_empty_one_class_and_unequal_partitions_are_fine(client):
    parts, _, _ = partitioned([1, 300, 7, 60, 40])
    (X, y), rest = parts[1], [parts[0], parts[2], parts[3], parts[4]]
    negatives = X[y == 0], y[y == 0]
    parts = [*rest[:2], (X[:0], y[:0]), negatives, *rest[2:], (X[:0], y[:0])]
    blocks = [delayed(X) for X, _ in parts], [delayed(y) for _, y in parts]
    ranker = DaskCBRanker(C=0.5, shuffle=False, client=client).fit(*blocks)
    assert_close(ranker, merged_by_hand(parts, C=0.5))
    assert ranker.n_seen_.sum() == sum(len(y) for _, y in parts)


def test_results_do_not_depend_on_the_number_of_workers(client):
    _, X, y = partitioned([50] * 9 + [3])
    given = {"C": "auto", "policy": "reservoir", "buffer_size": 10, "random_state": 3, "rounds": 2}
    expected = DaskCBRanker(**given, client=client).fit(X, y)
    for workers in (1, 3):
        with in_process(workers) as other:
            assert_same(DaskCBRanker(**given, client=other).fit(X, y), expected)


class Fatal(np.ndarray):
    """Rows that kill the worker that takes a part of them, the first time."""

    marker: str

    def __getitem__(self, rows):
        marker = Path(self.marker)
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.asarray(self)[rows]


def fatal(X, marker):
    X = np.array(X).view(Fatal)
    X.marker = marker
    return X


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(client, tmp_path):
    parts, _, _ = partitioned([60] * 8)
    y = [delayed(y) for _, y in parts]
    ranker = DaskCBRanker(C=0.5, random_state=0, rounds=2, client=client)
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
    ranker = DaskCBRanker(random_state=0, rounds=2, client=client).fit(X, y).partial_fit(X, y)
    assert ranker.n_seen_.sum() == 1200
    assert 0.5 < ranker.score(X, y) < 1
    assert client.compute(ranker.decision_function(X)).result().shape == (300,)


def test_rounds_go_on_from_the_merged_ranker(client):
    _, X, y = partitioned([70] * 4)
    ranker = DaskCBRanker(C=0.5, random_state=0, policy="reservoir", client=client)
    twice = clone(ranker).set_params(rounds=2).fit(X, y)
    assert twice.n_seen_.sum() == 560
    assert_same(ranker.fit(X, y).partial_fit(X, y), twice)


def test_passes_are_over_each_partition(client):
    parts, X, y = partitioned([70] * 3)
    ranker = DaskCBRanker(C=0.5, n_passes=2, shuffle=False, client=client).fit(X, y)
    doubled = [(np.concatenate([X, X]), np.concatenate([y, y])) for X, y in parts]
    assert_close(ranker, merged_by_hand(doubled, C=0.5))


def test_shuffling_and_the_reservoir_go_by_the_seed_and_the_partition(client):
    (part,), _, _ = partitioned([200])
    X, y = [delayed(part[0])] * 2, [delayed(part[1])] * 2
    given = {"C": 0.5, "policy": "reservoir", "buffer_size": 10, "client": client}
    one, same, other = (DaskCBRanker(**given, random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert_same(one, same)
    assert (one.coef_ != other.coef_).any()
    single = DaskCBRanker(**given, random_state=1).fit(X[:1], y[:1])
    assert one.progressive_auc_ != single.progressive_auc_  # the second is shuffled otherwise


def test_weights_are_as_in_the_local_ranker(client):
    parts, X, y = partitioned([80, 60])
    weights = np.random.RandomState(0).randint(0, 3, 140).astype(float)
    ranker = DaskCBRanker(C=0.5, shuffle=False, client=client)
    ranker.fit(X, y, sample_weight=da.from_array(weights, chunks=50))
    rankers = [
        CBRanker(C=0.5).partial_fit(rows, labels, classes=[0, 1], sample_weight=some)
        for (rows, labels), some in zip(parts, np.split(weights, [80]), strict=True)
    ]
    assert_close(ranker, merge(rankers))


def test_one_C_is_chosen_for_all_partitions(client):
    _, X, y = partitioned([100] * 5)
    ranker = DaskCBRanker(random_state=0, client=client).fit(X, y)
    assert ranker.Cs_[ranker.progressive_auc_path_.argmax()] == ranker.C_
    assert ranker.to_local().C == ranker.C_
    np.testing.assert_array_equal(ranker.Cs_, 2.0 ** np.arange(-12, 5, 2))
    assert ranker.progressive_auc_path_.min() < ranker.progressive_auc_path_.max()
    assert ranker.partial_fit(X, y).C_ == ranker.to_local().C
    assert not hasattr(ranker.set_params(C=1.0).fit(X, y), "Cs_")


def test_C_is_that_of_one_ranker_over_the_first_rows_of_partitions(client):
    parts, X, y = partitioned([3, 0, 700, 600, 800])
    ranker = DaskCBRanker(shuffle=False, client=client).fit(X, y)
    one = CBRanker(shuffle=False)
    for rows, labels in parts:
        if len(labels):
            one.partial_fit(rows, labels, classes=[0, 1])
    assert ranker.C_ == one.C_
    np.testing.assert_array_equal(ranker.progressive_auc_path_, one.progressive_auc_path_)


def test_of_a_long_partition_the_first_rows_choose_C():
    X, y = some_rows(9000)
    prior = CBRanker().partial_fit(X[:2], [0, 1])
    [(rows, labels, _)] = choosing.first_rows(Block(0, X, y), prior, Seed(0, shuffle=False), 4)
    np.testing.assert_array_equal(rows, X[:2048])
    np.testing.assert_array_equal(labels, y[:2048])


def test_the_first_block_with_rows_says_what_blocks_are(client):
    parts, _, _ = partitioned([60, 60])
    X = [delayed(np.empty((0, 0))), delayed(np.array([])), *(delayed(X) for X, _ in parts)]
    y = [delayed(np.array([])), delayed(np.array([])), *(delayed(y) for _, y in parts)]
    ranker = DaskCBRanker(C=0.5, shuffle=False, client=client).fit(X, y)
    assert_close(ranker, merged_by_hand(parts, C=0.5))
    with pytest.raises(ValueError, match="every partition is empty"):
        DaskCBRanker(client=client).partial_fit(X[:2], y[:2], classes=[0, 1])
    with pytest.raises(ValueError, match=r"Partition 0: a block must be .* and it is list"):
        DaskCBRanker(client=client).fit([delayed([[1.0], [2.0]])], [delayed(np.array([0, 1]))])


def test_rows_of_no_weight_are_no_rows(client):
    _, X, y = partitioned([60, 60])
    with pytest.raises(ValueError, match="All sample weights are zero"):
        DaskCBRanker(client=client).fit(X, y, sample_weight=da.zeros_like(y, dtype=float))


def test_rows_in_memory_are_scored_at_once(client):
    parts, X, y = partitioned([60, 60])
    ranker = DaskCBRanker(C=0.5, client=client).fit(X, y)
    rows, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    assert ranker.score(rows, labels) == pytest.approx(ranker.score(X, y))


# What it takes and gives --------------------------------------------------------------------------


def test_it_has_the_parameters_of_the_local_ranker():
    own, local = (inspect.signature(kind).parameters for kind in (DaskCBRanker, CBRanker))
    extra = {"rounds": 1, "client": None, "progress": True}
    assert {name: p.default for name, p in own.items()} == {
        name: p.default for name, p in local.items()
    } | extra


def test_clones_keep_the_client_and_pickles_do_not(client):
    ranker = DaskCBRanker(C=2.0, client=client)
    assert clone(ranker).client is client
    assert clone(ranker).C == 2.0
    again = pickle.loads(pickle.dumps(ranker))
    assert (again.C, again.client) == (2.0, None)


def test_data_frames_keep_their_names_and_index(client):
    X, y = some_rows(200)
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(1000, 1200)).assign(
        label=np.where(y, "yes", "no")
    )
    table = dd.from_pandas(frame, npartitions=3)
    ranker = DaskCBRanker(C=0.5, client=client).fit(table[list("abcd")], table["label"])
    assert ranker.feature_names_in_.tolist() == list("abcd")
    assert ranker.classes_.tolist() == ["no", "yes"]
    scores = ranker.decision_function(table[list("abcd")])
    assert isinstance(scores, dd.Series)
    assert scores.npartitions == 3
    scores = client.compute(scores).result()
    assert scores.index.tolist() == frame.index.tolist()
    local = ranker.to_local()
    np.testing.assert_array_equal(scores, local.decision_function(frame[list("abcd")]))
    labels = client.compute(ranker.predict(table[list("abcd")])).result()
    np.testing.assert_array_equal(labels, local.predict(frame[list("abcd")]))
    with pytest.raises(ValueError, match=r"Partition \d: The feature names should match"):
        ranker.partial_fit(table[list("dcba")], table["label"])


def test_delayed_csr_blocks_are_learned_sparse(client):
    parts, _, _ = partitioned([80, 90, 70])
    given = {"C": 0.5, "covariance": "diagonal"}
    sparse = [(sp.csr_matrix(X), y) for X, y in parts]
    blocks = [delayed(X) for X, _ in sparse], [delayed(y) for _, y in sparse]
    ranker = DaskCBRanker(**given, shuffle=False, client=client).fit(*blocks)
    assert_close(ranker, merged_by_hand(sparse, **given))
    assert ranker.to_local()._sparse
    scores = client.compute(ranker.decision_function(blocks[0])).result()
    whole = sp.vstack([X for X, _ in sparse])
    np.testing.assert_array_equal(scores, ranker.to_local().decision_function(whole))


def never():
    raise AssertionError("computed too early")


def test_scores_are_lazy_and_have_the_chunks_of_the_rows(client):
    parts, X, y = partitioned([60, 0, 40])
    ranker = DaskCBRanker(C=0.5, client=client).fit(X.rechunk({1: 2}), y)
    lazy = da.from_delayed(delayed(never)(), (10, WIDTH), float)
    for wanted in (ranker.decision_function(lazy), ranker.predict(lazy)):
        assert isinstance(wanted, da.Array)
        with pytest.raises(AssertionError, match="computed too early"):
            client.compute(wanted).result()
    scores = ranker.decision_function(X.rechunk({1: 2}))
    assert scores.chunks == ((60, 0, 40),)
    assert scores.dtype == float
    local, rows = ranker.to_local(), np.concatenate([X for X, _ in parts])
    found = client.compute(scores).result()
    np.testing.assert_array_equal(found, local.decision_function(rows))
    np.testing.assert_array_equal(ranker.decision_function(rows), found)
    labels = client.compute(ranker.predict(X)).result()
    np.testing.assert_array_equal(labels, local.predict(rows))
    assert ranker.score(X, y) == pytest.approx(
        local.score(rows, np.concatenate([y for _, y in parts]))
    )


def test_the_local_ranker_goes_on_learning_and_is_saved(client, tmp_path):
    _, X, y = partitioned([60] * 3)
    ranker = DaskCBRanker(C=0.5, client=client).fit(X, y)
    local, coef = ranker.to_local(), ranker.coef_
    assert type(local) is CBRanker
    more = some_rows(50, seed=1)
    local.partial_fit(*more)
    assert local.n_seen_.sum() == 230
    np.testing.assert_array_equal(ranker.coef_, coef)
    cbrank.save(ranker.to_local(), tmp_path / "m")
    assert_same(cbrank.load(tmp_path / "m").partial_fit(*more), local)


def test_going_on_takes_partitions_of_one_class(client):
    _, X, y = partitioned([60] * 3)
    ranker = DaskCBRanker(C=0.5, client=client)
    none = np.zeros(60, int)
    with pytest.warns(UserWarning, match="No partition had rows of both classes"):
        ranker.partial_fit([delayed(X[:60])], [delayed(none)], classes=[0, 1])
    ranker.partial_fit(X, y)
    assert ranker.n_seen_.sum() == 240
    with pytest.raises(ValueError, match=r"classes=\[0, 2\] is not the classes of the first call"):
        ranker.partial_fit(X, y, classes=[0, 2])


# What goes wrong ----------------------------------------------------------------------------------


def test_only_one_class_is_refused_as_the_local_ranker_does(client):
    X, y = some_rows(60)
    y[:] = 1
    with pytest.raises(ValueError, match="Ranking needs two classes") as local:
        CBRanker().fit(X, y)
    with pytest.raises(ValueError, match="Ranking needs two classes") as distributed:
        DaskCBRanker(client=client).fit(da.from_array(X, chunks=20), da.from_array(y, chunks=20))
    assert str(distributed.value) == str(local.value)


def test_bad_rows_are_named_by_partition_and_row(client):
    X, y = some_rows(100)
    X[57, 2] = np.nan
    rows, labels = da.from_array(X, chunks=(20, WIDTH)), da.from_array(y, chunks=20)
    for C in (0.5, "auto"):
        ranker = DaskCBRanker(C=C, random_state=0, client=client)
        with pytest.raises(ValueError, match=r"Partition 2: Input X contains NaN at row 17, col"):
            ranker.fit(rows, labels)
        assert not hasattr(ranker, "coef_")
    rows = da.nan_to_num(rows)
    ranker = DaskCBRanker(C=0.5, client=client).fit(rows, labels)
    before = ranker.coef_
    strange = y + 0.0
    strange[83] = 7
    with pytest.raises(ValueError, match=r"Partition 4: y has 7.0 at row 3, which is neither"):
        ranker.partial_fit(rows, da.from_array(strange, chunks=20))
    np.testing.assert_array_equal(ranker.coef_, before)
    strange[83], strange[3:5] = 0, (4, 5)
    with pytest.raises(ValueError, match="Partition 0: Only binary classification"):
        ranker.fit(rows, da.from_array(strange, chunks=20))
    strange[3:5] = np.nan
    with pytest.raises(ValueError, match=r"Partition 0: Input y contains NaN at row 3 \(2 in all"):
        ranker.fit(rows, da.from_array(strange, chunks=20))


def test_blocks_that_do_not_match_are_refused(client):
    X, y = some_rows(40)
    ranker = DaskCBRanker(C=0.5, client=client)
    blocks, labels = [delayed(X[:20]), delayed(X[20:])], [delayed(y[:20]), delayed(y[20:])]
    with pytest.raises(ValueError, match="X has 2 partitions and y has 1: make them the same"):
        ranker.fit(blocks, labels[:1])
    with pytest.raises(ValueError, match=r"Partition 1: Found input variables with inconsistent"):
        ranker.fit(blocks, [labels[0], delayed(y[20:39])])
    with pytest.raises(ValueError, match=r"Partition 1: X has 3 features, but .* 4 features"):
        ranker.fit([blocks[0], delayed(X[20:, :3])], labels)
    rows = da.from_array(X, chunks=(10, WIDTH))
    with pytest.raises(ValueError, match="X has 40 rows and y has 39"):
        ranker.fit(rows, da.from_array(y[:39], chunks=10))
    with pytest.raises(ValueError, match="y must have one dimension, and it has 2"):
        ranker.fit(rows, rows)
    with pytest.raises(ValueError, match="y is missing: only files bring their labels along"):
        ranker.fit(rows)
    with pytest.raises(ValueError, match=r"y must be a dask array or series.* it is ndarray"):
        ranker.fit(rows, y)


def test_one_delayed_block_is_to_be_put_in_a_list(client):
    ranker, (X, y) = DaskCBRanker(client=client), some_rows(20)
    with pytest.raises(ValueError, match=r"a list of delayed blocks .* and it is Delayed"):
        ranker.fit(delayed(X), delayed(y))
    with pytest.raises(ValueError, match=r"y must be .* a list of delayed blocks, like"):
        ranker.fit([delayed(X)], delayed(y))


@pytest.mark.parametrize("X", [np.ones((2, 2)), [[1.0]], [], None])
def test_other_rows_are_refused_with_the_cure(client, X):
    with pytest.raises(ValueError, match=r"X must be a dask array.*: use CBRanker for rows in mem"):
        DaskCBRanker(client=client).fit(X, [1])


def test_the_client_made_last_is_the_default():
    X, y = some_rows(20)
    ranker = DaskCBRanker(C=0.5)
    with in_process(1):
        assert ranker.fit([delayed(X)], [delayed(y)]).n_seen_.sum() == 20
    with pytest.raises(ValueError, match=r"There is no Dask client: make one by `from dask"):
        ranker.fit([delayed(X)], [delayed(y)])


def test_an_asynchronous_client_is_refused():
    X, y = some_rows(20)

    async def fit():
        options = {"processes": False, "n_workers": 0, "dashboard_address": ":0"}
        async with Client(asynchronous=True, **options) as client:
            DaskCBRanker(C=0.5, client=client).fit([delayed(X)], [delayed(y)])

    with pytest.raises(ValueError, match="The client is asynchronous"):
        asyncio.run(fit())


def test_what_is_forgotten_cannot_be_gone_on_from(client):
    parts, X, y = partitioned([60] * 3)
    given = {"C": 0.5, "forgetting": 1e-3, "shuffle": False}
    ranker = DaskCBRanker(**given, client=client).fit(X, y)
    del given["shuffle"]
    assert_close(ranker, merged_by_hand(parts, **given))
    with pytest.raises(ValueError, match=r"forgetting is 0.001, and rankers .* go on with to_loc"):
        ranker.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"forgetting is 0.001, .* use rounds=1 and fit"):
        ranker.set_params(rounds=2).fit(X, y)


def test_bad_parameters_are_refused_before_anything_is_computed(client):
    for bad in ({"rounds": 0}, {"C": -1.0}, {"client": "tcp://"}, {"policy": "lifo"}):
        with pytest.raises(ValueError, match=f"The '{next(iter(bad))}' parameter"):
            DaskCBRanker(**{"client": client} | bad).fit([delayed(never)()], [delayed(never)()])


# What it tells ------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_at_a_terminal_only(client, monkeypatch):
    _, X, y = partitioned([40] * 3)
    for shown, screen in ((True, Terminal()), (False, Terminal()), (True, io.StringIO())):
        monkeypatch.setattr(sys, "stderr", screen)
        DaskCBRanker(C=0.5, rounds=2, client=client, progress=shown).fit(X, y)
        said = screen.getvalue()
        if shown and following.can_be_shown():
            assert "Round 1 of 2" in said
            assert "Round 2 of 2" in said
            assert "3/3" in said
            assert "rows/s" in said
        else:
            assert said == ""


def compile_something(name):
    with one_at_a_time(name):
        logging.getLogger("cbrank").warning("cbrank: compiling for this machine.")


def test_the_client_is_told_once_that_workers_compile(client, caplog):
    with hearing(client):
        for name in ("one", "other"):
            client.gather(client.map(compile_something, [name] * 4, pure=False))
        client.run_on_scheduler(lambda: None)
    told = [record.getMessage() for record in caplog.records if record.name == "cbrank"]
    assert told == ["cbrank: compiling for this machine."]
