"""The trial: splits that every model shares, and the places of what users liked."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.learners.zoo_models import FAMILIES, SIZES
from openloop.studies.jadidinejad2021 import models
from openloop.studies.jadidinejad2021.models import given_of, names, places, relevant, split_of
from tests.studies.jadidinejad2021 import many


class Popular:
    """Scores every item by its rows."""

    def fit(self, log):
        self.counts = np.bincount(log.item, minlength=log.n_items).astype(float)
        return self

    def scores(self, users):
        return np.tile(self.counts, (len(users), 1))


def test_a_split_is_every_row_once_and_a_fifth_is_held_out():
    _, log, drawn = many.logs()
    given = given_of(log, drawn)
    part = split_of(given, 3, 0)
    assert sorted([*part.train, *part.test]) == list(range(len(log)))
    assert part.share == pytest.approx(0.2, abs=1 / len(log))
    assert sorted(part.order) == sorted(np.unique(log.item[part.train]))
    assert not np.array_equal(part.test, split_of(given, 4, 0).test)
    assert not np.array_equal(part.test, split_of(given, 3, 1).test)


def test_relevant_cells_have_four_stars_or_more():
    log = Feedback.from_arrays([0, 0, 1], [0, 1, 1], [4, 3, 5], users=2, items=2)
    given = given_of(log, log)
    assert [cells.tolist() for cells in relevant(given)] == [[0, 1], [0, 1]]
    assert [cells.tolist() for cells in relevant(given, np.array([1, 2]))] == [[1], [1]]


def test_places_by_hand():
    scores = np.array([[4.0, 3.0, 3.0, 1.0]])
    train = Feedback.from_arrays([0], [0], [5], users=1, items=4)
    user, item = np.array([0, 0]), np.array([2, 3])
    above, tied, above_all, tied_all, coded = places(scores, train, np.array([0, 1, 3]), user, item)
    assert (above.tolist(), tied.tolist()) == ([0, 2], [2, 1])
    assert (above_all.tolist(), tied_all.tolist()) == ([1, 3], [2, 1])
    assert coded.tolist() == [0, 3]  # item 2 is not in the training part, so the code does not rank it


def test_a_trial_ranks_held_out_and_drawn_cells(monkeypatch):
    monkeypatch.setattr(models, "unfitted", lambda *_: Popular())
    _, log, drawn = many.logs()
    given = given_of(log, drawn)
    found = models.trial(given, model="any", split=0, seed=0)
    part = split_of(given, 0, 0)
    assert found["closed"].shape == (5, int((log.rating[part.test] >= 4).sum()))
    assert found["open"].shape == (5, int((drawn.rating >= 4).sum()))
    train = np.bincount(log.item[part.train], minlength=many.ITEMS)
    _, item = relevant(given)
    assert found["open"][2].tolist() == [(train > train[i]).sum() for i in item]  # above among all items
    assert "open" not in models.trial(given_of(log), model="any", split=0, seed=0)


def test_names_are_the_zoos():
    assert names(("GA", "MF"), (10, 20)) == ("GA", "MF10", "MF20")
    assert len(names(FAMILIES, SIZES)) == 104
