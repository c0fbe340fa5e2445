"""Stack: beside the regression by hand, and better than its parts where it should be."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.errors import InputError
from openloop.learners import MF, Bias, Exposure, Popularity, Stack
from openloop.learners.crossing import latin_folds
from tests.contracts import PersonalRecommenderContract, RecommenderContract
from tests.facts import facts


class TestStack(PersonalRecommenderContract):
    def make(self):
        return Stack([MF(factors=2, reg=0.1), (MF(factors=3, reg=0.1), 0.5), (Bias(), 0)])


class TestStackWithExposure(RecommenderContract):
    def make(self):
        return Stack([Bias(), Exposure(rank=2)], folds=3)


WORLD = ol.simulate.movie_lovers(users=60, items=40)
LOG = WORLD.observe(rng=0)
W = 1 / LOG.propensity
BASES = [MF(factors=2, reg=1.0), (Bias(reg=2.0), 0)]


def by_hand(reg, final):
    """Held-out columns, ridge on them by augmented least squares, and the columns of all cells."""
    w, n = W / W.mean(), len(LOG)
    fold = latin_folds("Stack", LOG, 4, 0).of(LOG.user, LOG.item)
    held, cells = np.empty((n, 2)), [np.zeros((60, 40)) for _ in BASES]
    for k in range(4):
        part, share = LOG.take(fold != k), np.mean(fold != k)
        rest = w[fold != k]
        fits = [MF(factors=2, reg=share).fit(part, rest), Bias(reg=2.0 * share).fit(part)]
        for j, model in enumerate(fits):
            held[fold == k, j] = model.predict(LOG.user[fold == k], LOG.item[fold == k])
            cells[j] += model.scores(np.arange(60)) / 4
    if final == "refit":
        cells = [MF(factors=2, reg=1.0).fit(LOG, W).scores(np.arange(60)), Bias(reg=2.0).fit(LOG).scores(np.arange(60))]
    within = np.empty_like(held)  # less the weighted mean of the row's own fold
    for k in range(4):
        within[fold == k] = held[fold == k] - np.average(held[fold == k], axis=0, weights=w[fold == k])
    mean, c = w @ held / w.sum(), w @ LOG.rating / w.sum()
    deviation = np.sqrt(w @ within**2 / w.sum())
    Z = within / deviation
    beta = np.linalg.solve(Z.T @ (w[:, None] * Z) + reg * np.eye(2), Z.T @ (w * LOG.rating))
    return beta, c + sum(b * (f - m) / d for b, f, m, d in zip(beta, cells, mean, deviation, strict=True))


@pytest.mark.parametrize("final", ["refit", "folds"])
@pytest.mark.parametrize("reg", [0.0, 1.0, 200.0])
def test_it_is_the_regression_on_held_out_columns(reg, final):
    model = Stack(BASES, reg=reg, final=final).fit(LOG, W)
    beta, scores = by_hand(reg, final)
    np.testing.assert_allclose(model.coefficients_, beta, rtol=1e-4)
    np.testing.assert_allclose(model.scores(np.arange(60)), scores, atol=1e-4)
    assert model.columns_ == ("MF", "Bias, w^0")


def unseen_error(model, world, log):
    seen = np.zeros(world.ratings.shape, bool)
    seen[log.user, log.item] = True
    return float(np.mean((model.scores(np.arange(log.n_users)) - world.ratings)[~seen] ** 2))


def shown_by_taste(seed):
    """Who saw what tells of liking: a cell is the likelier seen the better it is liked, and ratings are noisy."""
    rng = np.random.default_rng(seed)
    liking = rng.standard_normal((120, 3)) @ rng.standard_normal((3, 90)) / np.sqrt(3)
    Y = 3 + liking + 1.2 * rng.standard_normal(liking.shape)
    return ol.simulate.World(ratings=Y, propensities=np.clip(0.08 * np.exp(liking), 0.01, 0.6))


def test_who_saw_what_helps_where_it_tells_of_liking():
    gains = []
    for seed in range(4):
        world = shown_by_taste(seed)
        log = world.observe(rng=seed)
        base = MF(factors=3, reg=8.0)
        plain = Stack([base]).fit(log, propensities=log.propensity)
        seen = Stack([base, Exposure(rank=3)]).fit(log, propensities=log.propensity)
        gains.append(1 - unseen_error(seen, world, log) / unseen_error(plain, world, log))
    assert min(gains) > 0
    assert np.mean(gains) > 0.02


def test_unknown_parts_are_refused():
    with pytest.raises(InputError, match=facts("Stack", "final", "'refitt'")):
        Stack(BASES, final="refitt").fit(LOG)
    with pytest.raises(InputError, match=facts("Stack", "reg", "-1")):
        Stack(BASES, reg=-1).fit(LOG)
    with pytest.raises(InputError, match=facts("Stack", "Popularity")):
        Stack([Popularity()]).fit(LOG)
    with pytest.raises(InputError, match=facts("Stack", "sample_weight", "propensities")):
        Stack(BASES).fit(LOG, W, propensities=LOG.propensity)
