"""MixtureMNAR: contracts, recovery of what the model drew, coverage of its intervals, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.errors import AlignmentError, InputError, RatingError, UndefinedError
from openloop.learners.mixture_mnar import MixtureMNAR
from openloop.learners.rating_propensities import RatingPropensities
from tests.contracts import PersonalRecommenderContract, PropensityModelContract
from tests.facts import facts


class TestMixtureMNAR(PersonalRecommenderContract):
    weighted = False

    def make(self):
        return MixtureMNAR(components=2, restarts=2)


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


def test_missing_at_random_is_found_to_be_so():
    log, _ = drawn(3, users=2000, mu=np.full(3, 0.3))
    np.testing.assert_allclose(fitted(log).observed_chances_, 0.3, atol=0.03)


# --- laws


@pytest.fixture(scope="module")
def log() -> Feedback:
    return drawn(0, users=60)[0]


@pytest.fixture(scope="module")
def model(log) -> MixtureMNAR:
    return MixtureMNAR(components=3, restarts=3).fit(log)


def test_a_part_of_a_log_gives_the_propensities_of_the_whole():
    log, _ = drawn(6, users=3000)
    half, _ = ol.split(log, test=0.5, rng=0)
    model = fitted(half)
    assert model.share_ == pytest.approx(0.5)
    np.testing.assert_allclose(model.propensities_.by_level([0], [0])[0], MU, atol=0.05)


# --- notes and refusals


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
