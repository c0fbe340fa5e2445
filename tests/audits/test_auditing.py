"""An audit: from a biased log and models to a verdict that is right as often as it says."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.errors import InputError
from tests.examples import small_world
from tests.facts import facts

pytestmark = pytest.mark.slow

WORLD = small_world(users=80)
LOG = WORLD.observe(1)
QUICK = {"metrics": ["mae"], "estimators": ["snips", "naive"]}


def rating_world(rng, users=300, items=150):
    """People see what they like and what is popular; models err more on what is liked, or less."""
    V, W, quality = rng.normal(size=(users, 3)), rng.normal(size=(items, 3)), rng.normal(0, 0.8, items)
    Y = np.clip(np.rint(3 + V @ W.T / np.sqrt(3) + quality), 1, 5)
    p = 1 / (1 + np.exp(2.8 - 0.9 * (Y - 3) - 0.5 * quality))
    models = {
        f"m{k}": np.clip(
            Y + rng.normal(size=Y.shape) * rng.uniform(0.5, 1) * np.exp(rng.normal(0, 0.15) * (Y - 3)), 1, 5
        )
        for k in range(5)
    }
    return World(ratings=Y.astype(np.float32), propensities=np.clip(p, 0.004, 1), predictions=models)


# -- how good verdicts are -----------------------------------------------------------------------------------


def test_of_the_pairs_declared_significant_at_least_95_percent_are_in_the_true_order(capsys):
    # Measured: snips 198 of 199, the plain average 238 of 288.
    rng, right, declared, chosen = np.random.default_rng(0), {}, {}, []
    for _ in range(12):
        world = rating_world(rng)
        metrics = ("mae", "mse", "recall@10")
        whole = ol.evaluate(world.predictions, world.everything(), metrics=metrics, estimators=["naive"], pairs=[])
        found = ol.audit(
            world.predictions, world.observe(rng), world.propensities, metrics=metrics, estimators=["snips", "naive"]
        )
        for (metric, estimator), contrasts in found.contrasts.items():
            best = whole.ranking(metric, "naive")
            for c in contrasts:
                if c.better is not None:
                    truly = min(c.models, key=best.index)
                    right[estimator] = right.get(estimator, 0) + (c.better == truly)
                    declared[estimator] = declared.get(estimator, 0) + 1
        if found.verdict.supported:
            chosen.append(found.verdict.winner == whole.ranking("mae", "naive")[0])
    shares = {name: right[name] / declared[name] for name in declared}
    with capsys.disabled():
        print(  # noqa: T201
            f"\npairs declared significant that are in the true order: snips {right['snips']} of {declared['snips']} "
            f"({shares['snips']:.1%}), plain average {right['naive']} of {declared['naive']} ({shares['naive']:.1%}); "
            f"verdicts that name the truly best model: {sum(chosen)} of {len(chosen)}"
        )
    assert declared["snips"] > 100
    assert shares["snips"] >= 0.95
    assert shares["naive"] < 0.95
    assert len(chosen) >= 5
    assert all(chosen)


# -- what it does by itself ----------------------------------------------------------------------------------


def test_its_numbers_are_those_of_evaluate():
    found = ol.audit(WORLD.predictions, LOG, **QUICK)
    wanted = ol.evaluate(WORLD.predictions, LOG, **QUICK)
    for key, estimate in wanted.estimates.items():
        assert found.result[key].value == estimate.value
    assert (found.metric, found.estimator) == ("mae", "snips")


def test_the_verdict_is_about_the_first_metric_and_the_first_estimator_that_is_debiased():
    found = ol.audit(WORLD.predictions, LOG, metrics=["adg", "mae"], estimators=["naive", "ips", "stratified", "snips"])
    assert (found.metric, found.estimator) == ("adg", "stratified")  # ips of adg is undefined


def test_without_propensities_only_a_plain_average_is_left_and_no_verdict():
    found = ol.audit(WORLD.predictions, replace(LOG, propensity=None), metrics=["mae"])
    assert found.estimator == "naive"
    assert not found.verdict.supported
    assert found.strata == ()
    assert found.weights is None
    assert found.setting.propensity == "none"


def test_ratings_are_judged_where_models_predict_them():
    assert ol.audit(WORLD.predictions, LOG).result.metrics == ("recall@10", "dcg@10", "mae", "mse")
    scores = {name: 100 * Y for name, Y in WORLD.predictions.items()}
    assert ol.audit(scores, LOG).result.metrics == ("recall@10", "dcg@10")
    liked = replace(LOG, rating=(LOG.rating >= 4).astype(np.float32))
    assert ol.audit(WORLD.predictions, liked).result.metrics == ("recall@10", "dcg@10")


# -- bad input -----------------------------------------------------------------------------------------------


def test_one_model_is_nothing_to_compare():
    with pytest.raises(InputError, match=facts("two", "['a']", "ol.evaluate")):
        ol.audit({"a": WORLD.predictions["a"]}, LOG)


def test_a_leak_and_a_constant_model_are_warned_of():
    models = {"copy": WORLD.ratings.astype(float), "flat": np.full(WORLD.ratings.shape, 3.3), **WORLD.predictions}
    found = ol.audit(models, LOG, metrics=["mae", "recall@3"], estimators=["snips", "naive"])
    assert any(re.search(facts("'copy'", "100.0%", "leak"), w) for w in found.warnings)
    assert any(re.search(facts("'flat'", 3.3), w) for w in found.warnings)
    assert len(found.warnings) == 2
    assert re.search(facts("copy", "leak"), found.verdict.headline)
    constant = ol.audit({"flat": models["flat"], **WORLD.predictions}, LOG, **QUICK)
    assert constant.warnings == ()  # a constant prediction is a fair one


def test_a_model_does_not_win_by_rows_that_it_was_trained_on(tmp_path):
    world = rating_world(np.random.default_rng(0))
    log = world.observe(1)
    train, test = ol.split(log, test=0.3, rng=0)
    fitted = {
        name: ol.learners.MF(factors=30, reg=0.1, rng=0).fit(rows) for name, rows in (("on", log), ("off", train))
    }
    fitted["on"].save(tmp_path / "on.safetensors")
    models = {"on": ol.load(tmp_path / "on.safetensors"), "bias": ol.learners.Bias().fit(train)}
    for scored in (log, test):  # all of what it has seen, and a part of that
        found = ol.audit(models, scored, check=False, **QUICK)
        assert found.contrast("on", "bias").better == "on"
        assert not found.verdict.supported
        assert re.search(facts("on", "trained"), found.verdict.headline)
    held_out = ol.audit({"off": fitted["off"], "bias": models["bias"]}, test, exclude=train, check=False, **QUICK)
    assert "trained" not in held_out.verdict.headline


def test_a_model_does_not_lose_by_rows_that_it_does_not_predict():
    rng = np.random.default_rng(0)
    world = rating_world(rng)
    log = world.observe(1)
    rows = {"user": log.user, "item": log.item}
    equal = {name: world.ratings + rng.normal(0, 0.5, world.ratings.shape) for name in ("whole", "partial")}
    tables = {name: pl.DataFrame({**rows, "score": Y[log.user, log.item]}) for name, Y in equal.items()}
    tables["partial"] = tables["partial"].filter(pl.Series(rng.random(len(log)) < 0.85))
    found = ol.audit(tables, log, missing="worst", **QUICK)
    assert found.contrast("whole", "partial").holm < 0.001
    assert not found.verdict.supported
    assert re.search(facts("partial", "does not predict", "whole"), found.verdict.headline)
    assert "predictions" in found.verdict.remedy
    better = {"whole": tables["whole"].with_columns(pl.col("score") + 3), "partial": tables["partial"]}
    ahead = ol.audit(better, log, missing="worst", **QUICK)
    assert ahead.verdict.winner == "partial"  # although what it does not predict counts against it


def test_propensities_that_predict_nothing_support_no_choice():
    world = rating_world(np.random.default_rng(0))
    log = world.observe(1)

    class Backwards(ol.propensity.Popularity):
        """Sure of the wrong items."""

        def _at(self, user, item):
            return np.clip(1 - super()._at(user, item), 0.01, 1)

    found = ol.audit(world.predictions, log, Backwards(gamma=1).fit(log), **QUICK)
    assert any(
        re.search(facts("propensity model", "held-out", "worse"), reason.text) for reason in found.verdict.reasons
    )
    assert any(w.startswith("propensities: ") for w in found.warnings)


def test_fewer_than_30_users_support_no_verdict():
    few = LOG.take(LOG.user < 29)
    found = ol.audit({"good": WORLD.ratings + 0.01, "bad": WORLD.ratings + 3.0}, few, **QUICK)
    assert not found.verdict.supported
    assert "29 users" in found.verdict.headline


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_lies_between_0_and_1(level):
    with pytest.raises(InputError, match=facts("level", 0, 1, level)):
        ol.audit(WORLD.predictions, LOG, level=level)


@pytest.mark.parametrize("metric", ["recall@10", "mae"])
@pytest.mark.parametrize(
    ("estimator", "code"),
    [("clipped@1", "clipped"), ("clipped@1000", None), ("stratified@1", "coarse"), ("snips", None)],
)
def test_a_plain_average_in_all_but_name_is_no_ground(estimator, code, metric):
    world = biased_world(0, rho=1.4)
    models = {"near": world.ratings + 0.01, "far": world.predictions["even"]}
    found = ol.audit(models, world.observe(1), metrics=[metric], estimators=[estimator])
    assert found.verdict.supported == (code is None)
    assert code is None or code in [reason.code for reason in found.verdict.reasons]


# -- the three answers, end to end ---------------------------------------------------------------------------


def biased_world(rng, rho, users=300, items=120):
    """Observation by popularity and rating, `rho` a star; one model errs on what is disliked, the other evenly."""
    rng = np.random.default_rng(rng)
    popular = np.exp(rng.normal(0, 0.8, items))
    Y = np.clip(np.rint(3 + rng.normal(size=(users, items)) + 0.5 * np.log(popular)), 1, 5)
    p = np.clip(0.06 * popular * rho ** (Y - 3), 0.002, 0.5)
    error = rng.normal(size=Y.shape)
    models = {"liked": Y + np.where(Y >= 3, 0.4, 2.6) * error, "even": Y + 0.9 * error}
    return World(ratings=Y.astype(np.float32), propensities=p, predictions=models)


def test_blind_propensities_do_not_decide_what_balanced_ones_do():
    world = biased_world(0, rho=1.8)
    log, rng = replace(world.observe(1), propensity=None), np.random.default_rng(2)
    asked = {"metrics": ["mae"], "check": False}
    blind = ol.audit(world.predictions, log, ol.propensity.Logistic().fit(log), **asked)
    assert (blind.verdict.level, blind.verdict.winner) == ("conditional", None)
    pair = blind.contrast("liked", "even")
    assert 1 < pair.rho_low < 1.5
    assert blind.verdict.pairs[0].assumption.holds_to == pytest.approx(1 + 0.75 * (pair.rho_low - 1))
    drawn = rng.choice(world.ratings.ravel(), 400, replace=False)
    balanced = ol.propensity.Balanced(ol.propensity.Logistic()).fit(log, uniform=drawn)
    mended = ol.audit(world.predictions, log, balanced, **asked)
    truth = ol.evaluate(world.predictions, world.everything(), metrics=["mae"], estimators=["naive"])
    assert mended.verdict.winner == truth.ranking("mae", "naive")[0] == "even"
    assert blind.verdict.leader == "liked"  # what the plain weights would have chosen


@pytest.mark.parametrize("rho", [1.0, 1.4, 1.8])
@pytest.mark.parametrize("metric", ["mae", "recall@10"])
def test_balancing_by_predictions_switches_no_rule_off(metric, rho):
    world = biased_world(1, rho=rho)
    log = replace(world.observe(1), propensity=None)
    asked = {"metrics": [metric], "check": False, "threshold": 4}
    logistic = ol.propensity.Logistic()
    even = ol.propensity.Balanced(logistic).fit(log, predictions=world.predictions)
    truth = ol.evaluate(world.predictions, world.everything(), metrics=[metric], estimators=["naive"], threshold=4)
    for seen in (logistic.fit(log), even):
        found = ol.audit(world.predictions, log, seen, **asked)
        answer, pair = found.verdict.pairs[0], found.contrast("liked", "even")
        assert found.verdict.level != "verdict" or found.verdict.winner == truth.ranking(metric, "naive")[0]
        if answer.level == "verdict":
            assert pair.rho_low >= 1.5
            assert metric == "mae" or pair.gamma_low >= 1.1
        elif answer.level == "conditional":
            assert answer.assumption.name in {"rho", "gamma"}


def shown_world(rng, hidden, users=300, items=60):
    """What was shown goes by something that no propensities see, times exp(`hidden`) a deviation, and by the rating.

    "good" is a little better than chance, "old" knows nothing but what was shown.
    """
    rng = np.random.default_rng(rng)
    Y = np.clip(np.rint(3 + rng.normal(size=(users, items))), 1, 5)
    unseen = rng.normal(size=Y.shape)
    p = np.clip(0.1 * np.exp(hidden * unseen) * 1.2 ** (Y - 3), 0.002, 0.6)
    return World(
        ratings=Y.astype(np.float32), propensities=p,
        predictions={"good": Y + 4 * rng.normal(size=Y.shape), "old": unseen + 0.1 * Y},
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["Balanced", "LowRank"])
def test_a_list_that_was_shown_more_does_not_win(kind):
    answers = {}
    for hidden in (0.0, 0.8):
        world = shown_world(0, hidden)
        log = replace(world.observe(1), propensity=None)
        drawn = np.random.default_rng(2).choice(world.ratings.ravel(), 400, replace=False)
        seen = (
            ol.propensity.LowRank(rank=1, radius=0.1).fit(log)
            if kind == "LowRank"
            else ol.propensity.Balanced(ol.propensity.Logistic()).fit(log, uniform=drawn)
        )
        answers[hidden] = ol.audit(world.predictions, log, seen, metrics=["recall@10"], threshold=4, check=False)
        truth = ol.evaluate(
            world.predictions, world.everything(), metrics=["recall@10"], estimators=["snips"], threshold=4
        )
        assert truth.ranking("recall@10", "snips")[0] == "good"
    assert answers[0.0].verdict.winner == "good"
    sure = answers[0.8].contrast("old", "good")
    assert sure.better == "old"  # and significant
    assert sure.rho_low == np.inf
    reasons = {r.code: r for r in answers[0.8].verdict.reasons}
    assert answers[0.8].verdict.level == "none"
    assert reasons["lists"].value > reasons["lists"].limit > 1


@pytest.mark.parametrize(("floor", "level"), [(0.0, "verdict"), (0.05, "verdict"), (1.0, "none")])
def test_a_floor_that_leaves_no_weights_is_no_ground(floor, level):
    """After a split by time Σw has no yardstick, so nothing but the floor itself tells."""
    world = biased_world(0, rho=1.2)
    models, log = {"near": world.ratings + 0.1, "far": world.ratings + 1.0}, world.observe(1)
    timed = replace(log, time=np.random.default_rng(0).permutation(len(log)).astype(np.float64))
    test = ol.split(timed, 0.5, by="time")[1]
    found = ol.audit(models, test, ol.Propensities(values=test.propensity, floor=floor), metrics=["mae"])
    assert found.verdict.level == level
    codes = [r.code for r in found.verdict.reasons]
    assert codes == (["clipped"] if level == "none" else [])
    assert level == "verdict" or "floor" in found.verdict.remedy


def clicks_of(popular_is_liked, rng=0, users=300, items=100):
    """Clicks whose popularity is liking or exposure; a model that knows tastes, and one that knows popularity."""
    rng = np.random.default_rng(rng)
    popular = rng.normal(0, 1.2, items)
    taste = rng.normal(size=(users, items)) + popular_is_liked * popular
    shown = rng.random(taste.shape) < 1 / (1 + np.exp(1.5 - (1 - popular_is_liked) * 1.5 * popular))
    user, item = np.nonzero(shown & (taste > 0.5))
    log = Feedback.from_arrays(user, item, np.ones(len(user)), users=users, items=items, positives=True)
    models = {"taste": taste + rng.normal(size=taste.shape), "popular": np.tile(popular, (users, 1))}
    return log, models


def test_clicks_are_judged_with_every_row_counted_once_and_must_hold_for_any_exposure():
    log, models = clicks_of(popular_is_liked=0)  # popularity is exposure, and the popular model is no good
    train, test = ol.split(log, test=0.5, rng=0)
    found = ol.audit(models, test, exclude=train)
    assert (found.metric, found.estimator, found.result.metrics) == ("recall@10", "naive", ("recall@10", "adg"))
    assert found.result["taste", "recall@10", "naive"].estimand == "per user"
    assert found.verdict.winner in (None, "taste")
    assert found.contrast("taste", "popular").kappa is not None
    assert {c.against for c in found.curves} == {"kappa"}
    assert any("positives only" in s for s in found.verdict.sentences)


def test_a_click_log_that_rewards_popularity_says_under_what_it_does():
    log, models = clicks_of(popular_is_liked=0, rng=1)
    blurred = models | {"taste": models["taste"] + np.random.default_rng(5).normal(0, 3, models["taste"].shape)}
    train, test = ol.split(log, test=0.5, rng=0)
    found = ol.audit(blurred, test, exclude=train)
    assert found.verdict.level == "conditional"  # popular is ahead only while popularity is taken for liking
    assert found.verdict.leader == "popular"
    assert re.search(facts("popular is ahead of taste", "popularity", "exposure"), found.verdict.headline)
    assert re.search(facts("exposure", "impressions"), found.verdict.remedy)


@pytest.mark.parametrize(
    ("metric", "code"), [("ndcg@10", "estimand"), ("dcg@10", "estimand"), ("prec@10", "estimand"), ("mae", "positives")]
)
def test_a_metric_beside_what_clicks_can_say_is_on_what_was_seen(metric, code):
    log, models = clicks_of(popular_is_liked=1)
    train, test = ol.split(log, test=0.5, rng=0)
    found = ol.audit(models, test, exclude=train, metrics=[metric])
    assert found.result["taste", metric, "naive"].estimand == "on what was seen"
    assert (found.verdict.level, found.verdict.reasons[0].code) == ("none", code)
    assert re.search(facts("recall@k", "adg", "atop"), found.verdict.remedy)


def test_where_exposure_is_given_the_weights_of_positives_add_up_to_the_liking_rate():
    rng = np.random.default_rng(1)
    liked, shown = rng.random((300, 60)) < 0.3, np.broadcast_to(np.geomspace(0.6, 0.2, 60), (300, 60))
    user, item = np.nonzero(liked & (rng.random(shown.shape) < shown))
    rows = pl.DataFrame({"user": user, "item": item, "rating": np.ones(len(user)), "p": shown[user, item]})
    log = ol.read(rows, propensity="p", users=np.arange(300), items=np.arange(60))
    models = {name: liked + rng.normal(0, noise, liked.shape) for name, noise in (("near", 0.7), ("far", 3.0))}
    found = ol.audit(models, log, metrics=["recall@10"])
    assert (found.verdict.winner, found.estimator) == ("near", "snips")


def test_propensities_fitted_on_good_ratings_alone_are_not_exposure():
    world = biased_world(0, rho=1.2)
    models, log = {"near": world.ratings, "far": world.predictions["even"]}, replace(world.observe(1), propensity=None)
    codes = []
    for part in (log, log.take(log.rating >= 4)):
        found = ol.audit(models, part, ol.propensity.Popularity(gamma=1).fit(part), metrics=["recall@10"], check=False)
        codes.append([reason.code for reason in found.verdict.reasons])
    assert "exposure" not in codes[0]
    assert "exposure" in codes[1]
    assert found.verdict.level == "none"


@pytest.mark.parametrize("exposure", [False, True])
def test_positives_say_nothing_of_errors_on_what_was_not_liked(exposure):
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 6, (60, 40)).astype(float)
    models = {"fives": np.full(ratings.shape, 5.0), "near": ratings + 0.5}  # of all ratings the first is far off
    user, item = np.nonzero((ratings == 5) & (rng.random(ratings.shape) < 0.8))
    log = Feedback.from_arrays(user, item, np.full(len(user), 5.0), users=60, items=40, positives=True)
    found = ol.audit(models, log, np.full(len(log), 0.8) if exposure else None, metrics=["mae"])
    assert (found.verdict.level, found.verdict.reasons[0].code) == ("none", "positives")
    assert found.contrast("fives", "near").better == "fives"  # what the log would have chosen
    assert re.search(facts("positives", "recall@k"), found.verdict.remedy)


@pytest.mark.parametrize(("estimator", "level"), [("snips", "verdict"), ("stratified", "none"), ("clipped@50", "none")])
def test_an_interval_that_leaves_out_the_samples_error_gives_no_verdict(estimator, level):
    world = biased_world(0, rho=1.2)
    log = replace(world.observe(1), propensity=None)
    sample = np.random.default_rng(0).choice(world.ratings.ravel(), 300, replace=False)
    seen = ol.propensity.NaiveBayes().fit(log, uniform=sample)
    models = {"near": world.ratings + 0.1, "far": world.ratings + 1.0}
    found = ol.audit(models, log, seen, metrics=["mae"], estimators=[estimator], check=False)
    assert found.verdict.level == level
    assert ("taken-as-known" in [r.code for r in found.verdict.reasons]) == (level == "none")


def test_hardly_ever_seen_is_no_ground_for_a_verdict():
    """Half of the population is seen once in 5,000 cells: snips cannot know it, and its weights do not add up."""
    rng = np.random.default_rng(0)
    Y = rng.integers(1, 6, (60, 50)).astype(np.float32)
    p = np.where(Y >= 4, 0.5, 0.0002)
    models = {"liked": Y + np.where(Y >= 4, 0.1, 4.0), "ok": Y + 0.5}
    log = World(ratings=Y, propensities=p, predictions=models).observe(1)
    found = ol.audit(models, log, metrics=["mae"])
    assert found.verdict.level == "none"
    assert "overlap" in {r.code for r in found.verdict.reasons}


def test_a_model_without_lists_for_many_users_is_not_judged_by_them():
    """Two tables of the same lists, one of which leaves out two users of five."""
    rng = np.random.default_rng(0)
    clicks = pl.DataFrame({"user": rng.integers(100, size=1500), "item": rng.integers(40, size=1500)}).unique()
    log = ol.read(clicks, users=100, items=40)
    items = np.argsort(rng.random((100, 40)), axis=1)[:, :10]
    lists = pl.DataFrame({
        "user": np.repeat(np.arange(100), 10), "item": items.ravel(), "rank": np.tile(np.arange(1, 11), 100)
    })  # fmt: skip
    found = ol.audit({"all": lists, "some": lists.filter(pl.col("user") >= 40)}, log, metrics=["recall@10"])
    assert not found.verdict.supported
    assert any("'some'" in reason.text for reason in found.verdict.reasons)


def test_clicks_on_the_running_models_own_lists_do_not_make_it_win():
    rng = np.random.default_rng(1)
    lists = {
        name: np.argsort(rng.random((300, 40)), axis=1)[:, :10] for name in ("old", "new")
    }  # each shows other items to each user
    clicked = rng.random((300, 10)) < 0.5
    clicks = pl.DataFrame({"user": np.repeat(np.arange(300), 10)[clicked.ravel()], "item": lists["old"][clicked]})
    tables = {
        name: pl.DataFrame({
            "user": np.repeat(np.arange(300), 10), "item": items.ravel(), "rank": np.tile(np.arange(1, 11), 300)
        })
        for name, items in lists.items()
    }  # fmt: skip
    log = ol.read(clicks, users=300, items=40)
    free, named = (ol.audit(tables, log, metrics=["recall@10"], running=running) for running in (None, "old"))
    assert free.verdict.winner == "old"  # nothing in such a log says who made the lists
    assert any("running=" in sentence for sentence in free.verdict.sentences)
    assert not named.verdict.supported
    assert "own-lists" in {reason.code for reason in named.verdict.reasons}
