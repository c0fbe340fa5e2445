"""Sums under tilted weights from arrays: against their definitions, raked and not, with shares per user."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import schnabel_world
from openloop.evaluation import prepared
from openloop.metrics.naming import metric
from openloop.sources.arrays.tilting import _levels
from openloop.sources.question import Question
from openloop.sources.tilts import KAPPAS, RHOS
from tests.examples import same

WORLD = schnabel_world(60, 40, 5, alpha=0.9, observed=0.5, rng=0)
LOG = WORLD.observe(1)
NOISE = np.random.default_rng(2).normal(size=(2, *WORLD.ratings.shape))
MODELS = {"a": WORLD.ratings + NOISE[0], "b": WORLD.ratings + 1.5 * NOISE[1]}


def tilts(name, log=LOG, p=None, exclude=None):
    estimators = ["naive"] if p is None and log.propensity is None else ["snips"]
    asked = Question(metrics=[name], estimators=estimators, exclude=exclude, threshold=4)
    ready = prepared(MODELS, log, p, asked)
    return ready.source, ready.compare("all", tilt=True).tilts[name]


def fitted(log, **nature):
    return ol.Propensities(values=log.propensity, fingerprint=log.fingerprint, **nature)


@pytest.mark.parametrize("name", ["mae", "recall@5"])
def test_rho_reweights_by_rating_and_keeps_the_items_sums_of_all_scored_rows(name):
    source, found = tilts(name, p=fitted(LOG, by_items=True))
    (rho,) = found.sums
    assert rho.raked
    w, r, item = 1 / LOG.propensity, LOG.rating.astype(float) - 1, LOG.item
    kept = np.ones(len(LOG), bool) if name == "mae" else LOG.rating >= 4
    for g, value in enumerate(RHOS):
        tilted = w * value**-r
        tilted *= (np.bincount(item, w) / np.bincount(item, tilted))[item]
        same(np.bincount(item, tilted), np.bincount(item, w))
        gain = source.gains(metric(name), "b", None)
        wanted = [np.bincount(LOG.user[kept], x, 60) for x in (tilted[kept], tilted[kept] * gain)]
        same(rho.sums[:, [0, 2], g].T, wanted)


def test_given_propensities_hold_no_margin_of_items():
    _, found = tilts("mae", p=fitted(LOG))
    (rho,) = found.sums
    assert not rho.raked
    w = 1 / LOG.propensity * 1.5 ** (1 - LOG.rating.astype(float))
    same(rho.sums[:, 0, RHOS.index(1.5)], np.bincount(LOG.user, w, 60))


def test_kappa_divides_by_the_rows_of_the_item_in_the_whole_log():
    liked = LOG.take(LOG.rating >= 4, propensity=None, row=np.arange((LOG.rating >= 4).sum()))
    _, test = ol.split(liked, test=0.3, rng=0)
    source, found = tilts("recall@5", test)
    (kappa,) = found.sums
    n = np.bincount(liked.item, minlength=40)
    assert found.parts is None
    for g, value in enumerate(KAPPAS):
        w = n[test.item] ** -value
        gain = source.gains(metric("recall@5"), "a", None)
        same(kappa.sums[:, :2, g].T, [np.bincount(test.user, x, 60) for x in (w, w * gain)])


@pytest.mark.parametrize("by", ["row", "leave-k-out"])
def test_the_parts_of_pairs_tilt_p_under_exclude_with_the_shares_of_each_user(by):
    train, test = ol.split(LOG, test=0.4, rng=0) if by == "row" else ol.split(LOG, by="leave-k-out", k=5, rng=0)
    source, found = tilts("recall@5", test, exclude=train)
    rows = source.rows_for("user", "rank", None)
    gains = [source.gains(metric("recall@5"), m, None) for m in ("a", "b")]
    d = gains[0] - gains[1]
    fixed, moving = rows.certain, 1 / rows.probability - rows.certain
    p = test.propensity[test.rating >= 4]
    s = test.share[test.rating >= 4]
    same(moving, (1 / p - 1) / s)
    wanted = [np.bincount(rows.user, x, 60) for x in (fixed * d, moving * np.maximum(d, 0), moving * np.maximum(-d, 0))]
    same(found.parts_of("a", "b").T, wanted, atol=1e-12)


def test_a_split_by_time_and_balanced_weights_have_no_odds():
    timed = ol.Feedback.from_arrays(
        LOG.user, LOG.item, LOG.rating, users=60, items=40, propensity=LOG.propensity, time=np.arange(len(LOG))
    )
    _, test = ol.split(timed, test=0.3, by="time")
    source, found = tilts("mae", test)
    assert source.form == "ratio"
    assert (found.parts[:, :, 0] == 0).all()
    source, found = tilts("mae", p=fitted(LOG, base=LOG.propensity))
    assert source.form == "ratio"
    assert (found.parts[:, :, 0] == 0).all()
    assert tilts("mae")[0].form == "odds"


def test_ratings_between_the_steps_of_a_scale_have_their_own_place():
    rating = np.array([0.0, 1 / 3, 1 / np.pi, 1.0])  # the third is no multiple of 1/2520
    level, r = _levels(rating)
    same(r[level], 4 * rating)
    level, r = _levels(rating[[0, 1, 3]])
    assert len(r) == 2521
    same(r[level], 4 * rating[[0, 1, 3]])
