"""
A table with words and gaps
===========================

Words, gaps, dates: a table as it comes, ranked without preparation, and what each column does.
"""

# %%
# The table
# ---------
# Customers who leave: those with a monthly contract and those who came lately, and the older ones in
# Oslo, the younger ones elsewhere. Some cells are empty.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from cbrank import AdditiveRanker
from cbrank.inspection import CurvesDisplay

random = np.random.RandomState(0)
n = 3000
frame = pd.DataFrame(
    {
        "tenure": random.exponential(20, n).round(),
        "age": random.normal(40, 12, n).round(),
        "contract": random.choice(["Monthly", "One year", "Two years"], n),
        "city": random.choice(["Oslo", "Bergen", "Bodø"], n),
        "called": pd.Timestamp("2023-01-01") + pd.to_timedelta(random.randint(0, 500, n), unit="D"),
    }
)
score = 2 * (frame.contract == "Monthly") - 0.1 * frame.tenure
score += (frame.age - 40) * np.where(frame.city == "Oslo", 0.1, -0.1)
left = (score + random.logistic(size=n) > 1).to_numpy()
for column in ("age", "contract"):
    frame.loc[random.rand(n) < 0.1, column] = None

ranker = AdditiveRanker(random_state=0).fit(frame[:2000], left[:2000])
print(*ranker.encoder_.decisions(), sep="\n")
print(f"AUC {ranker.score(frame[2000:], left[2000:]):.3f}")

# %%
# What columns do
# ---------------
# Numbers are curves, words bars. What gaps add is drawn right of a curve.

CurvesDisplay.from_estimator(ranker, n=6)
plt.show()

# %%
# One row
# -------
# What puts a customer where he is, beyond the average?

new = frame[2000:]
order = np.argsort(-ranker.decision_function(new))
for place in (0, 10, 999):
    print(ranker.explain(new.iloc[[order[place]]], among=new))
