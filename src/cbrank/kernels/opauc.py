"""One-pass AUC optimisation, OPAUC (Gao et al. 2013), and OPAUCr with a sketch.

The square loss of a row x of class y against all rows of the other class so far depends on these
only by their mean c and covariance Gamma, so that none has to be kept:

    g = lambda w + (w.(x - c) - y) (x - c) + Gamma w,    w -= step g.

OPAUCr replaces Gamma, which takes d^2 numbers, by a sketch Z of d tau numbers: the sum of x a' over the
T rows of the class, each with a random vector a ~ N(0, I / tau). With the mean h of these vectors,

    published:  (1/T) Z Z' - (c h')(c h')'
    centred:    (1/T) Zc Zc',  Zc = Z - T c h'.

Z Z' / T estimates the second moments, Gamma + c c'. The published form takes only h.h, about 1 / T, of
c c' from them; the centred one estimates Gamma.
"""

import math
from typing import NamedTuple

import numpy as np

from cbrank.kernels._jit import allocating_jit, kernel
from cbrank.kernels.buffers import row_weight, store, store_sparse
from cbrank.kernels.prequential import foretell, foretell_row, foretell_sparse
from cbrank.kernels.random import normal
from cbrank.kernels.steps import take_step
from cbrank.kernels.vectors import dot, multiply


class Model(NamedTuple):
    """A linear ranker with the mean and covariance of each class."""

    w: np.ndarray
    diverged: np.ndarray  # (1,) the row at which a step was refused, or 0
    mean: np.ndarray  # (2, d)
    Gamma: np.ndarray  # (2, d, d)


class SketchModel(NamedTuple):
    """A linear ranker with the mean of each class and a sketch of its covariance."""

    w: np.ndarray
    diverged: np.ndarray
    mean: np.ndarray
    Z: np.ndarray  # (2, d, tau)
    h: np.ndarray  # (2, tau) mean of the random vectors


class Parameters(NamedTuple):
    """Hyper-parameters, as the kernels take them."""

    step: float
    regularization: float
    centred: bool  # the sketch
    balanced: bool


@allocating_jit
def count_row(x, seen, mean, Gamma):
    """Update the mean and covariance of a class with its `seen`-th row.

    This is Welford's form of the paper's recursion, which subtracts c c' from second moments and
    loses digits where the mean is large beside the deviations.
    """
    share = 1.0 / seen
    off = x - mean
    for i in range(x.size):
        mean[i] += share * off[i]
        for j in range(x.size):
            Gamma[i, j] = (1.0 - share) * (Gamma[i, j] + share * (off[i] * off[j]))


@allocating_jit
def gradient(w, x, sign, mean, Gamma_w, regularization):
    """Return the gradient of the pairwise square loss; `mean` and `Gamma_w` are the other class's."""
    off = x - mean
    pull = dot(off, w) - sign
    return regularization * w + pull * off + Gamma_w


@allocating_jit
def _descend(x, label, weight, buffer, model, parameters, Gamma_w):
    step = parameters.step * row_weight(buffer, label, weight, parameters.balanced)
    sign, mean = 2.0 * label - 1.0, model.mean[1 - label]
    g = gradient(model.w, x, sign, mean, Gamma_w, parameters.regularization)
    take_step(model.w, -step * g, model.diverged, buffer.seen.sum())


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order."""
    Gamma_w = np.empty_like(model.w)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            x, label = X[row], labels[row]
            # The step does not need these rows: they are kept to place the threshold, and counted.
            foretell(trail, at, x, label, model.w, buffer)
            store(buffer, label, x, False)
            at += 1
            count_row(x, buffer.seen[label], model.mean[label], model.Gamma[label])
            if buffer.seen[1 - label] > 0:
                multiply(model.Gamma[1 - label], model.w, Gamma_w)
                _descend(x, label, weights[row], buffer, model, parameters, Gamma_w)


@allocating_jit
def _sketch_product(Z, h, mean, seen, w, centred):
    """Return the product of the sketched covariance and w, in O(d tau)."""
    d, tau = Z.shape
    inner = np.zeros(tau)
    for i in range(d):
        for k in range(tau):
            inner[k] += Z[i, k] * w[i]
    score = dot(mean, w)
    if centred:
        inner -= seen * score * h
        centre = seen * dot(h, inner)
    else:
        centre = seen * dot(h, h) * score
    out = np.empty(d)
    for i in range(d):
        out[i] = (dot(Z[i], inner) - centre * mean[i]) / seen
    return out


@allocating_jit
def _sketch_row(x, label, weight, buffer, model, parameters):
    """Update the sketch with a row just counted, and take its step."""
    tau, share = model.h.shape[1], 1.0 / buffer.seen[label]
    a = np.empty(tau)
    for k in range(tau):
        a[k] = normal(buffer.random) / math.sqrt(tau)
    for k in range(tau):
        model.h[label, k] += share * (a[k] - model.h[label, k])
    for i in range(x.size):
        model.mean[label, i] += share * (x[i] - model.mean[label, i])
        if x[i] != 0.0:
            for k in range(tau):
                model.Z[label, i, k] += x[i] * a[k]
    other = 1 - label
    if buffer.seen[other] > 0:
        Z, h, mean = model.Z[other], model.h[other], model.mean[other]
        Gamma_w = _sketch_product(Z, h, mean, buffer.seen[other], model.w, parameters.centred)
        _descend(x, label, weight, buffer, model, parameters, Gamma_w)


@kernel
def learn_sketch(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order, with the sketch."""
    at = 0
    for row in order:
        if weights[row] > 0.0:
            foretell_row(trail, at, X[row], labels[row], model.w)
            store(buffer, labels[row], X[row], False)
            at += 1
            _sketch_row(X[row], labels[row], weights[row], buffer, model, parameters)


@kernel
def learn_sketch_sparse(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the sparse rows `order` of `X`, in that order, with the sketch.

    Each row is written into a dense one and wiped out again: a step changes all weights anyway.
    """
    x = np.zeros_like(model.w)
    at = 0
    for row in order:
        if weights[row] > 0.0:
            begin, end = X.indptr[row], X.indptr[row + 1]
            indices, values = X.indices[begin:end], X.values[begin:end]
            foretell_sparse(trail, at, indices, values, labels[row], model.w)
            store_sparse(buffer, labels[row], indices, values, False)
            at += 1
            for k in range(indices.size):
                x[indices[k]] = values[k]
            _sketch_row(x, labels[row], weights[row], buffer, model, parameters)
            for k in range(indices.size):
                x[indices[k]] = 0.0
