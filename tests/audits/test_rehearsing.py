"""A log rehearsed: equal worlds by hand, rates against what happens in worlds with known truth, and refusals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import openloop as ol
from openloop.audits.auditing import audit
from openloop.audits.contrasts import contrasts
from openloop.audits.rehearsal import Outcomes, Rehearsal, binomial_interval
from openloop.data.simulate import World, low_rank
from openloop.errors import UndefinedError
from tests.examples import same
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


def test_the_same_seed_rehearses_the_same():
    of = world(gap=0.2)
    assert rehearsed(of, rng=3) == rehearsed(of, rng=3)


# -- refusals --------------------------------------------------------------------------------------------------


def test_a_table_of_the_scored_rows_is_refused():
    of = world()
    log = of.observe(1)
    scored = {"user": log.user, "item": log.item, "score": of.predictions["a"][log.user, log.item]}
    with pytest.raises(UndefinedError, match=facts("rehearse", "'table'", "all cells")):
        rehearsed(of, log, models={"table": pl.DataFrame(scored), "b": of.predictions["b"]})


def test_propensities_of_rows_alone_are_refused():
    of = world()
    log = of.observe(1)
    for given in (ol.Propensities(values=log.propensity), np.asarray(log.propensity), ol.propensity.Known().fit(log)):
        with pytest.raises(UndefinedError, match=facts("rehearse", "observed rows only", "fitted model")):
            rehearsed(of, log, given)


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


FOUND = Rehearsal(
    a="first", b="second", metric="mae", estimator="snips", draws=200, difference=-0.0421, rows=1234.5,
    equal=Outcomes(right=4, wrong=2, conditional=10, none=184),
    different=Outcomes(right=120, wrong=1, conditional=29, none=50),
)  # fmt: skip


def test_every_verdict_on_equal_models_is_false_and_only_the_right_one_finds_the_difference():
    assert (FOUND.false_rate, FOUND.power) == (0.03, 0.6)


def test_intervals_are_clopper_and_pearsons():
    for k in (0, 1, 7, 20):
        wanted = stats.binomtest(k, 20).proportion_ci(0.95, method="exact")
        same(binomial_interval(k, 20), (wanted.low, wanted.high), rtol=1e-8)
    assert FOUND.false_rate in FOUND.false_interval
    assert FOUND.power in FOUND.power_interval
