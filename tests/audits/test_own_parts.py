"""Metrics, masks and propensity models of one's own that once got a confident wrong verdict, and get none."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import openloop as ol

U, I = 400, 60


class ByItem(BaseEstimator):
    fits_items = True

    def fit(self, feedback):
        self.p_ = (np.bincount(feedback.item, minlength=feedback.n_items) + 1) / (feedback.n_users + 2)
        return self

    def predict(self, feedback):
        return ol.Propensities(values=self.p_[feedback.item], fingerprint=feedback.fingerprint, by_items=True)


class LikeLowRank(BaseEstimator):
    """The library's low rank, said by a class of one's own."""

    def fit(self, feedback):
        self.inner_ = ol.propensity.LowRank().fit(feedback)
        return self

    def predict(self, feedback):
        return ol.Propensities(values=self.inner_.predict(feedback).values, fingerprint=feedback.fingerprint)


def own(name, better, function):
    return ol.metric(name, on="rank", better=better)(function)


@pytest.fixture(scope="module")
def shown_more():
    """A world in which model a is better, and the list of b was shown more: its log, and ratings drawn at random."""
    rng = np.random.default_rng(0)
    taste = rng.normal(size=(U, 4)) @ rng.normal(size=(I, 4)).T / 2 + rng.normal(0, 0.6, (1, I))
    noisy = taste + rng.normal(size=(U, I))
    ratings = np.digitize(noisy, np.quantile(noisy, [0.3, 0.55, 0.75, 0.9])) + 1.0
    models = {"a": taste + rng.normal(0, 0.9, (U, I)), "b": taste + rng.normal(0, 1.1, (U, I))}
    rank = (-models["b"]).argsort(1).argsort(1)
    p = np.clip(0.02 * np.exp(2.5 * (1 - rank / I) + 0.15 * (ratings - 3)), 0.01, 0.9)
    user, item = np.nonzero(rng.random((U, I)) < p)
    log = ol.Feedback.from_arrays(user, item, ratings[user, item], users=U, items=I)
    return models, log, rng.choice(ratings.ravel(), 300, replace=False)


METRICS = {
    "mean rank": own("rank", "lower", lambda rank: rank * 1.0),
    "missed": own("missed", "lower", lambda rank: np.where(rank > 10, 1.0, 0.0)),
    "shifted": own("shifted", "higher", lambda rank: 5 + np.where(rank <= 10, 1.0, 0.0)),
    "negative": own("negative", "higher", lambda rank: -rank),
}


METRICS["by hand"] = ol.Metric(
    name="by hand", on="rank", kind="user", better="lower", pooled=True, binary=True,
    gain=lambda x: 1.0 - x.hits(10), per_user=lambda n, gain, _cells: gain / n,
)  # fmt: skip


@pytest.mark.parametrize("measured", METRICS.values(), ids=METRICS)
def test_a_list_that_was_shown_more_wins_by_no_form_of_a_metric(shown_more, measured):
    models, log, drawn = shown_more
    balanced = ol.propensity.Balanced(ByItem()).fit(log, uniform=drawn)
    found = ol.audit(models, log, balanced, metrics=[measured], check=False)
    known = ol.audit(models, log, balanced, metrics=["recall@10"], check=False)
    for verdict in (found.verdict, known.verdict):
        assert verdict.level == "none"
        assert "lists" in {reason.code for reason in verdict.reasons}


def test_a_gain_that_is_the_same_at_every_rank_tells_nothing(shown_more):
    models, log, _ = shown_more
    flat = own("flat", "higher", lambda rank: 1 + 0 * rank)
    assert ol.audit(models, log, ol.propensity.LowRank().fit(log), metrics=[flat], check=False).verdict.level == "none"


def test_the_same_propensities_get_the_same_verdict_from_a_class_of_ones_own(shown_more):
    models, log, _ = shown_more
    levels = [
        ol.audit(models, log, model.fit(log), metrics=["recall@10"], check=False).verdict.level
        for model in (ol.propensity.LowRank(), LikeLowRank())
    ]
    assert levels == ["none", "none"]


def test_no_verdict_rests_on_propensities_that_only_claim_to_see_ratings():
    class Constant(BaseEstimator):
        sees_rating = True

        def fit(self, feedback):
            return self

        def predict(self, feedback):
            return ol.Propensities(values=np.full(len(feedback), 0.3), fingerprint=feedback.fingerprint)

    world = ol.simulate.schnabel_world(users=200, items=150, rank=5, alpha=0.5, rng=0)
    log = world.observe(rng=1)
    noise = np.random.default_rng(2).normal(size=world.ratings.shape)
    models = {
        "all": world.ratings + 0.6 * noise,
        "liked": world.ratings + np.where(world.ratings >= 4, 0.1, 1.2) * noise,
    }
    found = ol.audit(models, log, Constant().fit(log), metrics=["mae"], check=False)
    assert found.verdict.level != "verdict"
    assert "modelled" in {reason.code for reason in found.verdict.reasons}


@pytest.mark.parametrize("masked", ["scored", "disliked", "history"])
def test_a_mask_over_candidates_gets_no_verdict(masked):
    world = ol.simulate.schnabel_world(users=200, items=100, rank=5, rng=0)
    log = world.observe(rng=1)
    train, test = ol.split(log, test=0.5, rng=0)
    rng = np.random.default_rng(2)
    good, bad = (world.ratings + sd * rng.normal(size=world.ratings.shape) for sd in (0.5, 1.5))
    hidden = good.copy()
    if masked == "history":
        hidden[train.user, train.item] = -np.inf
        models = {"good": good, "masked": hidden}  # the same model
    elif masked == "disliked":
        rows = test.take(test.rating < 4)
        hidden[rows.user, rows.item] = -np.inf
        models = {"good": good, "masked": hidden}
    else:
        some = rng.random(len(test)) < 0.6
        hidden[test.user[some], test.item[some]] = -np.inf
        models = {"masked": hidden, "bad": bad}
    found = ol.audit(models, test, metrics=["adg"], check=False)
    assert found.verdict.level == "none"
    assert any("'masked'" in reason.text and "exclude=" in reason.text for reason in found.verdict.reasons)
    if masked == "history":  # nothing is masked that is ranked
        same = ol.audit(models, test, exclude=train, metrics=["adg"], check=False)
        assert not any("-inf" in reason.text for reason in same.verdict.reasons)


@pytest.mark.parametrize("function", [lambda rank: 1 - rank / rank.max(), lambda rank: rank / len(rank)])
def test_a_gain_that_looks_at_the_whole_array_is_refused(function):
    with pytest.raises(ol.errors.InputError, match="each number alone"):
        own("norm", "higher", function)


def test_a_loss_that_looks_at_the_whole_array_is_refused():
    with pytest.raises(ol.errors.InputError, match="each number alone"):
        ol.metric("centred", on="prediction", better="lower")(lambda rating, prediction: rating - prediction.mean())


@pytest.mark.parametrize("offset", [0.0, 1e5, 3e7, 1e12])
@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_neither_an_offset_of_all_items_nor_the_scale_changes_a_ranking(offset, scale):
    rng = np.random.default_rng(0)
    V, W = rng.normal(size=(50, 4)), rng.normal(size=(40, 4))
    log = ol.Feedback.from_arrays(np.arange(50), rng.integers(0, 40, 50), np.full(50, 5.0), users=50, items=40)
    model = ol.learners.Factors(V * scale, W * scale, item_bias=np.full(40, offset))
    found = ol.evaluate({"scores": V @ W.T, "factors": model}, log, metrics=["adg"], estimators=["naive"])
    assert found["factors", "adg", "naive"].value == pytest.approx(found["scores", "adg", "naive"].value, rel=1e-6)


def test_an_estimator_that_is_flat_at_a_logs_totals_is_refused(shown_more):
    @ol.estimator("cut")
    def cut(s):
        return np.maximum(s.wgain / s.weight, 0.0)

    models, log, _ = shown_more
    with pytest.raises(ol.errors.UndefinedError, match="flat"):
        ol.evaluate(models, log, np.full((U, I), 0.1), metrics=[METRICS["negative"]], estimators=[cut])
