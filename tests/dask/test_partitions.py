"""`DaskRanker` on a real cluster: the rows it takes, what it refuses and what it reports."""

import asyncio
import io
import logging
import sys

import cloudpickle
import numpy as np
import pytest
import scipy.sparse as sp

from cbrank import CBRanker

da = pytest.importorskip("dask.array", reason="the cluster needs the extra dask")
pytest.importorskip("distributed", reason="the cluster needs the extra dask")

import dask.dataframe as dd
import pandas as pd
from dask import delayed
from dask.distributed import Client
from partitioning import (
    WIDTH,
    assert_close,
    in_process,
    merged_by_hand,
    never,
    partitioned,
    some_rows,
)

from cbrank.dask import DaskRanker, cluster

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find the tests

# What it takes and gives --------------------------------------------------------------------------


def test_the_first_block_with_rows_says_what_blocks_are(client):
    parts, _, _ = partitioned([60, 60])
    X = [delayed(np.empty((0, 0))), delayed(np.array([])), *(delayed(X) for X, _ in parts)]
    y = [delayed(np.array([])), delayed(np.array([])), *(delayed(y) for _, y in parts)]
    ranker = DaskRanker(CBRanker(C=0.5, shuffle=False), client=client).fit(X, y)
    assert_close(ranker, merged_by_hand(parts, C=0.5))
    with pytest.raises(ValueError, match="every partition is empty"):
        DaskRanker(CBRanker(), client=client).partial_fit(X[:2], y[:2], classes=[0, 1])
    with pytest.raises(ValueError, match=r"Partition 0: a block must be .* and it is list"):
        DaskRanker(CBRanker(), client=client).fit(
            [delayed([[1.0], [2.0]])], [delayed(np.array([0, 1]))]
        )


def test_rows_in_memory_are_scored_at_once(client):
    parts, X, y = partitioned([60, 60])
    ranker = DaskRanker(CBRanker(C=0.5), client=client).fit(X, y)
    rows, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    assert ranker.score(rows, labels) == pytest.approx(ranker.score(X, y))


def test_data_frames_keep_their_names_and_index(client):
    X, y = some_rows(200)
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(1000, 1200)).assign(
        label=np.where(y, "yes", "no")
    )
    table = dd.from_pandas(frame, npartitions=3)
    ranker = DaskRanker(CBRanker(C=0.5), client=client).fit(table[list("abcd")], table["label"])
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
    ranker = DaskRanker(CBRanker(**given, shuffle=False), client=client).fit(*blocks)
    assert_close(ranker, merged_by_hand(sparse, **given))
    assert ranker.to_local()._learned.state.sparse
    scores = client.compute(ranker.decision_function(blocks[0])).result()
    whole = sp.vstack([X for X, _ in sparse])
    np.testing.assert_array_equal(scores, ranker.to_local().decision_function(whole))


def test_scores_are_lazy_and_have_the_chunks_of_the_rows(client):
    parts, X, y = partitioned([60, 0, 40])
    ranker = DaskRanker(CBRanker(C=0.5), client=client).fit(X.rechunk({1: 2}), y)
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


def test_going_on_takes_partitions_of_one_class(client):
    _, X, y = partitioned([60] * 3)
    ranker = DaskRanker(CBRanker(C=0.5), client=client)
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
        DaskRanker(CBRanker(), client=client).fit(
            da.from_array(X, chunks=20), da.from_array(y, chunks=20)
        )
    assert str(distributed.value) == str(local.value)


def test_bad_rows_are_named_by_partition_and_row(client):
    X, y = some_rows(100)
    X[57, 2] = np.nan
    rows, labels = da.from_array(X, chunks=(20, WIDTH)), da.from_array(y, chunks=20)
    for C in (0.5, "auto"):
        ranker = DaskRanker(CBRanker(C=C, random_state=0), client=client)
        with pytest.raises(ValueError, match=r"Partition 2: Input X contains NaN at row 17, col"):
            ranker.fit(rows, labels)
        assert not hasattr(ranker, "coef_")
    rows = da.nan_to_num(rows)
    ranker = DaskRanker(CBRanker(C=0.5), client=client).fit(rows, labels)
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
    ranker = DaskRanker(CBRanker(C=0.5), client=client)
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
    ranker, (X, y) = DaskRanker(CBRanker(), client=client), some_rows(20)
    with pytest.raises(ValueError, match=r"a list of delayed blocks .* and it is Delayed"):
        ranker.fit(delayed(X), delayed(y))
    with pytest.raises(ValueError, match=r"y must be .* a list of delayed blocks, like"):
        ranker.fit([delayed(X)], delayed(y))


@pytest.mark.parametrize("X", [np.ones((2, 2)), [[1.0]], [], None])
def test_other_rows_are_refused_with_the_cure(client, X):
    with pytest.raises(ValueError, match=r"X must be a dask array.*: use CBRanker for rows in mem"):
        DaskRanker(CBRanker(), client=client).fit(X, [1])


def test_the_client_made_last_is_the_default():
    X, y = some_rows(20)
    ranker = DaskRanker(CBRanker(C=0.5))
    with in_process(1):
        assert ranker.fit([delayed(X)], [delayed(y)]).n_seen_.sum() == 20
    with pytest.raises(ValueError, match=r"There is no Dask client: make one by `from dask"):
        ranker.fit([delayed(X)], [delayed(y)])


def test_an_asynchronous_client_is_refused():
    X, y = some_rows(20)

    async def fit():
        options = {"processes": False, "n_workers": 0, "dashboard_address": ":0"}
        async with Client(asynchronous=True, **options) as client:
            DaskRanker(CBRanker(C=0.5), client=client).fit([delayed(X)], [delayed(y)])

    with pytest.raises(ValueError, match="The client is asynchronous"):
        asyncio.run(fit())


# What it reports ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_at_a_terminal_only(client, monkeypatch):
    _, X, y = partitioned([40] * 3)
    for shown, screen in ((True, Terminal()), (False, Terminal()), (True, io.StringIO())):
        monkeypatch.setattr(sys, "stderr", screen)
        DaskRanker(CBRanker(C=0.5), rounds=2, client=client, progress=shown).fit(X, y)
        said = screen.getvalue()
        if shown and cluster.at_terminal():
            assert "Round 1 of 2" in said
            assert "Round 2 of 2" in said
            assert "3/3" in said
            assert "rows/s" in said
        else:
            assert said == ""


def compile_something(name):
    with cluster.compiled_once(name):
        logging.getLogger("cbrank").warning("cbrank: compiling for this machine.")


def test_the_client_is_told_once_that_workers_compile(client, caplog):
    with cluster.messages_logged(client):
        for name in ("one", "other"):
            client.gather(client.map(compile_something, [name] * 4, pure=False))
        client.run_on_scheduler(lambda: None)
    told = [record.getMessage() for record in caplog.records if record.name == "cbrank"]
    assert told == ["cbrank: compiling for this machine."]
