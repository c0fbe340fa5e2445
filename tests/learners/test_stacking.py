"""Stack: beside the regression by hand, a factor model again, and better than its parts where it should be."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.protocols import FactorModel
from openloop.errors import InputError
from openloop.learners import MF, Bias, Exposure, Popularity, Stack
from openloop.learners.crossing import latin_folds
from tests.contracts import PersonalRecommenderContract, RecommenderContract
from tests.facts import facts


class TestStack(PersonalRecommenderContract):
    def make(self):
        return Stack([MF(factors=2, reg=0.1), (MF(factors=3, reg=0.1), 0.5), (Bias(), 0)])


class TestStackOfFolds(PersonalRecommenderContract):
    def make(self):
        return Stack([MF(factors=2, reg=0.1), (MF(factors=2, reg=0.1, rng=1), 0)], final="folds", rng=3)


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


def test_it_is_a_factor_model_and_ranks_at_full_speed():
    model = Stack([*BASES, Exposure(rank=2)]).fit(LOG, W)
    assert isinstance(model, FactorModel)
    V, items, b = model.factor_arrays()
    assert V.shape == (60, 2 + 4 * 2)  # MF's, and four folds of Exposure's
    ranked = V @ items.T + b
    np.testing.assert_allclose(
        ranked - ranked[:, :1], model.scores(np.arange(60)) - model.scores(np.arange(60))[:, :1], atol=1e-5
    )


def test_a_file_gives_the_same_bits(tmp_path):
    model = Stack([*BASES, Exposure(rank=2)], rng=4).fit(LOG, propensities=LOG.propensity)
    model.save(tmp_path / "stack.safetensors")
    again = ol.load(tmp_path / "stack.safetensors")
    np.testing.assert_array_equal(again.scores(np.arange(60)), model.scores(np.arange(60)))
    assert [type(base).__name__ for base in again.bases] == ["MF", "tuple", "Exposure"]
    assert again.bases[1][0].reg == 2.0
    assert again.columns_ == model.columns_
    np.testing.assert_array_equal(again.fit(LOG, W).coefficients_, model.coefficients_)


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


def test_where_the_log_says_nothing_of_liking_it_costs_little():
    """p is the same everywhere."""
    losses = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Y = (
            3
            + rng.standard_normal((120, 2)) @ rng.standard_normal((2, 90)) / np.sqrt(2)
            + rng.standard_normal((120, 90))
        )
        world = ol.simulate.World(ratings=Y, propensities=np.full(Y.shape, 0.1))
        log = world.observe(rng=seed)
        plain, seen = Stack([MF(2, 5.0)]).fit(log), Stack([MF(2, 5.0), Exposure(rank=3)]).fit(log)
        losses.append(unseen_error(seen, world, log) / unseen_error(plain, world, log) - 1)
    assert np.mean(losses) < 0.01


class Three(Bias):
    """Predicts 3."""

    def fit(self, feedback, sample_weight=None, propensities=None):
        super().fit(feedback, sample_weight, propensities)
        self.user_bias_, self.item_bias_, self.intercept_ = 0 * self.user_bias_, 0 * self.item_bias_, 3.0
        return self


def test_a_column_that_says_nothing_is_noted_and_left_out():
    model, alone = Stack([Bias(), (Three(), 0)]).fit(LOG), Stack([Bias()]).fit(LOG)
    assert model.coefficients_[1] == 0
    assert any("Three, w^0" in note for note in model.notes_)
    np.testing.assert_allclose(model.scores([0, 1]), alone.scores([0, 1]))


def test_unknown_parts_are_refused():
    with pytest.raises(InputError, match=facts("Stack", "final", "'refitt'")):
        Stack(BASES, final="refitt").fit(LOG)
    with pytest.raises(InputError, match=facts("Stack", "reg", "-1")):
        Stack(BASES, reg=-1).fit(LOG)
    with pytest.raises(InputError, match=facts("Stack", "Popularity")):
        Stack([Popularity()]).fit(LOG)
    with pytest.raises(InputError, match=facts("Stack", "sample_weight", "propensities")):
        Stack(BASES).fit(LOG, W, propensities=LOG.propensity)


def test_select_compares_the_two_finals():
    found = ol.select(Stack(BASES), LOG, LOG.propensity, grid={"final": ["refit", "folds"], "reg": [1.0]}, rng=0)
    assert found.table["final"].to_list() == ["refit", "folds"]
    assert found.table["value"].null_count() == 0


SPARSE = {
    "one row per user": (np.arange(600), np.arange(600) % 20, (600, 20)),
    "one row per user and item": (np.arange(300), np.arange(300)[::-1], (300, 300)),
    "eight rows": (np.arange(8) * 7, np.arange(8) * 6, (60, 50)),
}


@pytest.mark.parametrize("name", SPARSE)
def test_where_nothing_tells_who_saw_what_the_column_is_left_out(name):
    """A held-out row of a user without other rows has no exposure, so no slope on it means anything."""
    user, item, (U, I) = SPARSE[name]
    rating = np.random.default_rng(0).integers(1, 6, len(user))
    log = ol.Feedback.from_arrays(user, item, rating, users=U, items=I)
    model = Stack([MF(2, 5.0), Exposure(rank=3)]).fit(log)
    scores = model.scores(np.arange(U))
    assert scores.min() > 0
    assert scores.max() < 6
    assert any("exposure" in note for note in model.notes_)


def test_notes_of_the_bases_are_told_after_their_names():
    model = Stack([MF(2, 1.0, iterations=1), (Bias(), 0)]).fit(LOG, W)
    assert any(note.startswith("MF:") and "1 sweeps" in note for note in model.notes_)
    many = ol.Feedback.from_arrays(LOG.user, LOG.item, LOG.rating, users=70, items=40)
    assert any(note.startswith("MF: 10 users") for note in Stack(BASES).fit(many, W).notes_)
