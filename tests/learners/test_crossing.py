"""Latin folds: every cell has one, of equal size."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.data.simulate import movie_lovers
from openloop.errors import InputError
from openloop.learners.crossing import latin_folds
from tests.facts import facts

LOG = movie_lovers(users=30, items=20).observe(1)


@pytest.mark.parametrize("K", [2, 4, 7])
def test_every_cell_has_a_fold_and_folds_are_of_equal_size(K):
    folds = latin_folds("it", LOG, K, 0)
    u, i = np.indices((30, 20)).reshape(2, -1)
    counts = np.bincount(folds.of(u, i), minlength=K)
    assert counts.sum() == 600
    assert counts.max() - counts.min() <= 30 // K + 20 // K + 1


@pytest.mark.parametrize("folds", [1, 0, -1, 2.5, "4", None, True, 101])
def test_a_number_of_folds_that_makes_no_sense_is_refused(folds):
    with pytest.raises(InputError, match=facts("it", "folds", repr(folds))):
        latin_folds("it", LOG, folds, 0)
