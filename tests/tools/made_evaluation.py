"""A rare class in made-up rows of four columns, and an evaluation of them."""

from fractions import Fraction

import numpy as np

from cbrank import AdditiveRanker
from cbrank.inspection.evaluation import evaluate
from cbrank.inspection.groups import Grouping

LONG = "a_name_without_a_space_that_is_much_too_long_for_a_title_or_the_width_of_a_phone"
ASKED = {"at": [25, Fraction(2, 100)], "precisions": [0.4, 0.9999], "recalls": [0.5]}


def made_rows(n=3000, seed=0):
    """Return columns of numbers, gaps, words and booleans, and rare positives."""
    random = np.random.RandomState(seed)
    weights = np.arange(1, 61)
    columns = {
        "age": random.gamma(4, 10, n).round(),
        LONG: np.where(random.rand(n) < 0.1, np.nan, random.normal(size=n).round(1)),
        "city": random.choice([f"town <{at}>" for at in range(60)], n, p=weights / weights.sum()),
        "flag": random.rand(n) < 0.5,
    }
    columns["city"] = columns["city"].tolist()
    x = np.nan_to_num(columns[LONG]) * (1 + columns["flag"])
    y = random.rand(n) < 1 / (1 + np.exp(5.3 - 0.04 * columns["age"] - x))
    return columns, y.astype(np.int8)


def made_evaluation():
    """Return a ranker, labels, scores that are rounded so that many are equal, and what came out."""
    columns, y = made_rows()
    ranker = AdditiveRanker(random_state=0).fit(columns, y)
    columns, y = made_rows(seed=1)
    scores = ranker.decision_function(columns).round(1)
    probabilities = 1 / (1 + np.exp(3.5 - scores))
    grouping = Grouping("city")
    grouping.add(columns["city"])
    found = evaluate(y, scores, probabilities, by=grouping, **ASKED)
    return ranker, (y, scores, probabilities, np.array(columns["city"])), found
