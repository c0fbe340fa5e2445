"""From predictions to metrics, tables and paired differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from openloop.studies.race import finishing
from openloop.studies.race.entrants import RACERS, raced
from openloop.studies.race.finishing import Finish, counts_of, finishes, gaps, gaps_table, standing, standings_table
from openloop.studies.race.measures import AUC, MAE, MSE, NDCG_ONE


def made_up(ground, name, *noises):
    rng = np.random.default_rng(0)
    truth = ground.test.rating
    predictions = {0: np.array([truth + noise * rng.normal(size=len(truth)) for noise in noises])}
    return Finish(name=name, entrant=RACERS["MF-IPS"], predictions=predictions, chosen=("λ",))


@pytest.fixture
def found(ground, run):
    counts = counts_of(run, ground.test)
    entrants = {"MF-IPS": made_up(ground, "MF-IPS", 1.0, 1.0), "better": made_up(ground, "better", 0.5)}
    return {name: standing(ground.test, one, 3, ground.everywhere, counts) for name, one in entrants.items()}


def test_metrics_are_means_over_seeds(ground, run):
    one = made_up(ground, "x", 0.5, 2.0)
    got = standing(ground.test, one, 3, ground.everywhere, counts_of(run, ground.test))
    truth, scores = ground.test.rating, one.predictions[0]
    assert got[MSE].value == pytest.approx(np.mean((scores - truth) ** 2))
    assert got[AUC].value == pytest.approx(np.mean([roc_auc_score(truth >= 3, score) for score in scores]))


def test_some_cells_are_those_alone(ground, run):
    fresh, one = ground.fresh, made_up(ground, "x", 0.7)
    assert 0 < fresh.sum() < len(fresh)
    got = standing(ground.test, one, 3, fresh, counts_of(run, ground.test))
    e = (one.predictions[0][0] - ground.test.rating)[fresh]
    assert got[MAE].value == pytest.approx(np.abs(e).mean())


def test_who_learns_labels_is_ranked_by_those_of_the_threshold_and_has_no_error(ground, run):
    truth = ground.test.rating
    by_label = {3: np.array([truth]), 4: np.array([-truth])}
    one = Finish(name="x", entrant=RACERS["RelMF"], predictions=by_label, chosen=())
    counts = counts_of(run, ground.test)
    three, four = (standing(ground.test, one, label, ground.everywhere, counts) for label in (3, 4))
    assert (three[AUC].value, four[AUC].value) == (1.0, 0.0)
    assert MSE not in three


def test_differences_are_paired_and_starred(found):
    gap = gaps(found, "MF-IPS", MSE)["better"]
    assert gap.difference.value == pytest.approx(found["better"][MSE].value - found["MF-IPS"][MSE].value)
    assert gap.significant
    ((name, *cells),) = gaps_table("t", "c", found, "MF-IPS").rows
    assert name == "better"
    assert all(cell.endswith("*") for cell in cells)


def test_published_numbers_are_beside_the_papers_own_metrics(found):
    entrants = {"MF-IPS": RACERS["MF-IPS"], "better": RACERS["Stack"]}
    table = standings_table("t", "c", found, entrants, printed=True)
    published = {place: value.published for place, value in table.values() if value.published is not None}
    assert published == {f"MF-IPS, {AUC}": 0.717, f"MF-IPS, {NDCG_ONE}": 0.617}
    bare = standings_table("t", "c", found, entrants, printed=False)
    assert all(value.published is None for _, value in bare.values())


def test_every_entrant_finishes_with_every_seed_and_label(ground, run):
    entrants = {name: RACERS[name] for name in ("Bias-IPS", "Bias naive, of labels")}
    rating, label = finishes(run, raced, ground, entrants, 2)
    n = len(ground.test)
    assert {key: values.shape for key, values in rating.predictions.items()} == {0: (2, n)}
    assert {key: values.shape for key, values in label.predictions.items()} == {3: (2, n), 4: (2, n)}
    alone = raced(ground.given, entrant="Bias naive, of labels", label=4, seed=1, quick=True)["prediction"]
    assert label.scores(4)[1].tolist() == alone.tolist()


def test_draws_are_as_many_as_the_run_wants(ground, run):
    assert counts_of(run, ground.test).shape == (1 + finishing.QUICK_DRAWS, ground.test.n_users)
    assert counts_of(replace(run, quick=False), ground.test).shape[0] == 1 + finishing.DRAWS


def test_only_users_who_are_tested_are_drawn(ground, run):
    some = ground.test.take(ground.test.user < 20)
    counts = counts_of(run, some)
    assert (counts[:, 20:] == 0).all()
    assert (counts.sum(axis=1) == 20).all()
