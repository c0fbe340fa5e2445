"""Real data: the test set is only tested on, and Naive Bayes' sample is not among it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.studies.schnabel2016 import real_data
from tests.facts import facts
from tests.studies.schnabel2016.conftest import I, U

SMALL = {"factors": (2,), "lambdas": (1e-4, 1e-3)}


def test_the_sample_of_naive_bayes_is_a_twentieth_that_is_never_tested(songs):
    log, drawn = songs
    parts = real_data.yahoo(log, drawn, seed=0)
    given, (note,) = parts.given, parts.notes
    assert len(given["test_user"]) == 950
    tested = given["test_user"].astype(np.int64) * I + given["test_item"]
    aside = np.setdiff1d(drawn.cell, tested)
    assert len(aside) == 50
    assert re.search(facts("Yahoo! R3", "Naive Bayes", 50, 950), note)
    # Eq. 18 with Laplace's estimate from these 50
    sample = drawn.rating[np.isin(drawn.cell, aside)]
    of_fives = np.mean(log.rating == 5) * len(log) / (U * I) / ((np.sum(sample == 5) + 1) / (50 + 5))
    assert np.unique(given["bayes"][log.rating == 5]) == pytest.approx([min(of_fives, 1)])


def test_a_trial_that_predicts_is_given_no_rating_of_the_test_set(songs):
    parts = real_data.yahoo(*songs, seed=0)
    assert sorted(parts.given) == ["bayes", "item", "rating", "shape", "test_item", "test_user", "user"]
    assert len(parts.given["rating"]) == len(parts.given["bayes"]) == len(songs[0])
    found = real_data.predicted(parts.given, by="bayes", loss="squared", seed=0, **SMALL)
    assert found["prediction"].shape == (len(parts.test),)
