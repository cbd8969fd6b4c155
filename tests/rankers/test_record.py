"""What rankers say of rows before they learn from them, against a plain reading of it."""

import copy
import math

import numpy as np
import pytest
from learners import RANKERS, make
from real_data import real
from record_oracles import Honest, blocks, standard_error, weighted_auc
from scipy import sparse
from sklearn.metrics import roc_auc_score

from cbrank import CBRanker

every_ranker = pytest.mark.parametrize("name", RANKERS)
NORMAL_95 = 1.959963984540054


@every_ranker
def test_rows_are_tested_in_blocks_by_what_was_served_before_them(name):
    X, y = real("german", 500, "standard")
    ranker, ends, held, history = make(name), blocks(500), None, []
    for end, begin in zip(ends, [0, *ends], strict=False):
        for place in range(begin, end):
            ranker.learn_one(X[place], y[place], classes=[0, 1])
        if held is not None:
            labels = y[begin:end]
            weight = 2 * labels.sum() * (1 - labels).sum() / labels.size
            history.append((end, roc_auc_score(labels, X[begin:end] @ held), weight))
        held = ranker.coef_[0]
    found = ranker.progressive_auc_history_
    assert found.dtype.names == ("rows", "auc", "weight")
    for ours, theirs in zip(found, history, strict=True):
        assert tuple(ours) == pytest.approx(theirs, abs=1e-12)
    assert ranker.progressive_auc_ == pytest.approx(weighted_auc(history), abs=1e-12)


def readouts(ranker):
    """Return the weights of each readout of a ranker that has one learner."""
    if isinstance(ranker, CBRanker):
        average = ranker.average
        both = [ranker.set_params(average=kind).coef_[0] for kind in (False, True)]
        ranker.set_params(average=average)
        return {0: both}
    return {0: [ranker.coef_[0]]}


single = pytest.mark.parametrize("name", [name for name in RANKERS if "auto" not in name])


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@single
def test_what_a_single_learner_says_is_its_plain_reading(name, as_rows):
    X, y = real("svmguide3", 420, "standard")
    ranker = make(name).start(X.shape[1], np.array([0, 1]), sparse=as_rows is sparse.csr_array)
    both = isinstance(ranker, CBRanker)
    served = [int(bool(ranker.average))] if both else None
    by_rows, kept = ranker.takes_dense_rows(), ranker._buffer.came.shape[1]
    honest = Honest(X.shape[1], [0], 1 + both, by_rows=by_rows, served=served, kept=kept)
    for place, (row, label) in enumerate(zip(X, y, strict=True)):
        weights = readouts(ranker)
        if place % 7 == 0:
            [[_, expected]] = ranker.predict_proba(row.reshape(1, -1))
            assert honest.proba(row, weights) == pytest.approx(expected, abs=1e-9)
        full = honest.take(row, label, weights)
        ranker.learn_one(as_rows(row.reshape(1, -1)) if as_rows is not np.asarray else row, label)
        if full:
            honest.measure()
            honest.begin(readouts(ranker))
    compare(ranker, honest, readouts(ranker))


def compare(ranker, honest, weights):
    """Check that a ranker's record says what the plain reading does."""
    record = ranker._record
    np.testing.assert_allclose(record.curve, honest.curve.theta, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(record.evidence[honest.learners], honest.auc[honest.learners])
    np.testing.assert_allclose(record.share, honest.curve.share)
    np.testing.assert_allclose(record.errors, honest.curve.errors, rtol=1e-7, atol=1e-9)
    served = honest.serve(weights)
    np.testing.assert_allclose(ranker.coef_[0], served.w, rtol=1e-9, atol=1e-12)
    assert ranker.progressive_auc_ == pytest.approx(weighted_auc(honest.history))
    auc, error = (
        ranker.progressive_auc_,
        standard_error([p[1:] for p in honest.parts], ranker.progressive_auc_),
    )
    ends = auc - NORMAL_95 * error, auc + NORMAL_95 * error
    assert ranker.progressive_auc_interval_ == pytest.approx(ends)
    auc, error = honest.recent()
    assert ranker.recent_auc_ == pytest.approx(auc)
    ends = auc - NORMAL_95 * error, auc + NORMAL_95 * error
    assert ranker.recent_auc_interval_ == pytest.approx(ends)
    negative, positive = honest.curve.share + 0.5
    for point, odds in (("balanced", positive / negative), ("accuracy", 1.0)):
        expected = honest.intercept(weights, math.log(odds))
        ours = copy.deepcopy(ranker).set_params(operating_point=point).intercept_[0]
        assert ours == pytest.approx(expected, rel=1e-6, abs=1e-9 * served.unit)


class Mixture:
    """Five rankers alone, one for each C, halved and mixed by a plain reading, row by row."""

    FORGETFUL = 9

    def __init__(self, width, average, **parameters):
        self.C = [2.0**k for k in range(-12, 5, 4)]
        self.likely = {g: abs(math.log2(C) + 4) for g, C in enumerate(self.C)}
        self.alone = {
            g: CBRanker(C=C, buffer_size=200, random_state=0, **parameters).start(
                width, np.array([0, 1])
            )
            for g, C in enumerate(self.C)
        }
        served = {True: [1], False: [0], "auto": [0, 1]}[average]
        by_rows = parameters["covariance"] == "full"
        self.honest = Honest(width, range(10), 2, by_rows=by_rows, served=served, kept=200)
        self.honest.learners = list(range(5))
        self.honest.handicap = {g: 0.00025 * self.likely[g] for g in range(5)}
        self.cuts = {512: 3, 1024: 2, 2048: 1}
        self.leader = 4

    def weights(self):
        return {g: readouts(ranker)[0] for g, ranker in self.alone.items()}

    def learn(self, x, label):
        full = self.honest.take(x, label, self.weights())
        for ranker in self.alone.values():
            ranker.learn_one(x, label)
        if full:
            self.honest.measure()
            self.halve()
            self.honest.begin(self.weights())

    def halve(self):
        honest = self.honest

        mix = honest.mix()

        def badness(g):
            return -sum(mix[g, r] for r in honest.served), self.likely[g], g

        order = sorted(honest.learners, key=badness)
        self.leader, rows, rare = order[0], honest.seen.sum(), honest.seen.min()
        choosing = [g for g in order if g != self.FORGETFUL]
        for at, left in self.cuts.items():
            if rows >= at and rare >= at // 32 and len(choosing) > left:
                choosing = self.neighbours_first(choosing)[:left]
                break
        if rows >= 512 and self.FORGETFUL not in self.alone:
            forgetful = copy.deepcopy(self.alone[self.leader]).set_params(forgetting=0.001)
            if not honest.by_rows:  # a diagonal covariance
                forgetful.set_params(C=min(forgetful.C, 2.0**-8))._model = forgetful.prior()
            self.likely[self.FORGETFUL] = abs(math.log2(forgetful.C) + 4)
            honest.handicap[self.FORGETFUL] = 0.00025 * self.likely[self.FORGETFUL]
            self.alone[self.FORGETFUL] = forgetful
            for known in (honest.level, honest.centre, honest.typical, honest.auc):
                known[self.FORGETFUL] = known[self.leader]
        honest.learners = sorted(choosing) + [self.FORGETFUL] * (self.FORGETFUL in self.alone)
        self.alone = {g: self.alone[g] for g in honest.learners}

    @staticmethod
    def neighbours_first(order):
        """Return learners, whose numbers rise with C, but those beside the best come after it."""
        best = order[0]
        below, above = [g for g in order if g < best], [g for g in order if g > best]
        beside = {best, max(below, default=best), min(above, default=best)}
        return sorted(order, key=lambda g: g not in beside)


@pytest.mark.parametrize(
    ("average", "covariance"),
    [("auto", "full"), (True, "full"), (False, "full"), ("auto", "diagonal"), (True, "diagonal")],
)
def test_what_is_served_is_the_mixture_of_rankers_that_learn_alone(average, covariance):
    X, y = real("magic04", 1600, "standard")
    plain = Mixture(X.shape[1], average, covariance=covariance)
    ranker = CBRanker(average=average, covariance=covariance, buffer_size=200, random_state=0)
    ranker.start(X.shape[1], np.array([0, 1]))
    for place, (row, label) in enumerate(zip(X, y, strict=True)):
        if place % 67 == 0:
            [[_, p]] = ranker.predict_proba([row])
            assert plain.honest.proba(row, plain.weights()) == pytest.approx(p, abs=1e-8)
            served = plain.honest.serve(plain.weights()).w
            np.testing.assert_allclose(ranker.coef_[0], served, rtol=1e-8, atol=1e-10)
        plain.learn(row, label)
        ranker.learn_one(row, label)
    assert sorted(ranker._halving.alive.tolist()) == sorted(plain.honest.learners)
    assert ranker._halving.alive[0] == plain.leader
    assert len(ranker._halving.alive) == 3
    alone = plain.alone[plain.leader]
    assert ranker.C_ == alone.C_
    assert ranker.forgetting_ == alone.forgetting_
    np.testing.assert_allclose(ranker.covariance_, alone.covariance_, rtol=1e-9, atol=1e-15)
    evidence = ranker._record.evidence
    np.testing.assert_allclose(evidence[:5], plain.honest.auc[:5])
    best = evidence[:5, plain.honest.served].max(axis=1)
    np.testing.assert_array_equal(ranker.progressive_auc_path_, best)
    history = [tuple(row) for row in ranker.progressive_auc_history_]
    assert len(history) == len(plain.honest.history)
    for ours, theirs in zip(history, plain.honest.history, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-12)
