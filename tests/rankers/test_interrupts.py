"""Interrupted anywhere, a ranker has learned the rows up to some row, every learner alike."""

import copy
import functools
import itertools
import os
import signal
import sys
import threading

import numpy as np
import pytest
from disturbances import everywhere
from learners import RANKERS, arrays, assert_same, make
from scipy import sparse

from cbrank import CBRanker, CBRankerCV, kernels
from cbrank.river import RankingClassifier
from cbrank.streams import StreamScaler


def rows(count, width=3, seed=0):
    random = np.random.RandomState(seed)
    X = random.standard_normal((count, width))
    return X, (X[:, 0] + random.standard_normal(count) > 0).astype(int)


KINDS = {
    "auto": (CBRanker(buffer_size=3, random_state=0), 11),
    "auto-forgetting": (CBRanker(buffer_size=3, forgetting=0.01, random_state=0), 41),
    "auto-sparse": (CBRanker(buffer_size=3, covariance="diagonal", random_state=0), 13),
    "forgetting": (CBRanker(0.1, buffer_size=3, forgetting=0.01), 5),
    "reservoir": (CBRanker(0.1, buffer_size=3, policy="reservoir", random_state=0), 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_learner_has_learned_the_same_rows_wherever_it_is_interrupted(kind):
    ranker, stride = KINDS[kind]
    X, y = rows(575)
    X = sparse.csr_array(X) if "sparse" in kind else X
    begun = copy.deepcopy(ranker).partial_fit(X[:505], y[:505])
    ends = {505: begun}
    for subject in everywhere(
        lambda: copy.deepcopy(begun), lambda ranker: ranker.partial_fit(X[505:], y[505:]), stride
    ):
        end = int(subject.n_seen_.sum())
        if end not in ends:
            ends[end] = copy.deepcopy(begun).partial_fit(X[505:end], y[505:end])
        assert_same(subject, ends[end])
        assert subject.intercept_ == ends[end].intercept_
    assert len(ends) > 1
    assert 517 in ends  # where a block ends


def same(one, other):
    one, other = arrays(one), arrays(other)
    return all(np.array_equal(array, other[name]) for name, array in one.items())


@pytest.mark.parametrize("name", RANKERS)
def test_a_first_chunk_and_a_fit_are_learned_whole_or_not_at_all(name):
    X, y = rows(40)
    fresh, whole = make(name), make(name).partial_fit(X, y)
    for subject in everywhere(lambda: make(name), lambda it: it.partial_fit(X, y), 11):
        assert {*vars(subject)} == {*vars(fresh)} or same(subject, whole)
    before = make(name, n_passes=2).fit(X[::-1], y)
    whole = make(name, n_passes=2).fit(X, y)
    for subject in everywhere(lambda: copy.deepcopy(before), lambda it: it.fit(X, y), 37):
        expected = before if same(subject, before) else whole
        assert same(subject, expected)
        assert subject.intercept_ == expected.intercept_
        assert same(subject.fit(X, y), whole)


def test_an_interrupted_search_leaves_the_ranker_as_it_was():
    X, y = rows(40)
    before = CBRankerCV(Cs=[0.1, 1.0], cv=2, random_state=0).fit(X, y)
    whole = copy.deepcopy(before).fit(X[::-1], y)
    for subject in everywhere(lambda: copy.deepcopy(before), lambda it: it.fit(X[::-1], y), 101):
        expected = before if same(subject, before) else whole
        assert same(subject, expected)
        assert subject.scores_.tolist() == expected.scores_.tolist()


def test_an_intercept_stays_where_no_row_was_learned():
    X, y = rows(60)
    fitted = CBRanker(0.1, random_state=0).fit(X[:40], y[:40])
    for subject in everywhere(
        lambda: copy.deepcopy(fitted), lambda ranker: ranker.partial_fit(X[40:], y[40:]), 1
    ):
        learned = subject.n_seen_.sum() > 40
        assert (subject._learned.state.intercept is None) == learned


def failing_once(function, calls):
    """Return a function that is interrupted at the first of so many calls, and then works."""
    count = itertools.count(1)

    def interrupted(*arguments):
        if next(count) == calls:
            raise KeyboardInterrupt
        return function(*arguments)

    return interrupted


@pytest.mark.parametrize("learner", [1, 2, 3])
def test_an_interrupt_between_learners_waits_for_the_others(learner, monkeypatch):
    X, y = rows(300)
    begun = CBRanker(random_state=0).partial_fit(X[:200], y[:200])
    end = 224  # of a block
    block = copy.deepcopy(begun).partial_fit(X[200:end], y[200:end])
    subject = copy.deepcopy(begun)
    monkeypatch.setattr(kernels.full, "learn", failing_once(kernels.full.learn, learner))
    with pytest.raises(KeyboardInterrupt):
        subject.partial_fit(X[200:], y[200:])
    assert_same(subject, begun if learner == 1 else block)


def test_an_interrupt_while_learners_forget_waits_for_the_others(monkeypatch):
    X, y = rows(300)
    begun = CBRanker(forgetting=0.01, random_state=0).partial_fit(X[:200], y[:200])
    whole = copy.deepcopy(begun).partial_fit(X[200:256], y[200:256])
    forget = kernels.forgetting.forget
    for learner in (1, 2):
        monkeypatch.setattr(kernels.forgetting, "forget", failing_once(forget, learner))
        subject = copy.deepcopy(begun)
        with pytest.raises(KeyboardInterrupt):
            subject.partial_fit(X[200:], y[200:])
        assert_same(subject, whole)


@pytest.fixture
def interrupted_after():
    """A function that calls another and sends SIGINT to this process meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals come to the main thread")
    armed, arrived = False, threading.Event()

    def receive(number, frame):
        arrived.set()
        if armed:
            raise KeyboardInterrupt

    def call(delay, step):
        nonlocal armed
        arrived.clear()
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            armed = True
            step()
            armed = False
        except KeyboardInterrupt:
            armed = False
        assert arrived.wait(10)

    before = signal.signal(signal.SIGINT, receive)
    yield call
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="there SIGINT ends the process")
def test_signals_at_any_time_leave_a_row_boundary(interrupted_after):
    X, y = rows(4400, 30)
    begun = CBRanker(random_state=0).partial_fit(X[:400], y[:400])
    ends = {400: begun}
    for delay in np.geomspace(1e-4, 0.3, 25):
        subject = copy.deepcopy(begun)
        interrupted_after(delay, functools.partial(subject.partial_fit, X[400:], y[400:]))
        end = int(subject.n_seen_.sum())
        if end not in ends:
            ends[end] = copy.deepcopy(begun).partial_fit(X[400:end], y[400:end])
        assert_same(subject, ends[end], rtol=1e-9, atol=1e-12)
    assert len(ends) > 2


def test_a_scaler_learns_all_rows_or_none():
    X, _ = rows(30, 4)
    narrow, wide = sparse.csr_array(X[:20, :2]), sparse.csr_array(X[20:])
    before = StreamScaler().fit(narrow)
    after = copy.deepcopy(before).partial_fit(wide)
    states = {len(scaler._known["means"]): scaler._known for scaler in (before, after)}
    for subject in everywhere(lambda: copy.deepcopy(before), lambda it: it.partial_fit(wide), 1):
        assert subject.n_features_in_ == len(subject._known["means"])
        for key, array in states[subject.n_features_in_].items():
            np.testing.assert_array_equal(subject._known[key], array)
    for subject in everywhere(lambda: copy.deepcopy(before), lambda it: it.fit(X), 1):
        assert subject.n_features_in_ == len(subject._known["means"])
        assert (subject.n_features_in_, subject.n_rows_seen_) in [(2, 20), (4, 30)]


def test_an_interrupted_river_classifier_goes_on():
    X, y = rows(40, 6)
    names = [[f"f{j}" for j in range(2 + i // 10)] for i in range(40)]
    stream = [
        (dict(zip(own, x, strict=False)), bool(label))
        for own, x, label in zip(names, X, y, strict=True)
    ]
    for ranker in (CBRanker(0.1), CBRanker(0.1, covariance="diagonal")):
        begun = RankingClassifier(ranker)
        for x, label in stream[:20]:
            begun.learn_one(x, label)
        for subject in everywhere(
            lambda begun=begun: copy.deepcopy(begun), lambda it: it.learn_one(*stream[20]), 2
        ):
            learned = int(subject.ranker_.n_seen_.sum())
            for x, label in stream[learned:]:
                subject.learn_one(x, label)
            assert subject.ranker_.n_seen_.sum() == 40
            assert subject.feature_names_ == [f"f{j}" for j in range(5)]


@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_threads_of_matrix_products_come_back(call, monkeypatch):
    threads, calls = {"one": 4, "other": 3}, itertools.count(1)

    class Library:
        def __init__(self, name):
            self.name = name

        def get_num_threads(self):
            return threads[self.name]

        def set_num_threads(self, number):
            threads[self.name] = number
            if next(calls) == call:
                raise KeyboardInterrupt

    libraries, one_thread = [*map(Library, threads)], kernels.threads._OneThread()
    monkeypatch.setattr(kernels.threads, "_libraries", lambda: libraries)
    with pytest.raises(KeyboardInterrupt), one_thread:
        assert threads == {"one": 1, "other": 1}
    assert threads == {"one": 4, "other": 3}
    with one_thread:
        assert threads == {"one": 1, "other": 1}
    assert threads == {"one": 4, "other": 3}
