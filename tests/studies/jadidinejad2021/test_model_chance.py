"""What the published code leaves to chance, drawn again."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.jadidinejad2021 import model_chance, models
from openloop.studies.jadidinejad2021.model_chance import variant
from tests.studies.jadidinejad2021 import many


def given():
    return models.given_of(*many.wide())


def test_rows_come_in_turn_from_equal_parts():
    assert model_chance.interleaved(7, 3).tolist() == [0, 3, 6, 1, 4, 2, 5]
    assert model_chance.interleaved(5, 1).tolist() == [0, 1, 2, 3, 4]
    assert sorted(model_chance.interleaved(5_568, 64)) == list(range(5_568))


@pytest.mark.usefixtures("cornac", "torch")
class TestVariants:
    def test_one_thread_is_the_zoos_bo_and_four_are_not(self):
        known = models.trial(given(), model="BO", split=models.WHOLE, seed=0)["open"]
        np.testing.assert_array_equal(variant(given(), model="BO", kind="threads", number=1)["open"], known)
        assert not np.array_equal(variant(given(), model="BO", kind="threads", number=4)["open"], known)

    def test_other_batches_leave_the_published_start(self):
        known = models.trial(given(), model="WMF32", split=models.WHOLE, seed=0)["open"]
        np.testing.assert_array_equal(
            variant(given(), model="WMF32", kind="batches", number=models.START)["open"], known
        )
        batches = variant(given(), model="WMF32", kind="batches", number=1)["open"]
        start = models.trial(given(), model="WMF32", split=models.WHOLE, seed=0, start=1)["open"]
        near, far = (np.abs(found[4] - known[4]).mean() for found in (batches, start))
        assert 0 < near < far / 2

    def test_items_by_id_get_other_starts(self):
        found = variant(given(), model="MF10", kind="ids", number=models.START)["open"]
        known = models.trial(given(), model="MF10", split=models.WHOLE, seed=0)["open"]
        assert not np.array_equal(found, known)
