"""scikit-learn's own checks, and what rankers are asked to do inside scikit-learn."""

import pytest
from learners import RANKERS, least_auc, make
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cbrank import CBRankerCV

NOT_OURS = {
    "check_sample_weight_equivalence_on_dense_data": "asks that a row of weight 2 be the row "
    "twice; in a stream the second visit meets another model",
    "check_sample_weight_equivalence_on_sparse_data": "the same on sparse rows",
}
CHOOSES_FIRST = {
    "check_n_features_in_after_fitting": "asks that partial_fit start a stream, which has no C "
    "before fit chooses it (tests/rankers/test_cv.py asks for the rest)",
}
ESTIMATORS = RANKERS | {"cbr-cv": CBRankerCV(Cs=3)}


def expected_failures(ranker):
    return NOT_OURS | CHOOSES_FIRST if isinstance(ranker, CBRankerCV) else NOT_OURS


# Some checks have columns of scale 100 or class weights of 1,000, with which Uni-Exp diverges.
@pytest.mark.filterwarnings("ignore:UniExpRanker diverged:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(list(ESTIMATORS.values()), expected_failed_checks=expected_failures)
def test_scikit_learn_accepts_every_ranker(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", RANKERS)
def test_rankers_work_in_pipelines_and_searches(name, german):
    X, y = german
    scaler = StandardScaler().set_output(transform="pandas")
    scores = cross_val_score(make_pipeline(scaler, make(name)), X, y, cv=3)
    assert scores.mean() > least_auc(name)
    step = "C" if hasattr(make(name), "C") else "step"
    search = GridSearchCV(make(name), {step: [1e-3, 1e-2]}, scoring="roc_auc", cv=3).fit(X, y)
    assert search.best_score_ > least_auc(name)


def test_the_default_ranks_like_batch_logistic_regression(german):
    X, y = german
    ours = cross_val_score(make("cbr"), X, y, cv=5).mean()
    batch = cross_val_score(LogisticRegression(), X, y, cv=5, scoring="roc_auc").mean()
    assert ours > batch - 0.02
