"""The study's protocol against a plain reading of section 4.2 of the paper."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_data import real
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from cbrank import AdaOAMRanker, CBRanker, OAMRanker, OPAUCRanker, UniExpRanker, datasets
from cbrank.methods import METHODS
from cbrank.metrics import accuracy_at_operating_point, optimal_operating_point
from cbrank.study import splits
from cbrank.study.measures import auc
from cbrank.study.protocol import evaluate
from cbrank.study.selection import Choice, best_of, choose, cross_validation, held_out_aucs
from cbrank.study.settings import SCALINGS, Grid, Settings, quick
from cbrank.study.sketch_grid import fit_steps
from cbrank.study.splits import split

PAPER = {"average": False, "buffer_size": 50, "eta": 0.7}
PLAIN = {
    "CBR_RS": lambda C, seed: CBRanker(C, policy="reservoir", random_state=seed, **PAPER),
    "CBR_FIFO": lambda C, seed: CBRanker(C, policy="fifo", random_state=seed, **PAPER),
    "Uni-Exp": lambda step, seed: UniExpRanker(step, random_state=seed),
    "OPAUC": lambda step, seed: OPAUCRanker(step, regularization=1e-4, random_state=seed),
    "OAM_seq": lambda C, seed: OAMRanker(C, buffer_size=50, random_state=seed),
    "AdaOAM": lambda step, seed: AdaOAMRanker(
        step, regularization=1e-4, smoothing=0.5, random_state=seed
    ),
    "Batch LR": lambda C, seed: LogisticRegression(C=C, solver="newton-cholesky", max_iter=1000),
}
SETTINGS = Settings(5, exponents=(-10, -6, -2, 2, 6, 10), probes=(), bound=10, benchmark_rows=400)
NARROW = Settings(seed=5, exponents=(-1, 0, 1), probes=(-12, 9), bound=22, benchmark_rows=400)


def fitted(make, value, seed, X, y):
    ranker = make(value, seed)
    if hasattr(ranker, "shuffle"):
        ranker.set_params(shuffle=False)
    return ranker.fit(X, y)


def plain_run(name, dataset, scaling, run, settings=SETTINGS):
    """The whole protocol with nothing but loops."""
    X, y, _ = datasets.load(dataset)
    seed = settings.run_seed(dataset, run)
    order = np.random.RandomState(seed).permutation(len(y))
    n_train, n_test = settings.benchmark_rows, len(y) // 5
    assert n_train < len(y) - n_test
    order = np.concatenate([order[:n_train], order[-n_test:]])
    X, y = X[order], y[order]
    if scaling == "unit":
        norms = np.sqrt((X * X).sum(axis=1, keepdims=True))
        X = X / np.where(norms > 0, norms, 1)
    elif scaling == "standard":
        X = StandardScaler().fit(X[:n_train]).transform(X)
    X_train, y_train, X_test, y_test = X[:n_train], y[:n_train], X[n_train:], y[n_train:]

    def mean_auc(exponent):
        aucs = []
        for fit, held in StratifiedKFold(3).split(X_train, y_train):
            ranker = fitted(PLAIN[name], 2.0**exponent, seed, X_train[fit], y_train[fit])
            scores = ranker.decision_function(X_train[held])
            lost = getattr(ranker, "diverged_", False)
            aucs.append(-np.inf if lost else roc_auc_score(y_train[held], scores))
        return float(np.mean(aucs))

    more = settings.exponents if scaling == "unit" else settings.exponents + settings.probes
    means = {}
    while more:
        means |= {exponent: mean_auc(exponent) for exponent in more if exponent not in means}
        nearest_first = sorted(means, key=lambda exponent: (abs(exponent), exponent))
        best = max(nearest_first, key=lambda exponent: round(means[exponent], 11))
        if np.isneginf(means[best]):
            best = min(means)
        more = []
        if scaling == "none" and best - 1 not in means:
            more += range(best - 5, best)
        if scaling == "none" and best + 1 not in means:
            more += range(best + 1, best + 6)
        more = [exponent for exponent in more if abs(exponent) <= settings.bound]
    ranker = fitted(PLAIN[name], 2.0**best, seed, X_train, y_train)
    tried = min(means), max(means)
    return 2.0**best, tried, ranker, X_train, y_train, X_test, y_test


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", PLAIN)
def test_a_run_is_the_plain_double_loop(name):
    scaling = "standard" if name == "Batch LR" else "unit"
    outcome = evaluate(METHODS[name], "german", scaling, 1, SETTINGS)
    parameter, tried, ranker, X_train, y_train, X_test, y_test = plain_run(
        name, "german", scaling, 1
    )
    assert outcome.choice.parameter == parameter
    assert (outcome.choice.lowest, outcome.choice.highest) == tried == (-10, 10)
    scores = ranker.decision_function(X_test)
    measures = outcome.measures
    assert measures.auc == pytest.approx(roc_auc_score(y_test, scores), abs=1e-12)
    assert measures.accuracy == accuracy_at_operating_point(y_test, scores)
    if name != "Batch LR":
        best = optimal_operating_point(y_train, ranker.decision_function(X_train))
        predicted = scores >= best.threshold
        assert measures.accuracy_held == accuracy_score(y_test, predicted)
        assert measures.balanced_held == pytest.approx(balanced_accuracy_score(y_test, predicted))
    np.testing.assert_allclose(outcome.rows.X, X_train, rtol=1e-12)
    np.testing.assert_array_equal(outcome.rows.y, y_train)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["CBR_FIFO", "OPAUC", "OAM_seq", "Uni-Exp"])
def test_in_other_scalings_the_best_has_neighbours(name):
    choice = evaluate(METHODS[name], "german", "none", 1, NARROW).choice
    parameter, tried, *_ = plain_run(name, "german", "none", 1, NARROW)
    assert (choice.parameter, choice.lowest, choice.highest) == (parameter, *tried)
    assert choice.lowest < np.log2(parameter) < choice.highest
    assert np.log2(parameter) < -1


def test_in_the_papers_scaling_the_grid_is_the_papers():
    choice = evaluate(METHODS["OPAUC"], "german", "unit", 1, Settings(exponents=(9, 10))).choice
    assert choice[1:] == (9, 10, 6)


@pytest.mark.parametrize(
    ("exponents", "best", "expected"),
    [
        (range(-10, 11), -10, [-14, -13, -12, -11]),
        (range(-10, 11), 10, [11, 12, 13, 14]),
        (range(-10, 11), 9, []),
        (range(-10, 11), -20, [-25, -24, -23, -22, -21, -19, -18, -17, -16]),
        (range(-10, 11), -15, [-19, -18, -17, -16, -14, -13, -12, -11]),
        (range(-10, 11, 4), 10, [14]),
        (range(-10, 11, 5), -10, []),
        ((0,), 0, [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5]),
    ],
)
def test_neighbours_of_the_best_are_tried(exponents, best, expected):
    exponents, probes = tuple(exponents), (-20, -15, 15)
    grid = Grid(exponents, probes, 60)
    assert grid.first == sorted({*exponents, *probes})
    assert grid.beside(best, grid.first) == expected
    near = [exponent for exponent in expected if abs(exponent) <= 12]
    assert Grid(exponents, probes, 12).beside(best, grid.first) == near
    assert Grid(exponents, probes).first == list(exponents)
    assert Grid(exponents, probes).beside(best, exponents) == []


def test_among_equals_the_nearest_to_one_is_chosen():
    assert best_of({-2: 0.7, -1: 0.9, 0: 0.8, 1: 0.9 + 1e-15, 2: 0.9}) == -1
    assert best_of({-2: 0.9, 0: 0.8, 1: 0.9 - 1e-9, 2: 0.7}) == -2
    assert best_of({-5: -np.inf, 0: -np.inf, 5: -np.inf}) == -5


def test_a_plateau_does_not_lead_to_the_end():
    y = np.arange(30) % 2
    folds = cross_validation(np.c_[y, 1.0 - y], y)
    grid = Grid((-3, -2, -1), (-10,), 60)
    assert choose(METHODS["OAM_seq"], folds, grid, 0) == Choice(1.0, -10, 4, 0)
    assert choose(METHODS["OAM_seq"], folds, Grid((-3, -2, -1)), 0) == Choice(0.5, -3, -1, 0)


def test_a_better_value_beyond_a_plateau_is_found():
    # Raw columns: the loss over the squared norm bounds every step, so C of 2^-10 and more are equal.
    X, y = real("german", 600)
    folds = cross_validation(X * 2.0**8, y)
    grid = Settings().grid("none")
    found = choose(METHODS["OAM_seq"], folds, grid, 0)
    near = choose(METHODS["OAM_seq"], folds, grid._replace(probes=()), 0)
    powers = [round(np.log2(choice.parameter)) for choice in (found, near)]
    aucs = held_out_aucs(METHODS["OAM_seq"], folds, powers, 0)
    assert powers[0] < -15 < -10 <= powers[1]
    assert aucs[powers[0]].mean() > aucs[powers[1]].mean()


def test_every_scaling_sees_the_same_rows():
    parts = {scaling: split("vehicle", 3, scaling, SETTINGS) for scaling in SCALINGS}
    for rows in parts.values():
        np.testing.assert_array_equal(rows.y, parts["none"].y)
        np.testing.assert_array_equal(rows.y_test, parts["none"].y_test)
    norms = np.linalg.norm(np.vstack([parts["unit"].X, parts["unit"].X_test]), axis=1)
    np.testing.assert_allclose(norms, 1)
    np.testing.assert_allclose(parts["standard"].X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(parts["standard"].X.std(axis=0), 1)
    assert abs(parts["standard"].X_test.mean(axis=0)).max() > 1e-3


def test_training_rows_are_cut_and_the_whole_fold_is_tested():
    X, y, _ = datasets.load("vehicle")
    order = np.random.RandomState(SETTINGS.run_seed("vehicle", 3)).permutation(846)
    rows = split("vehicle", 3, "none", SETTINGS)
    np.testing.assert_array_equal(rows.X, X[order[:400]])
    np.testing.assert_array_equal(rows.X_test, X[order[-169:]])
    np.testing.assert_array_equal(rows.y_test, y[order[-169:]])
    before = split("vehicle", 3, "none", replace(SETTINGS, cut="all"))
    np.testing.assert_array_equal(before.X, X[order[:320]])
    np.testing.assert_array_equal(before.X_test, X[order[320:400]])


def test_the_five_folds_are_the_whole_set():
    whole = Settings(5)
    tested = [split("vehicle", 3, "none", whole, fold) for fold in range(5)]
    order = np.random.RandomState(whole.run_seed("vehicle", 3)).permutation(846)
    X = datasets.load("vehicle").X
    np.testing.assert_array_equal(np.vstack([rows.X_test for rows in tested]), X[order[1:]])
    np.testing.assert_array_equal(tested[4].X_test, split("vehicle", 3, "none", whole).X_test)
    middle = np.delete(order, np.arange(1 + 2 * 169, 1 + 3 * 169))
    np.testing.assert_array_equal(tested[2].X, X[middle])


def test_seeds_depend_on_master_seed_data_set_and_run():
    seeds = [
        Settings(seed=master).run_seed(name, run)
        for master in (0, 1)
        for name in ("glass", "german")
        for run in (0, 1)
    ]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [Settings(m).run_seed(n, r) for m in (0, 1) for n in ("glass", "german")
                     for r in (0, 1)]  # fmt: skip


def test_batch_regression_has_standardised_columns_whatever_the_scaling():
    outcomes = [evaluate(METHODS["Batch LR"], "glass", s, 0, quick(0)) for s in SCALINGS]
    assert len({outcome.measures for outcome in outcomes}) == 1


def test_a_diverged_fit_ranks_last_and_is_counted():
    X, y = real("segment", 300)
    folds = cross_validation(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        choice = choose(METHODS["OPAUC"], folds, Grid((-30, 10, 12)), seed=0)
        lost = choose(METHODS["OPAUC"], folds, Grid((10, 12)), seed=0)
        found = choose(METHODS["OPAUC"], folds, Grid((10, 11), (-5,), bound=60), seed=0)
    assert choice == Choice(2.0**-30, -30, 12, 6)
    assert lost == Choice(2.0**10, 10, 12, 6)
    assert found.lowest < np.log2(found.parameter) < 0
    assert found.diverged > 6


def test_a_uni_exp_that_overflows_is_never_chosen():
    X, y = real("glass", scaling="unit")
    with pytest.warns(ConvergenceWarning, match="UniExpRanker diverged"):
        choice = choose(METHODS["Uni-Exp"], cross_validation(X, y), Grid((-10, 9, 10)), seed=0)
    assert choice == Choice(2.0**-10, -10, 10, 6)


def test_too_few_rows_of_a_class_are_a_sentence():
    X, y = np.eye(9), np.array([1, 1, 0, 0, 0, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="needs 3 training rows of each class"):
        cross_validation(X, y)


@given(st.data())
def test_auc_is_scikit_learns(data):
    scores = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=2, max_size=30)), float)
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(scores), max_size=len(scores))))
    y[:2] = 0, 1
    assert auc(y, scores) == pytest.approx(roc_auc_score(y, scores), abs=1e-14)


# Text -----------------------------------------------------------------------------------------


@pytest.fixture
def text(monkeypatch):
    """A sparse data set with columns that only some rows have: the values of segment, coded."""
    X, y = real("segment", 500)
    codes = np.floor(X[:, [0, 1, 5, 9]] * 3).astype(int)
    columns = (codes - codes.min(axis=0)) + 2000 * np.arange(4)
    rows = np.repeat(np.arange(len(y)), 4)
    coded = csr_array((np.ones(rows.size), (rows, columns.ravel())), shape=(len(y), 8000))
    facts = datasets.load("segment").facts
    monkeypatch.setattr(splits, "_load", lambda name: datasets.Loaded(coded, y, facts))
    return coded, y


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if "high-dimensional" in m.kinds])
def test_columns_without_training_rows_drop_out_exactly(text, name):
    settings = Settings(exponents=(-4, 0))
    X, y = text
    order = np.random.RandomState(settings.run_seed("reuters", 0)).permutation(len(y))
    train, test = order[:400], order[400:]
    outcome = evaluate(METHODS[name], "reuters", "none", 0, settings)
    assert outcome.rows.X.shape[1] < X.shape[1]
    ranker = METHODS[name].new(outcome.choice.parameter, settings.run_seed("reuters", 0))
    scores = ranker.fit(X[train], y[train]).decision_function(X[test])
    assert outcome.measures.auc == auc(y[test], scores)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("sketch", ["published", "centred"])
@pytest.mark.parametrize(("rank", "scaling"), [(50, "unit"), (3, "none")])
def test_the_grid_of_steps_is_the_estimator_step_by_step(rank, scaling, sketch):
    X, y = real("german", 300, scaling)
    X = csr_array(X)
    steps = [2.0**k for k in range(-20, 11)]
    ranker = OPAUCRanker(rank=rank, sketch=sketch, random_state=7)
    W, diverged = fit_steps(ranker, X, y, steps)
    assert diverged.any()
    assert not diverged.all()
    for k, step in enumerate(steps):
        ranker.set_params(step=step, shuffle=False).fit(X, y)
        w = ranker.coef_[0]
        assert ranker.diverged_ == diverged[k]
        np.testing.assert_allclose(W[:, k], w, rtol=0, atol=1e-9 * abs(w).max())
