"""Table 2: the test set is only tested on, Naive Bayes' sample is not among it, and Coat comes out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import openloop as ol
from openloop.data import datasets
from openloop.data.simulate import World, low_rank, observation_model
from openloop.errors import InputError
from openloop.studies.kit.results import Value
from openloop.studies.kit.running import Run
from openloop.studies.kit.trials import Trials
from openloop.studies.schnabel2016 import real_data
from openloop.studies.schnabel2016.published import PUBLISHED
from openloop.studies.schnabel2016.real_data import NAMES

U, I = 150, 60
SMALL = {"factors": (2,), "lambdas": (1e-4, 1e-3)}


@pytest.fixture(scope="module")
def songs():
    """In the shape of Yahoo! R3: what people chose to rate, and ten items each that were drawn for some of them."""
    Y = low_rank(U, I, 2, rng=0)
    log = World(ratings=Y, propensities=observation_model(Y, 0.25, 0.12)).observe(rng=0)
    rng = np.random.default_rng(1)
    user = np.repeat(np.arange(100), 10)
    item = np.concatenate([np.sort(rng.choice(I, 10, replace=False)) for _ in range(100)])
    drawn = ol.Feedback.from_arrays(user, item, Y[user, item], users=U, items=I)
    return replace(log, propensity=None), drawn


@pytest.fixture
def run(tmp_path):
    with Trials(tmp_path, 0) as trials:
        yield Run(folder=tmp_path, quick=True, seed=0, trials=trials)


@pytest.fixture(scope="module")
def coat_result(data_dir, tmp_path_factory):
    with Trials(tmp_path_factory.mktemp("trials"), 0) as trials:
        yield real_data.table2(Run(folder=data_dir("coat").parent, quick=True, seed=0, trials=trials))


def test_the_sample_of_naive_bayes_is_a_twentieth_that_is_never_tested(songs):
    log, drawn = songs
    parts = real_data.yahoo(log, drawn, seed=0)
    given, (note,) = parts.given, parts.notes
    assert len(given["test_user"]) == 950
    tested = given["test_user"].astype(np.int64) * I + given["test_item"]
    aside = np.setdiff1d(drawn.cell, tested)
    assert len(aside) == 50
    assert note.startswith("Yahoo! R3: 50 uniform ratings were set aside")
    # Eq. 18 with Laplace's estimate from these 50
    sample = drawn.rating[np.isin(drawn.cell, aside)]
    of_fives = np.mean(log.rating == 5) * len(log) / (U * I) / ((np.sum(sample == 5) + 1) / (50 + 5))
    assert np.unique(given["bayes"][log.rating == 5]) == pytest.approx([min(of_fives, 1)])


def test_a_data_set_in_the_shape_of_yahoo_is_learned_and_shown_beside_the_published_numbers(songs, run):
    tables, claims = real_data.real(run, "yahoo-r3", real_data.yahoo(*songs, seed=0), seeds=2)
    errors, _, significance, _ = tables  # the second is without cells that are in the log too
    assert [row[0] for row in errors.rows] == [NAMES["bayes"], NAMES["naive"], "HL-MNAR", "HL-MAR", "CPT-v"]
    (_, mae, mse), naive = errors.rows[0], errors.rows[1]
    assert (mae.published, mse.published) == (0.810, 0.989)
    assert mse.value < naive[2].value
    assert errors.rows[4][1:] == (Value(value=None, published=0.770), Value(value=None, published=1.115))
    assert len(significance.rows) == 2
    assert len(claims) == 5


def test_a_trial_that_predicts_is_given_no_rating_of_the_test_set(songs):
    parts = real_data.yahoo(*songs, seed=0)
    assert sorted(parts.given) == ["bayes", "item", "rating", "shape", "test_item", "test_user", "user"]
    assert len(parts.given["rating"]) == len(parts.given["bayes"]) == len(songs[0])
    found = real_data.predicted(parts.given, by="bayes", loss="squared", seed=0, **SMALL)
    assert found["prediction"].shape == (len(parts.test),)
    assert float(found["lambda"]) in SMALL["lambdas"]


def test_trials_of_propensities_are_given_nothing_of_the_test_set(data_dir, run, monkeypatch):
    whole, seen = datasets.load("coat", data_dir("coat").parent), []

    def spied(_run, _trial, given, **_setting):
        seen.append(sorted(given))
        return {"p": np.linspace(0.1, 0.9, len(given["user"])), "reg": np.array(1.0)}

    monkeypatch.setattr(Run, "one", spied)
    real_data.coat(run, whole)
    assert seen == [["item", "item_covariates", "rating", "shape", "user", "user_covariates"]] * 2


def test_significance_is_students_over_cells_and_that_of_evaluate_by_user(songs):
    test = real_data.yahoo(*songs, seed=0).test
    rng = np.random.default_rng(2)
    truth = test.rating
    good, bad = (truth + rng.normal(scale=scale, size=(2, len(truth))) for scale in (0.5, 0.6))
    found = [
        real_data.Tested(by=by, loss="squared", predictions=predictions, chosen=("",))
        for by, predictions in (("bayes", good), ("naive", bad))
    ]
    (contrast,) = real_data.contrasts(test, found)
    tests = [stats.ttest_rel(a, b) for a, b in zip((good - truth) ** 2, (bad - truth) ** 2, strict=True)]
    assert contrast.over_cells.p in [pytest.approx(test.pvalue) for test in tests]
    assert contrast.by_user.mean == pytest.approx(contrast.over_cells.mean)
    assert contrast.by_user.stderr != contrast.over_cells.stderr


def test_errors_without_some_cells_have_no_published_number_beside_them(songs):
    test = real_data.yahoo(*songs, seed=0).test
    n, exact = len(test), np.tile(test.rating, (1, 1))
    found = [
        real_data.Tested(by="naive", loss=loss, predictions=exact + 1, chosen=("",)) for loss in ("squared", "absolute")
    ]
    some = np.arange(n) > 0
    table = real_data.error_table("yahoo-r3", test, found, some, "some")
    assert [(value.value, value.published) for _, value in table.values()] == [(1.0, None), (1.0, None)]
    whole = real_data.error_table("yahoo-r3", test, found, np.ones(n, bool), "all")
    assert [value.published for _, value in whole.values()][:2] == [1.154, 1.891]


def test_a_missing_part_of_a_data_set_is_named(data_dir, run):
    whole = datasets.load("coat", data_dir("coat").parent)
    with pytest.raises(InputError, match=r"needs propensities\.ascii"):
        real_data.coat(run, replace(whole, propensities=None))


def test_coat_comes_out(coat_result):
    # The λ of the absolute loss, and with it the MAE, hangs on how the log falls into folds: MSE does not.
    held = {claim.text.rstrip("."): claim.holds for claim in coat_result.claims}
    assert held["coat: the MSE of MF-IPS is at most the published 1.093"]
    assert held["coat: MF-IPS is below the published errors of HL-MNAR and HL-MAR, in MAE and MSE"]
    whole, fresh, significance, _, yahoo = coat_result.tables
    assert all(value.value is None for _, value in yahoo.values())
    assert all(row[1].value < 0 for row in significance.rows)
    assert [row[2:5:2] for row in significance.rows if "MSE" in row[0]] == [("< 0.001", "< 0.001")] * 3
    assert "4,640" in whole.caption
    assert "366" in fresh.caption
    printed = PUBLISHED["table2"]["coat"]
    assert whole.rows[0][2].published == printed["MF-IPS"]["mse"]
    assert [row[0] for row in whole.rows[4:]] == ["HL-MNAR", "HL-MAR"]
    # cells that were trained on are easier
    assert all(old[2].value < new[2].value for old, new in zip(whole.rows[:4], fresh.rows, strict=True))


def test_propensities_as_the_paper_trained_them_are_closest_to_the_published_ones(coat_result):
    note = coat_result.notes[0]
    pairs, offsets = (float(part) for part in note.rstrip(".").split(" over the log is ")[1].split(" and "))
    assert offsets < pairs
    assert pairs > 0.97
