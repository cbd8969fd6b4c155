r"""
A stream of text
================

Text gives sparse rows with very many columns. ``CBRanker(covariance="diagonal")`` keeps one weight and one
variance per column, and a row costs no more than its non-zeros.

The stream here is real text that every user of cbrank has: the paragraphs of SciPy's own
documentation. The task: rank the paragraphs that are about optimisation, about one in twelve, above
all others. Functions come in random order, all paragraphs of a function together, so that the ranker always
scores functions that it has not learned from.
"""

# sphinx_gallery_thumbnail_number = 2

# %%
# Paragraphs, and which of them we look for
# -----------------------------------------

import importlib
import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import average_precision_score

from cbrank import CBRanker, FTRLAUCRanker
from cbrank.metrics import ProgressiveAUC

TOPICS = "fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats"
LOOKED_FOR = "optimize"


def paragraphs(item):
    for part in re.split(r"\n\s*\n", inspect.getdoc(item) or ""):
        words = part.split()
        if len(words) >= 12 and not part.lstrip().startswith((">>>", "..")) and "---" not in part:
            yield " ".join(words)


functions, heard = [], set()
for topic in TOPICS.split():
    module = importlib.import_module(f"scipy.{topic}")
    for name in sorted(module.__all__):
        new = [text for text in paragraphs(getattr(module, name)) if text not in heard]
        heard.update(new)
        functions.append([(text, topic) for text in new])
order = np.random.RandomState(0).permutation(len(functions))
stream = [row for place in order for row in functions[place]]
texts = [text for text, _ in stream]
y = np.array([topic == LOOKED_FOR for _, topic in stream]).astype(int)
print(f"{len(texts)} paragraphs of {len(functions)} functions, {y.mean():.1%} about optimisation")
print(next(text for text, label in zip(texts, y, strict=True) if label)[:90], "...")

# %%
# Hash, rank, learn
# -----------------
# A hashing vectorizer turns words into columns without having seen the stream, and gives rows of unit
# length, which suits the diagonal. Each chunk of 50 paragraphs is ranked before it is learned
# from, and :class:`~cbrank.metrics.ProgressiveAUC` gives the exact AUC of the latest 2,000 scores. CBR is
# compared with :class:`~cbrank.FTRLAUCRanker`, a later method made for sparse rows, and with scikit-learn's
# averaged SGD, all with their defaults.

vectorizer = HashingVectorizer(n_features=2**18, alternate_sign=False, stop_words="english")
X = vectorizer.transform(texts)
learners = {
    "CBR, diagonal": CBRanker(covariance="diagonal", random_state=0),
    "FTRL-AUC": FTRLAUCRanker(random_state=0),
    "averaged SGD": SGDClassifier(loss="log_loss", average=True, random_state=0),
}
begins = np.arange(50, len(y), 50)
figure, panel = plt.subplots()
for name, learner in learners.items():
    learner.partial_fit(X[:50], y[:50], classes=[0, 1])
    recent, scores, path = ProgressiveAUC(window=2000), np.zeros(len(y)), []
    for begin in begins:
        chunk = slice(begin, begin + 50)
        scores[chunk] = learner.decision_function(X[chunk])
        path.append(recent.update(y[chunk], scores[chunk]).get())
        learner.partial_fit(X[chunk], y[chunk])
    late = slice(len(y) // 2, None)
    precision = average_precision_score(y[late], scores[late])
    panel.plot(begins, path, label=name)
    print(
        f"{name}: AUC of the latest 2,000 {path[-1]:.3f}, average precision since half-way {precision:.3f}"
    )
panel.set(
    title="Ranked before it is learned from", xlabel="paragraphs", ylabel="AUC of the latest 2,000"
)
panel.set(ylim=(0.6, 1))
panel.legend(loc="lower right")
plt.show()

# %%
# No learner is tuned here. With step sizes chosen by cross-validation, as in the study, FTRL-AUC does as
# well as CBR on text (:doc:`/reproduce`).
#
# Which words matter
# ------------------
# Hashing the words again gives hashed columns their names back. Each weight has a standard deviation, which
# begins at 1 and shrinks with every update in which the word takes part.

ranker = learners["CBR, diagonal"]
words = {word for text in texts for word in re.findall(r"[a-z]{4,}", text.lower())}
words = sorted(words - ENGLISH_STOP_WORDS)
columns = vectorizer.transform(words).indices
weights, deviations = (ranker.coef_[0, columns], np.sqrt(ranker.covariance_[columns]))
strongest = np.argsort(-abs(weights / deviations))[:24]
shown = strongest[np.argsort(weights[strongest])]

figure, panel = plt.subplots(figsize=(7, 4.6))
places = np.arange(len(shown))
colours = np.where(weights[shown] > 0, "C1", "C0")
panel.hlines(
    places, weights[shown] - deviations[shown], weights[shown] + deviations[shown], colors=colours
)
panel.scatter(weights[shown], places, c=colours, s=18, zorder=3)
panel.axvline(0, color="0.6", linewidth=0.8)
panel.set_yticks(places, [words[place] for place in shown])
panel.set(title="Most certain words: weight ± deviation", xlabel="weight")
panel.grid(visible=False)
plt.show()
