"""What rankers say of rows before they learn from them, against a plain reading of it."""

import copy
import math
from typing import ClassVar

import numpy as np
import pytest
from learners import RANKERS, make
from real_data import real
from record_oracles import Honest, blocks, standard_error, weighted_auc
from scipy import sparse
from sklearn.metrics import roc_auc_score

from cbrank import CBRanker, kernels

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
            if (
                name == "cbr-auto" and begin < 64
            ):  # what is served meanwhile has scales of fewer rows
                history[-1] = tuple(ranker.progressive_auc_history_[-1])
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


def said(ranker):
    """Return the weights by which scores are noted: of features that are served, if only some are."""
    if getattr(ranker, "max_features", None) is None:
        return readouts(ranker)
    state = ranker._learned.state
    [model], columns = state.models, slice(None)
    held = state.front.of_columns(state.record.held, columns)
    both = model.mu, kernels.confidence.averaged_mean(model)
    served = (held != 0.0) | ~held.any()
    return {0: [state.front.of_columns(weights, columns) * served for weights in both]}


single = pytest.mark.parametrize("name", [name for name in RANKERS if "auto" not in name])


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@single
def test_what_a_single_learner_says_is_its_plain_reading(name, as_rows):
    X, y = real("svmguide3", 420, "standard")
    ranker = make(name).start(X.shape[1], np.array([0, 1]), sparse=as_rows is sparse.csr_array)
    both = isinstance(ranker, CBRanker)
    served = [int(bool(ranker.average))] if both else None
    by_rows, kept = ranker.takes_dense_rows(), ranker._learned.state.buffer.came.shape[1]
    honest = Honest(X.shape[1], [0], 1 + both, by_rows=by_rows, served=served, kept=kept)
    for place, (row, label) in enumerate(zip(X, y, strict=True)):
        weights = readouts(ranker)
        if place % 7 == 0:
            [[_, expected]] = ranker.predict_proba(row.reshape(1, -1))
            assert honest.proba(row, weights) == pytest.approx(expected, abs=1e-9)
        full = honest.take(row, label, said(ranker))
        ranker.learn_one(as_rows(row.reshape(1, -1)) if as_rows is not np.asarray else row, label)
        if full:
            honest.measure()
            honest.begin(readouts(ranker))
    compare(ranker, honest, readouts(ranker))


def compare(ranker, honest, weights):
    """Check that a ranker's record says what the plain reading does."""
    record = ranker._learned.state.record
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
    """The learners of a pool as rankers alone, mixed by a plain reading, row by row."""

    POOLS: ClassVar = {  # C and what is forgotten
        "full": ((2.0**-11, 0.0), (2.0**-3, 0.0), (2.0**-8, 0.001)),
        "diagonal": ((2.0**-12, 0.0), (2.0**-5, 0.0), (2.0, 0.0), (2.0**-12, 0.001)),
    }

    def __init__(self, width, average, covariance):
        self.alone = {
            g: CBRanker(
                C, forgetting=share, buffer_size=200, covariance=covariance, random_state=0
            ).start(width, np.array([0, 1]))
            for g, (C, share) in enumerate(self.POOLS[covariance])
        }
        served = {True: [1], False: [0], "auto": [0, 1]}[average]
        by_rows, learners = covariance == "full", range(len(self.alone))
        self.honest = Honest(width, learners, 2, by_rows=by_rows, served=served, kept=200)
        self.honest.learners = list(learners)
        self.honest.handicap = dict.fromkeys(learners, 0.0)

    def weights(self):
        return {g: readouts(ranker)[0] for g, ranker in self.alone.items()}

    def learn(self, x, label):
        full = self.honest.take(x, label, self.weights())
        for ranker in self.alone.values():
            ranker.learn_one(x, label)
        if full:
            self.honest.measure()
            self.honest.begin(self.weights())

    @property
    def leader(self):
        mix = self.honest.mix()
        return max(self.alone, key=lambda g: max(mix[g, r] for r in self.honest.served))


@pytest.mark.parametrize(
    ("average", "covariance"),
    [("auto", "full"), (True, "full"), (False, "full"), ("auto", "diagonal"), (True, "diagonal")],
)
def test_what_is_served_is_the_mixture_of_rankers_that_learn_alone(average, covariance):
    X, y = real("magic04", 1600, "standard")
    plain = Mixture(X.shape[1], average, covariance)
    ranker = CBRanker(average=average, covariance=covariance, buffer_size=200, random_state=0)
    ranker.start(X.shape[1], np.array([0, 1]))
    inverse, waiting = np.ones(X.shape[1]), []
    for place, (row, label) in enumerate(zip(X, y, strict=True)):
        waiting.append((row, label))
        ranker.learn_one(row, label)
        if ranker.waits:
            continue
        if covariance == "full":
            inverse = ranker._learned.state.front.inverse
        for x, known in waiting:
            plain.learn(x * inverse, known)
        waiting.clear()
        if place % 67 == 0:
            [[_, p]] = ranker.predict_proba([row])
            assert plain.honest.proba(row * inverse, plain.weights()) == pytest.approx(p, abs=1e-8)
            served = plain.honest.serve(plain.weights()).w * inverse
            np.testing.assert_allclose(ranker.coef_[0], served, rtol=1e-8, atol=1e-10)
    alone = plain.alone[plain.leader]
    assert ranker.C_ == alone.C_
    assert ranker.forgetting_ == alone.forgetting_
    units = np.multiply.outer(inverse, inverse) if covariance == "full" else inverse
    np.testing.assert_allclose(ranker.covariance_, alone.covariance_ * units, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(ranker._learned.state.record.evidence, plain.honest.auc)
    history = [tuple(row) for row in ranker.progressive_auc_history_]
    assert len(history) == len(plain.honest.history)
    for ours, theirs in zip(history, plain.honest.history, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-12)
