"""Propensities that are fitted again to every draw of users: the draws, the values in them, and what is refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import InputError
from openloop.estimators.naming import method
from openloop.evaluation import prepared
from openloop.metrics.naming import metric
from openloop.sources.arrays.refitting import Redrawn, _twin, redrawn
from openloop.sources.plan import values
from openloop.sources.question import Question
from tests.examples import ESTIMATORS, METRICS, same, small_world
from tests.facts import facts

WORLD = small_world(users=60, items=20)
LOG = WORLD.observe(1)
MODELS = dict(WORLD.predictions)
LOGISTIC = ol.propensity.Logistic().fit(LOG)


def refitted(models, log, seen, metrics=("mae",), estimators=("snips",), replicates=60, **more):
    return ol.evaluate(
        models, log, seen, metrics=metrics, estimators=estimators, refit=True, replicates=replicates, **more
    )


# -- draws ---------------------------------------------------------------------------------------------------


def test_a_user_drawn_twice_is_two_users_with_the_same_rows():
    log = Feedback.from_arrays([0, 0, 1, 2], [1, 3, 0, 2], [5, 4, 3, 2], users=3, items=4)
    found, at = redrawn(log, np.array([2, 0, 0]))
    assert found.user.tolist() == [0, 1, 1, 2, 2]
    assert found.item.tolist() == [2, 1, 3, 1, 3]
    assert found.rating.tolist() == [2, 5, 4, 5, 4]
    assert at.tolist() == [3, 0, 1, 0, 1]
    assert (found.n_users, found.n_items) == (3, 4)


def test_covariates_of_users_and_named_samples_follow_the_draw():
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((60, 2)), rng.standard_normal((20, 1))
    draw = rng.integers(60, size=60)
    twin = _twin(ol.propensity.Logistic(reg=1.0).fit(LOG, user_features=X, item_features=Z), draw, rng)
    same(twin.side_["user_features"].values, X[draw])
    same(twin.side_["item_features"].values, Z)
    sample = WORLD.observe(2).take(np.arange(0, 50))
    named = _twin(ol.propensity.NaiveBayes().fit(LOG, uniform=sample), draw, rng).side_["uniform"]
    same(named.rating, redrawn(sample, draw)[0].rating)
    ratings = _twin(ol.propensity.NaiveBayes().fit(LOG, uniform=[1, 2, 3, 4, 5, 5]), draw, rng).side_["uniform"]
    assert len(ratings) == 6


@pytest.mark.parametrize("by", [None, "row", "user"])
def test_the_draw_of_everyone_gives_every_estimate_again(by):
    train, test = (None, LOG) if by is None else ol.split(LOG, test=0.4, by=by, rng=0)
    asked = Question(metrics=METRICS, estimators=ESTIMATORS, exclude=train, imputation=np.full((60, 20), 3.0))
    ready = prepared(MODELS, test, LOGISTIC, asked)
    result = ready.compare()
    again = Redrawn.of(ready.source, LOGISTIC, np.arange(60), gridded=True)
    wanted = [(metric(m), method(e)) for m, e in dict.fromkeys(key[1:] for key in result.estimates)]
    found = values(again, wanted)
    assert found.keys() == result.estimates.keys()
    for key, value in found.items():
        same(value, result[key].value, rtol=1e-9)


# -- errors --------------------------------------------------------------------------------------------------


def test_it_agrees_with_the_correction_for_a_sample_and_says_so():
    # 300 draws know an error to 4 %; both are first-order.
    ratings = np.random.default_rng(0).choice(WORLD.ratings.ravel(), 50)
    seen = ol.propensity.NaiveBayes().fit(LOG, uniform=ratings)
    found, corrected = (
        refitted(MODELS, LOG, seen, ["mae", "recall@3"], replicates=300),
        ol.evaluate(MODELS, LOG, seen, metrics=["mae", "recall@3"], estimators=["snips"]),
    )
    for key, e in found.estimates.items():
        assert e.value == corrected[key].value
        assert e.stderr == pytest.approx(corrected[key].stderr, rel=0.2)
        assert (e.p_taken, corrected[key].p_taken) == ("refitted", "corrected")
        low, high = e.interval()
        assert high - low == pytest.approx(2 * (high - e.value))
    assert any("300 draws" in note for note in found.notes)
    assert "refitted" in str(found)


def test_balanced_weights_are_balanced_again():
    ratings = np.random.default_rng(0).choice(WORLD.ratings.ravel(), 200)
    seen = ol.propensity.Balanced(ol.propensity.Logistic()).fit(LOG, uniform=ratings)
    train, test = ol.split(LOG, test=0.5, rng=0)
    asked = {"metrics": ["mae", "recall@3"], "estimators": ["snips"], "exclude": train}
    ready = prepared(MODELS, test, seen, Question(**asked))
    corrected = ready.compare()
    everyone = Redrawn.of(ready.source, seen, np.arange(60), gridded=False)
    for key, value in values(everyone, [(metric(m), method("snips")) for m in asked["metrics"]]).items():
        same(value, corrected[key].value, rtol=1e-6)  # raking stops at 1e-6
    found = refitted(MODELS, test, seen, **asked, refit_on=LOG, replicates=200)
    for key, e in found.estimates.items():
        assert np.isfinite(e.replicates).all()
        assert e.stderr == pytest.approx(corrected[key].stderr, rel=0.35)


def test_predictions_are_balanced_again_and_the_interval_narrows_with_the_estimate():
    f = WORLD.predictions["a"]
    _, test = ol.split(LOG, test=0.5, rng=0)
    seen = ol.propensity.Balanced(ol.propensity.Logistic()).fit(LOG, predictions=f, imputed=WORLD.ratings)
    asked = {"metrics": ["mae", "recall@3"], "estimators": ["snips"]}
    ready = prepared({"a": f}, test, seen, Question(**asked))
    plain = ready.compare()
    everyone = Redrawn.of(ready.source, seen, np.arange(60), gridded=False)
    for key, value in values(everyone, [(metric(m), method("snips")) for m in asked["metrics"]]).items():
        same(value, plain[key].value, rtol=1e-9)
    found = refitted({"a": f}, test, seen, **asked, refit_on=LOG)
    # Imputed ratings are the truth: in every draw mae is that of the drawn users' cells, and of nothing else.
    e, users = found["a", "mae", "snips"], np.abs(f - WORLD.ratings).mean(axis=1)
    assert e.value == pytest.approx(users.mean(), rel=1e-6)
    assert e.stderr == pytest.approx(users.std(ddof=1) / np.sqrt(60), rel=0.35)
    assert e.stderr < 0.7 * plain["a", "mae", "snips"].stderr


def test_a_model_inside_is_drawn_with_the_one_around_it():
    rng = np.random.default_rng(0)
    X, P = rng.standard_normal((60, 2)), np.array(WORLD.propensities)
    draw, f, ratings = rng.integers(60, size=60), WORLD.predictions["a"], WORLD.ratings.ravel()[:50]
    balanced = ol.propensity.Balanced
    twin = _twin(balanced(ol.propensity.Logistic(reg=1.0)).fit(LOG, predictions=f, user_features=X), draw, rng)
    same(twin.inner_.side_["user_features"].values, X[draw])
    same(twin.side_["predictions"].sums[:, 0], f[draw].sum(axis=1))
    bayes = _twin(balanced(ol.propensity.NaiveBayes()).fit(LOG, uniform=ratings), draw, rng)
    assert bayes.inner_.side_["uniform"] is bayes.side_["uniform"]
    log = redrawn(LOG, draw)[0]
    known = _twin(balanced(ol.propensity.Known(P)).fit(LOG, predictions=f), draw, rng).refit(log).predict(log)
    same(known.base, P[draw][log.user, log.item])


def test_weights_that_are_all_alike_have_the_jackknifes_error():
    seen = ol.propensity.Uniform().fit(LOG)
    found = refitted(MODELS, LOG, seen, ["rmse"], ["snips", "naive"], replicates=300)
    for name in ("snips", "naive"):
        e = found["a", "rmse", name]
        known = ol.evaluate(MODELS, LOG, seen, metrics=["rmse"], estimators=[name])["a", "rmse", name]
        assert e.stderr == pytest.approx(known.stderr, rel=0.2)
        same(e.interval(), known.interval(), atol=0.5 * known.stderr)
    assert found["a", "rmse", "naive"].p_taken == ""


def test_models_share_the_draws():
    models = MODELS | {"twin": MODELS["a"]}
    found = refitted(models, LOG, LOGISTIC)
    a, b = (found[name, "mae", "snips"] for name in "ab")
    same((a - b).replicates, a.replicates - b.replicates)
    same((a.linear() - b.linear()).stderr, (a - b).stderr)
    gap = found.difference("a", "twin", metric="mae", estimator="snips")
    assert (gap.value, gap.stderr) == (0, 0)
    assert (2 * a).stderr == pytest.approx(2 * a.stderr)


def test_the_seed_decides():
    one, again, other = (refitted(MODELS, LOG, LOGISTIC, rng=seed, replicates=5) for seed in (3, 3, 4))
    key = "a", "mae", "snips"
    np.testing.assert_array_equal(one[key].replicates, again[key].replicates)
    assert np.any(one[key].replicates != other[key].replicates)


def test_a_part_is_scored_under_a_fit_of_the_whole():
    train, test = ol.split(LOG, test=0.3, rng=0)
    found = refitted(MODELS, test, LOGISTIC, ["recall@3"], exclude=train, refit_on=LOG, replicates=40)
    e = found["a", "recall@3", "snips"]
    assert np.isfinite(e.replicates).all()
    assert e.value == ol.evaluate(
        MODELS, test, LOGISTIC, metrics=["recall@3"], estimators=["snips"], exclude=train
    )["a", "recall@3", "snips"].value  # fmt: skip


def test_an_audit_takes_it():
    found = ol.audit(MODELS, LOG, LOGISTIC, metrics=["mae"], refit=True, replicates=20, check=False)
    assert found.result["a", "mae", "snips"].p_taken == "refitted"


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"seen": None}, ("refit=", "None")),
        ({"seen": LOGISTIC.predict(LOG)}, ("refit=", "Propensities")),
        ({"seen": WORLD.propensities}, ("refit=", "ndarray")),
        ({"seen": ol.propensity.Known().fit(LOG)}, ("refit=", "Known")),
        ({"replicates": 1}, ("replicates=", 1)),
        ({"log": LOG.take(np.arange(5)), "refit_on": WORLD.observe(9)}, ("refit_on=", 5)),
        ({"log": ol.split(LOG, rng=0)[1]}, ("refit=", "refit_on=")),
        ({"refit_on": MODELS["a"]}, ("refit_on=", "ndarray")),
    ],
    ids=["none", "values", "a grid", "known", "one draw", "another log", "a part", "an array"],
)
def test_what_cannot_be_fitted_again_is_refused(given, names):
    given = {"seen": LOGISTIC, "log": LOG} | given
    seen, log = given.pop("seen"), given.pop("log")
    with pytest.raises(InputError, match=facts(*names)):
        refitted(MODELS, log, seen, **given)


def test_frames_and_a_log_without_refit_are_refused():
    frame = pl.DataFrame(
        {"user": LOG.user, "item": LOG.item, "rating": LOG.rating, "p": LOG.propensity, "m": LOG.rating}
    )
    with pytest.raises(InputError, match=facts("refit=", "frame")):
        ol.evaluate({"m": "m"}, frame, "p", user="user", item="item", rating="rating", population=(60, 20), refit=True,
                    metrics=["mae"], estimators=["snips"])  # fmt: skip
    with pytest.raises(InputError, match=facts("refit_on=", "refit=True")):
        ol.evaluate(MODELS, LOG, LOGISTIC, refit_on=LOG)
