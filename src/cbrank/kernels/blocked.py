"""CBR with full covariance in blocks of rows: what ``full`` computes, by matrix products.

``full`` pays O(d^2), at the speed of memory, for each pair that it looks at and each update. Here
Sigma stays as it is for a block of rows, and the updates of the block are *pending*: they are kept
as the rows of F, so that the covariance is Sigma - F'F. A table T holds the buffered rows and the
rows of the block, less a common origin, with P = T Sigma and A = T F'. For a pair z = x - b then

    (Sigma - F'F) z = P_x - P_b - (A_x - A_b) F
    z' (Sigma - F'F) z = z.(P_x - P_b) - |A_x - A_b|^2

so that the variance of a pair costs O(d) and an update O(d n) with n rows in F. At the end of the
block the pending updates are applied, Sigma -= F'F and P -= A F, as products of matrices.

In exact arithmetic all this is the plain sweep. Two subtractions may cancel, and both are guarded,
so that any columns give what ``full`` gives:

* P_x - P_b, for *near* pairs: two rows close to each other and far from the origin, as when both
  hold a sentinel value. Their Sigma z is computed from the rows themselves, as in ``full``.
* P - A F, once updates have removed nearly all of a variance: what is left of it in P is
  rounding error. The pending updates are applied at once, and P is computed anew.
"""

import math

from cbrank.kernels._awake import (
    awake_of,
    buffer_of,
    give_back,
    model_of,
    rows_of,
    store_all,
    trail_of,
)
from cbrank.kernels._block_table import (
    BLUR,
    LONGEST,
    LOST,
    apply_pending,
    begin_block,
    begin_table,
    end_block,
    first_row,
    new_table,
    part_of,
    project,
    project_buffers,
    score,
    spread,
    spread_buffer,
    take_in,
)
from cbrank.kernels._jit import allocating_jit, jit, kernel
from cbrank.kernels.buffers import row_weight, store
from cbrank.kernels.confidence import (
    PAIRS,
    ROWS,
    UPDATES,
    boost_of,
    narrow,
    narrowed,
    per_lag_of,
    scw_step,
)
from cbrank.kernels.prequential import foretell_both
from cbrank.kernels.vectors import dot, multiply, multiply_symmetric

# Columns, and buffered rows per class, from which blocks are faster than ``full``. Below, Sigma fits
# a fast cache, or a sweep has too few pairs to repay the table. With 160 to 230 columns and 50 rows, blocks take
# three quarters of the time where one pair of a hundred fires, and 1.1 to 1.6 times as long where a third does.
WORTHWHILE = 192
FEWEST = 8
# Rows for which P is carried along by P -= A F before it is computed anew from T and Sigma: rarely
# enough to cost little, often enough that rounding errors do not add up.
_LASTING = 512
# As in ``confidence``, and larger: differences of rows of P and A have the rounding errors of long columns of
# sums. With copies of a column of ids and 1e-14, splits of a stream were as far apart as their scores.
_ROUNDING = 1e-12
# Share of the squared sizes of x and b: a pair whose |z|^2 is less is near. As it is a share of
# squares, z itself loses two digits at the most.
_NEAR = 1e-4
_HUGE = 1e140  # sizes above may overflow when squared; such pairs are treated as near
# Least scale sqrt(beta) of an update: its square, 1e-320, removes next to nothing from a variance,
# and alpha / scale stays finite.
_TINY = 1e-160


# A pair -------------------------------------------------------------------------------------------


@jit
def _look(table, x, b, new, old, mu):
    """Return mu.z, z.z, and the variance of a pair before and after the pending updates."""
    ahead, square, before, change = 0.0, 0.0, 0.0, 0.0
    for i in range(mu.size):
        z = new[i] - old[i]
        ahead += mu[i] * z
        square += z * z
        before += z * (table.P[x, i] - table.P[b, i])
    for k in range(table.n[0]):
        change += (table.A[x, k] - table.A[b, k]) ** 2
    return ahead, square, before, before - change


@jit
def _is_wide(table, new, old, widest):
    """Say whether a weight has to be narrowed for a pair (see ``confidence``)."""
    wide = False
    for i in range(new.size):
        wide |= narrowed(new[i] - old[i], table.left[i], widest) < 1.0
    return wide


@jit
def _is_rounding(table, new, old, square, variance):
    """Do what `is_rounding` of ``confidence`` does, with the variances as they are now."""
    if variance >= _ROUNDING * square:
        return False
    square = 0.0
    for i in range(new.size):
        square += (new[i] - old[i]) ** 2 * table.left[i]
    return not variance >= _ROUNDING * square


@jit
def _is_near(table, x, b, new, old, before):
    """Say whether rows are so close, beside their distance from the origin, that P_x - P_b cancels."""
    sizes = table.size[x] + table.size[b]
    # The quick test first: z' Sigma z is at most d times the sum of z_i^2 Sigma_ii.
    if before >= _NEAR * new.size * sizes * sizes and sizes < _HUGE:
        return False
    square = 0.0
    for i in range(new.size):
        square += (new[i] - old[i]) ** 2 * table.variances[i]
    return not (square >= _NEAR * sizes * sizes and sizes < _HUGE)


@jit
def _difference(table, new, old):
    """Write z to the table; say whether it is not zero."""
    differ = False
    for i in range(new.size):
        table.z[i] = new[i] - old[i]
        differ |= table.z[i] != 0.0
    return differ


@jit
def _look_closely(table, new, old, Sigma):
    """Write Sigma z of a near pair, computed from its rows in O(d^2).

    Return its variance before and after the pending updates.
    """
    z, s, F, change = table.z, table.s, table.F, 0.0
    if not _difference(table, new, old):
        return 0.0, 0.0
    multiply_symmetric(Sigma, z, s)
    before = dot(z, s)
    for k in range(table.n[0]):
        c = dot(F[k], z)
        change += c * c
        for i in range(s.size):
            s[i] -= c * F[k, i]
    return before, before - change


@jit
def _sigma_z(table, x, b, s):
    """Write Sigma z of a pair, pending updates included."""
    A, F, P, n, k = table.A, table.F, table.P, table.n[0], 0
    for i in range(s.size):
        s[i] = P[x, i] - P[b, i]
    # Four rows of F at a time: s is then read and written once for four.
    while k + 4 <= n:
        c0, c1 = A[x, k] - A[b, k], A[x, k + 1] - A[b, k + 1]
        c2, c3 = A[x, k + 2] - A[b, k + 2], A[x, k + 3] - A[b, k + 3]
        for i in range(s.size):
            s[i] -= c0 * F[k, i] + c1 * F[k + 1, i] + c2 * F[k + 2, i] + c3 * F[k + 3, i]
        k += 4
    while k < n:
        c = A[x, k] - A[b, k]
        for i in range(s.size):
            s[i] -= c * F[k, i]
        k += 1


@jit
def _fire(table, x, buffer, other, sign, alpha, beta, model, boost):
    """Update the ranker with one pair (Proposition 1), whose Sigma z is in row n of F.

    The mean moves at once. The covariance waits: row n becomes sqrt(beta) Sigma z, and A and the
    scores follow for x and the rows it is being paired with; `spread` brings the others up to date.
    """
    n, scale = table.n[0], max(math.sqrt(beta), _TINY)
    f, gain, worn = table.F[n], sign * alpha / scale, False
    for i in range(f.size):
        f[i] *= scale
        model.mu[i] += gain * f[i]
        table.left[i] -= f[i] * f[i]
        worn |= table.left[i] < LOST * table.variances[i]
    for i in range(model.lag.size):
        model.lag[i] -= boost * gain * f[i]
    ahead = table.found[0]
    for part in range(2):
        begin, end = part_of(table, buffer, other, part)
        multiply(table.T[begin:end], f, ahead)
        for row in range(begin, end):
            table.A[row, n] = ahead[row - begin]
            table.score[row] += gain * ahead[row - begin]
    table.A[x, n] = dot(table.T[x], f)
    table.score[x] += gain * table.A[x, n]
    table.gain[n] = gain
    # |f.t| <= sqrt(sum f_i^2 / Sigma_ii) size(t), and as f_i^2 <= Sigma_ii the root is at most
    # sqrt(d): the rounding error of this update of a score, which has d terms.
    table.blur[0] += BLUR * f.size**1.5 * abs(gain)
    table.n[0], table.worn[0] = n + 1, worn
    model.tally[UPDATES] += 1


@jit
def _meet(table, x, b, new, old, buffer, other, sign, C, parameters, model, boost):
    """Compute a pair, and update the ranker if the pair violates its constraint.

    Return True if nothing was done, because the pending updates have to be applied first: the
    caller does that and calls again. That is where F is full, where the pending updates have
    taken nearly all of this variance, and where a weight has to be narrowed, which needs Sigma
    itself.
    """
    n, near = table.n[0], False
    ahead, square, before, variance = _look(table, x, b, new, old, model.mu)
    if _is_near(table, x, b, new, old, before):
        near = True
        before, variance = _look_closely(table, new, old, model.Sigma)
    if _is_rounding(table, new, old, square, variance):
        return False
    if n and before > 0.0 and not variance >= LOST * before:
        return True
    alpha, beta = scw_step(sign * ahead, variance, C, parameters.phi)
    if alpha > 0.0:
        widest = parameters.widest
        if square > widest * widest and _is_wide(table, new, old, widest):
            if n == 0:  # nothing is pending: narrow now; the caller computes P anew
                _difference(table, new, old)
                narrow(model, model.Sigma, table.z, widest)
            return True
        if n == table.F.shape[0]:
            return True
        if near:
            for i in range(table.s.size):
                table.F[n, i] = table.s[i]
        else:
            _sigma_z(table, x, b, table.F[n])
        _fire(table, x, buffer, other, sign, alpha, beta, model, boost)
        table.least[0] *= 1.0 - beta * variance
    return False


# A row --------------------------------------------------------------------------------------------


@jit
def _sweep(table, x, new, buffer, other, k, sign, C, parameters, model, boost):
    """Pair the row x with buffered ones, from the k-th oldest on; return where it had to stop.

    With |z| = sqrt(z' Sigma z), |x - b| <= |x - r| + |b - r| for the origin r: a pair whose margin is at
    least phi times that, less what rounding may hide in the scores, meets its constraint.
    """
    first, rows = first_row(table, buffer, other), buffer.rows[other]
    while k < buffer.size[other] and not table.worn[0]:
        slot = (buffer.oldest[other] + k) % len(rows)
        b = first + slot
        doubt = table.blur[0] * (table.size[x] + table.size[b])
        margin = sign * (table.score[x] - table.score[b]) - doubt
        met = margin >= parameters.phi * (table.norm[x] + table.norm[b])
        if not met and _meet(
            table, x, b, new, rows[slot], buffer, other, sign, C, parameters, model, boost
        ):
            return k
        k += 1
    return k


@jit
def _learn_row(table, x, new, end, label, C, buffer, model, parameters):
    """Pair the row x of the table with the other class (Algorithm 3).

    Where the sweep has to stop, the pending updates are applied, P is computed anew, and the sweep
    goes on from the pair where it stopped.
    """
    other, sign, boost = 1 - label, 2.0 * label - 1.0, boost_of(model.tally[ROWS])
    size, k = buffer.size[other], 0
    model.tally[PAIRS] += size
    while k < size:
        old = table.n[0]
        k = _sweep(table, x, new, buffer, other, k, sign, C, parameters, model, boost)
        spread_buffer(table, buffer, label, old)
        spread(table, x + 1, end, old)
        if k < size or table.worn[0]:
            apply_pending(table, model.Sigma)
            project_buffers(table, buffer, model.Sigma)
            project(table, model.Sigma, x, end)
            score(table, model.mu)
    model.tally[ROWS] += 1


# A block ------------------------------------------------------------------------------------------


@allocating_jit
def _learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from rows, of which `order` has the places in `labels` and `weights`."""
    capacity = buffer.rows.shape[1]
    table = new_table(X.shape[1], capacity)
    enough, longest = table.F.shape[0] - LONGEST, table.T.shape[0] - 2 * capacity
    # The first block is short: how many updates a row makes is not known yet.
    at = 0
    begin, length, age = 0, 8, _LASTING
    while begin < order.size:
        if age >= _LASTING:
            begin_table(table, X[begin : begin + LONGEST], buffer, model.Sigma)
            age = 0
        rows, done = order[begin : begin + length], 0
        begin_block(table, X[begin : begin + length], capacity, model)
        while done < rows.size and table.n[0] <= enough:
            row, x = rows[done], capacity + done
            if weights[row] > 0.0:
                label, new = labels[row], X[begin + done]
                per_lag = per_lag_of(model.tally)
                foretell_both(trail, at, new, label, model.mu, model.lag, per_lag, buffer)
                at += 1
                slot = store(buffer, label, new, parameters.reservoir)
                if slot >= 0:
                    take_in(table, first_row(table, buffer, label) + slot, x)
                C = parameters.C * row_weight(buffer, label, weights[row], parameters.balanced)
                end = capacity + rows.size
                _learn_row(table, x, new, end, label, C, buffer, model, parameters)
            done += 1
        begin, age = begin + done, age + done
        # As many rows as should fill F at the rate of updates of this block: P of rows that the
        # block does not reach is computed in vain.
        length = max(4, min(longest, done * enough // max(table.n[0], 1)))
        if end_block(table, buffer, model.Sigma):
            age = _LASTING


@kernel
def learn(X, labels, weights, order, buffer, model, parameters, trail):
    """Learn from the rows `order` of `X`, in that order: the model of ``full.learn``."""
    places = awake_of(model)
    n = places.size
    rows, all_awake = rows_of(X, order, places, n), n == model.mu.size
    learner, buffered, notes = model, buffer, trail
    if not all_awake:
        learner = model_of(model, places, n)
        buffered = buffer_of(buffer, places, n, buffer.rows.shape[1])
        notes = trail_of(trail, places, n)
    _learn(rows, labels, weights, order, buffered, learner, parameters, notes)
    if not all_awake:
        give_back(model, learner, places)
        store_all(X, labels, weights, order, buffer, parameters.reservoir, trail)
