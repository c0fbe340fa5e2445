"""A log rehearsed: equal worlds by hand, rates against what happens in worlds with known truth, and refusals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.audits.auditing import audit
from openloop.audits.contrasts import contrasts
from openloop.data.simulate import World, low_rank
from openloop.errors import InputError, UndefinedError
from tests.facts import facts

SHARES = (0.1, 0.2, 0.3, 0.25, 0.15)


def world(seed=0, gap=0.0, users=120, items=60) -> World:
    """Two models that err by about as much, b by `gap` more; users differ, and popular items are seen more."""
    rng = np.random.default_rng(seed)
    Y = low_rank(users, items, 3, SHARES, rng=rng)
    own = np.exp(rng.normal(0, 0.3, (2, users, 1)))
    a, b = (Y + (1 + more) * own[m] * rng.normal(size=Y.shape) for m, more in enumerate((0.0, gap)))
    p = np.clip(np.where(np.arange(items) < 12, 0.5, 0.1) * np.exp(rng.normal(0, 0.4, (users, 1))), 0.03, 0.9)
    return World(ratings=Y, propensities=p, predictions={"a": a, "b": b})


def rehearsed(of: World, log=None, p=None, draws=30, metrics=("mae",), models=None, **options):
    log = of.observe(1) if log is None else log
    p = np.array(of.propensities) if p is None else p
    found = audit(
        of.predictions if models is None else models, log, p, metrics=metrics, rehearse=draws, check=False, **options
    )
    return found.rehearsal


# -- rates -----------------------------------------------------------------------------------------------------


def test_rates_are_those_of_worlds_with_known_truth():
    # How often a paired test tells two models apart in fresh worlds, and what rehearsals of single logs say of it.
    gap, runs, draws, logs = 0.17, 150, 60, 4
    won = [[_winner(world(100 + s, more), s) for s in range(runs)] for more in (0.0, gap)]
    false, power = np.mean([m is not None for m in won[0]]), np.mean([m == "a" for m in won[1]])
    truth = np.mean([_difference(world(100 + s, gap)) for s in range(20)])
    found = [rehearsed(world(s, gap), draws=draws, estimators=["snips"], strata=(), rng=s) for s in range(logs)]
    spread = np.sqrt(0.25 / runs + 0.25 / (draws * logs))
    assert abs(np.mean([r.false_rate for r in found]) - false) < 4 * np.sqrt(
        0.05 * 0.95 * (1 / runs + 1 / (draws * logs))
    )
    # The estimated differences scatter around the truth, and so do the powers found with them.
    assert abs(np.mean([r.difference for r in found]) - truth) < 0.1
    assert abs(np.mean([r.power for r in found]) - power) < 4 * spread + 0.1


def _winner(of: World, seed: int) -> str | None:
    found = ol.evaluate(of.predictions, of.observe(seed), metrics=["mae"], estimators=["snips"])
    return contrasts(found, "mae", "snips")[0].better


def _difference(of: World) -> float:
    a, b = (np.abs(of.ratings - Y_hat).mean() for Y_hat in of.predictions.values())
    return float(a - b)


def test_a_large_difference_is_found_and_drawn_logs_are_as_large_as_the_log():
    of = world(gap=1.5)
    log = of.observe(1)
    found = rehearsed(of, log)
    assert (found.a, found.power, found.different.right) == ("a", 1.0, 30)
    assert abs(found.rows - len(log)) < 5 * np.sqrt(len(log))
    assert sum((found.equal.right, found.equal.wrong, found.equal.conditional, found.equal.none)) == 30


def test_more_models_make_every_pair_harder_to_tell_apart():
    of = world(gap=0.25)
    third = {"c": of.predictions["b"] + 0.02}
    alone, beside = rehearsed(of), rehearsed(of, models=dict(of.predictions) | third)
    assert beside.a == alone.a
    assert beside.power <= alone.power


@pytest.mark.parametrize("estimator", ["snips", "ips", "clipped@5", "clipped"])
@pytest.mark.parametrize("name", ["mae", "rmse", "dcg@10"])
def test_metrics_of_cells_are_rehearsed_by_every_sum_over_rows(name, estimator):
    found = rehearsed(world(gap=0.5), draws=3, metrics=[name], estimators=[estimator])
    assert (found.metric, found.estimator.partition("@")[0], found.draws) == (name, estimator.partition("@")[0], 3)


def test_draws_with_cut_weights_have_the_sums_that_their_rule_needs():
    """A clear difference exceeds what the cap cuts off, in the log and in its draws."""
    of = world(gap=2.0)
    log = of.observe(1)
    cap = round(float(np.quantile(1 / log.propensity, 0.9)))
    asked = {"metrics": ["mae"], "estimators": [f"clipped@{cap}"], "strata": [], "check": False}
    found = ol.audit(of.predictions, log, of.propensities, rehearse=10, **asked)
    assert found.result["a", "mae", f"clipped@{cap}"].diagnostics.kept_weight < 0.999
    assert found.verdict.level == "verdict"
    assert found.rehearsal.different.right >= 9


@pytest.mark.parametrize("estimator", ["snips", "snips_user"])
def test_metrics_of_users_are_rehearsed_on_relevant_rows(estimator):
    of = world(gap=1.0)
    log = of.observe(1)
    found = rehearsed(of, log, draws=5, metrics=["recall@10"], estimators=[estimator])
    assert abs(found.rows - np.sum(log.rating >= 4)) < 6 * np.sqrt(np.sum(log.rating >= 4))


def test_the_same_seed_rehearses_the_same():
    of = world(gap=0.2)
    assert rehearsed(of, rng=3) == rehearsed(of, rng=3)


def test_a_model_of_ratings_is_drawn_from_by_imputed_ones():
    of = world(gap=0.5)
    log = of.observe(1)
    seen = ol.propensity.NaiveBayes().fit(log, uniform=of.ratings.ravel()[:500])
    found = rehearsed(of, log, seen, draws=5)
    assert abs(found.rows / len(log) - 1) < 0.25


def test_balanced_weights_are_drawn_from_under_a_split():
    of = world(gap=0.5)
    train, test = ol.split(of.observe(1), test=0.5, rng=0)
    sample = np.random.default_rng(0).choice(of.ratings.ravel(), 300)
    seen = ol.propensity.Balanced(ol.propensity.Logistic()).fit(of.observe(1), uniform=sample)
    found = rehearsed(of, test, seen, draws=10, exclude=train)
    assert abs(found.rows / len(test) - 1) < 0.15
    assert found.different.right >= 8


def test_weights_balanced_by_predictions_are_drawn_from_and_stay_blind():
    of = world(gap=0.5)
    log = of.observe(1)
    seen = ol.propensity.Balanced(ol.propensity.Logistic()).fit(log, predictions=of.predictions)
    found = rehearsed(of, log, seen, draws=5)
    assert abs(found.rows / len(log) - 1) < 0.15
    assert found.different.wrong == 0


def test_no_rehearsal_without_being_asked_for():
    of = world()
    assert audit(of.predictions, of.observe(1), np.array(of.propensities), metrics=["mae"]).rehearsal is None


def test_propensities_that_do_not_see_ratings_are_judged_under_rho():
    # a is better where ratings are high, which blind propensities may overstate; else the rules see the same.
    of = world(users=200)
    models = {"a": np.full(of.ratings.shape, 3.2), "b": np.full(of.ratings.shape, 2.6)}
    log = of.observe(1)
    seen = ol.propensity.Logistic().fit(log)
    known = rehearsed(of, log, np.array(seen.matrix()), models=models, draws=10)
    blind = rehearsed(of, log, seen, models=models, draws=10)
    assert (known.a, known.power) == ("a", 1)
    assert (blind.different.right, blind.different.conditional) == (0, 10)


def test_rankings_by_propensities_that_do_not_see_ratings_are_judged_under_gamma():
    of = world(users=200)
    log, noise = of.observe(1), np.random.default_rng(3).normal(size=(2, *of.ratings.shape))
    far = {"a": of.ratings + 0.5 * noise[0], "b": noise[1]}
    close = {"a": of.ratings + 0.7 * noise[0], "b": of.ratings + 1.5 * noise[1]}
    seen = ol.propensity.Logistic().fit(log)
    asked = {"metrics": ["recall@10"], "draws": 10}
    assert rehearsed(of, log, seen, models=far, **asked).different.right == 10  # Γ*₉₅ is known of drawn logs, too
    known = rehearsed(of, log, np.array(seen.matrix()), models=close, **asked).different
    blind = rehearsed(of, log, seen, models=close, **asked).different
    assert (known.right, known.conditional) == (blind.conditional, blind.right) == (3, 0)


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", [-1, 2.5, True, "many"])
def test_a_number_of_draws_that_is_none_is_refused(draws):
    with pytest.raises(InputError, match=facts("rehearse", repr(draws))):
        rehearsed(world(), draws=draws)


def test_a_table_of_the_scored_rows_is_refused():
    of = world()
    log = of.observe(1)
    scored = {"user": log.user, "item": log.item, "score": of.predictions["a"][log.user, log.item]}
    with pytest.raises(UndefinedError, match=facts("rehearse", "'table'", f"{len(log):,}")):
        rehearsed(of, log, models={"table": pl.DataFrame(scored), "b": of.predictions["b"]})


def test_propensities_of_rows_alone_are_refused():
    of = world()
    log = of.observe(1)
    for given in (ol.Propensities(values=log.propensity), np.asarray(log.propensity), ol.propensity.Known().fit(log)):
        with pytest.raises(UndefinedError, match=facts("rehearse", "observed rows only", "fitted model")):
            rehearsed(of, log, given)


def test_a_frame_is_refused():
    of = world()
    log = of.observe(1)
    frame = pl.DataFrame({"user": log.user, "item": log.item, "rating": log.rating, "p": log.propensity})
    models = {
        n: frame.select("user", "item").with_columns(score=Y[log.user, log.item]) for n, Y in of.predictions.items()
    }
    with pytest.raises(InputError, match=facts("rehearse", "frame", "ol.read")):
        ol.audit(models, frame, "p", metrics=["mae"], rehearse=5, user="user", item="item", rating="rating")


@pytest.mark.parametrize(("name", "estimator"), [("ndcg@10", "snips"), ("mae", "stratified"), ("mae", "naive")])
def test_what_is_no_debiased_sum_is_refused(name, estimator):
    with pytest.raises(UndefinedError, match=facts("rehearse", estimator, name)):
        rehearsed(world(), metrics=[name], estimators=[estimator])


def test_too_few_rows_or_too_many_cells_are_refused(monkeypatch):
    of = world(users=8)
    with pytest.raises(UndefinedError, match=facts("rehearse", "100")):
        rehearsed(of, of.observe(1))
    monkeypatch.setattr("openloop.audits.rehearsing.MAX_CELLS", 7000)
    with pytest.raises(UndefinedError, match=facts("rehearse", "7,000", "120", "60")):
        rehearsed(world())


def test_models_that_are_the_same_to_all_are_refused():
    of = world()
    with pytest.raises(UndefinedError, match=facts("rehearse", "snips", "mae")):
        rehearsed(of, models={"a": of.predictions["a"], "copy": of.predictions["a"]})
