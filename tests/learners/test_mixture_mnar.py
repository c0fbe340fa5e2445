"""MixtureMNAR: contracts, recovery of what the model drew, coverage of its intervals, files, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import AlignmentError, InputError, RatingError, UndefinedError
from openloop.learners import mixture_mnar
from openloop.learners.mixture_mnar import MixtureMNAR
from openloop.learners.rating_propensities import RatingPropensities
from tests.contracts import PersonalRecommenderContract, PropensityModelContract
from tests.facts import facts


class TestMixtureMNAR(PersonalRecommenderContract):
    weighted = False

    def make(self):
        return MixtureMNAR(components=2, restarts=2)


class TestMixtureMNARByItems(TestMixtureMNAR):
    def make(self):
        return MixtureMNAR(components=2, missing="logit-vd", restarts=1)


class TestPropensitiesOfMixtureMNAR(PropensityModelContract):
    has_matrix = has_margins = sums_to_log = False

    def make(self):
        return RatingPropensities(MixtureMNAR(components=2, missing="logit-vd", restarts=1))


# --- worlds of its own kind

MU = np.array([0.15, 0.3, 0.6])


def world(seed: int, users: int = 400, items: int = 10, offset_sd: float = 0.0, mu=MU):
    """A log that the model drew, the ratings 1, 2, 3 of all cells, and ω of the items."""
    rng = np.random.default_rng(seed)
    beta = rng.dirichlet(np.ones(3), (2, items))  # (Z, I, L)
    z = rng.choice(2, users, p=[0.4, 0.6])
    level = (rng.random((users, items, 1)) > beta[z].cumsum(axis=2)[:, :, :2]).sum(axis=2)  # (U, I)
    omega = offset_sd * rng.standard_normal(items)
    user, item = np.nonzero(rng.random((users, items)) < expit(logit(mu)[level] + omega))
    return Feedback.from_arrays(user, item, level[user, item] + 1.0, users=users, items=items), level + 1.0, omega


def drawn(*given, **named) -> tuple[Feedback, np.ndarray]:
    """The log and the ratings alone."""
    return world(*given, **named)[:2]


def fitted(log: Feedback, **given) -> MixtureMNAR:
    return MixtureMNAR(**{"components": 2, "rating_prior": 0.1, "restarts": 1, **given}).fit(log)


@pytest.mark.parametrize(("missing", "offset_sd"), [("cpt-v", 0.0), ("logit-vd", 0.7)])
def test_intervals_of_90_percent_cover_what_the_world_was_drawn_with(missing, offset_sd):
    held = []
    for seed in range(20):
        log, _ = drawn(seed, offset_sd=offset_sd)
        # Of single starts one in twelve ends at a lower maximum, whose intervals are elsewhere.
        model = fitted(log, missing=missing, offset_sd=offset_sd or 1.0, restarts=2)
        low, high = model.missing_interval(log, 0.9).T
        assert np.all((low < model.observed_chances_) & (model.observed_chances_ < high))
        held.append((low <= MU) & (high >= MU))
    assert 0.8 <= np.mean(held) <= 0.97


def test_it_is_right_where_the_observed_ratings_are_not():
    log, truth = drawn(1, users=3000)
    model = fitted(log)
    # a level's share of all ratings: the log's own shares favour what is observed more often
    shares = np.array([np.mean(truth == level) for level in (1, 2, 3)])
    user, item = (codes.ravel() for codes in np.indices(truth.shape))
    np.testing.assert_allclose(model.predict_proba(user, item).mean(axis=0), shares, atol=0.03)
    assert np.abs(np.bincount(log.rating.astype(int))[1:] / len(log) - shares).max() > 0.15
    np.testing.assert_allclose(model.observed_chances_, MU, atol=0.05)  # three standard errors of the third


def test_ips_with_its_propensities_removes_the_bias():
    log, truth = drawn(2, users=3000)
    p = fitted(log).propensities_
    got = ol.evaluate({"two": np.full(truth.shape, 2.0)}, log, p, metrics=["mse"], estimators=["naive", "snips", "ips"])
    wanted = np.mean((truth - 2) ** 2)
    error = {name: abs(got["two", "mse", name].value - wanted) for name in ("naive", "snips", "ips")}
    assert error["naive"] > 0.05
    assert max(error["snips"], error["ips"]) < error["naive"] / 3


def test_missing_at_random_is_found_to_be_so():
    log, _ = drawn(3, users=2000, mu=np.full(3, 0.3))
    np.testing.assert_allclose(fitted(log).observed_chances_, 0.3, atol=0.03)


def test_items_that_are_observed_more_have_larger_offsets():
    log, _, omega = world(4, users=1500, offset_sd=1.0)
    model = fitted(log, missing="logit-vd")
    assert np.corrcoef(model.item_offsets_, omega)[0, 1] > 0.97
    p = model.propensities_.by_level([0, 7], [3, 3])
    np.testing.assert_array_equal(p[0], p[1])
    np.testing.assert_allclose(logit(p[0]), logit(model.observed_chances_) + model.item_offsets_[3])


# --- laws


@pytest.fixture(scope="module")
def log() -> Feedback:
    return drawn(0, users=60)[0]


@pytest.fixture(scope="module")
def model(log) -> MixtureMNAR:
    return MixtureMNAR(components=3, restarts=3).fit(log)


def test_chances_of_levels_add_up_and_predictions_are_their_means(log, model):
    proba = model.predict_proba(log.user, log.item)
    assert proba.shape == (len(log), 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict(log.user, log.item), proba @ [1, 2, 3])
    np.testing.assert_allclose(model.user_components_.sum(axis=1), 1)


def test_the_best_start_is_kept_and_its_likelihood_rises(model):
    assert model.ends_.shape == (3,)
    assert model.history_[-1] == model.ends_.max()
    assert np.all(np.diff(model.history_) >= -1e-10 * np.abs(model.history_[:-1]))


def test_the_same_seed_gives_the_same_bits_and_another_another_start(log, model):
    again = MixtureMNAR(components=3, restarts=3).fit(log)
    np.testing.assert_array_equal(again.item_levels_, model.item_levels_)
    other = MixtureMNAR(components=3, restarts=3, rng=1).fit(log)
    assert not np.array_equal(other.history_[:1], model.history_[:1])


def test_one_component_is_every_users():
    log, _ = drawn(5, users=50)
    model = MixtureMNAR(components=1, restarts=1).fit(log)
    np.testing.assert_array_equal(model.user_components_, np.ones((50, 1)))
    assert np.ptp(model.scores(np.arange(50)), axis=0).max() == 0


def test_a_part_of_a_log_gives_the_propensities_of_the_whole():
    log, _ = drawn(6, users=3000)
    half, _ = ol.split(log, test=0.5, rng=0)
    model = fitted(half)
    assert model.share_ == pytest.approx(0.5)
    np.testing.assert_allclose(model.propensities_.by_level([0], [0])[0], MU, atol=0.05)


def test_a_file_gives_the_same_answers(log, model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    read = ol.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(read.scores(np.arange(60)), model.scores(np.arange(60)))
    np.testing.assert_array_equal(read.propensities_.predict(log).values, model.propensities_.predict(log).values)
    np.testing.assert_array_equal(read.missing_interval(log), model.missing_interval(log))


def test_the_audit_and_selection_take_it(log):
    p = fitted(log).propensities_
    models = {"bias": ol.learners.Bias().fit(log, propensities=p), "mean": ol.learners.GlobalAverage().fit(log)}
    found = ol.audit(models, log, p, metrics=["mae"])
    assert found.result["bias", "mae", "snips"].value > 0
    best = ol.select(MixtureMNAR(components=2, restarts=1), log, p, folds=2, rng=0)
    assert isinstance(best.model, MixtureMNAR)


# --- notes and refusals


def test_what_was_not_reached_or_not_rated_is_noted(log):
    model = MixtureMNAR(components=2, restarts=1, iterations=3).fit(log)
    assert len(model.history_) == 5  # steps come in pairs
    assert any("iterations=3" in note for note in model.notes_)
    with pytest.raises(UndefinedError, match=facts("MixtureMNAR.missing_interval", "iterations=3")):
        model.missing_interval(log)
    lonely = Feedback.from_arrays(log.user, log.item, log.rating, users=60, items=13)
    assert any("3 items" in note for note in MixtureMNAR(2, restarts=1).fit(lonely).notes_)


def test_chances_that_rest_on_the_prior_or_on_items_alike_are_noted():
    rng = np.random.default_rng(0)
    u, i = np.nonzero(rng.random((400, 10)) < np.where(np.arange(10) < 5, 0.05, 0.55))  # popularity, and no rating
    unequal = Feedback.from_arrays(u, i, rng.integers(1, 4, len(u)), users=400, items=10)
    strong, weak = {"rating_prior": 1e6}, {"rating_prior": 0.1}
    for log, given, told in (
        (unequal, weak, ["false maximum", "logit-vd"]), (unequal, weak | {"missing": "logit-vd"}, []),
        (unequal, strong | {"missing": "logit-vd"}, ["rating_prior=1e+06"]),
    ):  # fmt: skip
        notes = MixtureMNAR(components=2, restarts=1, **given).fit(log).notes_
        doubts = [note for note in notes if "observed" in note]
        assert len(doubts) == len(told)
        assert all(fact in note for fact, note in zip(told, doubts, strict=True))


def test_a_maximum_where_one_level_is_all_that_is_missing_is_noted():
    rng = np.random.default_rng(0)
    often = expit(rng.normal(-2.3, 1.2, 40) + rng.normal(0, 1, (150, 1)))  # by user and item, and not by rating
    u, i = np.nonzero(rng.random((150, 40)) < often)
    log = Feedback.from_arrays(u, i, rng.integers(1, 6, len(u)), users=150, items=40)
    model = MixtureMNAR(components=5, rating_prior=0.1, restarts=1).fit(log)
    assert model.observed_chances_.max() > 3 * len(log) / 6000
    assert any("false maximum" in note for note in model.notes_)
    for quiet in (drawn(1, users=100)[0], drawn(1, users=100, mu=np.full(3, 0.1))[0]):
        assert not any("false maximum" in note for note in fitted(quiet).notes_)


def test_a_full_grid_is_noted():
    user, item = (codes.ravel() for codes in np.indices((20, 5)))
    full = Feedback.from_arrays(user, item, np.random.default_rng(0).integers(1, 4, 100))
    (note,) = MixtureMNAR(components=2, rating_prior=0.1, restarts=1).fit(full).notes_
    assert "all 100 cells" in note
    assert "users=" in note


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"components": 0}, ("components", 0)),
        ({"components": 61}, ("components", 60, 61)),
        ({"missing": "cpt"}, ("missing", "'cpt'", "'cpt-v'")),
        ({"component_prior": 0}, ("component_prior", 0)),
        ({"rating_prior": -1.0}, ("rating_prior", -1.0)),
        ({"observed_prior": 0.0}, ("observed_prior", 0.0)),
        ({"offset_sd": np.inf}, ("offset_sd", "inf")),
        ({"restarts": 0}, ("restarts", 0)),
        ({"iterations": 1.5}, ("iterations", 1.5)),
        ({"tol": -1}, ("tol", -1)),
        ({"progress": "yes"}, ("progress", "'yes'", "True")),
        ({"rng": "seed"}, ("rng", "'seed'")),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(log, given, told):
    with pytest.raises(InputError, match=facts("MixtureMNAR", *told)):
        MixtureMNAR(**given).fit(log)


def test_weights_and_other_logs_are_refused(log):
    for given in ("sample_weight", "propensities"):
        with pytest.raises(InputError, match=facts("MixtureMNAR", given)):
            MixtureMNAR().fit(log, **{given: np.full(len(log), 0.5)})
    with pytest.raises(UndefinedError, match=facts("MixtureMNAR", "positives")):
        MixtureMNAR().fit(replace(log, positives=True))
    with pytest.raises(RatingError, match=facts("MixtureMNAR", "2 to 20")):
        MixtureMNAR().fit(replace(log, rating=np.ones(len(log), np.float32)))


def test_intervals_want_the_log_that_was_fitted(log, model):
    for other in (drawn(7, users=60)[0], drawn(7, users=61)[0], replace(log, rating=log.rating + 0.5)):
        with pytest.raises(AlignmentError, match=facts("MixtureMNAR.missing_interval", f"{len(other):,}")):
            model.missing_interval(other)
    with pytest.raises(InputError, match=facts("MixtureMNAR.missing_interval", 1.5)):
        model.missing_interval(log, 1.5)


def test_where_the_likelihood_has_no_maximum_there_is_no_interval(log, model, monkeypatch):
    monkeypatch.setattr(mixture_mnar, "information", lambda *_: np.diag([1.0, -1.0, 1.0]))
    with pytest.raises(UndefinedError, match=facts("MixtureMNAR.missing_interval", "restarts=", 3)):
        model.missing_interval(log)
