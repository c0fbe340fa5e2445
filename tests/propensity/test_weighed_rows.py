"""Item factors by hand, and when rows are too few or too unlike the targets."""

from types import SimpleNamespace

import numpy as np
import pytest

import openloop as ol
from openloop.propensity.solvers.calibration import Raked
from openloop.propensity.weighed_rows import ROWS_EACH, WeighedRows, item_factors, thin

W = np.array([1.0, 3.0, 2.0])
TILTED = np.array([2.0, 6.0, 1.0])


def targets(number):
    return [SimpleNamespace(names=tuple(range(number)))]


def raked(factor):
    return Raked(factor=factor, mu=np.zeros(1), off=np.zeros(1))


def test_items_keep_their_sums_and_items_without_rows_get_the_common_factor():
    rows = SimpleNamespace(item=np.array([0, 0, 2]), n_items=4)
    common = 6 / 9
    assert item_factors(rows, W, TILTED, by_item=True) == pytest.approx([4 / 8, common, 2 / 1, common])
    assert item_factors(rows, W, TILTED, by_item=False) == pytest.approx([common] * 4)


def test_as_many_rows_as_the_means_need_are_enough():
    assert not thin(targets(3), np.ones(3 * ROWS_EACH), raked(np.ones(3 * ROWS_EACH)))
    few = thin(targets(4), np.ones(3 * ROWS_EACH), raked(np.ones(3 * ROWS_EACH)))
    assert "4 means" in few
    assert "75 effective rows" in few
    assert "3 only" in few


def test_weights_that_lose_most_rows_are_reported_for_a_single_target():
    n = 4 * ROWS_EACH
    heavy = np.where(np.arange(n) < n // 5, 1.0, 1e-9)
    assert "20 of 100 effective rows" in thin(targets(1), np.ones(n), raked(heavy))
    assert not thin(targets(1) * 2, np.ones(n), raked(heavy))


def test_rows_carry_the_weights_of_the_model_inside():
    log = ol.simulate.movie_lovers().observe(rng=0)
    weighed = WeighedRows.of(log, ol.propensity.Uniform().fit(log), None)
    assert weighed.alone
    assert weighed.size == len(log)
    assert weighed.w == pytest.approx(np.full(len(log), 8000 / len(log)))
    assert weighed.typical == np.median(np.bincount(log.item)[log.item])
    assert not WeighedRows.of(log, ol.propensity.Popularity(gamma=1).fit(log), None).alone
