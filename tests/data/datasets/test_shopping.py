"""Coat and Amazon: matrices and lines, and what stands beside them."""

from __future__ import annotations

import re

import numpy as np

from openloop.data import datasets
from openloop.propensity import Known
from tests.data.datasets.originals import cells, write
from tests.facts import facts


def test_coat_is_two_logs_over_one_grid_with_propensities_and_covariates(tmp_path):
    data = datasets.load("coat", write("coat", tmp_path))
    assert cells(data.log) == [(0, 1, 2), (1, 0, 5), (1, 2, 1)]
    assert cells(data.open_loop) == [(0, 0, 3), (0, 1, 2), (1, 2, 4)]
    assert data.propensities.tolist() == [[0.1, 0.5, 0.2], [0.25, 0.01, 1.0]]
    assert data.user_covariates.names == ("gender:men", "gender:women")
    assert data.item_covariates.values.tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert not data.open_loop.uniform
    (note,) = data.notes
    assert re.search(facts("2 cells", "both files", 1, "different ratings"), note)


def test_the_real_coat_is_as_published(data_dir):
    data = datasets.load("coat", data_dir("coat").parent)
    assert (data.log.n_users, data.log.n_items, len(data.log), len(data.open_loop)) == (290, 300, 6_960, 4_640)
    assert np.bincount(data.log.user).tolist() == [24] * 290
    assert np.bincount(data.open_loop.user).tolist() == [16] * 290
    assert len(np.intersect1d(data.log.cell, data.open_loop.cell)) == 366
    (note,) = data.notes
    assert re.search(facts("366 cells", "both files"), note)
    assert "different" not in note
    assert (data.user_covariates.values.shape, data.item_covariates.values.shape) == ((290, 14), (300, 33))
    p = Known(data.propensities).fit(data.log).predict(data.log)
    assert p.values.tolist() == data.propensities[data.log.user, data.log.item].tolist()


def test_amazon_ids_stay_text(tmp_path):
    log = datasets.load("amazon-games", write("amazon-games", tmp_path)).log
    assert cells(log) == [
        ("A24SSUT5CSW8BH", "0078764343", 5),
        ("AB9S9279OZ3QO", "0078764343", 5),
        ("AB9S9279OZ3QO", "B00000JRSB", 4),
    ]
    assert log.time.tolist() == [1377302400, 1373155200, 1372550400]
