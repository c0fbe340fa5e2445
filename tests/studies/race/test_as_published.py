"""As published: no offsets are left, labels are learned, and both ways are beside each other."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.race import as_published
from openloop.studies.race.as_published import TARGETED, THEIRS, raced_as_published, targeted_as_published
from openloop.studies.race.entrants import RACERS
from openloop.studies.race.measures import AUC, NDCG_ONE
from openloop.studies.race.protocol import settled, starting
from openloop.studies.race.published import PRINTED
from openloop.studies.race.user_draws import Resampled
from tests.studies.race.conftest import claim_about

BOTH = {**THEIRS, **TARGETED}


@pytest.mark.parametrize("name", BOTH)
def test_nothing_is_left_of_the_offsets(ground, name):
    model = settled(BOTH[name], starting(ground.given, label=3, seed=0, quick=True)).model
    assert np.abs(model.user_bias_).max() < 1e-5
    assert np.abs(model.item_bias_).max() < 1e-5
    assert np.abs(model.user_factors_).max() > 1e-3


def test_every_row_has_a_racer_and_a_printed_number():
    assert set(BOTH) <= set(RACERS)
    assert {one.printed for one in BOTH.values()} <= set(PRINTED)


@pytest.mark.parametrize(("name", "trial"), [("MF-IPS", raced_as_published), ("TDR", targeted_as_published)])
def test_a_trial_is_the_settled_model(ground, name, trial):
    found = trial(ground.given, entrant=name, label=3, seed=0, quick=True)["prediction"]
    model = settled(BOTH[name], starting(ground.given, label=3, seed=0, quick=True)).model
    assert found == pytest.approx(model.predict(ground.test.user, ground.test.item))


def test_tdr_is_targeted_and_as_coded(ground):
    learner = TARGETED["TDR"].learner(starting(ground.given, label=3, seed=0, quick=True))
    assert (learner.targeted, learner.variant, learner.weights) == (True, "as_coded", "dr-jl")


def test_claims_are_about_every_row():
    draws = 0.001 * np.random.default_rng(0).normal(size=101)

    def rows(by):
        at = {who: PRINTED[one.printed].auc + by for who, one in BOTH.items()}
        return {who: {AUC: Resampled(auc + draws), NDCG_ONE: Resampled(auc + draws)} for who, auc in at.items()}

    both = list(as_published.claims(BOTH, rows(0.0), rows(0.05)))
    assert all(claim.holds for claim in both)
    less = rows(0.05)
    less["TDR"] = rows(-0.05)["TDR"]
    assert not claim_about(as_published.claims(BOTH, rows(0.0), less), "offsets", "ratings", "this table").holds
    assert not claim_about(as_published.claims(BOTH, less, rows(0.2)), 0.03, "this table").holds


def test_a_small_run_shows_both_ways(ground, run, monkeypatch):
    few = {name: THEIRS[name] for name in ("MF naive", "MF-IPS")}
    monkeypatch.setattr(as_published, "THEIRS", few)
    monkeypatch.setattr(as_published, "coat_ground", lambda _: ground)
    monkeypatch.setattr(type(run), "load", lambda *_: None)
    (table,) = as_published.as_published(run).tables
    shown = {**few, **TARGETED}
    assert [row[0] for row in table.rows] == list(shown)
    assert [row[1].published for row in table.rows] == [PRINTED[one.printed].auc for one in shown.values()]
