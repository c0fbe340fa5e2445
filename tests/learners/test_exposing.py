"""Exposure: the score beside a dense decomposition, blind to the cell itself."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import InputError
from openloop.learners import Exposure
from openloop.learners.crossing import latin_folds
from openloop.learners.exposing import SPARE
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts


class TestExposure(PersonalRecommenderContract):
    implicit = True

    def make(self):
        return Exposure(rank=2)

    def test_the_withheld_item_of_user_u_is_u(self):
        """User u saw the items of her colour; those rank above all others."""
        scores = self.answers(self.fitted())
        u, i = np.indices(scores.shape)
        assert scores[(u + i) % 2 == 0].min() > scores[(u + i) % 2 == 1].max()


def tasteful(seed=0, U=60, I=40):
    """Two kinds of people see two kinds of items, some people and items more than others."""
    rng = np.random.default_rng(seed)
    taste = np.where(np.arange(U)[:, None] % 2 == np.arange(I) % 2, 1.5, 0.5)
    seen = rng.random((U, I)) < 0.25 * taste * rng.uniform(0.4, 1.6, (U, 1)) * rng.uniform(0.4, 1.6, I)
    u, i = np.nonzero(seen)
    return Feedback.from_arrays(u, i, rng.integers(1, 6, len(u)), users=U, items=I)


LOG = tasteful()


def dense(log, folds, k, rank):
    """The definition, with whole matrices."""
    U, I = log.n_users, log.n_items
    O, mine = np.zeros((U, I)), folds.of(*np.indices((U, I)))
    O[log.user, log.item] = 1
    O[mine == k] = 0
    n_u, n_i, n = O.sum(axis=1), O.sum(axis=0), O.sum()
    N = np.where(mine == k, 0, O - np.outer(n_u, n_i) / n) / np.sqrt(np.outer(n_u + 1, n_i + 1) / n)
    P, sigma, Qt = np.linalg.svd(N)
    E = (P[:, :rank] * np.maximum(sigma[:rank] - sigma[rank + SPARE - 1], 0)) @ Qt[:rank]
    return E / E.std(), n_u, n_i


# In single precision, rounding moves the score by up to εσ₁(σ₂ - σ₈)/(σ₂ - σ₃) of its standard deviation: 6e-5 in these
# folds, where the second singular value is apart from the third, and up to 1e-3 in the others.
@pytest.mark.parametrize("k", [1, 2])
def test_the_columns_are_those_of_the_definition(k):
    folds = latin_folds("it", LOG, 4, 5)
    score, active, popular = Exposure(rank=2).fold_columns(LOG, folds, k)
    E, n_u, n_i = dense(LOG, folds, k, 2)
    np.testing.assert_allclose(score.V @ score.W.T, E, atol=1e-4)
    np.testing.assert_allclose(active.a, np.log(n_u + 1))
    np.testing.assert_allclose(popular.b, np.log(n_i + 1))
    assert not active.b.any()
    assert not popular.a.any()


def test_a_cell_does_not_foretell_itself():
    """Whether a cell of the fold was seen or not, the fold's columns are the same bits."""
    folds = latin_folds("it", LOG, 4, 5)
    fold = folds.of(LOG.user, LOG.item)
    fewer = LOG.take((fold != 2) | (np.arange(len(LOG)) % 2 == 0))
    for one, other in zip(
        Exposure(rank=2).fold_columns(LOG, folds, 2), Exposure(rank=2).fold_columns(fewer, folds, 2), strict=True
    ):
        np.testing.assert_array_equal(one.V, other.V)
        np.testing.assert_array_equal(one.a, other.a)
        np.testing.assert_array_equal(one.b, other.b)


def test_a_rank_beyond_the_grid_is_refused():
    with pytest.raises(InputError, match=facts("Exposure", "rank=35", "rank=34")):
        Exposure(rank=35).fit(LOG)
    for rank in (0, 1.5, None):
        with pytest.raises(InputError, match=facts("Exposure", "rank", repr(rank))):
            Exposure(rank=rank).fit(LOG)
