"""PureSVD: the best rank-k approximation, by law, beside the dense decomposition, and the same bits every time."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from openloop.learners.pure_svd import PureSVD
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts


class TestPureSVD(PersonalRecommenderContract):
    def make(self):
        return PureSVD(factors=2)


class TestPureSVDOfPositives(PersonalRecommenderContract):
    implicit = True

    def make(self):
        return PureSVD(factors=2, rng=7)


class TestPureSVDOfFullRank(PersonalRecommenderContract):
    def make(self):
        return PureSVD(factors=20)

    def test_the_withheld_item_of_user_u_is_u(self):
        """Of full rank it gives the zeros back that stand for the withheld ratings."""
        scores = self.answers(self.fitted())
        np.testing.assert_allclose(scores[np.arange(20), np.arange(20)], 0, atol=1e-12)


def table(Y: np.ndarray, observed: np.ndarray) -> Feedback:
    u, i = np.nonzero(observed)
    return Feedback.from_arrays(u, i, Y[u, i], users=Y.shape[0], items=Y.shape[1])


def sparse(seed: int = 0, shape: tuple[int, int] = (30, 22)) -> tuple[Feedback, np.ndarray]:
    rng = np.random.default_rng(seed)
    Y, observed = rng.integers(1, 6, shape).astype(float), rng.random(shape) < 0.3
    return table(Y, observed), np.where(observed, Y, 0)


@pytest.mark.parametrize("shape", [(30, 22), (22, 30)])
@pytest.mark.parametrize("K", [1, 5, 21, 22])
def test_it_is_the_best_approximation_of_that_rank(shape, K):
    log, R = sparse(1, shape)
    model = PureSVD(factors=K).fit(log)
    P, sigma, Qt = np.linalg.svd(R)
    np.testing.assert_allclose(model.singular_values_, sigma[:K], rtol=1e-9)
    np.testing.assert_allclose(model.scores(range(shape[0])), (P[:, :K] * sigma[:K]) @ Qt[:K], atol=1e-9)


def test_user_factors_are_the_ratings_folded_in():
    # Cremonesi et al. 2010: r̂_u = r_u Q Qᵀ.
    log, R = sparse(2)
    model = PureSVD(factors=4).fit(log)
    np.testing.assert_allclose(model.user_factors_, R @ model.item_factors_, atol=1e-9)
    np.testing.assert_allclose(model.item_factors_.T @ model.item_factors_, np.eye(4), atol=1e-9)


def test_weights_multiply_the_ratings():
    log, _ = sparse(3)
    w = np.random.default_rng(0).exponential(size=len(log)) + 0.1
    weighted = Feedback.from_arrays(log.user, log.item, log.rating * w / w.mean(), users=30, items=22)
    one, other = PureSVD(factors=3).fit(log, w), PureSVD(factors=3).fit(weighted)
    np.testing.assert_allclose(one.scores(range(30)), other.scores(range(30)), atol=1e-5)  # ratings are float32


def test_weighted_by_propensities_it_finds_the_structure_that_selection_hid():
    rng = np.random.default_rng(4)
    V, W = rng.uniform(0.5, 1, (2000, 1)), rng.uniform(0.5, 1, (40, 1))
    Y = V @ W.T  # (2000, 40), in [1/4, 1] and of rank 1
    P = 0.8 * Y**2
    log = table(Y, rng.random(Y.shape) < P)
    naive, debiased = PureSVD(factors=1).fit(log), PureSVD(factors=1).fit(log, 1 / P[log.user, log.item])

    def misses(model: PureSVD) -> float:
        """1 - cos of the item factors with the true ones."""
        return 1 - float(model.item_factors_[:, 0] @ W[:, 0] / np.linalg.norm(W))

    # Selected in proportion to Y², the ratings are those of W³ on average.
    assert np.isclose(misses(naive), 1 - (W**4).sum() / np.linalg.norm(W**3) / np.linalg.norm(W), rtol=0.2)
    assert misses(debiased) < 0.05 * misses(naive)


def test_ratings_of_lower_rank_leave_the_other_factors_empty():
    rng = np.random.default_rng(5)
    Y = rng.normal(size=(40, 3)).astype(np.float32) @ rng.integers(1, 3, (3, 25)).astype(np.float32)
    models = [PureSVD(factors=K).fit(table(Y, np.ones(Y.shape, bool))) for K in (3, 10, 25)]
    assert models[0].notes_ == ()
    (note,) = models[1].notes_
    assert re.search(facts("rank 3", "7 of 10"), note)
    for model in models:
        np.testing.assert_allclose(model.scores(range(40)), Y, atol=1e-4)
        assert not model.item_factors_[:, 3:].any()
        assert not model.user_factors_[:, 3:].any()


def test_the_largest_entry_of_each_item_factor_is_positive():
    W = PureSVD(factors=6).fit(sparse(6)[0]).item_factors_
    assert np.all(W[np.abs(W).argmax(axis=0), np.arange(6)] > 0)


def test_the_start_hardly_matters():
    log, _ = sparse(7)
    one, other = (PureSVD(factors=5, rng=rng).fit(log).scores(range(30)) for rng in (0, np.random.default_rng(9)))
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_the_bits_are_those_of_another_process_with_other_threads(tmp_path):
    log, _ = sparse(8, (700, 500))
    np.savez(tmp_path / "log.npz", user=log.user, item=log.item, rating=log.rating)
    program = """if True:
        import sys, numpy as np
        from openloop.core.feedback import Feedback
        from openloop.learners import PureSVD
        log = Feedback.from_arrays(**np.load(sys.argv[1] + "/log.npz"), users=700, items=500)
        np.save(sys.argv[1] + "/V.npy", PureSVD(factors=9).fit(log).user_factors_)
    """
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    with threadpool_limits(1):
        model = PureSVD(factors=9).fit(log)
    np.testing.assert_array_equal(model.user_factors_, np.load(tmp_path / "V.npy"))


@pytest.mark.parametrize("factors", [0, -3, 2.0, "5", None, True])
def test_factors_are_a_whole_number(factors):
    with pytest.raises(InputError, match=facts("PureSVD", "factors", 1, repr(factors))):
        PureSVD(factors=factors).fit(sparse()[0])


def test_more_factors_than_the_grid_has_are_refused():
    with pytest.raises(InputError, match=facts("PureSVD", "factors", 22, 23)):
        PureSVD(factors=23).fit(sparse()[0])


def test_one_item_is_enough():
    log = Feedback.from_arrays([0, 2], [0, 0], [3, 4], users=3, items=1)
    np.testing.assert_allclose(PureSVD(factors=1).fit(log).scores(range(3)), [[3], [0], [4]], atol=1e-12)


def test_ratings_of_zero_are_refused():
    with pytest.raises(InputError, match=facts("PureSVD", "all ratings", 0)):
        PureSVD(factors=1).fit(Feedback.from_arrays([0, 1], [0, 1], [0, 0]))


def test_who_has_no_rating_is_scored_zero_and_the_fit_says_so():
    model = PureSVD(factors=1).fit(Feedback.from_arrays([0, 1], [0, 1], [3, 4], users=3, items=2))
    assert model.scores([2]).tolist() == [[0, 0]]
    (note,) = model.notes_
    assert re.search(facts("1 user", "no rating", 0), note)


def test_it_ranks_in_evaluate_as_its_scores_do():
    train, test = ol.split(movie_lovers(users=80, items=40).observe(2), test=0.3, rng=0)
    model = PureSVD(factors=5).fit(train)
    models = {"model": model, "array": model.scores(range(80))}
    result = ol.evaluate(models, test, metrics=["ndcg@5", "adg"], estimators=["naive"], exclude=train, threshold=4)
    for metric in ("ndcg@5", "adg"):
        values = [result[name, metric, "naive"].value for name in models]
        assert np.isclose(*values, rtol=1e-6)
        assert values[0] > 0
