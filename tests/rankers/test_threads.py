"""Threads that share one object: those that learn take turns, and those that read come to no harm."""

import contextlib
import copy
import multiprocessing
import os
import pickle
import threading
from functools import partial

import numpy as np
import pytest
from disturbances import at_once
from learners import RANKERS, SPARSE, arrays, make
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import cbrank
from cbrank import AdditiveRanker, CBRanker, OAMRanker
from cbrank.kernels.threads import _libraries, one_thread
from cbrank.metrics import ProgressiveAUC
from cbrank.river import RankingClassifier
from cbrank.streams import StreamScaler


def rows(count, width, density=1.0, seed=0):
    random = np.random.RandomState(seed)
    X = random.standard_normal((count, width)) * (random.random_sample((count, width)) < density)
    return X, (X[:, 0] + random.standard_normal(count) > 0).astype(int)


def same(one, other):
    one, other = arrays(one), arrays(other)
    return all(np.array_equal(array, other[name]) for name, array in one.items())


@pytest.mark.parametrize("name", RANKERS)
def test_chunks_of_two_threads_are_learned_one_after_the_other(name):
    as_rows = sparse.csr_array if name in SPARSE else np.asarray
    short, long = rows(400, 30, 0.1), rows(60, 30, 0.9, seed=1)
    chunks = [(as_rows(X), y) for X, y in (short, long)]
    begun = make(name).partial_fit(as_rows(short[0][:50]), short[1][:50])
    orders = [
        copy.deepcopy(begun).partial_fit(*a).partial_fit(*b) for a, b in (chunks, chunks[::-1])
    ]
    for _ in range(3):
        ranker = copy.deepcopy(begun)
        at_once(*(partial(ranker.partial_fit, *chunk) for chunk in chunks))
        assert any(same(ranker, expected) for expected in orders)


def test_a_stream_may_be_begun_by_any_thread():
    X, y = rows(200, 5)
    ranker = CBRanker(0.1)
    at_once(*(partial(ranker.partial_fit, X[i::4], y[i::4], classes=[0, 1]) for i in range(4)))
    assert ranker.n_seen_.sum() == 200


def test_rows_of_many_threads_are_all_learned_while_others_read():
    X, y = rows(400, 8, 0.5)
    thin = sparse.csr_array(X)
    for ranker, table in (
        (CBRanker(random_state=0), X),
        (CBRanker(0.1, covariance="diagonal"), thin),
    ):
        ranker.partial_fit(table[:20], y[:20])
        left = threading.Event()

        def learn(part, ranker=ranker, table=table):
            for place in range(20 + part, 400, 3):
                ranker.learn_one(table[[place]] if table is thin else table[place], y[place])

        def read(ranker=ranker, table=table, left=left):
            while not left.is_set():
                assert np.isfinite(ranker.decision_function(table)).all()
                assert ranker.predict(table).size == 400
                assert not np.isnan(ranker.intercept_[0])

        def learn_all(left=left):
            try:
                at_once(*(partial(learn, part) for part in range(3)))
            finally:
                left.set()

        at_once(learn_all, read)
        assert ranker.n_seen_.sum() == 400
        assert ranker.intercept_ == copy.deepcopy(ranker).intercept_


def test_files_written_while_another_thread_learns_are_of_one_moment(tmp_path):
    X, y = rows(200, 30, 0.3)
    chunk, left = (sparse.csr_array(X), y), threading.Event()
    ranker = OAMRanker().partial_fit(*chunk)
    scaled = make_pipeline(StreamScaler("maxabs").fit(chunk[0]), ranker)

    def learn():
        try:
            for _ in range(30):
                ranker.partial_fit(*chunk)
        finally:
            left.set()

    def save():
        while not left.is_set():
            for model in (ranker, scaled):
                cbrank.save(model, tmp_path / "model")
                assert np.isfinite(cbrank.load(tmp_path / "model").predict(chunk[0])).all()
            assert cbrank.load(tmp_path / "model")[-1].n_seen_.sum() % 200 == 0

    at_once(learn, save)


def test_copies_made_while_another_thread_learns_go_on():
    X, y = rows(240, 60, 0.1)
    wide, labels = rows(6, 60, 1.0, seed=1)
    chunks = [(sparse.csr_array(X), y), (sparse.csr_array(wide), labels)]
    ranker = CBRanker(0.1, covariance="diagonal").partial_fit(*chunks[1])
    left = threading.Event()

    def learn():
        try:
            for number in range(40):
                ranker.partial_fit(*chunks[number % 2])
                ranker.resize(60 + number)
                ranker.resize(60)
        finally:
            left.set()

    def take_copies():
        while not left.is_set():
            whole = copy.deepcopy(ranker)
            assert whole.n_seen_.sum() % 246 in (0, 6)  # never in the midst of a chunk
            for other in (whole, pickle.loads(pickle.dumps(ranker))):
                width = other.n_features_in_
                one = sparse.csr_array(np.ones((1, width)))
                assert np.isfinite(other.partial_fit(one, [1]).decision_function(one)).all()

    at_once(learn, take_copies)
    assert ranker.n_seen_.sum() == 20 * 246 + 6


def test_copies_do_not_wait_for_each_other():
    X, y = rows(40, 3)
    ranker = CBRanker(0.1).partial_fit(X, y)
    copies = [copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker)), clone(ranker)]
    with ranker._own.lock:
        for other in copies:
            [learned] = at_once(partial(other.partial_fit, X, y))
            assert learned is other
    assert "_own" not in ranker.__getstate__()
    assert pickle.loads(pickle.dumps(vars(ranker)))["_own"] is not ranker._own


def test_a_river_classifier_gives_every_feature_a_column_of_its_own():
    X, y = rows(240, 40, 0.2)
    model = RankingClassifier(CBRanker(0.1, covariance="diagonal"))
    known = [{f"f{j}": row[j] for j in np.flatnonzero(row).tolist()} for row in X]

    def learn(part):
        for place in range(part, 240, 4):
            model.learn_one(known[place], bool(y[place]))
            assert 0 <= model.predict_proba_one(known[place])[True] <= 1

    at_once(*(partial(learn, part) for part in range(4)))
    ranker = model.ranker_
    assert ranker.n_seen_.sum() == 240
    assert sorted(model._columns.values()) == list(range(40))
    assert np.isfinite(ranker.coef_).all()


@pytest.mark.parametrize("kind", ["standard", "maxabs", "unit", "none"])
def test_a_scaler_takes_rows_of_any_width_from_any_thread(kind):
    X, _ = rows(300, 50, 0.3)
    scaler = StreamScaler(kind).fit(sparse.csr_array(X[:1, :2]))

    def learn(part):
        for place in range(part, 300, 3):
            row = sparse.csr_array(X[[place], : 2 + place % 49])
            assert np.isfinite(scaler.learn_transform(row).data).all()
            scaler.transform(row)

    at_once(*(partial(learn, part) for part in range(3)))
    assert (scaler.n_rows_seen_, scaler.n_features_in_) == (301, 50)


def test_a_window_counts_the_rows_of_all_threads():
    auc, random = ProgressiveAUC(window=50), np.random.RandomState(0)
    labels, scores = random.randint(2, size=(4, 2000)), random.randint(9, size=(4, 2000))
    at_once(*map(partial(partial, auc.update), labels, scores))
    assert auc.n_rows == 50
    assert 0 <= auc.get() <= 1
    assert auc.update([0] * 25 + [1] * 25, range(50)).get() == 1.0
    assert pickle.loads(pickle.dumps(auc)).get() == 1.0


# Forks --------------------------------------------------------------------------------------------

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no forks")
threads_fork = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


def in_child(task):
    """Return what a task returns in a forked process, or its error; fail if it hangs."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def run():
        try:
            theirs.send(task())
        except RuntimeError as error:
            theirs.send(error)

    process = context.Process(target=run)
    process.start()
    try:
        assert ours.poll(60), "the child process hangs"
        return ours.recv()
    finally:
        process.kill()
        process.join()


def learned_rows(ranker, X, y):
    return ranker.partial_fit(X, y).n_seen_.sum()


@contextlib.contextmanager
def held(*contexts):
    """Let another thread hold locks meanwhile."""
    inside, done = threading.Event(), threading.Event()

    def hold():
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context)
            inside.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


@forks
@threads_fork
@pytest.mark.parametrize("kind", [CBRanker, AdditiveRanker])
def test_a_forked_child_refuses_a_ranker_that_a_thread_of_its_parent_was_teaching(kind, tmp_path):
    X, y = rows(600, 4)
    ranker, other = (kind(random_state=0).partial_fit(X, y) for _ in range(2))
    scores = ranker.decision_function(X)
    with held(ranker._own.lock):
        for change in (
            lambda: ranker.partial_fit(X, y),
            lambda: ranker.learn_one(X[0], y[0]),
            lambda: copy.deepcopy(ranker),
            lambda: pickle.dumps(ranker),
            lambda: cbrank.save(ranker, tmp_path / "model"),
        ):
            error = in_child(change)
            assert isinstance(error, RuntimeError)
            assert "thread of the parent process" in str(error)
        assert np.array_equal(in_child(lambda: ranker.decision_function(X)), scores)
        assert in_child(partial(learned_rows, other, X, y)) == 1200
        assert in_child(partial(learned_rows, clone(ranker), X, y)) == 600
    assert in_child(partial(learned_rows, ranker, X, y)) == 1200
    assert learned_rows(ranker, X, y) == 1200


@forks
@threads_fork
def test_a_ranker_that_the_forking_thread_holds_is_its_own_in_the_child():
    X, y = rows(60, 4)
    ranker = CBRanker(0.1).partial_fit(X, y)
    with ranker._own.lock:
        assert in_child(partial(learned_rows, ranker, X, y)) == 120


@forks
@threads_fork
def test_a_forked_child_has_all_blas_threads_again():
    def threads_and_inside():
        with one_thread:
            inside = one_thread._inside
        return [library.get_num_threads() for library in _libraries()], inside

    before = threads_and_inside()
    with held(one_thread):
        assert in_child(threads_and_inside) == before
    with held(one_thread._lock):
        assert in_child(threads_and_inside) == before
    assert before == threads_and_inside()
