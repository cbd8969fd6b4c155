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


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", [name for name in RANKERS if "auto" not in name])
def test_what_a_single_learner_says_is_its_plain_reading(name, as_rows):
    X, y = real("svmguide3", 420, "standard")
    ranker = make(name).start(X.shape[1], np.array([0, 1]), sparse=as_rows is sparse.csr_array)
    both = isinstance(ranker, CBRanker)
    served = [int(bool(ranker.average))] if both else None
    by_rows = ranker.takes_dense_rows()
    honest = Honest(X.shape[1], [0], 1 + both, by_rows=by_rows, served=served)
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
    auc, error = ranker.progressive_auc_, standard_error([p[1:] for p in honest.parts], ranker.progressive_auc_)
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
