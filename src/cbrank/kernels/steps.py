"""Gradient steps that refuse to diverge."""

from cbrank.kernels._jit import jit

_LARGEST = 1e100


@jit
def take_step(w, change, diverged, row):
    """Add `change` to `w`, or note the row and leave `w` alone where it would get lost."""
    size = 0.0
    for i in range(w.size):
        size += abs(w[i] + change[i])
    if diverged[0] == 0 and size < _LARGEST:
        for i in range(w.size):
            w[i] += change[i]
    elif diverged[0] == 0:
        diverged[0] = row


@jit
def take_step_sparse(w, indices, change, diverged, row):
    """Do the same with a change of few weights."""
    size = 0.0
    for k in range(indices.size):
        size += abs(w[indices[k]] + change[k])
    if diverged[0] == 0 and size < _LARGEST:
        for k in range(indices.size):
            w[indices[k]] += change[k]
    elif diverged[0] == 0:
        diverged[0] = row
