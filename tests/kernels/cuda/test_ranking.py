"""Exact ranks by Triton: the definition's counts for any lists, blocks and scores, and what has no rank is refused."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import InputError, PredictionError
from openloop.kernels.ranking import ranks_numpy
from tests.facts import facts

U, I, K = 7, 150, 3


@pytest.fixture
def kernel(triton, monkeypatch):
    from openloop.kernels.cuda import ranking

    # Less than there is for one program or one pass over a list.
    monkeypatch.setattr(ranking, "PART", 128)
    monkeypatch.setattr(ranking, "WIDTH", 4)
    return ranking


def lists(items):
    return np.cumsum([0, *map(len, items)]).astype(np.int64), np.array([i for own in items for i in own], np.int32)


def some_lists(seed=0):
    """Wanted and excluded items; user 2 wants nothing, user 4 very much; some of user 0's are both."""
    rng = np.random.default_rng(seed)
    wanted = [rng.integers(0, I, n) for n in (3, 1, 0, 2, 9, 1, 2)]
    excluded = [np.sort(rng.choice(I, n, replace=False)) for n in (0, 5, 9, 0, 40, 1, 10)]
    excluded[0] = np.unique(wanted[0][:2])
    return lists(wanted), lists(excluded)


def scores_with(kind, dtype=np.float32):
    rng = np.random.default_rng(1)
    S = rng.normal(size=(U, I))
    if kind == "ties":
        S = np.round(S, 1)
    elif kind == "infinite":
        S[S < -1], S[S > 1] = -np.inf, np.inf
    elif kind == "tiny":
        S = np.round(S * 20) * 2.0**-149  # multiples of the least float32
    elif kind == "extreme":
        S = rng.choice([-3.4028234e38, -np.inf, 0.0, -0.0, 3.4028234e38, 1e-45, np.inf], (U, I))
    elif kind == "constant":
        S[:] = 0.25
    return S.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "ties", "infinite", "tiny", "extreme", "constant"])
def test_counts_are_those_of_the_definition(kernel, torch, kind, dtype):
    S, (wanted, excluded) = scores_with(kind, dtype), some_lists()
    kept = torch.tensor(S)
    found = kernel.ranks(lambda users: kept[users], *wanted, I, *excluded, block=3)
    np.testing.assert_array_equal(found, ranks_numpy(S, *wanted, *excluded))
    assert torch.equal(kept, torch.tensor(S))  # excluded scores were overwritten in a copy


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("precision", ["float32", "split"])
def test_factors_give_the_ranks_of_their_product(kernel, precision, biased):
    # Quarters up to 1 have products and sums that float32 and halves hold exactly: ties included, nothing is rounded.
    rng = np.random.default_rng(2)
    P, Q, b = (rng.integers(-4, 5, shape) / 4 for shape in ((U, K), (I, K), I))
    P[5], (wanted, excluded) = 0.0, some_lists()  # whose largest factor has no power of 2
    found = kernel.factor_ranks(P, Q, b if biased else None, *wanted, *excluded, precision=precision, block=2)
    np.testing.assert_array_equal(found, ranks_numpy(P @ Q.T + (b if biased else 0), *wanted, *excluded))


def test_halves_are_as_near_as_float32(kernel, torch):
    rng = np.random.default_rng(3)
    P, Q = (torch.tensor(rng.normal(size=(n, 16)) * scale, dtype=torch.float32) for n, scale in ((30, 1e-9), (40, 1e7)))
    exact = P.double() @ Q.double().T
    size = P.double().norm(dim=1)[:, None] * Q.double().norm(dim=1)
    unit = torch.ldexp(torch.ones(30), -(torch.frexp(P.abs().amax(1))[1] + torch.frexp(Q.abs().amax())[1]))[:, None]
    split = kernel.product(P, Q, "split")(0, 30) / unit  # scores of a user times a power of 2
    assert ((split - exact).abs() / size).max() < 2.0**-20
    assert ((P.half().float() @ Q.div(1e7).half().float().T * 1e7 - exact).abs() / size).max() > 2.0**-12


@pytest.mark.parametrize("bad", [5, 0], ids=["excluded too", "last"])
def test_nan_has_no_rank(kernel, bad):
    S, (wanted, excluded) = scores_with("plain"), some_lists()
    S[bad, I - 1] = np.nan
    with pytest.raises(PredictionError, match=facts("ranks", "user", bad, "NaN")):
        kernel.ranks(lambda users: S[users], *wanted, I, *excluded)


def test_bad_lists_factors_and_precisions_are_refused(kernel):
    good, scores = lists([[0], [1]]), np.zeros((2, 4), np.float32)
    with pytest.raises(InputError, match=facts("wanted", 3, "0…4")):
        kernel.ranks(lambda _: scores, *lists([[0], [4]]), 4)
    with pytest.raises(InputError, match=facts("excluded", "ascend")):
        kernel.ranks(lambda _: scores, *good, 4, *lists([[], [2, 1]]))
    with pytest.raises(InputError, match=facts("factors", (2, 3), (4, 2))):
        kernel.factor_ranks(np.zeros((2, 3)), np.zeros((4, 2)), None, *good)
    with pytest.raises(InputError, match=facts("precision", "'half'", "split")):
        kernel.factor_ranks(np.zeros((2, 3)), np.zeros((4, 3)), None, *good, precision="half")
