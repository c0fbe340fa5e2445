"""What the weights rest on, from models, numbers and logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from openloop.audits.auditing import audit
from openloop.audits.basis import Basis, granted, unexposed
from openloop.core.levels import LevelSample
from openloop.core.propensities import Propensities
from openloop.errors import InputError, UndefinedError
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


def test_numbers_and_columns_are_given():
    for given in (None, ONES, Propensities(values=ONES)):
        assert Basis.of(given, LOG) == Basis()
    assert Basis.of("p", object()) == Basis()
    assert Basis.of("p", object(), blind=True) == Basis(blind=True)


def test_a_model_says_what_it_saw():
    assert Basis.of(Model(blind=True), LOG) == Basis(blind=True)
    assert Basis.of(Model(sample=SAMPLE, by_rating=True), LOG) == Basis(sample=250, by_rating=True)
    assert Basis.of(Model(sample=SAMPLE, base=True), LOG) == Basis(sample=250, balanced=True)
    assert Basis.of(Model(modelled=True), LOG) == Basis(modelled=True)


def test_what_a_model_of_ones_own_does_not_say_is_taken_the_cautious_way():
    class Silent:
        predict = Model().predict

    class Seeing(Model):
        sees_rating = True

    assert Basis.of(Silent(), LOG) == Basis(blind=True, by_cells=True)
    assert Basis.of(Seeing(), LOG) == Basis(modelled=True)  # no row can check how p follows the rating
    assert Basis.of(Seeing(sample=SAMPLE, by_rating=True), LOG) == Basis(sample=250, by_rating=True)


def test_ratings_that_the_log_lacks_are_known_from_a_model_and_from_its_numbers():
    log, model = LOG.take(LOG.rating > 1), Model(sample=SAMPLE, base=True)
    for given in (model, model.predict(log)):
        assert Basis.of(given, log) == Basis(sample=250, balanced=True, unseen=0.2)


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


def audited(frame, **more):
    population = (LOG.n_users, LOG.n_items)
    seen = Logistic().fit(frame, population=population)
    models = {name: name for name in "ab"}
    return audit(models, seen.with_column(frame), "propensity", metrics=["mae"], population=population, **more), seen


def test_the_model_of_a_column_says_as_much_as_the_model_itself():
    frame = as_frame(LOG.rating)
    found, seen = audited(frame)
    told, _ = audited(frame, assumes=seen)
    models = {name: WORLD.predictions[name] for name in "ab"}
    here = audit(models, LOG, Logistic().fit(LOG), metrics=["mae"], check=False)
    one, other = (x.contrast("a", "b", metric="mae", estimator="snips") for x in (told, here))
    assert (one.rho, one.rho_low) == pytest.approx((other.rho, other.rho_low), rel=1e-6)
    assert [r.code for r in told.verdict.reasons] == [r.code for r in here.verdict.reasons]
    assert told.verdict.supported == here.verdict.supported
    assert found.setting.log == "a polars frame"


def test_a_sentence_is_a_sentence_and_anything_else_is_refused():
    assert granted("nobody chose") == {"assumes": "nobody chose"}
    by_logistic = {"assumes": Logistic.assumes, "blind": True, "by_items": True}
    assert granted("logistic") == by_logistic
    assert granted(Logistic().fit(LOG)) == by_logistic | {"modelled": False, "sampled": None}
    drawn = WORLD.ratings.ravel()[:250]
    for model in (NaiveBayes(), Calibrated(NaiveBayes(), method=None, floor=0.001)):
        assert granted(model.fit(LOG, uniform=drawn))["sampled"] == 250
    assert granted("balanced")["sampled"] == 0
    with pytest.raises(NotFittedError):
        granted(NaiveBayes())
    with pytest.raises(InputError, match="assumes= must be a sentence or a model of propensities, got int"):
        granted(3)


def test_a_column_fitted_on_positives_alone_is_no_exposure():
    frame = as_frame(np.ones(len(LOG), np.float32))
    with pytest.raises(UndefinedError, match="positives only"):
        audited(frame, assumes="logistic")


def test_a_column_that_was_fitted_with_a_sample_decides_nothing():
    drawn = np.random.default_rng(0).choice(WORLD.ratings.ravel(), 250)
    frame, population = as_frame(LOG.rating), (LOG.n_users, LOG.n_items)
    seen = NaiveBayes().fit(frame, uniform=drawn, population=population)
    models, column = {name: name for name in "ab"}, seen.with_column(frame)
    for said in (seen, "naive-bayes"):  # intervals of a frame leave out the chance of the sample
        found = audit(models, column, "propensity", metrics=["mae"], population=population, assumes=said)
        assert found.verdict.level == "none"
        assert "taken-as-known" in [r.code for r in found.verdict.reasons]


def test_a_column_of_a_joint_model_decides_nothing():
    joint = MixtureMNAR(1, iterations=5, restarts=1, rng=0).fit(LOG).propensities_
    frame = as_frame(LOG.rating).with_columns(p=joint.predict(LOG).values)
    models, population = {name: name for name in "ab"}, (LOG.n_users, LOG.n_items)
    found = audit(models, frame, "p", metrics=["mae"], population=population, assumes=joint)
    assert "modelled" in [r.code for r in found.verdict.reasons]
    assert not found.verdict.supported


def test_numbers_of_unknown_origin_are_said_to_be_taken_as_known():
    models = {name: WORLD.predictions[name] for name in "ab"}
    found = audit(models, LOG, metrics=["mae"])
    assert any("as known" in sentence and "assumes" in sentence for sentence in found.verdict.sentences)
    fitted = audit(models, LOG, Logistic().fit(LOG), metrics=["mae"], check=False)
    assert not any("as known" in sentence for sentence in fitted.verdict.sentences)
