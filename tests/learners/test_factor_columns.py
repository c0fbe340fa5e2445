"""Combinations of factor columns, and the weighted ridge regression on them, beside plain NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.learners.factor_columns import FactorColumn, Spread, combined, ridge

RNG = np.random.default_rng(0)
U, I = 7, 5


def column(K, name="f"):
    normal = RNG.standard_normal
    return FactorColumn(name=name, V=normal((U, K)), W=normal((I, K)), a=normal(U), b=normal(I), c=float(normal()))


def dense(one):
    return one.V @ one.W.T + one.a[:, None] + one.b + one.c


def test_a_combination_is_the_sum():
    columns, slopes = [column(3), column(0), column(2)], [0.5, -2.0, 3.0]
    found = combined(columns, slopes, 7.0, "sum")
    wanted = 7 + sum(s * dense(c) for c, s in zip(columns, slopes, strict=True))
    np.testing.assert_allclose(dense(found), wanted)
    assert (found.name, found.V.shape) == ("sum", (U, 5))


def rows(n=500, J=3):
    X = RNG.standard_normal((n, J)) @ RNG.standard_normal((J, J)) + 5
    y = X @ RNG.standard_normal(J) + RNG.standard_normal(n)
    return X, y, RNG.exponential(size=n) + 0.1


def moving(J):
    """Columns that move over cells a little, as any do."""
    tiny = [column(1) for _ in range(J)]
    return [replace(one, V=1e-6 * one.V, a=1e-6 * one.a, b=1e-6 * one.b) for one in tiny]


@pytest.mark.parametrize("reg", [0.0, 1.0, 50.0])
def test_ridge_minimises_the_penalised_sum(reg):
    X, y, w = rows()
    spread = Spread.of(list(X.T), y, w)
    beta = ridge(spread, spread.deviations(moving(3)), reg)
    mean = w @ X / w.sum()
    Z = (X - mean) / np.sqrt(w @ (X - mean) ** 2 / w.sum())
    A, e = np.vstack([Z * np.sqrt(w)[:, None], np.sqrt(reg) * np.eye(3)]), (y - w @ y / w.sum()) * np.sqrt(w)
    np.testing.assert_allclose(beta, np.linalg.lstsq(A, np.append(e, np.zeros(3)))[0], rtol=1e-9)
