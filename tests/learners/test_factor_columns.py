"""Combinations of factor columns, and the weighted ridge regression on them, beside plain NumPy."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.learners.base import FactorLearner
from openloop.learners.baselines import Popularity
from openloop.learners.factor_columns import BLOCK, FactorColumn, Spread, combined, ridge
from tests.facts import facts

RNG = np.random.default_rng(0)
U, I = 7, 5
CELLS = np.indices((U, I)).reshape(2, -1)


def column(K, name="f"):
    normal = RNG.standard_normal
    return FactorColumn(name=name, V=normal((U, K)), W=normal((I, K)), a=normal(U), b=normal(I), c=float(normal()))


def dense(one):
    return one.V @ one.W.T + one.a[:, None] + one.b + one.c


def test_a_column_is_its_formula():
    one = column(3)
    np.testing.assert_allclose(one.at(*CELLS), dense(one).ravel())


def test_a_combination_is_the_sum():
    columns, slopes = [column(3), column(0), column(2)], [0.5, -2.0, 3.0]
    found = combined(columns, slopes, 7.0, "sum")
    wanted = 7 + sum(s * dense(c) for c, s in zip(columns, slopes, strict=True))
    np.testing.assert_allclose(dense(found), wanted)
    assert (found.name, found.V.shape) == ("sum", (U, 5))


def test_what_has_no_slope_takes_no_factors():
    found = combined([column(3), column(2)], [0.0, 1.0])
    assert found.V.shape == (U, 2)
    nothing = combined([column(3)], [0.0], 2.0)
    np.testing.assert_array_equal(nothing.at(*CELLS), np.full(U * I, 2.0))


def test_single_precision_stays_single():
    V, W = np.ones((U, 2), np.float32), np.ones((I, 2), np.float32)
    one = FactorColumn(name="f", V=V, W=W, a=np.zeros(U), b=np.zeros(I))
    assert combined([one, one], [0.5, 0.5]).W.dtype == np.float32


def test_a_learner_without_factors_is_refused():
    with pytest.raises(InputError, match=facts("Stack", "Popularity")):
        FactorColumn.of("Stack", "it", Popularity())
    assert not issubclass(Popularity, FactorLearner)


def rows(n=500, J=3):
    X = RNG.standard_normal((n, J)) @ RNG.standard_normal((J, J)) + 5
    y = X @ RNG.standard_normal(J) + RNG.standard_normal(n)
    return X, y, RNG.exponential(size=n) + 0.1


def moving(J):
    """Columns that move over cells a little, as any do."""
    tiny = [column(1) for _ in range(J)]
    return [replace(one, V=1e-6 * one.V, a=1e-6 * one.a, b=1e-6 * one.b) for one in tiny]


def test_a_spread_has_the_weighted_moments():
    X, y, w = rows()
    found, T = Spread.of(list(X.T), y, w), np.column_stack([X, y])
    mean = w @ T / w.sum()
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.scatter, (w[:, None] * (T - mean)).T @ (T - mean))
    assert found.weight == pytest.approx(w.sum())


def test_spreads_of_parts_merge_to_that_of_the_whole():
    X, y, w = rows(BLOCK + 100)
    cuts = [slice(0, 10), slice(10, BLOCK // 2), slice(BLOCK // 2, None)]
    parts = [Spread.of(list(X[part].T), y[part], w[part]) for part in cuts]
    merged, whole = reduce(Spread.merged, parts), Spread.of(list(X.T), y, w)
    np.testing.assert_allclose(merged.mean, whole.mean)
    np.testing.assert_allclose(merged.scatter, whole.scatter)


@pytest.mark.parametrize("reg", [0.0, 1.0, 50.0])
def test_ridge_minimises_the_penalised_sum(reg):
    X, y, w = rows()
    spread = Spread.of(list(X.T), y, w)
    beta = ridge(spread, spread.deviations(moving(3)), reg)
    mean = w @ X / w.sum()
    Z = (X - mean) / np.sqrt(w @ (X - mean) ** 2 / w.sum())
    A, e = np.vstack([Z * np.sqrt(w)[:, None], np.sqrt(reg) * np.eye(3)]), (y - w @ y / w.sum()) * np.sqrt(w)
    np.testing.assert_allclose(beta, np.linalg.lstsq(A, np.append(e, np.zeros(3)))[0], rtol=1e-9)


def test_a_column_that_does_not_move_has_no_slope():
    X, y, w = rows()
    X[:, 1] = 4.2
    found, other = Spread.of(list(X.T), y, w), Spread.of([X[:, 0], X[:, 2]], y, w)
    deviation = found.deviations(moving(3))
    assert deviation[1] == 0
    beta = ridge(found, deviation, 1.0)
    assert beta[1] == 0
    np.testing.assert_allclose(beta[[0, 2]], ridge(other, other.deviations(moving(2)), 1.0))


def test_a_column_that_moves_far_less_at_rows_than_over_cells_is_still():
    X, y, w = rows()
    X[:, 1] = 1e-9 * X[:, 0]
    deviation = Spread.of(list(X.T), y, w).deviations([column(2) for _ in range(3)])
    assert deviation[1] == 0
    assert (deviation[[0, 2]] > 0).all()


def test_the_deviation_is_that_over_all_cells():
    for K in (0, 3):
        one = column(K)
        assert one.deviation == pytest.approx(dense(one).std())


def test_pooled_sums_are_about_the_means_of_each_part():
    X, y, w = rows()
    cuts = [slice(0, 200), slice(200, 500), slice(500, 500)]
    found = reduce(Spread.pooled, [Spread.of(list(X[part].T), y[part], w[part]) for part in cuts])
    T = np.column_stack([X, y])
    scatter = 0
    for part in cuts[:2]:
        C = T[part] - w[part] @ T[part] / w[part].sum()
        scatter = scatter + (w[part, None] * C).T @ C
    np.testing.assert_allclose(found.scatter, scatter)
    np.testing.assert_allclose(found.mean, w @ T / w.sum())


def test_equal_columns_share_the_slope():
    X, y, w = rows()
    two, one = Spread.of([X[:, 0], X[:, 0]], y, w), Spread.of([X[:, 0]], y, w)
    both, alone = ridge(two, two.deviations(moving(2)), 0.0), ridge(one, one.deviations(moving(1)), 0.0)
    np.testing.assert_allclose(both, np.repeat(alone / 2, 2))
