"""What the weights rest on, from models, numbers and logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from openloop.audits.auditing import audit
from openloop.audits.basis import Basis, unexposed
from openloop.core.levels import LevelSample
from openloop.core.propensities import Propensities
from openloop.data.scanning import scan
from openloop.errors import UndefinedError
from openloop.learners import MixtureMNAR
from openloop.propensity.balanced import Balanced
from openloop.propensity.calibrated import Calibrated
from openloop.propensity.logistic import Logistic
from openloop.propensity.naive_bayes import NaiveBayes
from openloop.propensity.popularity import Popularity
from openloop.propensity.uniform import Uniform
from tests.audits.cases import LOG, WORLD

SAMPLE = LevelSample(levels=np.arange(1.0, 6.0), shares=np.full(5, 0.2), size=250, rows=1000)
ONES = np.full(len(LOG), 0.5)


class Model:
    """Predicts propensities of any rows."""

    fits_cells = False

    def __init__(self, **known):
        self.known = known

    def predict(self, feedback):
        values = np.full(len(feedback), 0.5)
        base = values if self.known.get("base") else None
        return Propensities(values=values, fingerprint=feedback.fingerprint, **(self.known | {"base": base}))


def test_weights_balanced_without_ratings_are_as_blind_as_the_model():
    f, margins = WORLD.predictions["a"], {"odd": (lambda user, _item, _rating: user % 2, 0.5)}
    for fitted in (
        Balanced(Uniform()).fit(LOG, predictions=f),
        Balanced(Uniform(), functions=margins).fit(LOG),
    ):
        assert Basis.of(fitted, LOG) == Basis(blind=True, balanced=True)
    sample = Balanced(Uniform()).fit(LOG, uniform=WORLD.ratings.ravel()[:250], predictions=f)
    assert Basis.of(sample, LOG) == Basis(sample=250, balanced=True, by_rating=True)


def test_what_a_model_of_ones_own_does_not_say_is_taken_the_cautious_way():
    class Silent:
        predict = Model().predict

    class Seeing(Model):
        sees_rating = True

    assert Basis.of(Silent(), LOG) == Basis(blind=True, by_cells=True)
    assert Basis.of(Seeing(), LOG) == Basis(modelled=True)  # no row can check how p follows the rating
    assert Basis.of(Seeing(sample=SAMPLE, by_rating=True), LOG) == Basis(sample=250, by_rating=True)


def test_what_depends_on_the_rating_alone_does_so_in_every_wrapping():
    drawn = np.random.default_rng(0).choice(WORLD.ratings.ravel(), 300)
    bayes, log = NaiveBayes(), replace(LOG, propensity=None)
    for model in (bayes, Calibrated(bayes, method=None, floor=0.001), Balanced(bayes), Balanced(Uniform())):
        fitted = model.fit(log, uniform=drawn)
        for given in (fitted, fitted.predict(log)):
            found = Basis.of(given, log)
            assert (found.by_rating, found.sample, found.blind) == (True, 300, False), model
    assert not Basis.of(Balanced(Popularity(gamma=1)).fit(log, uniform=drawn), log).by_rating


def test_positives_without_exposure_are_clicks():
    clicks = replace(LOG, propensity=None, positives=True)
    assert Basis.of(None, clicks) == Basis(positives=True, clicks=True)
    assert Basis.of(ONES, clicks) == Basis(positives=True)
    assert Basis.of(None, replace(LOG, positives=True)) == Basis(positives=True)  # the log says what was shown
    assert unexposed(clicks, None)
    assert not unexposed(clicks, ONES)


# -- columns of frames that a model made ---------------------------------------------------------------------


def as_frame(rating):
    return pl.DataFrame({"user": LOG.user, "item": LOG.item, "rating": rating} | {
        name: WORLD.predictions[name][LOG.user, LOG.item] for name in "ab"
    })  # fmt: skip


def audited(frame, model, column="propensity"):
    log = scan(frame, users=LOG.n_users, items=LOG.n_items, propensity=column, propensity_model=model)
    return audit({name: name for name in "ab"}, log, metrics=["mae"])


def test_a_column_fitted_on_positives_alone_is_no_exposure():
    frame = as_frame(np.ones(len(LOG), np.float32))
    fitted = Logistic().fit(frame, population=(LOG.n_users, LOG.n_items))
    with pytest.raises(UndefinedError, match="positives only"):
        audited(fitted.with_column(frame), "logistic")


def test_a_column_that_was_fitted_with_a_sample_decides_nothing():
    drawn = np.random.default_rng(0).choice(WORLD.ratings.ravel(), 250)
    frame, population = as_frame(LOG.rating), (LOG.n_users, LOG.n_items)
    seen = NaiveBayes().fit(frame, uniform=drawn, population=population)
    for model in (seen, "naive-bayes"):  # intervals by a column leave out the chance of the sample
        found = audited(seen.with_column(frame), model)
        assert found.verdict.level == "none"
        assert "taken-as-known" in [r.code for r in found.verdict.reasons]


def test_a_column_of_a_joint_model_decides_nothing():
    joint = MixtureMNAR(1, iterations=5, restarts=1, rng=0).fit(LOG).propensities_
    frame = as_frame(LOG.rating).with_columns(p=joint.predict(LOG).values)
    found = audited(frame, joint, column="p")
    assert "modelled" in [r.code for r in found.verdict.reasons]
    assert not found.verdict.supported


def test_ratings_that_the_log_lacks_are_known_from_a_model_and_from_its_numbers():
    log, model = LOG.take(LOG.rating > 1), Model(sample=SAMPLE, base=True)
    for given in (model, model.predict(log)):
        assert Basis.of(given, log) == Basis(sample=250, balanced=True, unseen=0.2)
