"""Gradient steps that stop before the weights overflow.

The baselines diverge on raw columns or with too large a step. The first step that would carry the
weights beyond `_LARGEST` is refused, and so are all after it: the ranker keeps its last finite
weights and the row at which it diverged, and model selection can rank it last.
"""

from cbrank.kernels._jit import jit

# Far beyond any weight that ranks well, and small enough that the scores and gradients of a next
# step do not overflow.
_LARGEST = 1e100


@jit
def take_step(w, change, diverged, row):
    """Add `change` to `w`; if that diverges, leave `w` as it is and note the number of the row."""
    size = 0.0  # NaN or inf if any new weight is, and then not below _LARGEST
    for i in range(w.size):
        size += abs(w[i] + change[i])
    if diverged[0] == 0 and size < _LARGEST:
        for i in range(w.size):
            w[i] += change[i]
    elif diverged[0] == 0:
        diverged[0] = row


@jit
def take_step_sparse(w, indices, change, diverged, row):
    """Take the step of a sparse row: `change` is that of the weights `indices`."""
    size = 0.0
    for k in range(indices.size):
        size += abs(w[indices[k]] + change[k])
    if diverged[0] == 0 and size < _LARGEST:
        for k in range(indices.size):
            w[indices[k]] += change[k]
    elif diverged[0] == 0:
        diverged[0] = row
