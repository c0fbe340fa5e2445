"""Benches of joint models: worlds are observed by what their names say, and tables are made of what trials found."""

from __future__ import annotations

import numpy as np
import pytest

from bench import joint_propensities, joint_recovery, pages

pytestmark = pytest.mark.slow


def spread_within(values, groups):
    """The mean standard deviation of values inside groups."""
    return np.mean([values[groups == g].std() for g in np.unique(groups)])


@pytest.mark.parametrize("name", joint_propensities.WORLDS)
def test_worlds_have_the_shares_they_say(name):
    world = joint_propensities.world(name)
    assert world.propensities.mean() == pytest.approx(joint_propensities.OBSERVED, rel=1e-6)
    shares = [np.mean(world.ratings == level) for level in range(1, 6)]
    np.testing.assert_allclose(shares, joint_propensities.SHARES, atol=1e-3)


def test_worlds_are_observed_by_what_their_names_say():
    by = {name: joint_propensities.world(name) for name in joint_propensities.WORLDS}
    rating = by["the rating"].ratings
    assert spread_within(by["the rating"].propensities, rating) == pytest.approx(0, abs=1e-12)
    alone = by["user and item alone"].propensities
    logits = np.log(alone / (1 - alone))
    additive = logits.mean(axis=1, keepdims=True) + logits.mean(axis=0) - logits.mean()
    np.testing.assert_allclose(logits, additive, atol=1e-9)
    # Surprise is correlated with the rating and follows from neither rating, user nor item.
    surprise = np.log(by["surprise"].propensities)
    assert np.corrcoef(surprise.ravel(), rating.ravel())[0, 1] > 0.3
    assert spread_within(surprise, rating) > 0.5 * surprise.std()


def test_an_error_of_a_world_is_estimated_less_true(monkeypatch):
    monkeypatch.setattr(joint_propensities, "models", lambda *_: [])
    found = joint_propensities.world_errors({}, name="the rating", seed=0)
    assert found["true p"].shape == (2, 3)
    assert np.abs(found["true p"]).max() < 0.2


def test_the_table_of_worlds_divides_by_naive(monkeypatch):
    outcome = {"true p": np.array([[0.1] * 3, [0.2] * 3]), "naive": np.full((2, 3), 0.4)}
    monkeypatch.setattr(joint_propensities, "kept", lambda _trial, settings, _what: [outcome] * len(settings))
    lines = list(joint_propensities.world_table(2))
    assert lines[2:] == ["| true p | 0.25 / 0.50 | 0.25 / 0.50 | 0.25 / 0.50 | 0.25 / 0.50 |", lines[3]]
    assert "1.00 / 1.00" in lines[3]


def test_coverage_is_the_share_of_intervals_that_hold():
    lines = list(joint_recovery._coverage({"a": [{"m": 1.0, "mse": 3.0}, {"m": 0.5, "mse": 3.0}]}))
    assert lines[2:] == ["| a | m | 0.75 | 0.18 |"]
    assert joint_recovery._compared("x", [{"mse": 1.0}], [{"mse": 2.0}]) == "| x | 1 | 1.000 | 2.000 | 0.500 |"


def test_worlds_from_the_prior_have_all_levels():
    log, truth = joint_recovery._from_prior(np.random.default_rng(0))
    assert np.unique(log.rating).tolist() == [0, 1, 2]
    assert truth[0] < truth[1]
    assert 0 < truth[2] < 1


def test_kept_trials_are_not_computed_again(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = [{"seed": 0, "missing": "cpt-v"}]
    first, again = (pages.kept(joint_recovery.mixture_world, asked, "mixtures") for _ in range(2))
    assert 0 <= float(first[0]["μ"]) == float(again[0]["μ"]) <= 1
    assert capsys.readouterr().out.splitlines() == ["mixtures: 0 of 1", "mixtures: 1 of 1", "mixtures: 1 of 1"]
