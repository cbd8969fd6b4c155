"""Certificates against sums over stored pairs, and against what happened."""

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_data import real
from scipy.stats import norm

from cbrank import CBRanker
from cbrank.certificates import certificate

FORMS = [("scw", "full"), ("scw", "diagonal"), ("arow", "full")]


def pairs_of(X, y, update, covariance, C, eta, r, buffer_size):
    """Return (z, alpha, quadratic form p, margin wanted, m, mean after, v) of every update, by a plain reading."""
    phi, mu = norm.ppf(eta), np.zeros(X.shape[1])
    A, held, found = np.eye(X.shape[1]), [[], []], []
    for x, label in zip(X, y, strict=True):
        held[label] = [*held[label], x][-buffer_size:]
        for b in held[1 - label]:
            z = (2 * label - 1) * (x - b)
            m, v = mu @ z, z @ np.linalg.solve(A, z)
            if update == "arow":
                alpha, form, wanted = max(0, 1 - m) / (v + r), np.outer(z, z) / r, 1
            elif covariance == "full":
                wanted = phi * np.sqrt(v)
                alpha = oracles.scw_step(m, v, C, phi)[0] if v > 0 and m < wanted else 0
                form = oracles.precision_gain(alpha, v, phi) * np.outer(z, z) if alpha else 0 * A
            else:
                v = z @ (z / (np.diag(A) + C))
                wanted = phi * np.sqrt(v)
                alpha, beta = oracles.scw_step(m, v, C, phi) if v > 0 and m < wanted else (0, 0)
                form = beta * np.diag(z**2)
            if alpha > 0 and v > 0:
                mu = mu + alpha * np.linalg.solve(A, z)
                found.append((z, alpha, form, wanted, m, mu, z @ np.linalg.solve(A, z)))
                A = A + form
    return found, mu, A


def stream(seed):
    random = np.random.RandomState(seed)
    rows, d = random.randint(2, 40), random.randint(2, 7)
    # No two pairs are equal: the second would stand at the very margin wanted, where rounding decides.
    X = random.randn(rows, d) * 10.0 ** random.uniform(-1, 1, d)
    y = random.randint(0, 2, rows)
    y[:2] = 0, 1
    return X, y, random


@pytest.mark.parametrize(("update", "covariance"), FORMS)
@settings(max_examples=350, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_term_and_both_bounds_on_random_streams(update, covariance, seed):
    X, y, random = stream(seed)
    w, C, r = random.randn(X.shape[1]), 10.0 ** random.uniform(-3, 2), 10.0 ** random.uniform(-2, 2)
    options = {
        "C": C,
        "eta": random.uniform(0.55, 0.95),
        "r": r,
        "buffer_size": random.randint(1, 9),
    }
    found = certificate(X, y, w, update=update, covariance=covariance, **options)
    pairs, mu, A = pairs_of(X, y, update, covariance, **options)
    ref = found.reference
    loss = sum(alpha * (wanted - m) for _, alpha, _, wanted, m, *_ in pairs)
    expected = {
        "loss": loss,
        "reference_loss": sum(alpha * (wanted - ref @ z) for z, alpha, _, wanted, *_ in pairs),
        "prior": ref @ ref / 2,
        "moves": sum(alpha**2 * v for _, alpha, *_, v in pairs) / 2,
        "spread": sum((ref - after) @ form @ (ref - after) for _, _, form, _, _, after, _ in pairs)
        / 2,
        "remainder": (ref - mu) @ A @ (ref - mu) / 2,
    }
    size = max(1.0, *map(abs, expected.values()))
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-9 * size), name
    told = found.reference_loss + found.prior + found.moves + found.spread
    assert told - found.remainder == pytest.approx(loss, abs=1e-9 * size)
    assert found.bound == pytest.approx(told, abs=1e-9 * size)
    assert found.updates == len(pairs)
    assert found.misranked == sum(m <= 0 for *_, m, _, _ in pairs)
    assert loss <= found.bound + 1e-9 * size
    if update == "arow":
        hinge = sum(max(0, 1 - w @ z) for z, *_ in pairs)
        room = np.linalg.slogdet(A)[1] + found.updates - found.misranked
        bound = np.sqrt(r * w @ A @ w * room) + hinge - found.updates + found.misranked
        assert found.misranked_bound == pytest.approx(bound, rel=1e-9, abs=1e-9)
        assert found.misranked <= bound + 1e-9 * size
    # No other length of w gives a lower bound.
    for scale in (0.5, 0.99, 1.01, 2.0):
        v = scale * ref
        other = sum(alpha * (wanted - v @ z) for z, alpha, _, wanted, *_ in pairs) + v @ v / 2
        other += sum((v - after) @ form @ (v - after) for _, _, form, _, _, after, _ in pairs) / 2
        assert other + found.moves >= found.bound - 1e-9 * size


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("name", ["german", "spambase"])
def test_the_stream_is_that_of_the_paper(name, covariance):
    X, y = real(name, 300, "standard")
    found = certificate(X, y, C=0.1, covariance=covariance)
    ranker = CBRanker.paper(0.1, covariance=covariance).fit(X, y)
    np.testing.assert_allclose(found.weights, ranker.coef_[0], rtol=1e-7, atol=1e-10)
    assert (found.pairs, found.updates) == (ranker.n_pairs_, ranker.n_updates_)
    assert found.loss <= found.bound


def test_the_final_mean_as_a_reference_leaves_no_remainder():
    X, y = real("german", 200, "standard")
    mean = certificate(X, y, C=0.1).weights
    found = certificate(X, y, mean, C=0.1)
    assert found.remainder == pytest.approx(0.0, abs=1e-9)
    assert found.bound == pytest.approx(found.loss)


def test_arow_needs_the_full_covariance():
    with pytest.raises(ValueError, match="needs `covariance"):
        certificate([[0.0], [1.0]], [0, 1], [1.0], update="arow", covariance="diagonal")
