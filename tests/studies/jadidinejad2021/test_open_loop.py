"""The open loop in four senses: which models rank it, and which of its ratings count."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.jadidinejad2021 import models
from openloop.studies.jadidinejad2021.open_loop import TARGETS, counted_ratings, targets
from tests.studies.jadidinejad2021 import many


def cells(method):
    """The relevant cells that a target looks at."""
    return set(zip(method.args[0].user.tolist(), method.args[0].item.tolist(), strict=True))


def pairs(user, item):
    return set(zip(user.tolist(), item.tolist(), strict=True))


def test_the_open_loop_in_four_senses():
    found = many.some_experiment(1).splits[0].targets
    assert tuple(found) == TARGETS
    # Made-up models are not fitted, so that whole log and split differ in what is left out only.
    assert found["printed"](None).value == pytest.approx(found["published"](None).value, rel=0.05)


def test_each_sense_counts_cells_of_its_own():
    _, log, drawn = many.logs()
    found = many.some_experiment(1).splits[0]
    train = found.held.split.train
    relevant = pairs(drawn.user[drawn.rating >= 4], drawn.item[drawn.rating >= 4])
    assert cells(found.targets["published"]) == cells(found.targets["printed"]) == relevant
    assert cells(found.targets["unseen"]) == relevant - pairs(log.user, log.item) != relevant
    assert cells(found.targets["candidates"]) == relevant - pairs(log.user[train], log.item[train]) != relevant


def test_as_coded_the_open_loop_leaves_out_whom_the_log_does_not_show():
    taste, log, drawn = many.logs()
    log = log.take(np.flatnonzero((log.user != 3) & (log.item != 5)))
    fits = many.fits_of(models.given_of(log, drawn), many.scores_of(taste, 3), 1)
    user, item = models.relevant(fits.given)
    kept = (user != 3) & (item != 5)
    found = targets(fits, 0)
    assert cells(found["published"]) == pairs(user[kept], item[kept])
    assert cells(found["printed"]) == pairs(user, item)
    counts = counted_ratings(fits, 0, "published")
    assert counts.tolist() == ((drawn.user != 3) & (drawn.item != 5)).tolist()


def test_ratings_that_were_trained_on_are_no_candidates():
    _, log, drawn = many.logs()
    fits = many.some_experiment(1).fits
    train = models.split_of(fits.given, 0, 0).train
    trained = pairs(log.user[train], log.item[train])
    counts = counted_ratings(fits, 0, "candidates")
    expected = [cell not in trained for cell in zip(drawn.user.tolist(), drawn.item.tolist(), strict=True)]
    assert counts.tolist() == expected
    assert 0 < counts.sum() < len(drawn)
